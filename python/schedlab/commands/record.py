# SPDX-License-Identifier: MIT
"""`./schedlab record`: records this machine while a command runs, and explains what happened."""

import shlex
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from schedlab.base.display.activity import working
from schedlab.base.display.terminal import say
from schedlab.commands.import_ import print_imported
from schedlab.commands.options import (
    PATH,
    anonymize_option,
    duration_option,
    json_option,
    quiet_option,
)
from schedlab.commands.replay import RECORDED, run_what_if
from schedlab.errors import SchedlabError, WrongUsage, format_parameter
from schedlab.paths import COMMAND_NAME, new_runs_folder

_TOOLS = ("perf", "tracefs")
_DURATION_NS = 5_000_000_000
"""How long a machine is recorded if neither a command nor a time is given."""


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option(
    "--with",
    "tool",
    type=click.Choice(_TOOLS),
    help="The recorder.  [default: perf if it is installed, else the kernel's tracefs]",
)
@duration_option("Record the machine for this time, instead of a command.", "10min")
@anonymize_option
@click.option(
    "--no-page", is_flag=True, help="Only import the recording, without a page of explanations."
)
@click.option("-o", "--out", type=PATH, help="New folder.  [default: a new one in runs/]")
@quiet_option
@json_option
def record(
    command: tuple[str, ...],
    tool: str | None,
    duration_ns: int | None,
    anonymize: bool,
    no_page: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Record this Linux machine while COMMAND runs, and make a page about it.

    The page says what happened, explains the longest waits, and shows the same demand under other policies. The whole
    machine is recorded, with the names of all programs. Only the recorder gets root rights, by sudo; COMMAND runs as
    you. Press Ctrl-C to end COMMAND: what was recorded until then is kept.
    """
    from schedlab.recordings import recorder
    from schedlab.recordings.convert import convert

    if command and duration_ns:
        raise WrongUsage(
            "limits a recording without a command; leave it out, or leave out COMMAND",
            what="--for",
        )
    path = (out or new_runs_folder("record")).absolute()
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise WrongUsage(
            "exists already", what=format_parameter("out", path), fix="name a new folder"
        )
    tool = recorder.find_tool(tool)
    prefix = recorder.privileged()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WrongUsage(
            f"cannot be created: {error.strerror}",
            what=format_parameter("out", path),
            fix="name another folder",
        ) from None
    with _new_folder(path) as folder:
        with recorder.recording(tool, folder, prefix) as file:
            status = _run(command, duration_ns or _DURATION_NS)
        if not anonymize:
            file = file.rename(path / file.name)
        with working("importing the recording"):
            imported = convert(
                *(file, path / RECORDED, recorder.policy_name(), recorder.tick_ns()),
                workload="" if anonymize else shlex.join(command),
                anonymous=anonymize,
            )
    if status:
        say(f"schedlab: {shlex.join(command)}: ended with status {status}; its recording is kept")
    if no_page:
        print_imported(file, imported, as_json)
        return
    if not imported.outcome.succeeded:
        raise SchedlabError(f"{file}: {imported.outcome.message}")
    names = (
        "" if anonymize else ", with the names of all programs that ran (--anonymize replaces them)"
    )
    say(f"schedlab: recorded the whole machine{names}")
    run_what_if(imported.folder, None, None, path, False, as_json, imported.notes)
    say(f"schedlab: for one task: {COMMAND_NAME} explain {imported.folder} --task NAME")


@contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """Returns a temporary folder in `path`. Removes `path`, too, if the block leaves it empty."""
    try:
        with tempfile.TemporaryDirectory(dir=path, prefix=".recording-") as folder:
            yield Path(folder)
    finally:
        with suppress(OSError):
            path.rmdir()


def _run(command: tuple[str, ...], duration_ns: int) -> int:
    """Runs the command, or waits; Ctrl-C ends both. Returns the exit status of the command."""
    from schedlab.recordings import recorder

    if command:
        return recorder.run_command(command)
    try:
        with working("recording this machine; Ctrl-C ends it"):
            time.sleep(duration_ns / 1e9)
    except KeyboardInterrupt:
        pass
    return 0
