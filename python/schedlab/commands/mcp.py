# SPDX-License-Identifier: MIT
"""`./schedlab mcp`: offers schedlab as tools to a program that writes policies."""

from pathlib import Path

import click

from schedlab.base.display.activity import begin_display
from schedlab.commands.options import FOLDER


@click.command()
@click.argument("folder", type=FOLDER)
@click.option(
    "--trust",
    is_flag=True,
    help="Compile policies without a sandbox. Use this only for code that you "
    "would compile yourself.",
)
def mcp(folder: Path, trust: bool) -> None:
    """Serve tools to a language model's client with the Model Context Protocol.

    A client starts this command and uses its standard input and output. The tools read the interface and
    policies, write policies into FOLDER only, check, run and score them, and explain waits. Others import recordings
    of Linux machines from FOLDER, explain them and replay them. Policies are compiled in a sandbox and run in their
    own machine, like submissions. docs/score.md has a client's configuration.
    """
    from schedlab.commands.recording_tools import RecordingTools
    from schedlab.courses.assistant.laboratory import Laboratory, serve
    from schedlab.courses.submissions.sandbox import need_sandbox

    if not trust:
        need_sandbox()
    folder.mkdir(parents=True, exist_ok=True)
    begin_display()
    place = folder.resolve()
    serve(Laboratory(place, trust), RecordingTools(place).tools())
