# SPDX-License-Identifier: MIT
"""Summarises sets of processes: each group, and the whole workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from schedlab.metrics.accounts import LONGEST_WAIT
from schedlab.metrics.cpus import SECOND_NS, elapsed_cycles
from schedlab.metrics.fairness import jain_index
from schedlab.metrics.registry import values_by, values_in, values_of
from schedlab.metrics.shares import Shares
from schedlab.metrics.window import Window
from schedlab.trace import Kind, TraceFacts


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
    which = waited.arg_max()
    name = pl.format("{} ({})", pl.col("group").get(which), pl.col("pid").get(which))
    return pl.when(waited.max() > 0).then(name).alias("longest_wait_of")


def groups_of(
    window: Window, workload: pl.DataFrame, waits: pl.DataFrame, jobs: pl.DataFrame
) -> pl.DataFrame:
    """Returns a row of metrics for each group, including its share of the CPUs.

    `waits` and `jobs` have the number of their group, in the order of the groups' names.
    """
    shares = pl.col("share", "ideal_share", "share_error_points")
    # A sum of nulls would be 0, although the share is unknown.
    groups = (
        workload.group_by("group")
        .agg(
            *values_of("processes"),
            pl.when(shares.count() > 0).then(shares.sum()),
            _rate("throughput_per_second", window.elapsed_ns / SECOND_NS),
        )
        .sort("group")
    )
    *columns, throughput = groups.get_columns()
    numbers = np.arange(len(groups))
    return pl.DataFrame(
        [
            *columns,
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


def _run_values(trace: TraceFacts, window: Window) -> dict[str, Any]:
    return {
        "policy": _policy(trace, window),
        "cpus": trace.header.cpus,
        "seed": trace.header.seed,
        "tick_ns": trace.header.tick_ns,
        "clock_step_ns": trace.clock_step_ns,
        "truncated": trace.truncated,
        "lost_records": trace.lost,
        "root_pid": window.root_pid,
        "begin_ns": window.begin_ns,
        "end_ns": window.end_ns,
        "elapsed_ns": window.elapsed_ns,
        "elapsed_cycles": elapsed_cycles(trace, window),
    }


def _policy(trace: TraceFacts, window: Window) -> str:
    """Returns the active policy when the window ends, as `name` or `name:preset`."""
    named = trace.rows(Kind.POLICY)
    named = named[named <= window.end_row]
    text_rows = np.flatnonzero(np.isin(trace.texts["row"].to_numpy(), named))
    return str(trace.texts["text"][int(text_rows[-1])]) if len(text_rows) else ""


def summary_of(
    trace: TraceFacts,
    window: Window,
    workload: pl.DataFrame,
    running_ns: Mapping[str, int],
    cpus: pl.DataFrame,
    waits: pl.DataFrame,
    jobs: pl.DataFrame,
    shares: Shares,
) -> pl.DataFrame:
    """Returns the summary; `running_ns`: the running time of the other roles."""
    cycles = elapsed_cycles(trace, window)
    all_cycles = pl.Series("all_cycles", [trace.header.cpus * cycles] * len(cpus), pl.Float64)
    *of_processes, per_second, per_million_cycles = workload.select(
        *values_of("processes"),
        _completion(),
        _longest_waiter(),
        _rate("throughput_per_second", window.elapsed_ns / SECOND_NS),
        _rate("throughput_per_million_cycles", cycles / 1_000_000),
    ).get_columns()
    turnaround = workload["turnaround_ns"].to_numpy()
    fairness = {
        "fairness_turnaround": jain_index(turnaround[~np.isnan(turnaround)]),
        "fairness_share": jain_index(shares.relative()),
    }
    run_values = {name: [value] for name, value in _run_values(trace, window).items()}
    return pl.DataFrame(run_values, schema=_RUN_COLUMNS).hstack(
        [
            *of_processes,
            *values_in(waits, "wakeups").get_columns(),
            *values_in(jobs, "jobs").get_columns(),
            *(pl.Series(f"{role}_running_ns", [time]) for role, time in running_ns.items()),
            *cpus.hstack([all_cycles]).select(values_of("cpus")).get_columns(),
            *(pl.Series(name, [index], pl.Float64) for name, index in fairness.items()),
            per_second,
            per_million_cycles,
        ]
    )


def _rate(name: str, per: float) -> pl.Expr:
    """Returns the number of processes that ended, per unit of time."""
    rate = pl.col("exit_ns").count() / per if per > 0 else pl.lit(None, pl.Float64)
    return rate.alias(name)
