# SPDX-License-Identifier: MIT
"""The columns of a sweep's data set: names, types and what they mean (docs/sweeps.md).

Types are spelt out, so that all parts of a data set have the same, whatever is in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from schedlab.metrics import schemas, steady, tails

FORMAT = 1
TUNABLE = "set_"
CHANGE = "with_"
SHAPE = "shape"
"""What columns begin with that have a tunable's value, or that of a place in the workload file."""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    dtype: Any
    meaning: str

    @property
    def unit(self) -> str:
        """The unit, by the end of its name; "": a number, or words."""
        return next((unit for end, unit in _UNITS.items() if self.name.endswith(end)), "")


_UNITS = {
    "_per_million_cycles": "per million cycles",
    "_per_second": "per second",
    "_cycles": "cycles",
    "_points": "percentage points",
    "_share": "part of 1",
    "_ns": "ns",
    "_mib": "MiB",
}

TEXT, WHOLE, NUMBER = pl.String, pl.Int64, pl.Float64

KEY = Column("key", TEXT, "the run: a hash of all that decides what comes of it")
IDENTITY = (
    KEY,
    Column("workload", TEXT, "the workload file, experiment or command"),
    Column("policy", TEXT, "the policy, with its preset"),
    Column("settings", TEXT, "tunables that were set: slice_3=2,boost=480"),
    Column("changes", TEXT, "values of the workload file that were changed, likewise"),
    Column("machine", TEXT, "sim, spike or qemu"),
    Column("costs", TEXT, "what things take, on sim; null elsewhere"),
    Column("cpus", WHOLE, "how many CPUs"),
    Column("tick_ns", WHOLE, "length of a tick"),
    Column("limit_ns", WHOLE, "after which a run is ended"),
    Column("memory_mib", WHOLE, "the machine's; null on sim"),
    Column("seed", WHOLE, "of all randomness"),
    Column(
        "made_of",
        TEXT,
        "a hash of what it is made of besides policy, settings and seed (`made_of`)",
    ),
)
OUTCOME = (
    Column("status", TEXT, "success; or how it failed, in a word"),
    Column("message", TEXT, "how it failed; null after a success"),
)

_MEANINGS = {
    "clock_step_ns": "in what steps the machine's clock moves",
    "truncated": "the trace was cut off",
    "lost_records": "of the trace",
    "root_pid": "the process that began the window",
    "begin_ns": "of the window",
    "end_ns": "of the window",
    "elapsed_ns": "its length",
    "elapsed_cycles": "its length",
    "group": "its label",
    "processes": "of the workload",
    "finished": "those that ended in the window",
    "turnaround_mean_ns": "from fork to exit: mean over processes",
    "response_mean_ns": "from fork to the first run: mean over processes",
    "waiting_mean_ns": "runnable and not running: mean over processes",
    "running_ns": "all time on CPUs",
    "blocked_ns": "all time blocked",
    "selections": "times picked",
    "wakeups": "times woken",
    "blocks": "times blocked",
    "yields": "times the CPU was given up",
    "preemptions": "times it was taken away",
    "migrations": "times moved to another CPU",
    "completion_ns": "from the first fork to the last exit; null unless all ended",
    "share": "running time ÷ that of the whole workload",
    "ideal_share": "by weighted max-min",
    "share_error_points": "share less ideal share",
    "wakeup_latency_median_ns": "from a wake-up to the next run",
    "jobs": "jobs of tasks with deadlines",
    "misses": "those that were done after their deadlines, or not yet",
    "miss_share": "misses ÷ jobs",
    "lateness_mean_ns": "from the deadline to the end of a job, negative if before: mean over jobs",
    "tardiness_mean_ns": "lateness, or 0 if negative: mean over jobs",
    "root_running_ns": "CPU time of the root",
    "other_running_ns": "CPU time of all other processes",
    "idle_ns": "CPU time of no process",
    "scheduler_entries": "times that a CPU came to pick",
    "scheduler_cycles": "what that took",
    "overhead_share": "between leaving a process and entering the next",
    "overhead_with_idle_share": "the same, idling counted in",
    "context_switches": "from process to process",
    "switches_to_idle": "from a process to idle",
    "switches_from_idle": "from idle to a process",
    "fairness_turnaround": "Jain's index over turnaround",
    "fairness_share": "Jain's index over share ÷ ideal share",
    "throughput_per_second": "processes finished",
    "throughput_per_million_cycles": "processes finished",
}
"""Meanings of the metrics' columns; those of the others are in `_STATISTICS`."""
_STATISTICS = {"_median_ns": "median", "_max_ns": "maximum", "_p99_ns": "99th percentile"}


def _measured(table: str) -> tuple[Column, ...]:
    """The columns that the metrics have in a table, without those that tell what was run."""
    known = {column.name for column in IDENTITY}
    return tuple(
        Column(
            name, _wide(dtype), _MEANINGS.get(name) or _STATISTICS[name[name.rindex("_", 0, -3) :]]
        )
        for name, dtype in schemas()[table].items()
        if name not in known
    )


def _wide(dtype: pl.DataType) -> Any:
    return WHOLE if dtype.is_integer() else type(dtype)


_STEADY_MEANINGS = {
    "mean": "mean over jobs that ended, after the warm-up",
    "median": "median, likewise",
    "p95": "95th percentile, likewise",
    "p99": "99th percentile, likewise",
    "p999": "99.9th percentile, likewise",
    "error": "half the width of the mean's 95 % interval, by batch means",
}
STEADY = tuple(
    Column("steady_jobs", WHOLE, "processes that ended, without the tenth of them that came first")
    if name == "steady_jobs"
    else Column(name, NUMBER, f"{name.split('_')[1]}: {_STEADY_MEANINGS[name.split('_')[2]]}")
    for name in steady.COLUMNS
)
_TAIL_MEANINGS = {
    "mean": "mean over processes",
    "p95": "95th percentile; null of fewer than 20 processes",
    "p99": "99th percentile; null of fewer than 100 processes",
    "p999": "99.9th percentile; null of fewer than 1,000 processes",
}
TAILS = tuple(
    Column(name, NUMBER, f"{name.split('_')[0]}: {_TAIL_MEANINGS[name.split('_')[1]]}")
    for name in tails.COLUMNS
)
METRICS = (
    *_measured("summary"),
    *TAILS,
    Column("share_error_max_points", NUMBER, "of the group that is farthest off its ideal share"),
    Column(
        "response_iqr_ns", NUMBER, "interquartile range of the responses of this run's processes"
    ),
    Column("events_per_second", NUMBER, "that the program told (`cpubench`)"),
    *STEADY,
)
GROUP_METRICS = (*_measured("groups"), *TAILS, *STEADY)
TOLD = (
    Column("name", TEXT, "what a program told of itself"),
    Column("count", WHOLE, "how often"),
    Column("mean", NUMBER, "of the values; the workload says what they are"),
    Column("least", NUMBER, "of the values"),
    Column("most", NUMBER, "of the values"),
)

GROUPS_TABLE = (KEY, *GROUP_METRICS)
TOLD_TABLE = (KEY, *TOLD)


def runs_table(dimensions: Iterable[str]) -> tuple[Column, ...]:
    """Returns the columns of a data set with these dimensions."""
    own = [Column(name, _type_of(name), _meaning_of(name)) for name in dimensions]
    return (*IDENTITY, *own, *OUTCOME, *METRICS)


def _type_of(dimension: str) -> Any:
    return WHOLE if dimension.startswith(TUNABLE) else TEXT


def _meaning_of(dimension: str) -> str:
    if dimension == SHAPE:
        return "the machine's shape (docs/shapes.md)"
    if dimension.startswith(TUNABLE):
        return (
            f"the tunable {dimension.removeprefix(TUNABLE)}, set or not; null: the policy has none"
        )
    return "a value of the workload file; null: it is as in the file"


def schema(table: Iterable[Column]) -> dict[str, Any]:
    """Returns the columns for Polars."""
    return {column.name: column.dtype for column in table}


def frame(rows: list[Mapping[str, Any]], table: Iterable[Column]) -> pl.DataFrame:
    """Rows in the table's columns and types. What a row lacks is null."""
    types = schema(table)
    columns = {name: [row.get(name) for row in rows] for name in types}
    return pl.DataFrame(columns, schema=types)
