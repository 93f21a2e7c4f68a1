# SPDX-License-Identifier: MIT
"""`./schedlab demo` as an entry in the list of commands.

The launcher runs the demo without this module.
"""

import click


@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def demo(arguments: tuple[str, ...]) -> None:
    """Open a page with a guided tour: policies side by side. Installs nothing."""
    from schedlab.monitor.demo.__main__ import main

    main(arguments)
