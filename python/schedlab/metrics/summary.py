# SPDX-License-Identifier: MIT
"""What is said of sets of processes: of each group, and of all together."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from schedlab.metrics.accounts import COUNTS
from schedlab.metrics.cpus import SECOND_NS, elapsed_cycles
from schedlab.metrics.fairness import jain_index
from schedlab.metrics.jobs import job_statistics, without_jobs
from schedlab.metrics.window import Window
from schedlab.trace import Facts, Kind


def latency_statistics() -> list[pl.Expr]:
    latency = pl.col("latency_ns")
    return [
        latency.median().alias("wakeup_latency_median_ns"),
        latency.quantile(0.99, "linear").alias("wakeup_latency_p99_ns"),
        latency.max().alias("wakeup_latency_max_ns"),
    ]


def _statistics(column: str) -> list[pl.Expr]:
    stem = column.removesuffix("_ns")
    value = pl.col(column)
    return [
        value.mean().alias(f"{stem}_mean_ns"),
        value.median().alias(f"{stem}_median_ns"),
        value.max().alias(f"{stem}_max_ns"),
    ]


def _population() -> list[pl.Expr]:
    """What is said of any set of processes."""
    return [
        pl.len().alias("processes"),
        pl.col("exit_ns").count().alias("finished"),
        *_statistics("turnaround_ns"),
        *_statistics("response_ns"),
        *_statistics("waiting_ns"),
        pl.col("running_ns", "blocked_ns", *COUNTS).sum(),
    ]


def _completion() -> pl.Expr:
    """The time from the first fork to the last end; null unless all have ended, and were forked."""
    fork, end = pl.col("fork_ns"), pl.col("exit_ns")
    return (
        pl.when(end.is_not_null().all() & fork.is_not_null().all())
        .then((end.max() - fork.min()).clip(0))
        .alias("completion_ns")
    )


def groups_of(
    window: Window, workload: pl.DataFrame, waits: pl.DataFrame, jobs: pl.DataFrame
) -> pl.DataFrame:
    """Per group the same as for all, and its share of the CPUs."""
    shares = pl.col("share", "ideal_share")
    # A sum of nulls would be 0, but a share of nothing is no share.
    groups = workload.group_by("group").agg(
        *_population(), pl.when(shares.count() > 0).then(shares.sum())
    )
    for found, statistics in ((waits, latency_statistics()), (jobs, job_statistics())):
        of_each = found.group_by("group").agg(statistics)
        groups = groups.join(
            of_each.with_columns(pl.col("group").cast(pl.String)), on="group", how="left"
        )
    return (
        groups.with_columns(without_jobs())
        .with_columns(
            share_error_points=(pl.col("share") - pl.col("ideal_share")) * 100,
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
"""What was measured. Spelt out, so that the tables of all runs have the same types."""


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
    """The policy in force when the window ends, as `name` or `name:preset`."""
    named = trace.rows(Kind.POLICY)
    named = named[named <= window.end_row]
    said = np.flatnonzero(np.isin(trace.texts["row"].to_numpy(), named))
    return str(trace.texts["text"][int(said[-1])]) if len(said) else ""


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
    relative = workload.filter((pl.col("ideal_share") > 0) & pl.col("share").is_not_null())
    machine = cpus.select(
        pl.col("idle_ns", "scheduler_entries", "scheduler_cycles").sum(),
        # Of one sum of whole numbers: a mean of quotients would be rounded several times.
        pl.when(pl.col("overhead_share").is_not_null().all())
        .then(
            pl.col("scheduler_cycles").sum() / (trace.header.cpus * elapsed_cycles(trace, window))
        )
        .alias("overhead_share"),
        pl.col("overhead_with_idle_share").mean(),
        pl.col("context_switches", "switches_to_idle", "switches_from_idle").sum(),
    )
    return pl.concat(
        [
            pl.DataFrame([_what(trace, window)], schema=_WHAT),
            workload.select(_population()),
            workload.select(_completion()),
            waits.select(latency_statistics()),
            jobs.select(job_statistics()),
            pl.DataFrame(running),
            machine,
            pl.DataFrame(
                {
                    "fairness_turnaround": _fairness(workload["turnaround_ns"].drop_nulls()),
                    "fairness_share": _fairness(relative["share"] / relative["ideal_share"]),
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
