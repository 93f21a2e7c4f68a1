# SPDX-License-Identifier: MIT
"""`./schedlab analyse`: compares schedulability theory with
measurements, for tasks with deadlines.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from schedlab.base.display.numbers import duration, percent
from schedlab.base.display.terminal import new_table, print_full_width, result_console
from schedlab.commands.execution import check_finished, out_option, perform, print_plan
from schedlab.commands.options import echo_json, execution_options
from schedlab.commands.request_options import request_options
from schedlab.errors import WrongUsage
from schedlab.machines import SIMULATOR
from schedlab.runs.request import Request

TEXTBOOK_COSTS = "textbook"

if TYPE_CHECKING:
    from schedlab.analysis.schedulability import SchedulabilityVerdict
    from schedlab.runs.plan_execution import Finished


@click.command()
@click.argument("file")
@request_options(machine=SIMULATOR, cpus="1", costs=TEXTBOOK_COSTS)
@out_option
@execution_options
def analyse(file: str, dry_run: bool, as_json: bool, **options: Any) -> None:
    """Compare tasks with deadlines with theory: which deadlines must be met, and which were.

    FILE is a workload file whose tasks have dl-runtime and dl-period. Prints the demand of jobs under earliest
    deadline first (Baruah, Rosier and Howell 1990), the utilisation bound (Liu and Layland 1973) and response
    times under fixed priorities (Joseph and Pandya 1986), and for each policy the longest response and the misses
    of each task.

    If a run fails, the theory is still printed, and the exit status is 1.
    """
    from schedlab.analysis.schedulability import judge_tasks, periodic_tasks

    if options["machine"].name == SIMULATOR and options["costs"] is None:
        options["costs"] = TEXTBOOK_COSTS
    request = Request(workload=file, **options).filled()
    assert request.cpus
    if len(request.cpus) > 1 or request.repeats > 1:
        raise WrongUsage(
            "--cpus and --runs: the analysis needs one number of CPUs and one run; give one of each"
        )
    read = request.base().file
    if not read:
        raise WrongUsage(
            f"{file}: not a workload file (*.json) that exists; list them with ./schedlab workloads"
        )
    tasks = periodic_tasks(read)
    if not tasks:
        raise WrongUsage(
            f"{file}: no task has dl-runtime and dl-period; add them (docs/workload-files.md, Jobs)"
        )
    if dry_run:
        print_plan(request.plan().runs, as_json)
        return
    verdict = judge_tasks(tasks, request.cpus[0])
    finished: list[Finished] = []
    try:
        with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
            finished = _run_policies(request, Path(folder))
    finally:
        measured = [run for run in finished if run.metrics]
        if as_json:
            echo_json({**asdict(verdict), "runs": [verdict_json(verdict, run) for run in measured]})
        else:
            for line in verdict.sentences():
                result_console().print(line, soft_wrap=True)
            print_full_width(_build_table(verdict, measured))
    check_finished(finished, measured=True)


def _run_policies(request: Request, path: Path) -> list[Finished]:
    """Runs the workload under each policy."""
    plan = replace(request, out=request.out or path).plan()
    return perform(plan, keep_runs=request.out is not None)


def _metrics_by_group(finished: Finished) -> dict[str, dict[str, Any]]:
    assert finished.metrics
    return {row["group"]: row for row in finished.metrics.groups.to_dicts()}


def verdict_json(verdict: SchedulabilityVerdict, finished: Finished) -> dict[str, Any]:
    """Returns a run's verdict and measurements for JSON."""
    names = ("jobs", "misses", "job_response_max_ns", "lateness_max_ns")
    rows = _metrics_by_group(finished)
    groups = dict.fromkeys(task.group for task in verdict.tasks)
    return {
        "policy": str(finished.run.policy),
        "tasks": [{"group": name, **{key: rows[name][key] for key in names}} for name in groups],
    }


def _build_table(verdict: SchedulabilityVerdict, finished: Sequence[Finished]) -> Any:
    """Returns a table with a row per task and the measurements under each policy."""

    titles = [str(run.run.policy) for run in finished]
    measured = [f">{title}\n{what}" for title in titles for what in ("response", "missed")]
    bound = () if verdict.cpus > 1 else (">response by\nfixed priorities",)
    headings = ("task", ">runtime", ">deadline", ">period", ">share of\na CPU", *bound)
    table = new_table("", *headings, *measured)
    rows = [_metrics_by_group(run) for run in finished]
    response_by_task = dict(zip(verdict.tasks, verdict.responses, strict=True))
    for task, response in response_by_task.items():
        times = (duration(time_ns) for time_ns in (task.runtime, task.deadline, task.period))
        response_bound_cell = (
            () if verdict.cpus > 1 else (duration(response) if response else "missed",)
        )
        cells = [
            cell
            for row in rows
            for cell in (
                duration(row[task.group]["job_response_max_ns"]),
                f"{row[task.group]['misses']:,} of {row[task.group]['jobs']:,}",
            )
        ]
        table.add_row(
            task.name, *times, percent(float(task.utilisation)), *response_bound_cell, *cells
        )
    return table
