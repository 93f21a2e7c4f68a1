# SPDX-License-Identifier: MIT
"""One run on a worker: the machine's process in a folder, and what its trace says."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from schedlab import metrics
from schedlab.host.tied import tied
from schedlab.machines import machine_named
from schedlab.machines.folder import CONSOLE, TRACE_FILE
from schedlab.machines.outcome import Outcome
from schedlab.machines.run import Run
from schedlab.metrics.steady import steady
from schedlab.metrics.tails import tails
from schedlab.runs import results
from schedlab.runs.carrying_out import ended

Row = dict[str, Any]
_ALREADY_TOLD = ("policy", "cpus", "seed", "tick_ns")
"""Columns of a summary that say what was run."""
_DIGITS_OF_POINTS = 9


@dataclass(frozen=True)
class Rows:
    """What was measured, as `columns` has it. Empty: nothing was."""

    summary: Row = field(default_factory=dict)
    groups: tuple[Row, ...] = ()
    told: tuple[Row, ...] = ()


@dataclass(frozen=True)
class Result:
    """What came of a run."""

    key: str
    outcome: Outcome
    seconds: float
    rows: Rows


@dataclass(frozen=True)
class Task:
    """A run to be done."""

    key: str
    run: Run
    manifest: Row = field(default_factory=dict)
    """What a kept folder says of it; empty if none is kept."""


Watch = tuple[
    Callable[["subprocess.Popen[bytes]"], None], Callable[["subprocess.Popen[bytes]"], None]
]
"""Are told of the machine's process: one when it has begun, one when it has ended."""


def perform(
    task: Task, programs: Mapping[str, Path], folder: Path, watch: Watch, kept: bool = False
) -> Result:
    """Runs it in a folder that is there, and measures it. What went wrong is the result's outcome.

    `kept`: the metrics are left in the folder too, as `./schedlab run` leaves them.
    """
    began = time.monotonic()
    rows = Rows()
    outcome = _run(task.run, programs, folder, watch)
    if outcome.status in ("success", "limit"):
        try:
            rows = measure(folder, kept)
        except Exception as error:  # whatever it is, the other runs go on
            words = f"{type(error).__name__}: {error}".replace(f"{folder}/", "")
            outcome = Outcome("unmeasured", f"the trace could not be measured: {words}")
    return Result(task.key, outcome, time.monotonic() - began, rows)


def _run(run: Run, programs: Mapping[str, Path], folder: Path, watch: Watch) -> Outcome:
    machine = machine_named(run.machine)
    for name, text in run.files().items():
        (folder / name).write_text(text)
    seconds = machine.host_limit(run.cpus, run.limit_ns)
    console = folder / CONSOLE
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        place = Path(scratch)
        command = machine.start(run, programs, folder, place)
        status = supervise(command, folder, console, seconds, watch)
        return ended(machine, status, seconds, folder, place, console)


def supervise(
    command: list[str], folder: Path, console: Path, seconds: float, watch: Watch
) -> int | None:
    """Returns the machine's exit status, or None if it had to be ended after `seconds`. Nothing of it is
    left."""
    with console.open("wb") as log:
        process = subprocess.Popen(
            [*tied(), *command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        watch[0](process)
        try:
            return process.wait() if ended_within(process, seconds) else None
        finally:
            end(process)
            watch[1](process)


def ended_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Python's own wait with a limit looks again and again, which costs a short run its time again."""
    handle = os.pidfd_open(process.pid)
    try:
        ready, _, _ = select.select([handle], [], [], seconds)
        return bool(ready)
    finally:
        os.close(handle)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends it with all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


# --- measures


def measure(folder: Path, kept: bool) -> Rows:
    """Measures the trace there, once it was checked."""
    found = metrics.measure(folder / TRACE_FILE)
    if kept:
        found.write(folder / results.METRICS)
    summary = found.summary.row(0, named=True)
    summary = {name: value for name, value in summary.items() if name not in _ALREADY_TOLD}
    groups = tuple(found.groups.to_dicts())
    workload = found.processes.filter(pl.col("role") == "workload")
    alone = {
        name: steady(part) for (name,), part in workload.partition_by("group", as_dict=True).items()
    }
    ends = {row["group"]: row for row in tails(workload, ("group",)).to_dicts()}
    told = tuple(
        {**row, **ends.get(row["group"], {}), **alone.get(row["group"], {})} for row in groups
    )
    whole = tails(workload, ("role",)).drop("role").to_dicts()
    added = {**_added(found, groups), **(whole[0] if whole else {}), **steady(workload)}
    return Rows({**summary, **added}, told, _told(found.values))


def _added(found: metrics.Metrics, groups: tuple[Row, ...]) -> Row:
    """Returns what `schedlab.comparison.measures` adds, of one run."""
    errors = [abs(row["share_error_points"]) for row in groups if row["share_error_points"]]
    known = any(row["share_error_points"] is not None for row in groups)
    answers = found.processes.filter(pl.col("role") == "workload")["response_ns"].drop_nulls()
    spread = None
    if len(answers):
        low, high = (answers.quantile(q, "linear") for q in (0.25, 0.75))
        spread = high - low if low is not None and high is not None else None
    return {
        "share_error_max_points": round(max(errors, default=0.0), _DIGITS_OF_POINTS)
        if known
        else None,
        "response_iqr_ns": spread,
        "events_per_second": _events(found.values),
    }


def _events(values: pl.DataFrame) -> float | None:
    """Returns the rate of a program that told once how many `events` it did in how many ns (`elapsed`)."""
    if values.is_empty():
        return None
    told = {name: values.filter(pl.col("name") == name)["value"] for name in ("events", "elapsed")}
    if any(len(each) != 1 for each in told.values()) or not told["elapsed"][0]:
        return None
    return float(told["events"][0] * 1e9 / told["elapsed"][0])


def _told(values: pl.DataFrame) -> tuple[Row, ...]:
    if values.is_empty():
        return ()
    value = pl.col("value").cast(pl.Float64)
    return tuple(
        values.filter(pl.col("name").is_not_null())
        .group_by("name")
        .agg(count=pl.len(), mean=value.mean(), least=value.min(), most=value.max())
        .sort("name")
        .to_dicts()
    )
