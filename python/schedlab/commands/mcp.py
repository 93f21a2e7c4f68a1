# SPDX-License-Identifier: MIT
"""`./schedlab mcp`: schedlab as tools of a program that writes policies."""

from __future__ import annotations

from pathlib import Path

import click

from schedlab.base.display.working import begin_display
from schedlab.commands.options import FOLDER


@click.command()
@click.argument("folder", type=FOLDER)
@click.option(
    "--trust",
    is_flag=True,
    help="Compile policies outside of a sandbox: for a writer whose code you would compile yourself.",
)
def mcp(folder: Path, trust: bool) -> None:
    """Serve tools to a language model's client by the Model Context Protocol.

    A client starts this by itself, and talks with it at its standard input and output. The tools read the interface
    and policies, write policies into FOLDER and nowhere else, check, run and score them, and explain waits. Policies
    are compiled in a sandbox, and run in a machine of their own, as submissions are. docs/score.md has a client's
    configuration.
    """
    from schedlab.courses.assistant.laboratory import Laboratory, serve
    from schedlab.courses.submissions.sandbox import need_sandbox

    if not trust:
        need_sandbox()
    folder.mkdir(parents=True, exist_ok=True)
    begin_display()
    serve(Laboratory(folder.resolve(), trust))
