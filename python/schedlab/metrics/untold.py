# SPDX-License-Identifier: MIT
"""What cannot be known of a trace that does not tell when processes became runnable."""

from __future__ import annotations

import re

import polars as pl

from schedlab.metrics.model import Metrics
from schedlab.trace import Facts, Kind
from schedlab.trace.format import WAKEUPS_UNTOLD

UNTOLD = re.compile(
    r"(waiting|blocked|wakeup_latency|demand|ideal_share|share_error|fairness_share).*"
)
"""Columns that depend on it: a process that is blocked may have been waiting for a CPU for long."""


def wakeups_untold(trace: Facts) -> bool:
    """True if each WAKEUP stands where its process ran next, because nothing tells when it was."""
    return bool((trace.at("first", trace.rows(Kind.LOST)) == WAKEUPS_UNTOLD).any())


def without_untold(found: Metrics) -> Metrics:
    """The same without what depends on when processes became runnable."""
    return Metrics(
        summary=without_columns(found.summary),
        processes=without_columns(found.processes),
        groups=without_columns(found.groups),
        cpus=found.cpus,
        values=found.values,
        said=found.said,
    )


def without_columns(table: pl.DataFrame) -> pl.DataFrame:
    """The same table, with nothing in the columns that depend on it."""
    return table.with_columns(
        pl.lit(None, table.schema[column]).alias(column)
        for column in table.columns
        if UNTOLD.fullmatch(column)
    )
