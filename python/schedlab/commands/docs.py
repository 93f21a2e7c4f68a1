# SPDX-License-Identifier: MIT
"""`./schedlab dev docs`: generates the pictures, tables and pages of the documentation."""

from __future__ import annotations

import click

from schedlab.errors import WrongUsage


@click.command()
@click.argument("names", nargs=-1, metavar="[PART]...")
@click.option("--list", "only_list", is_flag=True, help="List the parts and make none.")
def docs(names: tuple[str, ...], only_list: bool) -> None:
    """Generate pictures, tables and pages of the documents.

    Makes all parts, or the named ones. Look at the changes before you commit them.
    """
    from schedlab.base.toolchain.needs import EXTRAS, need_extra, need_if_installed
    from schedlab.base.toolchain.policies import unknown

    need_extra(*EXTRAS)
    need_if_installed("browser")
    from schedlab_tools.documents.make import make, parts

    known = parts()
    for name in names:
        if name not in known:
            raise WrongUsage(unknown("part", name, known))
    if only_list:
        for name in names or known:
            click.echo(f"{name:12}  {known[name].about}")
        return
    for file, changed in make(names or tuple(known)):
        click.echo(f"{file}: {'updated' if changed else 'unchanged'}")
