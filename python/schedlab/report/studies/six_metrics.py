# SPDX-License-Identifier: MIT
"""What the runs of study 3's three workloads came to, cell by cell."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import polars as pl

from schedlab.report.studies.texts import of_rows
from schedlab.report.study_tables import Measured, Numbers, measure
from schedlab.runs.collection import Collection, Repeated
from schedlab.studies import published
from schedlab.studies.figures import Figure
from schedlab.studies.ideal import STUDY_3_WORK, ideal_batch

CPUS = 3
SCHEDULERS = {"RR": "rr:table-scan", "Lottery": "lottery:equal-lfsr", "MLFQ": "mlfq:four-quanta"}
"""As the study calls them, and the presets that are like them."""
WORKLOADS = {"CPU-bound": "s3-cpu", "IO-bound": "s3-io", "Mixed": "s3-mixed"}
"""As the study's tables call them, and our experiments."""
BATCH = ideal_batch(40, STUDY_3_WORK, CPUS)
"""What is ideal if the 40 CPU-bound processes come all at once."""

Pick = Callable[[Mapping[str, float]], str]


def least(values: Mapping[str, float]) -> str:
    """Whose value is the lowest."""
    return min(values, key=lambda name: values[name])


def most(values: Mapping[str, float]) -> str:
    """Whose value is the highest."""
    return max(values, key=lambda name: values[name])


@dataclass(frozen=True)
class Metric:
    """One of the study's tables."""

    table: int
    name: str
    unit: str
    value: pl.Expr
    """Of the row of the summary."""
    decimals: int
    best: Pick


def _first(column: str) -> pl.Expr:
    return pl.col(column).first()


TURNAROUND = Metric(
    1,
    "turnaround",
    "million cycles, or ticks",
    _first("turnaround_mean_ns") / _first("tick_ns"),
    2,
    least,
)
RESPONSE = Metric(
    2,
    "response",
    "million cycles, or ticks",
    _first("response_mean_ns") / _first("tick_ns"),
    3,
    least,
)
THROUGHPUT = Metric(
    3,
    "throughput",
    "processes in a million cycles, or in a tick",
    _first("finished") * _first("tick_ns") / _first("elapsed_ns"),
    3,
    most,
)
OVERHEAD = Metric(
    4,
    "overhead",
    "% of the CPUs' time, idle time counted in",
    _first("overhead_with_idle_share") * 100,
    2,
    least,
)
FAIRNESS = Metric(5, "fairness", "Jain's index", _first("fairness_turnaround"), 3, most)
METRICS = (TURNAROUND, RESPONSE, THROUGHPUT, OVERHEAD, FAIRNESS)
"""By the study's definitions. A million of its cycles is a tick (docs/workloads.md)."""

SPREAD = (pl.col("fork_ns").max() - pl.col("fork_ns").min()) / pl.col("tick_ns").first()
"""Ticks from the first process's fork to the last one's."""
RESPONSE_QUARTILES = (
    pl.col("response_ns").quantile(0.75, "linear") - pl.col("response_ns").quantile(0.25, "linear")
) / pl.col("tick_ns").first()
"""The interquartile range of response within a run, in ticks."""


def mean_of(column: str, group: str | None = None) -> pl.Expr:
    """Of the processes, or of those of one group: the mean of a time, in ticks."""
    chosen = pl.col(column) if group is None else pl.col(column).filter(pl.col("group") == group)
    return chosen.mean() / _first("tick_ns")


def part_of_time(column: str) -> pl.Expr:
    """Of all CPUs' time in the window, in percent."""
    return _first(column) * 100 / (_first("cpus") * _first("elapsed_ns"))


def in_order_of_arrival(arrivals: Iterable[float], work: float, cpus: int) -> float:
    """Mean turnaround if each is served to its end, whoever came first, by CPUs that do no more.

    Of equal processes, no schedule without preemption has a lower one.
    """
    free_at = [0.0] * cpus
    times = []
    for arrival in sorted(arrivals):
        end = max(free_at[0], arrival) + work
        heapq.heapreplace(free_at, end)
        times.append(end - arrival)
    return fmean(times)


@dataclass
class Findings:
    """Reads a collection's runs of the three workloads."""

    collection: Collection

    def setup(self, workload: str, policy: str) -> Repeated | None:
        """The runs of one cell."""
        return self.collection.one(WORKLOADS[workload], policy, CPUS)

    def metric(self, metric: Metric, workload: str, scheduler: str) -> Measured:
        """A cell of the study's tables."""
        return self.of(workload, SCHEDULERS[scheduler], metric.value)

    def of(self, workload: str, policy: str, value: pl.Expr) -> Measured:
        """Of the row of the summary of each run."""
        return self._measure(workload, policy, self._summary, value)

    def of_processes(self, workload: str, policy: str, value: pl.Expr) -> Measured:
        """Of the rows of the workload's processes, in each run."""
        return self._measure(workload, policy, self._processes("workload"), value)

    def of_parent(self, workload: str, policy: str, value: pl.Expr) -> Measured:
        """Of the row of the process that forks the others, in each run."""
        return self._measure(workload, policy, self._processes("root"), value)

    def responses(self, workload: str) -> pl.DataFrame:
        """Of all processes of all runs whose setup has no failure. Columns: scheduler, ticks."""
        none = pl.DataFrame(schema={"scheduler": pl.String, "ticks": pl.Float64})
        rows = self._processes("workload")
        if rows.is_empty():
            return none
        chosen = [
            rows.filter(
                (pl.col("experiment") == WORKLOADS[workload]) & (pl.col("policy") == policy)
            ).select(
                pl.lit(f"{name} ({policy})").alias("scheduler"),
                (pl.col("response_ns") / pl.col("tick_ns")).alias("ticks"),
            )
            for name, policy in SCHEDULERS.items()
            if (setup := self.setup(workload, policy)) and setup.succeeded
        ]
        return pl.concat([none, *chosen])

    def served_in_order(self, scheduler: str) -> Measured:
        """`in_order_of_arrival` of the CPU-bound workload, with the arrivals of each run."""
        policy = SCHEDULERS[scheduler]
        rows = self._processes("workload")
        numbers: dict[int, float] = {}
        if len(rows):
            own = rows.filter(pl.col("experiment") == WORKLOADS["CPU-bound"])
            for (run,), processes in own.group_by("run", maintain_order=True):
                arrivals = (processes["fork_ns"] - processes["fork_ns"].min()) / processes[
                    "tick_ns"
                ]
                numbers[int(run)] = in_order_of_arrival(arrivals, STUDY_3_WORK, CPUS)
        folders: Numbers = {self.collection.runs[run].folder: n for run, n in numbers.items()}
        return measure(self.setup("CPU-bound", policy), folders)

    def _measure(self, workload: str, policy: str, rows: pl.DataFrame, value: pl.Expr) -> Measured:
        own = rows.filter(pl.col("experiment") == WORKLOADS[workload]) if len(rows) else rows
        return measure(self.setup(workload, policy), of_rows(self.collection, own, value))

    @cached_property
    def _summary(self) -> pl.DataFrame:
        return self.collection.summary.filter(pl.col("status") == "success")

    def _processes(self, role: str) -> pl.DataFrame:
        rows = self.collection.processes
        return rows.filter(pl.col("role") == role) if len(rows) else rows


def published_cell(metric: Metric, scheduler: str, workload: str) -> Figure:
    """What the study's table says there."""
    (found,) = (
        each
        for each in published(3, metric.table)
        if each.row == scheduler and each.column == workload
    )
    return found
