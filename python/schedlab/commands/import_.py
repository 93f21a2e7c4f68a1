# SPDX-License-Identifier: MIT
"""`./schedlab import`: converts a recording of any Linux machine into a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from schedlab.base.display.terminal import print_result, results, say
from schedlab.base.toolchain.policies import parse_choices
from schedlab.commands.options import PLACE, TICK, Parsed, echo_json, json_option, quiet_option
from schedlab.errors import SchedlabError
from schedlab.paths import new_runs_folder

if TYPE_CHECKING:
    from schedlab.recordings.convert import Imported


def _one_policy(text: str) -> str:
    if len(parse_choices(text)) > 1:
        raise ValueError("a recording has only one policy")
    return text.strip()


@click.command("import")
@click.argument("file", type=PLACE)
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
    type=Parsed("POLICY", _one_policy),
    help="Policy of the recorded machine, which the file does not contain.",
)
@click.option(
    "--root",
    metavar="NAME|PID",
    help="Measure the descendants of this process, while it lives.  [default: all processes]",
)
@click.option("-o", "--out", type=PLACE, help="Folder for the run.  [default: a new one in runs/]")
@quiet_option
@json_option
def import_(
    file: Path, tick: int, policy: str, root: str | None, out: Path | None, as_json: bool
) -> None:
    """Import a recording of a Linux machine as a run.

    FILE is from perf (perf.data), trace-cmd (trace.dat) or Perfetto, or their text. The run has a trace and
    metrics: export, compare, replay and report it like any other (docs/perf-traces.md).
    """
    from schedlab.recordings.convert import convert

    made = convert(file, (out or new_runs_folder("perf")).absolute(), policy, tick, root)
    if as_json:
        echo_json(
            {
                "folder": str(made.folder),
                "manifest": made.manifest,
                "metrics": made.metrics.to_dict() if made.metrics else None,
                "notes": made.notes,
            }
        )
    else:
        _show(made)
    if not made.outcome.succeeded:
        raise SchedlabError(f"{file}: {made.outcome.message}")


def _show(made: Imported) -> None:
    from schedlab.commands.metric_tables import tables

    manifest = made.manifest
    of = " ".join(filter(None, (manifest["host"], manifest["machine_version"]))) or "Linux"
    results().print(f"{manifest['workload']} on {of} (not repeatable)")
    if made.metrics:
        for table in tables([(manifest["policy"], made.metrics)]):
            results().print(table)
    for note in made.notes:
        say(f"schedlab: {note}")
    print_result(f"Kept in {made.folder}")
