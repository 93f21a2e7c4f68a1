# SPDX-License-Identifier: MIT
"""Performs the runs of a plan in parallel.

Each run has a folder, which appears when the run is complete.
"""

from __future__ import annotations

import platform
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab import __version__
from schedlab.base.display.names import json_text
from schedlab.base.files.atomic import file_hash
from schedlab.machines import SIMULATOR
from schedlab.machines.outcome import Outcome
from schedlab.machines.spec import BuiltParts, RunSpec
from schedlab.runs import results
from schedlab.runs.executor import execute, local_workers
from schedlab.runs.plan import Plan
from schedlab.runs.results import read_printed_figures
from schedlab.runs.worker import Laboratory, Result, Task
from schedlab.units import format_time

if TYPE_CHECKING:
    from schedlab.metrics import Metrics
    from schedlab.runs.progress import ProgressBoard


@dataclass(frozen=True)
class Finished:
    """A finished run and its results."""

    run: RunSpec
    folder: Path
    outcome: Outcome
    manifest: dict[str, Any]
    metrics: Metrics | None
    """None if the run has no metrics, or if metrics were not requested."""


@dataclass(frozen=True)
class Software:
    """The programs that all runs of a plan start from, and facts about them for manifests."""

    parts: BuiltParts
    """Paths by part name (schedlab.runs.parts): all machines' parts, and the tools for workload files."""
    facts: dict[str, Any]


class Interrupted(Exception):
    """A signal ended the execution early; finished runs are kept.

    `finished`: the finished runs, if known.
    """

    def __init__(self, number: int, finished: Sequence[Finished] = ()) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number
        self.finished = finished


@contextmanager
def copy_software(
    parts: Mapping[str, Path], facts: dict[str, Any], tools: Mapping[str, Path] | None = None
) -> Iterator[Software]:
    """Copies the parts, so that a build during the runs does not affect them.

    `facts`: manifest entries about the parts. `tools`: further programs to copy, whose hashes
    manifests do not list.
    """
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
        copies = {
            name: Path(shutil.copy(path, Path(folder) / name))
            for name, path in {**parts, **(tools or {})}.items()
        }
        hashes = {f"{name}_sha256": file_hash(copies[name]) for name in parts}
        yield Software(copies, {**facts, **hashes})


def execute_plan(
    plan: Plan,
    base: Software,
    slots: int,
    board: ProgressBoard,
    with_metrics: bool = True,
) -> list[Finished]:
    """Performs all runs, and returns them in the plan's order.

    Metrics are always stored. `with_metrics`: also returns the metrics, which need much memory for
    thousands of runs. Raises Interrupted on SIGINT, SIGTERM and SIGHUP.
    """
    host = f"{platform.node()}, {platform.platform()}"
    tasks = [
        Task(run.name, run, {**manifest_inputs(run, base), "host": host}, plan.place(run))
        for run in plan.runs
    ]
    laboratory = Laboratory(base.parts, keep_metrics=with_metrics)
    collector = _Collector(board)
    with local_workers(slots, processes=False) as workers:
        number = execute(tasks, workers, laboratory, collector)
    finished = [
        finished_run for task in tasks if (finished_run := collector.finished.get(task.key))
    ]
    if number:
        raise Interrupted(number, finished)
    return finished


class _Collector:
    """Collects finished runs and shows the progress."""

    def __init__(self, board: ProgressBoard) -> None:
        self.board = board
        self.finished: dict[str, Finished] = {}

    def started(self, task: Task) -> None:
        assert task.place
        self.board.started(task.run, task.place)

    def ended(self, task: Task, result: Result) -> None:
        assert task.place
        self.finished[task.key] = Finished(
            task.run, task.place, result.outcome, dict(result.manifest), result.data
        )
        self.board.ended(task.run, result.outcome, result.seconds)

    def poll(self) -> None:
        pass


def manifest_inputs(run: RunSpec, base: Software) -> dict[str, Any]:
    """Returns the manifest entries that are known before the run: its specification and programs."""
    from schedlab.base.toolchain.versions import identify_measuring_code

    machine = run.machine
    release = machine.release()
    manifest = run.manifest()
    manifest.pop("files", None)  # these values are files in the run's folder
    if machine.name != SIMULATOR:
        manifest.pop("costs", None)
    return {
        "format": results.FORMAT,
        "schedlab": __version__,
        **base.facts,
        "measuring": identify_measuring_code(),
        **manifest,
        "boot_arguments": machine.arguments(run.past),
        "machine_version": release.version,
        "machine_origin": release.origin,
        "repeatable": machine.repeatable,
        **({"mode": machine.note} if machine.note else {}),
    }


def results_as_json(finished: list[Finished], **more: Any) -> str:
    """Returns the results as JSON, with additional entries."""
    runs = [
        {
            "folder": str(run.folder),
            "manifest": run.manifest,
            "metrics": run.metrics.to_dict() if run.metrics else None,
            "printed": read_printed_figures(run.folder, run.run.workload)
            if run.outcome.succeeded
            else {},
        }
        for run in finished
    ]
    return json_text({"schedlab": __version__, "runs": runs, **more}, indent=2)


def run_heading(run: RunSpec, several_seeds: bool) -> str:
    """Returns the heading of a run's column in a table of results."""
    seed = f", seed {run.seed}" if several_seeds else ""
    mark = "" if run.machine.repeatable else f" ({run.machine}: not repeatable)"
    return f"{run.title}{seed}{mark}"


def describe_failures(finished: list[Finished]) -> Iterator[str]:
    """Yields one message per failed run."""
    for run in finished:
        if not run.outcome.succeeded:
            title = f"{run.run.title}, seed {run.run.seed}"
            yield f"{title}: {run.outcome.message}\n  kept in {run.folder}"


def describe_ignored_attributes(finished: list[Finished]) -> Iterator[str]:
    """Yields one line per policy that ignores attributes which its workload sets."""
    ignored_names = {
        (str(run.run.policy), run.run.workload): names
        for run in finished
        if (names := run.manifest.get("attributes_ignored"))
    }
    for (policy, workload), names in ignored_names.items():
        yield f"{policy} ignores {', '.join(names)}, which {workload} sets"


def summarize_runs(runs: Sequence[RunSpec]) -> str:
    """Returns one line with the values that all runs of a plan have in common."""
    run = runs[0]
    shared = [
        setting for setting in run.settings if all(setting in other.settings for other in runs)
    ]
    settings = "".join(f", {name}={value}" for name, value in shared)
    note = run.machine.note
    machine = f"{run.machine} ({note})" if note else run.machine.name
    return f"{run.workload_title} on {machine}, tick {format_time(run.tick_ns)}{settings}"
