# SPDX-License-Identifier: MIT
"""Summarises sets of processes of each run: each group, and the whole workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab.metrics.accounts import LONGEST_WAIT
from schedlab.metrics.columns import nullable, quotients
from schedlab.metrics.cpus import SECOND_NS, elapsed_cycles
from schedlab.metrics.fairness import jain_index
from schedlab.metrics.registry import values_by, values_by_run, values_of
from schedlab.metrics.shares import Shares
from schedlab.metrics.window import Windows
from schedlab.trace import Kind, TraceFacts
from schedlab.trace.joined import RunFacts
from schedlab.trace.model import Integers

_OVERHEAD_WITH_IDLE = "overhead_with_idle_share"


def _completion() -> pl.Expr:
    """Returns the time from the first fork to the last exit.

    Null unless all processes were forked in the trace and have ended.
    """
    fork, end = pl.col("fork_ns"), pl.col("exit_ns")
    return (
        pl.when(end.is_not_null().all() & fork.is_not_null().all())
        .then((end.max() - fork.min()).clip(0))
        .alias("completion_ns")
    )


def _longest_waiter() -> pl.Expr:
    """Returns the group and PID of the process with the longest uninterrupted wait; null if none waited."""
    waited = pl.col(LONGEST_WAIT)
    index = waited.arg_max()
    name = pl.format("{} ({})", pl.col("group").get(index), pl.col("pid").get(index))
    return pl.when(waited.max() > 0).then(name).alias("longest_wait_of")


def groups_of(
    windows: Windows, workload: pl.DataFrame, waits: pl.DataFrame, jobs: pl.DataFrame
) -> pl.DataFrame:
    """Returns a row of metrics for each run and group, including its share of the CPUs.

    `waits` and `jobs` have the number of their group, in the order of the runs and the groups' names.
    """
    shares = pl.col("share", "ideal_share", "share_error_points")
    # A sum of nulls would be 0, although the share is unknown.
    groups = (
        workload.group_by("run", "group")
        .agg(*values_of("processes"), pl.when(shares.count() > 0).then(shares.sum()))
        .sort("run", "group")
    )
    numbers = np.arange(len(groups))
    run = groups["run"].to_numpy()
    seconds = (windows.elapsed_ns / SECOND_NS)[run]
    throughput = _rate("throughput_per_second", groups, seconds, np.bincount(run)[run])
    return pl.DataFrame(
        [
            *groups.get_columns(),
            *values_by(waits, "wakeups", "group", numbers).get_columns(),
            *values_by(jobs, "jobs", "group", numbers).get_columns(),
            throughput,
        ]
    )


_RUN_COLUMNS = {
    "policy": pl.String,
    "cpus": pl.Int64,
    "seed": pl.UInt64,
    "tick_ns": pl.Int64,
    "clock_step_ns": pl.Int64,
    "truncated": pl.Boolean,
    "lost_records": pl.Int64,
    "root_pid": pl.Int64,
    "begin_ns": pl.Int64,
    "end_ns": pl.Int64,
    "elapsed_ns": pl.Int64,
    "elapsed_cycles": pl.Float64,
}
"""Columns that describe the run, with explicit types, so that the tables of all runs fit together."""


def _run_facts(trace: TraceFacts, windows: Windows) -> dict[str, Any]:
    runs = windows.runs
    return {
        "policy": _policies(trace, windows),
        "cpus": [header.cpus for header in runs.headers],
        "seed": [header.seed for header in runs.headers],
        "tick_ns": [header.tick_ns for header in runs.headers],
        "clock_step_ns": list(runs.clock_step_ns),
        "truncated": [runs.truncated] * len(runs),
        "lost_records": [runs.lost] * len(runs),
        "root_pid": [
            None if window.root_pid is None else window.root_pid - run * runs.pids
            for run, window in enumerate(windows.windows)
        ],
        "begin_ns": windows.begin_ns,
        "end_ns": windows.end_ns,
        "elapsed_ns": windows.elapsed_ns,
        "elapsed_cycles": elapsed_cycles(runs, windows.elapsed_ns),
    }


def _policies(trace: TraceFacts, windows: Windows) -> list[str]:
    """Returns each run's active policy when its window ends, as `name` or `name:preset`."""
    rows = trace.texts["row"].to_numpy()
    naming = np.flatnonzero(np.isin(rows, trace.rows(Kind.POLICY)))
    last = np.searchsorted(rows[naming], windows.end_row, side="right") - 1
    return [
        str(trace.texts["text"][int(naming[index])])
        if index >= 0 and rows[naming[index]] >= first_row
        else ""
        for index, first_row in zip(last.tolist(), windows.runs.first_row.tolist(), strict=True)
    ]


def summary_of(
    trace: TraceFacts,
    windows: Windows,
    workload: pl.DataFrame,
    running_ns: Mapping[str, Integers],
    cpus: pl.DataFrame,
    waits: pl.DataFrame,
    jobs: pl.DataFrame,
    shares: Shares,
) -> pl.DataFrame:
    """Returns the summary, with a row per run; `running_ns`: the running time of the other roles."""
    runs = windows.runs
    cycles = elapsed_cycles(runs, windows.elapsed_ns)
    all_cycles = pl.Series("all_cycles", (runs.cpus * cycles)[cpus["run"].to_numpy()], pl.Float64)
    ones = np.ones(len(runs), np.int64)
    of_processes = values_by_run(
        workload, len(runs), *values_of("processes"), _completion(), _longest_waiter()
    )
    turnaround = workload["turnaround_ns"].to_numpy()
    is_known = ~np.isnan(turnaround)
    of_runs = runs.slices(workload["run"].to_numpy())
    fairness = {
        "fairness_turnaround": [jain_index(turnaround[of][is_known[of]]) for of in of_runs],
        "fairness_share": [jain_index(shares.relative(of)) for of in of_runs],
    }
    return pl.DataFrame(_run_facts(trace, windows), schema=_RUN_COLUMNS).hstack(
        [
            *of_processes.get_columns(),
            *values_by_run(waits, len(runs), *values_of("wakeups")).get_columns(),
            *values_by_run(jobs, len(runs), *values_of("jobs")).get_columns(),
            *(pl.Series(f"{role}_running_ns", times) for role, times in running_ns.items()),
            *_values_of_cpus(cpus.hstack([all_cycles]), runs).get_columns(),
            *(pl.Series(name, indices, pl.Float64) for name, indices in fairness.items()),
            _rate("throughput_per_second", of_processes, windows.elapsed_ns / SECOND_NS, ones),
            _rate("throughput_per_million_cycles", of_processes, cycles / 1_000_000, ones),
        ]
    )


def _values_of_cpus(cpus: pl.DataFrame, runs: RunFacts) -> pl.DataFrame:
    """Returns the values of each run's CPUs."""
    values = values_by_run(cpus, len(runs), *values_of("cpus"))
    # Polars rounds the mean of a column differently from the mean of a group.
    part = cpus[_OVERHEAD_WITH_IDLE]
    means = [part[first : first + runs.cpus].mean() for first in range(0, len(part), runs.cpus)]
    return values.with_columns(pl.Series(_OVERHEAD_WITH_IDLE, means, pl.Float64))


def _rate(
    name: str, table: pl.DataFrame, per: npt.NDArray[np.float64], rows: Integers
) -> pl.Series:
    """Returns the number of processes that ended, per unit of time; null without time.

    `rows`: the number of rows of each row's run.
    """
    rates = quotients(table["finished"].to_numpy(), per, rows)
    return nullable(rates, per <= 0, pl.Float64, name)
