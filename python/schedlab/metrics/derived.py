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

    def told_once(name: str) -> pl.Expr:
        told = pl.col("value").filter(pl.col("name") == name)
        return pl.when(told.len() == 1).then(told.first())

    elapsed = told_once("elapsed")
    rate = pl.when(elapsed > 0).then(told_once("events") * 1e9 / elapsed)
    return values.group_by(by).agg(events_per_second=rate)
