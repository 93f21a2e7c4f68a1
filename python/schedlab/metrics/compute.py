# SPDX-License-Identifier: MIT
"""Computes the metrics of one run from its trace; docs/metrics.md defines each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from schedlab.metrics.accounts import Accounts
from schedlab.metrics.cpus import CpuAccounts
from schedlab.metrics.jobs import jobs_of, without_jobs
from schedlab.metrics.model import Metrics
from schedlab.metrics.processes import called_by, processes_by_name
from schedlab.metrics.registry import values_of
from schedlab.metrics.reported import late_arrivals, printed_values_of, remarks, unrecorded
from schedlab.metrics.shares import Weights, attributes_set, with_shares
from schedlab.metrics.summary import groups_of, summary_of
from schedlab.metrics.unknown import (
    NEED_WAKEUPS,
    SHARES,
    UNKNOWN_PART,
    drop_unknown,
    wakeups_unknown,
    without_unknown,
)
from schedlab.metrics.window import Window, measured_window, window_since
from schedlab.trace import Facts, Trace, read_outlined
from schedlab.trace.parts import Part, Parts
from schedlab.trace.validation import Checks

WINDOW = "window"
"""Name of the value that contains the planned length of the window, in nanoseconds
(workload_window() in workloads/api/workload.h).
"""
_MOST_OFF = 0.05
"""Largest relative deviation of the window's length from the plan."""


class NoResult(ValueError):
    """The measured window differs from the planned one."""


def _check_window(metrics: Metrics) -> None:
    """Raises NoResult if the window's length differs from the length that the workload announced."""
    window_rows = metrics.values.filter(pl.col("name") == WINDOW)["value"]
    if window_rows.is_empty():
        return
    planned, lasted = int(window_rows[0]), int(metrics.summary["elapsed_ns"][0])
    if abs(lasted - planned) > _MOST_OFF * planned:
        raise NoResult(f"the window lasted {lasted / 1e6:g} of {planned / 1e6:g} ms")


def compute(trace: Trace, weights: Weights | None = None, since_ns: int = 0) -> Metrics:
    """Computes all metrics of a trace that `validate` accepted, over its measured window, starting at `since_ns`.

    `weights`: the attribute that determines ideal shares. None: the attribute that the policy
    shares by, according to the trace. If it shares by none, shares follow the weights if a process
    had one set, else the tickets, else they are equal.
    """
    window = window_since(measured_window(trace), trace, since_ns)
    parts = Parts(trace)
    books = _Books(trace, window)
    for part in parts:
        books.take(part)
    return books.close(parts, weights)


def measure(path: str | Path) -> Metrics:
    """Validates a trace file and computes its metrics in one pass, with one part of the records in memory.

    Raises what `read`, `validate` and `compute` raise, and NoResult if the window's length differs
    from the workload's plan.
    """
    records, facts = read_outlined(path)
    parts = Parts(records)
    checks, books = Checks(records, facts), _Books(facts, measured_window(facts))
    for part in parts:
        checks.take(part)
        if checks.good:
            books.take(part)
    checks.end()
    metrics = books.close(parts)
    _check_window(metrics)
    return metrics


class _Books:
    """All sums over a trace."""

    def __init__(self, trace: Facts, window: Window) -> None:
        self._trace = trace
        self._window = window
        self._lives = Accounts(trace, self._window)
        self._cpus = CpuAccounts(trace, self._window)

    def take(self, part: Part) -> None:
        self._lives.take(part)
        self._cpus.take(part)

    def close(self, parts: Parts, weights: Weights | None = None) -> Metrics:
        """Returns the tables after all parts were added."""
        trace, window = self._trace, self._window
        self._lives.end(parts.by_process.rest(), self._cpus.end(parts.by_cpu.rest()))
        who, did, latencies = self._lives.results()
        called = called_by(trace, who, window)
        processes = processes_by_name(trace, who, window, called)
        waited = latencies.group_by("life").agg(values_of("wakeups"))
        jobs = jobs_of(trace, who, window)
        job_values = jobs.group_by("life").agg(values_of("jobs"))
        for table in (did, waited, job_values):
            processes = processes.join(table, on="life", how="left", maintain_order="left")
        processes = processes.with_columns(without_jobs())
        processes = with_shares(processes, trace, who, window, weights)
        unknown = unrecorded(trace, window, processes, self._cpus.unknown_ns)
        processes = without_unknown(processes).drop("unknown_ns")
        workload = processes.filter(pl.col("role") == "workload")
        waits, jobs = (_of_workload(table, workload, len(who)) for table in (latencies, jobs))
        cpus = self._cpus.table()
        values = printed_values_of(trace, who, called["group"].to_list())
        late = late_arrivals(values, window, trace.header.tick_ns)
        result = Metrics(
            summary=summary_of(trace, window, processes, cpus, waits, jobs),
            processes=processes.drop("life", "asked_share"),
            groups=groups_of(window, workload, waits, jobs),
            cpus=cpus,
            values=values,
            said=pl.concat([remarks(trace, window), late, unknown]),
            attributes=attributes_set(trace, window),
        )
        if wakeups_unknown(trace):
            return drop_unknown(result, NEED_WAKEUPS)
        much = self._cpus.unknown_ns > UNKNOWN_PART * trace.header.cpus * window.elapsed_ns
        return drop_unknown(result, SHARES) if much else result


def _of_workload(table: pl.DataFrame, workload: pl.DataFrame, lives: int) -> pl.DataFrame:
    """Selects the rows of the workload's processes and adds their groups; much faster than a join."""
    place = np.full(lives, -1)
    place[workload["life"].to_numpy()] = np.arange(len(workload))
    place = place[table["life"].to_numpy()]
    group = workload["group"].cast(pl.Enum(workload["group"].unique().drop_nulls()))
    in_workload = place >= 0
    if not in_workload.all():
        table, place = table.filter(in_workload), place[in_workload]
    return table.drop("life").insert_column(0, group.gather(place).alias("group"))
