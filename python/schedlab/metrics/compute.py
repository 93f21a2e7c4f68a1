# SPDX-License-Identifier: MIT
"""Computes the metrics of one run from its trace; docs/metrics.md defines each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from schedlab.metrics.accounts import Accounts
from schedlab.metrics.cpus import CpuAccounts
from schedlab.metrics.jobs import jobs_of
from schedlab.metrics.model import Metrics
from schedlab.metrics.processes import alive_processes, names_and_groups
from schedlab.metrics.registry import values_by
from schedlab.metrics.reported import (
    late_arrivals_note,
    printed_values_of,
    remarks,
    unknown_activity_note,
)
from schedlab.metrics.shares import Weights, attributes_set, shares_of
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
from schedlab.trace import Trace, TraceFacts, open_outlined
from schedlab.trace.model import Integers
from schedlab.trace.parts import Part, Parts
from schedlab.trace.validation import Checks

WINDOW = "window"
"""Name that a workload uses to report the planned length (ns) of the measured window.

See workload_window() in workloads/api/workload.h.
"""
_WINDOW_ERROR_MAX = 0.05
"""Largest accepted deviation of the window's length from the planned length, as a fraction of it."""


class NoResult(ValueError):
    """The measured window differs from the planned one."""


def _check_window(metrics: Metrics) -> None:
    """Raises NoResult if the window's length differs from the length that the workload announced."""
    names = metrics.values["name"].to_list()
    if WINDOW not in names:
        return
    planned = int(metrics.values["value"][names.index(WINDOW)])
    lasted = int(metrics.summary["elapsed_ns"][0])
    if abs(lasted - planned) > _WINDOW_ERROR_MAX * planned:
        raise NoResult(f"the window lasted {lasted / 1e6:g} of {planned / 1e6:g} ms")


def compute(trace: Trace, weights: Weights | None = None, since_ns: int = 0) -> Metrics:
    """Computes all metrics of a valid trace over its measured window, or the part from `since_ns`
    on.

    `weights`: the attribute that determines ideal shares. None: the attribute that the policy shares
    by, according to the trace. If there is none: weights if a process set one, or else tickets,
    or else equal shares.
    """
    window = window_since(measured_window(trace), trace, since_ns)
    parts = Parts(trace)
    books = _RunAccounts(trace, window)
    for part in parts:
        books.take(part)
    return books.close(parts, weights)


def measure(path: str | Path) -> Metrics:
    """Validates a trace file and computes its metrics, with only a part of the records in memory.

    Raises the errors of `read`, `validate` and `compute`; and NoResult if the window's length
    differs from the length that the workload planned.
    """
    records, facts = open_outlined(path)
    parts = Parts(records)
    checks, books = Checks(records, facts), _RunAccounts(facts, measured_window(facts))
    for part in parts:
        checks.take(part)
        if checks.good:
            books.take(part)
    checks.end()
    metrics = books.close(parts)
    _check_window(metrics)
    return metrics


class _RunAccounts:
    """All sums that metrics are computed from, while a trace is read part by part."""

    def __init__(self, trace: TraceFacts, window: Window) -> None:
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
        who, sums, latencies = self._lives.results()
        called = names_and_groups(trace, who, window)
        alive = alive_processes(trace, who, window, called)
        sums = {name: values[alive.life] for name, values in sums.items()}
        workload_life = alive.life[alive.workload]
        workload_sums = {name: values[alive.workload] for name, values in sums.items()}
        ended = alive.ended[alive.workload]
        shares = shares_of(trace, who, window, weights, workload_life, workload_sums, ended)
        jobs = jobs_of(trace, who, window)
        processes = alive.table.hstack(
            [
                *(pl.Series(name, values) for name, values in sums.items()),
                *values_by(latencies, "wakeups", "life", alive.life).get_columns(),
                *values_by(jobs, "jobs", "life", alive.life).get_columns(),
                *shares.columns(alive.workload, len(alive.life)),
            ]
        )
        if sums["unknown_ns"].any():
            processes = without_unknown(processes)
        processes = pl.DataFrame(
            [column for column in processes if column.name not in ("life", "unknown_ns")]
        )
        workload = processes[alive.workload]
        group_of_life = _group_numbers(workload["group"].to_list(), workload_life, len(who))
        waits, jobs = (_with_groups(table, group_of_life) for table in (latencies, jobs))
        cpus = self._cpus.table()
        values = printed_values_of(trace, who, called["group"].to_list())
        late = late_arrivals_note(values, window, trace.header.tick_ns)
        unknown = unknown_activity_note(
            trace, window, workload_sums["unknown_ns"], self._cpus.unknown_ns
        )
        running = {role: alive.sum_of(sums["running_ns"], role) for role in ("root", "other")}
        result = Metrics(
            summary=summary_of(trace, window, workload, running, cpus, waits, jobs, shares),
            processes=processes,
            groups=groups_of(window, workload, waits, jobs),
            cpus=cpus,
            values=values,
            said=remarks(trace, window).vstack(late).vstack(unknown),
            attributes=attributes_set(trace, window),
        )
        if wakeups_unknown(trace):
            return drop_unknown(result, NEED_WAKEUPS)
        much = self._cpus.unknown_ns > UNKNOWN_PART * trace.header.cpus * window.elapsed_ns
        return drop_unknown(result, SHARES) if much else result


def _group_numbers(groups: Sequence[str], lives: Integers, count: int) -> Integers:
    """Returns the number of each life's group, in the order of their names; −1 for other lives.

    `groups`: the groups of `lives`.
    """
    number = {name: place for place, name in enumerate(sorted(set(groups)))}
    numbers = np.full(count, -1)
    numbers[lives] = [number[name] for name in groups]
    return numbers


def _with_groups(items: pl.DataFrame, group_of_life: Integers) -> pl.DataFrame:
    """Returns the items of the workload's lives, with the numbers of their groups."""
    group = group_of_life[items["life"].to_numpy()]
    rows = np.flatnonzero(group >= 0)
    if len(rows) < len(group):
        items, group = items[rows], group[rows]
    return items.hstack([pl.Series("group", group)])
