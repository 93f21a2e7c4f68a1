# SPDX-License-Identifier: MIT
"""What cannot be known of a trace that lacks wake-ups, or does not cover all CPUs."""

from __future__ import annotations

import re
from dataclasses import replace

import polars as pl

from schedlab.metrics.model import Metrics
from schedlab.trace import Facts, Kind
from schedlab.trace.format import LossKind

UNTOLD = re.compile(
    r"(waiting|longest_wait|blocked|wakeup_latency|demand|ideal_share|share_error|fairness_share).*"
)
"""Columns that depend on it: a process that is blocked may have been waiting for a CPU for long."""

SHARES = re.compile(r"(demand|share|ideal_share|fairness_share).*")
"""Columns that depend on what all CPUs did."""

UNKNOWN_PART = 0.05
"""The part of a time that may be unknown without emptying what is computed from it."""


def unseen(trace: Facts) -> bool:
    """True if the trace does not know all the time what each process and each CPU does."""
    return bool((trace.at("first", trace.rows(Kind.LOST)) == LossKind.UNSEEN).any())


def without_unknown(processes: pl.DataFrame) -> pl.DataFrame:
    """The same processes, without the times of those that were out of sight for more than UNKNOWN_PART of their time.

    `processes`: with `running_ns`, `waiting_ns`, `blocked_ns`, `unknown_ns`, and `longest_wait_ns` if that is known.
    """
    unknown = pl.col("unknown_ns")
    times = pl.sum_horizontal("running_ns", "waiting_ns", "blocked_ns", unknown)
    return processes.with_columns(
        pl.when(unknown <= UNKNOWN_PART * times).then(name).alias(name)
        for name in ("waiting_ns", "longest_wait_ns", "blocked_ns")
        if name in processes.columns
    )


def wakeups_untold(trace: Facts) -> bool:
    """True if each WAKEUP stands where its process ran next, because nothing tells when it was."""
    return bool((trace.at("first", trace.rows(Kind.LOST)) == LossKind.OF_WAKEUPS).any())


def without_untold(metrics: Metrics, pattern: re.Pattern[str]) -> Metrics:
    """The same with nothing in the columns that match."""
    return replace(
        metrics,
        summary=without_columns(metrics.summary, pattern),
        processes=without_columns(metrics.processes, pattern),
        groups=without_columns(metrics.groups, pattern),
    )


def without_columns(table: pl.DataFrame, pattern: re.Pattern[str] = UNTOLD) -> pl.DataFrame:
    """The same table, with nothing in the columns that match."""
    return table.with_columns(
        pl.lit(None, table.schema[column]).alias(column)
        for column in table.columns
        if pattern.fullmatch(column)
    )
