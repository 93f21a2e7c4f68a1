# SPDX-License-Identifier: MIT
"""Computes metrics that are not in a run's tables, for comparisons and sweeps."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

_DIGITS_OF_POINTS = 9
"""Digits of percentage points that are kept; further digits are rounding errors."""
SHARE_ERROR = pl.col("share_error_points").abs().round(_DIGITS_OF_POINTS)
"""How far each group's share is from its ideal share, in percentage points."""


def event_rates(values: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Returns `events_per_second` of each run whose program reported exactly one `events` and one `elapsed` (in ns)."""

    def single_value(name: str) -> pl.Expr:
        values = pl.col("value").filter(pl.col("name") == name)
        return pl.when(values.len() == 1).then(values.first())

    elapsed = single_value("elapsed")
    rate = pl.when(elapsed > 0).then(single_value("events") * 1e9 / elapsed)
    return values.group_by(by).agg(events_per_second=rate)
