# SPDX-License-Identifier: MIT
"""Removes metrics that cannot be known, because the trace lacks wake-ups or covers only some CPUs."""

import re
from dataclasses import replace

import polars as pl

from schedlab.metrics.model import Metrics
from schedlab.trace import Kind, TraceFacts
from schedlab.trace.format import LossKind

NEED_WAKEUPS = re.compile(
    r"(waiting|longest_wait|blocked|wakeup_latency|demand|ideal_share|share_error|fairness_share).*"
)
"""Columns that need wake-ups: without them, a process that seems blocked may have waited for a CPU."""

SHARES = re.compile(r"(demand|share|ideal_share|fairness_share).*")
"""Columns that need the activity of all CPUs."""

UNKNOWN_PART = 0.05
"""Largest unknown fraction of a process's time that leaves its metrics valid."""


def has_unknown_activity(trace: TraceFacts) -> bool:
    """Returns whether the activity of some process or CPU is unknown for some time."""
    return bool((trace.at("first", trace.rows(Kind.LOST)) == LossKind.UNSEEN).any())


def without_unknown(processes: pl.DataFrame) -> pl.DataFrame:
    """Sets times to null for processes whose activity was unknown for more than UNKNOWN_PART of
    their time.

    `processes`: needs `running_ns`, `waiting_ns`, `blocked_ns`, `unknown_ns`; `longest_wait_ns` is
    optional.
    """
    unknown = pl.col("unknown_ns")
    times = pl.sum_horizontal("running_ns", "waiting_ns", "blocked_ns", unknown)
    return processes.with_columns(
        pl.when(unknown <= UNKNOWN_PART * times).then(name).alias(name)
        for name in ("waiting_ns", "longest_wait_ns", "blocked_ns")
        if name in processes.columns
    )


def wakeups_unknown(trace: TraceFacts) -> bool:
    """Returns whether wake-up times are unknown. Each WAKEUP record is then where its process ran next."""
    return bool((trace.at("first", trace.rows(Kind.LOST)) == LossKind.OF_WAKEUPS).any())


def drop_unknown(metrics: Metrics, pattern: re.Pattern[str]) -> Metrics:
    """Returns the metrics with null in the columns that match."""
    return replace(
        metrics,
        summary=without_columns(metrics.summary, pattern),
        processes=without_columns(metrics.processes, pattern),
        groups=without_columns(metrics.groups, pattern),
    )


def without_columns(table: pl.DataFrame, pattern: re.Pattern[str] = NEED_WAKEUPS) -> pl.DataFrame:
    """Returns the table with null in the columns that match."""
    return table.with_columns(
        pl.lit(None, table.schema[column]).alias(column)
        for column in table.columns
        if pattern.fullmatch(column)
    )
