# SPDX-License-Identifier: MIT
"""Summarises sets of processes: each group, and the whole workload."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from schedlab.metrics.accounts import LONGEST_WAIT
from schedlab.metrics.cpus import SECOND_NS, elapsed_cycles
from schedlab.metrics.fairness import jain_index
from schedlab.metrics.jobs import without_jobs
from schedlab.metrics.registry import values_of
from schedlab.metrics.window import Window
from schedlab.trace import Facts, Kind


def _completion() -> pl.Expr:
    """The time from the first fork to the last exit; null unless all were forked in the trace and have ended."""
    fork, end = pl.col("fork_ns"), pl.col("exit_ns")
    return (
        pl.when(end.is_not_null().all() & fork.is_not_null().all())
        .then((end.max() - fork.min()).clip(0))
        .alias("completion_ns")
    )


def _longest_waiter() -> pl.Expr:
    """The group and PID of the process with the longest uninterrupted wait; null if none waited."""
    waited = pl.col(LONGEST_WAIT)
    which = waited.arg_max()
    name = pl.format("{} ({})", pl.col("group").get(which), pl.col("pid").get(which))
    return pl.when(waited.max() > 0).then(name).alias("longest_wait_of")


def groups_of(
    window: Window, workload: pl.DataFrame, waits: pl.DataFrame, jobs: pl.DataFrame
) -> pl.DataFrame:
    """Returns the metrics of each group, and its share of the CPUs."""
    shares = pl.col("share", "ideal_share", "share_error_points")
    # The sum of nulls would be 0, but an unknown share must stay null.
    groups = workload.group_by("group").agg(
        *values_of("processes"), pl.when(shares.count() > 0).then(shares.sum())
    )
    for table, statistics in ((waits, values_of("wakeups")), (jobs, values_of("jobs"))):
        aggregated = table.group_by("group").agg(statistics)
        groups = groups.join(
            aggregated.with_columns(pl.col("group").cast(pl.String)), on="group", how="left"
        )
    return (
        groups.with_columns(without_jobs())
        .with_columns(
            throughput_per_second=_rate(pl.col("finished"), window.elapsed_ns / SECOND_NS),
        )
        .sort("group")
    )


def _rate(count: pl.Expr, per: float) -> pl.Expr:
    return count / per if per > 0 else pl.lit(None, pl.Float64)


_WHAT = {
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
"""The measured window. Types are explicit, so that the tables of all runs have the same types."""


def _what(trace: Facts, window: Window) -> dict[str, Any]:
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


def _policy(trace: Facts, window: Window) -> str:
    """Returns the policy active when the window ends, as `name` or `name:preset`."""
    named = trace.rows(Kind.POLICY)
    named = named[named <= window.end_row]
    text_rows = np.flatnonzero(np.isin(trace.texts["row"].to_numpy(), named))
    return str(trace.texts["text"][int(text_rows[-1])]) if len(text_rows) else ""


def summary_of(
    trace: Facts,
    window: Window,
    processes: pl.DataFrame,
    cpus: pl.DataFrame,
    waits: pl.DataFrame,
    jobs: pl.DataFrame,
) -> pl.DataFrame:
    workload = processes.filter(pl.col("role") == "workload")
    running = {
        f"{role}_running_ns": processes.filter(pl.col("role") == role)["running_ns"].sum()
        for role in ("root", "other")
    }
    relative = workload.filter((pl.col("asked_share") > 0) & pl.col("share").is_not_null())
    all_cycles = trace.header.cpus * elapsed_cycles(trace, window)
    machine = cpus.with_columns(all_cycles=pl.lit(all_cycles)).select(values_of("cpus"))
    return pl.concat(
        [
            pl.DataFrame([_what(trace, window)], schema=_WHAT),
            workload.select(values_of("processes")),
            workload.select(_completion(), _longest_waiter()),
            waits.select(values_of("wakeups")),
            jobs.select(values_of("jobs")),
            pl.DataFrame(running),
            machine,
            pl.DataFrame(
                {
                    "fairness_turnaround": _fairness(workload["turnaround_ns"].drop_nulls()),
                    "fairness_share": _fairness(relative["share"] / relative["asked_share"]),
                },
                schema={"fairness_turnaround": pl.Float64, "fairness_share": pl.Float64},
            ),
        ],
        how="horizontal",
    ).with_columns(
        throughput_per_second=_rate(pl.col("finished"), window.elapsed_ns / SECOND_NS),
        throughput_per_million_cycles=_rate(
            pl.col("finished"), elapsed_cycles(trace, window) / 1_000_000
        ),
    )


def _fairness(values: pl.Series) -> list[float | None]:
    return [jain_index(values.to_numpy())]
