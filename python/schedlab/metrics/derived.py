# SPDX-License-Identifier: MIT
"""Metrics that a run's tables do not hold and that comparisons and sweeps derive from them alike."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

_DIGITS_OF_POINTS = 9
"""Digits beyond these come from floating point."""
SHARE_ERROR = pl.col("share_error_points").abs().round(_DIGITS_OF_POINTS)
"""Of the groups' table: how far each is off the share that it asks for."""


def event_rates(values: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Returns `events_per_second` of each run whose program told once how many `events` it did in how many ns
    (`elapsed`)."""

    def single_value(name: str) -> pl.Expr:
        values = pl.col("value").filter(pl.col("name") == name)
        return pl.when(values.len() == 1).then(values.first())

    elapsed = single_value("elapsed")
    rate = pl.when(elapsed > 0).then(single_value("events") * 1e9 / elapsed)
    return values.group_by(by).agg(events_per_second=rate)
