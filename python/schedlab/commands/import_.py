# SPDX-License-Identifier: MIT
"""`./schedlab import`: converts a recording of any Linux machine into a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from schedlab.base.display.terminal import print_result, result_console, say
from schedlab.base.toolchain.policies import parse_choices
from schedlab.commands.options import (
    PATH,
    TICK,
    Parsed,
    anonymize_option,
    echo_json,
    json_option,
    quiet_option,
)
from schedlab.errors import SchedlabError
from schedlab.paths import new_runs_folder

if TYPE_CHECKING:
    from schedlab.recordings.convert import Imported


def _parse_policy(text: str) -> str:
    """Parses the name of a single policy. Raises ValueError for several."""
    if len(parse_choices(text)) > 1:
        raise ValueError("a recording has only one policy")
    return text.strip()


@click.command("import")
@click.argument("file", type=PATH)
@click.option(
    "--tick",
    default="4ms",
    show_default=True,
    type=TICK,
    help="Tick of the recorded machine: 1 s ÷ its CONFIG_HZ.",
)
@click.option(
    "--policy",
    default="fair",
    show_default=True,
    type=Parsed("POLICY", _parse_policy),
    help="Policy of the recorded machine, which the file does not contain.",
)
@click.option(
    "--root",
    metavar="NAME|PID",
    help="Measure the descendants of this process, while it lives.  [default: all processes]",
)
@anonymize_option
@click.option("-o", "--out", type=PATH, help="Folder for the run.  [default: a new one in runs/]")
@quiet_option
@json_option
def import_(
    file: Path,
    tick: int,
    policy: str,
    root: str | None,
    anonymize: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Import a recording of a Linux machine as a run.

    FILE is from perf (perf.data), trace-cmd (trace.dat) or Perfetto, or their text. The run has a trace and
    metrics: export, compare, replay and report it like any other (docs/perf-traces.md).
    """
    from schedlab.recordings.convert import convert

    path = (out or new_runs_folder("perf")).absolute()
    imported = convert(file, path, policy, tick, root, anonymous=anonymize)
    print_imported(file, imported, as_json)


def print_imported(file: Path, imported: Imported, as_json: bool) -> None:
    """Prints what was imported. Raises SchedlabError if it cannot be measured."""
    if as_json:
        echo_json(
            {
                "folder": str(imported.folder),
                "manifest": imported.manifest,
                "metrics": imported.metrics.to_dict() if imported.metrics else None,
                "notes": imported.notes,
            }
        )
    else:
        _print_summary(imported)
    if not imported.outcome.succeeded:
        raise SchedlabError(f"{file}: {imported.outcome.message}")


def _print_summary(imported: Imported) -> None:
    """Prints what was imported, and what the recording lacks."""
    from schedlab.commands.metric_tables import tables

    manifest = imported.manifest
    origin = " ".join(filter(None, (manifest["host"], manifest["machine_version"]))) or "Linux"
    result_console().print(f"{manifest['workload']} on {origin} (not repeatable)")
    if imported.metrics:
        for table in tables([(manifest["policy"], imported.metrics)]):
            result_console().print(table)
    for note in imported.notes:
        say(f"schedlab: {note}")
    print_result(f"Kept in {imported.folder}")
