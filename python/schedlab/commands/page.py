# SPDX-License-Identifier: MIT
"""`./schedlab page`: builds the standalone page, and policies for it."""

from __future__ import annotations

from pathlib import Path

import click

from schedlab.commands.options import FILE
from schedlab.errors import WrongUsage


@click.command()
@click.option(
    "--policy",
    metavar="NAME",
    help="Make NAME.wasm of policies/NAME.c instead; drop the file on the page to use it.",
)
@click.option(
    "--out", type=FILE, metavar="FILE", help="Write the policy to this file. [default: NAME.wasm]"
)
def page(policy: str | None, out: Path | None) -> None:
    """Build the standalone page: page/schedlab.html.

    It is the monitor's page with the simulator in it. Opened as a file, it needs no server and no installation
    (docs/page.md).
    """
    from schedlab.base.toolchain.needs import need_extra

    need_extra("monitor")
    from schedlab.monitor.standalone.build import make_page, make_policy

    if policy is None and out is not None:
        raise WrongUsage("--out: works only with --policy NAME; add it, or leave --out out")
    click.echo(make_policy(policy, out or Path(f"{policy}.wasm")) if policy else make_page())
