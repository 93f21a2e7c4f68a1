# SPDX-License-Identifier: MIT
"""`./schedlab trace`: exports an event trace for other programs."""

from pathlib import Path
from typing import Any, Literal, get_args

import click

from schedlab.base.display.terminal import print_result, say
from schedlab.base.files.atomic import atomic_write
from schedlab.commands.options import (
    EXISTING_PATH,
    FILE,
    PATH,
    echo_json,
    given_options,
    json_option,
)
from schedlab.errors import SchedlabError, WrongUsage

Format = Literal["perfetto", "parquet", "csv"]


@click.command()
@click.argument("run", type=EXISTING_PATH)
@click.option(
    "--format",
    "file_format",
    default="perfetto",
    show_default=True,
    type=click.Choice(get_args(Format)),
    help="Write in this format; perfetto is for ui.perfetto.dev.",
)
@click.option(
    "-o",
    "--out",
    type=PATH,
    help="Write to this file. [default: trace.FORMAT in the run's folder]",
)
@click.option(
    "--as-workload",
    "workload",
    type=FILE,
    help="Write the demand of its processes to this file instead, as a workload file for the simulator.",
)
@json_option
@click.pass_context
def trace(
    context: click.Context,
    /,
    run: Path,
    file_format: Format,
    out: Path | None,
    workload: Path | None,
    as_json: bool,
) -> None:
    """Export and check the event trace of a RUN's folder.

    RUN may also be a folder with one run. An invalid trace is still exported; the message names the record, and
    the exit status is 1.
    """
    from schedlab.runs.results import find_run

    if workload:
        export_workload(context, run, workload, as_json)
    else:
        export(find_run(run), file_format, out, as_json)


def export(folder: Path, file_format: Format, out: Path | None, as_json: bool) -> None:
    """Exports a trace. Raises SchedlabError after the export if the trace is not sound."""
    from schedlab import trace as traces
    from schedlab.base.files import replacement

    suffix = {"perfetto": "perfetto-trace"}.get(file_format, file_format)
    path = (out or folder / f"trace.{suffix}").absolute()
    replacement.check_file("out", path, has_default_name=out is None)
    read = traces.read(folder / "trace.bin")
    with atomic_write(path) as new:
        traces.export(read, new, file_format)
    if not out:
        replacement.add_to_list(path)
    problem = trace_problem(read)
    if as_json:
        content = {"file": str(path), "records": len(read.events), "lost": read.lost}
        echo_json({**content, "problem": problem})
    else:
        print_result(f"{path}: {len(read.events):,} records")
    if problem:
        raise SchedlabError(
            f"its trace is invalid: {problem}", what=str(folder), fix="repeat the run"
        )


def export_workload(context: click.Context, run: Path, file: Path, as_json: bool) -> None:
    """Exports a recording's workload as a text that can be read,
    edited and run (docs/replay.md).
    """
    from schedlab.commands.replay import write_workload

    for option in given_options(context, {"file_format": "--format", "out": "--out"}).values():
        raise WrongUsage(f"--as-workload and {option}: exclude each other; leave one out")
    workload = write_workload(run, file)
    if as_json:
        echo_json({"file": str(file.absolute()), "replay_of": workload.facts})
    else:
        print_result(f"{file.absolute()}: {workload.title}")
    for note in workload.notes:
        say(f"schedlab: {run}: {note}")


def trace_problem(read: Any) -> str | None:
    """Returns the problem that validation finds in a trace, or None."""
    from schedlab import trace as traces

    try:
        traces.validate(read)
    except traces.TraceError as error:
        return str(error)
    return None
