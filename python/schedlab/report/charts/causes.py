# SPDX-License-Identifier: MIT
"""Draws the causes of waiting: a bar for each policy, divided by what ran during the waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from schedlab.base.display.numbers import duration
from schedlab.report.charts.parts import (
    NUMBERS,
    NothingToDraw,
    Styles,
    chart_of,
    panels_of,
    stacked,
)
from schedlab.report.charts.theme import WIDTH
from schedlab.report.model import Chart

ROW_HEIGHT = 24
_GROUPS_MOST = 5
"""Maximum number of groups that have a panel, and of causes with a colour.

The largest are drawn.
"""
_OTHERS = "others"


def causes(name: str, data: pl.DataFrame, *, title: str, caption: str) -> Chart:
    """Draws a panel for each waiting group and a bar for each `setup`, divided by cause.

    `data`: setup, waiting, because_of, duration_ns (schedlab.analysis.explanation.delays). The
    scale of each panel fits its longest bar, so lengths of different panels cannot be compared.
    """
    waited = data.group_by("waiting").agg(pl.col("duration_ns").sum())
    most = waited.filter(pl.col("duration_ns") > 0).top_k(_GROUPS_MOST, by="duration_ns")
    shown = sorted(most["waiting"].to_list())
    if not shown:
        raise NothingToDraw(f"chart {name}: no process waited")
    series, drawn = _cut(data.filter(pl.col("waiting").is_in(shown)))
    styles = Styles(series, policies=False, muted=[name for name in series if name == _OTHERS])
    setups = data["setup"].unique(maintain_order=True).to_list()
    pictures = [
        (panel, _panel(drawn.filter(pl.col("waiting") == panel), styles, setups, is_last=is_last))
        for panel, is_last in panels_of(drawn.sort("waiting", maintain_order=True)["waiting"])
    ]
    return Chart(name, title, stacked(pictures), data, caption, _words(drawn))


def _cut(data: pl.DataFrame) -> tuple[list[str], pl.DataFrame]:
    """Returns the causes, the largest first, and the rows with
    small causes merged into `others`.
    """
    sums = data.group_by("because_of").agg(pl.col("duration_ns").sum())
    order = sums.sort("duration_ns", "because_of", descending=[True, False])["because_of"].to_list()
    shown = order[: _GROUPS_MOST + 1]
    cause = pl.when(pl.col("because_of").is_in(shown)).then("because_of").otherwise(pl.lit(_OTHERS))
    summed = data.group_by("setup", "waiting", cause.alias("series"), maintain_order=True).agg(
        ms=pl.col("duration_ns").sum() / 1e6
    )
    return [*shown, *([_OTHERS] if len(order) > len(shown) else [])], summed


def _panel(rows: pl.DataFrame, styles: Styles, setups: Sequence[str], *, is_last: bool) -> Any:
    order = {name: number for number, name in enumerate(styles.series)}
    placed = rows.with_columns(
        order=pl.col("series").replace_strict(order, return_dtype=pl.Int64)
    ).select("setup", "series", "ms", "order")
    return (
        chart_of(placed)
        .mark_bar(height={"band": 0.72})
        .encode(
            alt.X(
                "ms:Q",
                title="time that its processes waited (ms)" if is_last else None,
                axis=alt.Axis(format=NUMBERS),
            ),
            alt.Y("setup:N", title=None, sort=list(setups)),
            styles.colour(),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("setup:N", title="policy"),
                alt.Tooltip("series:N", title="caused by"),
                alt.Tooltip("ms:Q", title="ms", format=NUMBERS),
            ],
        )
        .properties(width=WIDTH, height=alt.Step(ROW_HEIGHT))
    )


def _words(rows: pl.DataFrame) -> str:
    largest = rows.sort("ms", descending=True).group_by("waiting", maintain_order=True).first()
    parts = [
        f"{row['waiting']} under {row['setup']} for {duration(row['ms'] * 1e6)} while {row['series']}"
        for row in largest.iter_rows(named=True)
    ]
    return "Causes of waiting by group and policy; the largest: " + "; ".join(parts) + "."
