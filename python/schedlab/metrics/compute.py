# SPDX-License-Identifier: MIT
"""The metrics of one run, from its trace; docs/metrics.md defines each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from schedlab.metrics.accounts import Accounts
from schedlab.metrics.cpus import CpuAccounts
from schedlab.metrics.jobs import job_statistics, jobs_of, without_jobs
from schedlab.metrics.model import Metrics
from schedlab.metrics.people import called_by, people_called
from schedlab.metrics.said import late_arrivals, remarks
from schedlab.metrics.shares import Weights, with_shares
from schedlab.metrics.summary import groups_of, latency_statistics, summary_of
from schedlab.metrics.told import told_values
from schedlab.metrics.untold import wakeups_untold, without_untold
from schedlab.metrics.window import Window, measured_window, window_since
from schedlab.metrics.window_length import check_window
from schedlab.trace import Facts, Trace, read_outlined
from schedlab.trace.parts import Part, Parts
from schedlab.trace.validation import Checks


def compute(trace: Trace, weights: Weights | None = None, since_ns: int = 0) -> Metrics:
    """All metrics of a trace that `validate` found good, over its measured window from `since_ns` on.

    `weights` names the attribute by which ideal shares are allotted. None: the
    one by which the policy shares, as the trace says; if it shares by none, weight
    if a process had that set, else tickets, likewise; else equal.
    """
    window = window_since(measured_window(trace), trace, since_ns)
    parts = Parts(trace)
    books = _Books(trace, window)
    for part in parts:
        books.take(part)
    return books.close(parts, weights)


def measure(path: str | Path) -> Metrics:
    """Checks a trace's file and computes its metrics, as `read`, `validate` and `compute` do, in one pass
    over its records, of which a part is in memory at a time. Raises what they raise, and NoResult
    if the window was not as long as the workload said."""
    records, facts = read_outlined(path)
    parts = Parts(records)
    checks, books = Checks(records, facts), _Books(facts, measured_window(facts))
    for part in parts:
        checks.take(part)
        if checks.good:
            books.take(part)
    checks.end()
    metrics = books.close(parts)
    check_window(metrics)
    return metrics


class _Books:
    """All that is added up of a trace."""

    def __init__(self, trace: Facts, window: Window) -> None:
        self._trace = trace
        self._window = window
        self._lives = Accounts(trace, self._window)
        self._cpus = CpuAccounts(trace, self._window)

    def take(self, part: Part) -> None:
        self._lives.take(part)
        self._cpus.take(part)

    def close(self, parts: Parts, weights: Weights | None = None) -> Metrics:
        """The tables, once all parts were taken."""
        trace, window = self._trace, self._window
        self._lives.end(parts.by_process.rest(), self._cpus.end(parts.by_cpu.rest()))
        who, did, latencies = self._lives.results()
        called = called_by(trace, who, window)
        processes = people_called(trace, who, window, called)
        waited = latencies.group_by("life").agg(latency_statistics())
        jobs = jobs_of(trace, who, window)
        kept = jobs.group_by("life").agg(job_statistics())
        for table in (did, waited, kept):
            processes = processes.join(table, on="life", how="left", maintain_order="left")
        processes = processes.with_columns(without_jobs())
        processes = with_shares(processes, trace, who, window, weights)
        workload = processes.filter(pl.col("role") == "workload")
        waits, jobs = (_of_workload(each, workload, len(who)) for each in (latencies, jobs))
        cpus = self._cpus.table()
        values = told_values(trace, who, called["group"].to_list())
        late = late_arrivals(values, window, trace.header.tick_ns)
        found = Metrics(
            summary=summary_of(trace, window, processes, cpus, waits, jobs),
            processes=processes.drop("life"),
            groups=groups_of(window, workload, waits, jobs),
            cpus=cpus,
            values=values,
            said=pl.concat([remarks(trace, window), late]),
        )
        return without_untold(found) if wakeups_untold(trace) else found


def _of_workload(found: pl.DataFrame, workload: pl.DataFrame, lives: int) -> pl.DataFrame:
    """What was found of the workload's processes, with their groups; much faster than by a join."""
    place = np.full(lives, -1)
    place[workload["life"].to_numpy()] = np.arange(len(workload))
    place = place[found["life"].to_numpy()]
    group = workload["group"].cast(pl.Enum(workload["group"].unique().drop_nulls()))
    held = place >= 0
    if not held.all():
        found, place = found.filter(held), place[held]
    return found.drop("life").insert_column(0, group.gather(place).alias("group"))
