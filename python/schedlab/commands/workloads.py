# SPDX-License-Identifier: MIT
"""`./schedlab workloads`: lists and shows workloads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from schedlab.base.display.terminal import result_console
from schedlab.commands.options import (
    CHANGE,
    PATH,
    SEED,
    TICK,
    echo_json,
    given_options,
    json_option,
)
from schedlab.errors import WrongUsage

if TYPE_CHECKING:
    from schedlab.workload.model import WorkloadFile


@click.command()
@click.argument("file", required=False, type=PATH)
@click.option(
    "--with", "changes", multiple=True, type=CHANGE, help="Change a value of FILE, as in run."
)
@click.option(
    "--seed", default=1, show_default=True, type=SEED, help="Seed of FILE's random values."
)
@click.option(
    "--tick", default=10_000_000, type=TICK, help="Length of a tick for FILE. [default: 10ms]"
)
@click.option(
    "--output",
    type=PATH,
    help="Write FILE in the machines' language to this file, instead of printing it.",
)
@json_option
@click.pass_context
def workloads(
    context: click.Context,
    file: Path | None,
    changes: tuple[tuple[str, str], ...],
    seed: int,
    tick: int,
    output: Path | None,
    as_json: bool,
) -> None:
    """List the named workloads; or print the workload FILE in the simulator's language.

    The standalone page accepts this language as text (docs/page.md; docs/simulator.md). --output writes the file
    that schedlab-sim and the program play read; FILE may then be in this language too.

    A program runs on the schedlab kernel and on Linux, and has options (docs/workloads.md). A workload file runs
    on every machine, and `run --with` changes its values (docs/workload-files.md).
    """
    if file:
        if as_json:
            raise WrongUsage(
                "--json: a file is printed in the simulator's language; leave out --json or FILE"
            )
        if output:
            write_binary_workload(file, output, changes, seed, tick)
        else:
            from schedlab.workload.text import format_workload

            click.echo(format_workload(read_file(file, changes), seed, tick), nl=False)
        return
    file_options = {"changes": "--with", "seed": "--seed", "tick": "--tick", "output": "--output"}
    for option in given_options(context, file_options).values():
        raise WrongUsage(f"{option}: applies to a file; name FILE, or leave {option} out")
    print_names(as_json)


def write_binary_workload(
    file: Path, output: Path, changes: tuple[tuple[str, str], ...], seed: int, tick: int
) -> None:
    """Writes the form of a workload file, or of a workload's text, that machines read."""
    from schedlab.base.files.atomic import atomic_write
    from schedlab.base.files.reading import read_text
    from schedlab.workload.binary_steps import WordsRefused, encode_workload_text
    from schedlab.workload.text import encode_workload
    from schedlab.workload.workload_files import is_workload_file

    try:
        if file.is_file() and not is_workload_file(str(file)):
            binary = encode_workload_text(read_text(file), tick, str(file))
        else:
            binary = encode_workload(read_file(file, changes), seed, tick)
    except WordsRefused as error:
        raise WrongUsage(str(error)) from None
    with atomic_write(output) as place:
        place.write_bytes(binary)


def read_file(file: Path, changes: tuple[tuple[str, str], ...]) -> WorkloadFile:
    """Returns a workload file, and reports parts without effect on standard error."""
    from schedlab.runs.request import read_workload, resolve_workload

    name = resolve_workload(str(file), frozenset())
    read = read_workload(name, changes) if Path(name).is_file() else None
    if not read:
        raise WrongUsage(
            f"{file}: not a workload file (*.json) that exists; list them with ./schedlab workloads"
        )
    return read


def print_names(as_json: bool) -> None:
    """Prints all names of workloads."""
    from schedlab.workload.palette import read_palette
    from schedlab.workload.programs import workload_programs
    from schedlab.workload.workload_files import read_description

    programs = workload_programs()
    files = {
        name: read_description(entry.file) or entry.title for name, entry in read_palette().items()
    }
    if as_json:
        echo_json({"programs": programs, "files": files})
        return
    formatter = click.HelpFormatter(width=result_console().width)
    for title, entries in (("Programs", programs), ("Workload files", files)):
        with formatter.section(title):
            formatter.write_dl(list(entries.items()))
    click.echo(f"{formatter.getvalue()}\nRun one: ./schedlab run --workload NAME")
