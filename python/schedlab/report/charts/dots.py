# SPDX-License-Identifier: MIT
"""Draws one number per category: measured with its interval, and published."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import polars as pl

from schedlab.base.display.numbers import three_digits
from schedlab.report.charts.parts import (
    CUT_NOTE,
    NUMBER_FORMAT,
    AxisRange,
    axis_range,
    chart_with_data,
    compute_means,
    join_sentences,
    order_series,
    plotted_values,
)
from schedlab.report.charts.theme import PALETTE, WIDTH
from schedlab.report.model import Chart

ROW_HEIGHT = 24
_CLOSE_SPREAD = 0.2
"""If all values lie within this fraction of the largest, the axis does
not begin at 0, to separate them.
"""
_AXIS_NOTE = "The axis does not begin at 0."


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
    mean_rows = compute_means(rows, ["category"], "value")
    frames = [mean_rows.with_columns(kind=pl.lit("measured"))]
    if published is not None:
        published_rows = (
            published.select(*names).rename({**names, value: "mean"}).drop_nulls("mean")
        )
        frames.append(published_rows.with_columns(kind=pl.lit("published")))
    means_of_rows = pl.concat(frames, how="diagonal_relaxed")
    categories = order_series(means_of_rows["category"], category_order, policies=False)
    starts_at_zero = not _are_close(plotted_values(means_of_rows))
    reach = axis_range(plotted_values(means_of_rows), log=False, zero=starts_at_zero)
    return Chart(
        name,
        title,
        _draw(means_of_rows, categories, x_title, reach),
        means_of_rows,
        join_sentences(
            caption,
            *_caption_notes(means_of_rows),
            "" if starts_at_zero else _AXIS_NOTE,
            CUT_NOTE if reach.cuts_interval(means_of_rows) else "",
        ),
        _describe(means_of_rows, x_title),
    )


def _are_close(values: Iterable[float | None]) -> bool:
    """Returns whether the values are so close that an axis from 0 would hide their differences."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    return len(finite) > 1 and 0 < max(finite) - min(finite) < _CLOSE_SPREAD * max(
        finite, default=0
    )


def _draw(
    means_of_rows: pl.DataFrame, categories: list[str], x_title: str, reach: AxisRange
) -> Any:
    """Draws the points and intervals of all categories."""
    x = alt.X("mean:Q", title=x_title, scale=reach.scale(),
              axis=alt.Axis(format=NUMBER_FORMAT, tickCount=8))  # fmt: skip
    y = alt.Y("category:N", title=None, sort=categories, scale=alt.Scale(domain=categories),
              axis=alt.Axis(ticks=False, domain=False, grid=False))  # fmt: skip
    colour = alt.value(PALETTE[0])
    measured = means_of_rows.filter(pl.col("kind") == "measured")
    drawn = _chart_without_empty_columns(measured.filter(pl.col("failed") == 0))
    low_bound = x.copy()
    low_bound["shorthand"] = "low:Q"
    layers = [
        drawn.mark_rule(strokeWidth=1.5, clip=True, strokeOpacity=0.6).encode(
            low_bound, alt.X2("high:Q"), y, color=colour
        ),
        *_draw_published(means_of_rows, x, y),
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
        cross = _chart_without_empty_columns(failed).mark_point(
            shape="cross", angle=45, size=90, filled=True
        )
        tooltip = [
            alt.Tooltip("failed:Q", title="runs without a value"),
            alt.Tooltip("runs:Q", title="of"),
        ]
        layers.append(cross.encode(y, color=colour, x=alt.value(0), tooltip=tooltip))
    return alt.layer(*layers).properties(width=WIDTH, height=ROW_HEIGHT * len(categories))


def _chart_without_empty_columns(frame: pl.DataFrame) -> Any:
    empty = [column.name for column in frame if column.null_count() == len(frame)]
    return chart_with_data(frame.drop("kind", *empty))


def _draw_published(means_of_rows: pl.DataFrame, x: alt.X, y: alt.Y) -> list[Any]:
    published = means_of_rows.filter(pl.col("kind") == "published")
    if published.is_empty():
        return []
    points = _chart_without_empty_columns(published).mark_point(
        filled=False, size=60, strokeWidth=1.6
    )
    tooltip = [
        alt.Tooltip("category:N", title="of"),
        alt.Tooltip("mean:Q", title="published", format=",.4~g"),
    ]
    return [points.encode(x, y, color=alt.value(PALETTE[0]), tooltip=tooltip)]


def _caption_notes(means_of_rows: pl.DataFrame) -> list[str]:
    """Returns the sentences that explain the points in the caption; "" where none is needed."""
    measured = means_of_rows.filter(pl.col("kind") == "measured")
    several = bool((measured["runs"] > 1).any())
    return [
        f"Filled: measured{', the mean with its 95 % interval' if several else ''}.",
        "Hollow: published." if (means_of_rows["kind"] == "published").any() else "",
        "A cross at the left edge: a run failed or has no such value, so there is no mean."
        if (measured["failed"] > 0).any()
        else "",
    ]


def _describe(means_of_rows: pl.DataFrame, x_title: str) -> str:
    """Returns the chart's description for readers who cannot see it."""
    texts = (
        f"{row['category']} ({row['kind']}) {three_digits(row['mean'])}"
        for row in means_of_rows.to_dicts()
    )
    return f"Points of {x_title}. " + "; ".join(texts) + "."
