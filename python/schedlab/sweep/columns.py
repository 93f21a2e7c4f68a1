# SPDX-License-Identifier: MIT
"""The columns of a sweep's data set: names, types and what they mean (docs/sweeps.md).

Types are spelt out, so that all parts of a data set have the same, whatever is in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

FORMAT = 1
TUNABLE = "set_"
CHANGE = "with_"
"""What columns begin with that have a tunable's value, or that of a place in the workload file."""


@dataclass(frozen=True)
class Column:
    """Of a table."""

    name: str
    dtype: Any
    meaning: str

    @property
    def unit(self) -> str:
        """By the end of its name; "": a number, or words."""
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

TEXT, WHOLE, NUMBER, FLAG = pl.String, pl.Int64, pl.Float64, pl.Boolean

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
        "made_of", TEXT, "a hash of what it is made of beside policy, settings and seed (`made_of`)"
    ),
)
OUTCOME = (
    Column("status", TEXT, "success; or how it failed, in a word"),
    Column("message", TEXT, "how it failed; null after a success"),
)

_LATENCY = (
    Column("wakeup_latency_median_ns", NUMBER, "from a wake-up to the next run"),
    Column("wakeup_latency_p99_ns", NUMBER, "99th percentile"),
    Column("wakeup_latency_max_ns", WHOLE, "maximum"),
)
_COUNTS = (
    Column("selections", WHOLE, "times picked"),
    Column("wakeups", WHOLE, "times woken"),
    Column("blocks", WHOLE, "times blocked"),
    Column("yields", WHOLE, "times the CPU was given up"),
    Column("preemptions", WHOLE, "times it was taken away"),
    Column("migrations", WHOLE, "times moved to another CPU"),
)


def _statistics(stem: str, meaning: str) -> tuple[Column, ...]:
    return (
        Column(f"{stem}_mean_ns", NUMBER, f"{meaning}: mean over processes"),
        Column(f"{stem}_median_ns", NUMBER, "median"),
        Column(f"{stem}_max_ns", WHOLE, "maximum"),
    )


_POPULATION = (
    Column("processes", WHOLE, "of the workload"),
    Column("finished", WHOLE, "those that ended in the window"),
    *_statistics("turnaround", "from fork to exit"),
    *_statistics("response", "from fork to the first run"),
    *_statistics("waiting", "runnable and not running"),
    Column("running_ns", WHOLE, "all time on CPUs"),
    Column("blocked_ns", WHOLE, "all time blocked"),
    *_COUNTS,
)
METRICS = (
    Column("clock_step_ns", WHOLE, "in what steps the machine's clock moves"),
    Column("truncated", FLAG, "the trace was cut off"),
    Column("lost_records", WHOLE, "of the trace"),
    Column("root_pid", WHOLE, "who began the window"),
    Column("begin_ns", WHOLE, "of the window"),
    Column("end_ns", WHOLE, "of the window"),
    Column("elapsed_ns", WHOLE, "its length"),
    Column("elapsed_cycles", NUMBER, "its length"),
    *_POPULATION,
    Column("completion_ns", WHOLE, "from the first fork to the last exit; null unless all ended"),
    *_LATENCY,
    Column("root_running_ns", WHOLE, "CPU time of the root"),
    Column("other_running_ns", WHOLE, "CPU time of everybody else"),
    Column("idle_ns", WHOLE, "CPU time of nobody"),
    Column("scheduler_entries", WHOLE, "times that a CPU came to pick"),
    Column("scheduler_cycles", WHOLE, "what that took"),
    Column("overhead_share", NUMBER, "between leaving a process and entering the next"),
    Column("overhead_with_idle_share", NUMBER, "the same, idling counted in"),
    Column("context_switches", WHOLE, "from process to process"),
    Column("switches_to_idle", WHOLE, "from a process to idle"),
    Column("switches_from_idle", WHOLE, "from idle to a process"),
    Column("fairness_turnaround", NUMBER, "Jain's index over turnaround"),
    Column("fairness_share", NUMBER, "Jain's index over share ÷ ideal share"),
    Column("throughput_per_second", NUMBER, "processes finished"),
    Column("throughput_per_million_cycles", NUMBER, "processes finished"),
    Column("share_error_max_points", NUMBER, "of the group that is farthest off its ideal share"),
    Column("response_iqr_ns", NUMBER, "interquartile range of the responses of this run's processes"),
    Column("events_per_second", NUMBER, "that the program told (`cpubench`)"),
)  # fmt: skip
GROUP_METRICS = (
    Column("group", TEXT, "its label"),
    *_POPULATION,
    Column("share", NUMBER, "running time ÷ that of the whole workload"),
    Column("ideal_share", NUMBER, "by weighted max-min"),
    *_LATENCY,
    Column("share_error_points", NUMBER, "share less ideal share"),
    Column("throughput_per_second", NUMBER, "processes finished"),
)
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
    """Of the data set whose dimensions have these columns."""
    own = [Column(name, _type_of(name), _meaning_of(name)) for name in dimensions]
    return (*IDENTITY, *own, *OUTCOME, *METRICS)


def _type_of(dimension: str) -> Any:
    return WHOLE if dimension.startswith(TUNABLE) else TEXT


def _meaning_of(dimension: str) -> str:
    if dimension.startswith(TUNABLE):
        return (
            f"the tunable {dimension.removeprefix(TUNABLE)}, set or not; null: the policy has none"
        )
    return "a value of the workload file; null: it is as in the file"


def schema(table: Iterable[Column]) -> dict[str, Any]:
    """For Polars."""
    return {column.name: column.dtype for column in table}


def frame(rows: list[Mapping[str, Any]], table: Iterable[Column]) -> pl.DataFrame:
    """Rows in the table's columns and types. What a row lacks is null."""
    types = schema(table)
    columns = {name: [row.get(name) for row in rows] for name in types}
    return pl.DataFrame(columns, schema=types)
