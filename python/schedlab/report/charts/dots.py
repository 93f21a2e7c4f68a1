# SPDX-License-Identifier: MIT
"""Draws one number per category: measured with its interval, and published."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import polars as pl

from schedlab.base.display.numbers import three_digits
from schedlab.report.charts.parts import (
    CUT,
    NUMBERS,
    Reach,
    chart_of,
    means,
    ordered,
    reach_of,
    sentences,
    values_of,
)
from schedlab.report.charts.theme import PALETTE, WIDTH
from schedlab.report.model import Chart

ROW_HEIGHT = 24
_CLOSE = 0.2
"""If all values lie within this fraction of the largest, the axis does
not begin at 0, to separate them.
"""
_NOT_FROM_0 = "The axis does not begin at 0."


def dots(
    name: str,
    data: pl.DataFrame,
    *,
    title: str,
    caption: str,
    category: str,
    value: str,
    x_title: str,
    category_order: Sequence[str] | None = None,
    published: pl.DataFrame | None = None,
) -> Chart:
    """Draws a row for each `category`: filled points are measured, hollow points published.

    `data` has one row per run with the named columns. A null value is a failed run, which replaces
    the mean by a cross on the left. `published` has the same columns.
    """
    names = {value: "value", category: "category"}
    rows = data.select(*names).rename(names).with_columns(pl.col("category").cast(pl.String))
    mean_rows = means(rows, ["category"], "value")
    parts = [mean_rows.with_columns(kind=pl.lit("measured"))]
    if published is not None:
        printed = published.select(*names).rename({**names, value: "mean"}).drop_nulls("mean")
        parts.append(printed.with_columns(kind=pl.lit("published")))
    behind = pl.concat(parts, how="diagonal_relaxed")
    categories = ordered(behind["category"], category_order, policies=False)
    from_0 = not _are_close(values_of(behind))
    reach = reach_of(values_of(behind), log=False, zero=from_0)
    return Chart(
        name,
        title,
        _chart(behind, categories, x_title, reach),
        behind,
        sentences(
            caption,
            *_remarks(behind),
            "" if from_0 else _NOT_FROM_0,
            CUT if reach.cuts(behind) else "",
        ),
        _words(behind, x_title),
    )


def _are_close(values: Iterable[float | None]) -> bool:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return len(known) > 1 and 0 < max(known) - min(known) < _CLOSE * max(known, default=0)


def _chart(behind: pl.DataFrame, categories: list[str], x_title: str, reach: Reach) -> Any:
    x = alt.X("mean:Q", title=x_title, scale=reach.scale(),
              axis=alt.Axis(format=NUMBERS, tickCount=8))  # fmt: skip
    y = alt.Y("category:N", title=None, sort=categories, scale=alt.Scale(domain=categories),
              axis=alt.Axis(ticks=False, domain=False, grid=False))  # fmt: skip
    colour = alt.value(PALETTE[0])
    measured = behind.filter(pl.col("kind") == "measured")
    drawn = _without_empty(measured.filter(pl.col("failed") == 0))
    low = x.copy()
    low["shorthand"] = "low:Q"
    layers = [
        drawn.mark_rule(strokeWidth=1.5, clip=True, strokeOpacity=0.6).encode(
            low, alt.X2("high:Q"), y, color=colour
        ),
        *_hollow(behind, x, y),
        drawn.mark_point(filled=True, size=55).encode(
            x,
            y,
            color=colour,
            tooltip=[
                alt.Tooltip("category:N", title="of"),
                alt.Tooltip("mean:Q", title="mean", format=",.4~g"),
                alt.Tooltip("low:Q", title="95 % interval from", format=",.4~g"),
                alt.Tooltip("high:Q", title="to", format=",.4~g"),
                alt.Tooltip("runs:Q", title="runs"),
            ],
        ),
    ]
    failed = measured.filter(pl.col("failed") > 0)
    if len(failed):
        cross = _without_empty(failed).mark_point(shape="cross", angle=45, size=90, filled=True)
        tooltip = [
            alt.Tooltip("failed:Q", title="runs without a value"),
            alt.Tooltip("runs:Q", title="of"),
        ]
        layers.append(cross.encode(y, color=colour, x=alt.value(0), tooltip=tooltip))
    return alt.layer(*layers).properties(width=WIDTH, height=ROW_HEIGHT * len(categories))


def _without_empty(frame: pl.DataFrame) -> Any:
    empty = [column.name for column in frame if column.null_count() == len(frame)]
    return chart_of(frame.drop("kind", *empty))


def _hollow(behind: pl.DataFrame, x: alt.X, y: alt.Y) -> list[Any]:
    """Draws the published values."""
    published = behind.filter(pl.col("kind") == "published")
    if published.is_empty():
        return []
    points = _without_empty(published).mark_point(filled=False, size=60, strokeWidth=1.6)
    tooltip = [
        alt.Tooltip("category:N", title="of"),
        alt.Tooltip("mean:Q", title="published", format=",.4~g"),
    ]
    return [points.encode(x, y, color=alt.value(PALETTE[0]), tooltip=tooltip)]


def _remarks(behind: pl.DataFrame) -> list[str]:
    measured = behind.filter(pl.col("kind") == "measured")
    several = bool((measured["runs"] > 1).any())
    return [
        f"Filled: measured{', the mean with its 95 % interval' if several else ''}.",
        "Hollow: published." if (behind["kind"] == "published").any() else "",
        "A cross at the left edge: a run failed or has no such value, so there is no mean."
        if (measured["failed"] > 0).any()
        else "",
    ]


def _words(behind: pl.DataFrame, x_title: str) -> str:
    texts = (
        f"{row['category']} ({row['kind']}) {three_digits(row['mean'])}"
        for row in behind.to_dicts()
    )
    return f"Points of {x_title}. " + "; ".join(texts) + "."
