# SPDX-License-Identifier: MIT
"""`./schedlab page`: the page that stands alone, made anew; and policies for it."""

from __future__ import annotations

from pathlib import Path

import click

from schedlab.commands.options import FILE
from schedlab.errors import WrongUsage


@click.command()
@click.option(
    "--policy",
    metavar="NAME",
    help="Make NAME.wasm of policies/NAME.c instead, which the page takes when it is dropped there.",
)
@click.option(
    "--out", type=FILE, metavar="FILE", help="Where the policy's file goes.  [default: NAME.wasm]"
)
def page(policy: str | None, out: Path | None) -> None:
    """Make the page that stands alone: page/schedlab.html.

    It is the monitor's page with the simulator in it: opened as a file, it needs no server and
    nothing installed. docs/page.md says more.
    """
    from schedlab.base.toolchain.needs import need_extra

    need_extra("monitor")
    from schedlab.monitor.standalone.build import make_page, make_policy

    if policy is None and out is not None:
        raise WrongUsage("--out: expected --policy NAME, too; the page has its place")
    click.echo(make_policy(policy, out or Path(f"{policy}.wasm")) if policy else make_page())
