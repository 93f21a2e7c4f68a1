# SPDX-License-Identifier: MIT
"""`./schedlab replay`: a recording as a workload. What the command line does not say is as in the recording."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from schedlab.base.files.placing import check_file
from schedlab.commands.options import dry_run_option, execution_options, given, json_option
from schedlab.commands.request_options import decide_option, out_option, request_options
from schedlab.commands.what_if import run_what_if
from schedlab.commands.workload_run import run_workload
from schedlab.errors import WrongUsage
from schedlab.machines import SIMULATOR
from schedlab.runs.recording import Recording, recording
from schedlab.runs.request import of_recording

if TYPE_CHECKING:
    from schedlab.commands.deciding import Budget

AS_RECORDED = "as recorded"


@click.command()
@click.argument("recording", type=click.Path(exists=True, path_type=Path))
@request_options(
    machine=SIMULATOR,
    without=("changes", "kernel", "memory", "ignore_limits"),
    otherwise=AS_RECORDED,
)
@decide_option
@click.option(
    "--what-if",
    "what_if",
    is_flag=True,
    help="Make one page instead: what happened, the worst waits explained, and what other policies would have made of"
    " the same demand. RECORDING may also be a file of perf, trace-cmd or Perfetto.  [default policies: all]",
)
@out_option
@execution_options
@dry_run_option
@json_option
@click.pass_context
def replay(
    context: click.Context,
    /,
    recording: Path,
    what_if: bool,
    decide: Budget | None,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Run what the processes of a RECORDING wanted, in the simulator.

    RECORDING is the folder of a run on any machine, a trace, or a folder of runs that differ in
    their seeds. What no option says is as recorded.
    """
    said = given(context, dict.fromkeys(context.params, ""))
    own = {name: options[name] for name in options if name in said}
    if what_if:
        for option in given(context, NOT_ON_THE_PAGE).values():
            raise WrongUsage(f"--what-if and {option}: leave one of them out")
        run_what_if(
            recording,
            own.get("policies"),
            own.get("tick"),
            options["out"],
            options["unchecked"],
            as_json,
        )
    else:
        run_workload(of_recording(recording, **own), as_json, decide, dry_run)


NOT_ON_THE_PAGE = {
    "settings": "--set",
    "cpus": "--cpus",
    "machine": "--machine",
    "repeats": "--runs",
    "limit": "--limit",
    "seed": "--seed",
    "costs": "--costs",
    "delays": "--delay",
    "shape": "--shape",
    "decide": "--decide",
    "dry_run": "--dry-run",
}
"""Options that --what-if does not take."""


def write_workload(place: Path, file: Path) -> Recording:
    """Puts a recording's workload into a file, to be read, changed and run by hand."""
    check_file("--as-workload", file)
    found = recording(place).with_switches()
    command = (
        f"schedlab-sim --policy {found.policy} --cpus {found.cpus} --processes {found.replay.processes()}"
        f" --seed {found.seed} --tick {found.tick_ns} --costs {found.costs.text} --trace trace.bin"
    )
    settings = ",".join(f"{name}={value}" for name, value in found.settings)
    command += f" --set {settings}" if settings else ""
    head = f"# A {found.title}.\n# {command} {file.name}\n\n"
    file.write_text(head + found.replay.source)
    return found
