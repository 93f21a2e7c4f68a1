# SPDX-License-Identifier: MIT
"""Draws two metrics of many configurations against each other, and their Pareto frontier."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from schedlab.base.display.numbers import three_digits
from schedlab.report.charts.parts import (
    CUT_NOTE,
    NUMBER_FORMAT,
    AxisRange,
    Styles,
    axis_range,
    chart_with_data,
    join_sentences,
    order_series,
)
from schedlab.report.charts.theme import ANNOTATION, IDEAL, WIDTH
from schedlab.report.model import Chart
from schedlab.report.wording import ranges_text

HEIGHT = 420
_LABEL_DISTANCE = 0.01
"""Points that are closer than this fraction of an axis share one label."""


def frontier(
    name: str,
    data: pl.DataFrame,
    *,
    title: str,
    caption: str,
    x_title: str,
    y_title: str,
) -> Chart:
    """Draws a point per configuration.

    The configurations that no other configuration dominates form the numbered frontier.

    `data` has one row per configuration: setup, policy, place (its number on the frontier, or
    null), and for each metric the mean and its bounds, in the units of the titles: x, x_low,
    x_high, y, y_low, y_high. If less of both metrics is better, the frontier is at the lower left.

    """
    ordered_rows = data.sort("place", "x", nulls_last=False)
    series = order_series(ordered_rows["policy"], None, policies=True)
    styles = Styles(series, policies=True)
    reaches = {
        axis: axis_range(ordered_rows[axis].to_list(), log=False, zero=False) for axis in ("x", "y")
    }
    chart = _draw(ordered_rows, styles, reaches, x_title, y_title)
    cut = any(
        reach.low > data[f"{axis}_low"].min() or reach.high < data[f"{axis}_high"].max()  # type: ignore[operator]
        for axis, reach in reaches.items()
    )
    members = ordered_rows.filter(pl.col("place").is_not_null())
    return Chart(
        name,
        title,
        chart,
        data,
        join_sentences(
            caption,
            f"On the line: the {len(members)} of {len(data)} configurations that no other"
            " surpasses in both metrics, with their 95 % intervals and their ranks in the table."
            " Faint: the others.",
            CUT_NOTE if cut else "",
        ),
        _describe(members, x_title, y_title),
    )


def _draw(
    data: pl.DataFrame,
    styles: Styles,
    reaches: dict[str, AxisRange],
    x_title: str,
    y_title: str,
) -> Any:
    """Draws the points, the frontier, the intervals and the numbers."""
    numbers = alt.Axis(format=NUMBER_FORMAT)
    x = alt.X("x:Q", title=x_title, scale=reaches["x"].scale(), axis=numbers)
    y = alt.Y("y:Q", title=y_title, scale=reaches["y"].scale(), axis=numbers)
    drawn = data.rename({"policy": "series"})
    members = drawn.filter(pl.col("place").is_not_null())
    off_front = drawn.filter(pl.col("place").is_null()).drop("place")
    layers: list[Any] = []
    if len(off_front):
        layers.append(
            chart_with_data(off_front)
            .mark_point(filled=True, size=28, opacity=0.25)
            .encode(x, y, styles.colour(), styles.shape(), tooltip=_tooltip(x_title, y_title))
        )
    layers += [
        chart_with_data(members).mark_line(style=IDEAL, interpolate="step-after").encode(x, y),
        *_draw_intervals(members, styles, x, y),
        chart_with_data(members)
        .mark_point(filled=True, size=70, opacity=1)
        .encode(x, y, styles.colour(), styles.shape(), tooltip=_tooltip(x_title, y_title)),
        _draw_numbers(members, reaches, x, y),
    ]
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)


def _draw_intervals(members: pl.DataFrame, styles: Styles, x: alt.X, y: alt.Y) -> list[Any]:
    """Draws both intervals of each member of the frontier."""
    x_interval, y_interval = x.copy(), y.copy()
    x_interval["shorthand"], y_interval["shorthand"] = "x_low:Q", "y_low:Q"
    bars = chart_with_data(members).mark_rule(strokeWidth=1.2, clip=True, strokeOpacity=0.6)
    colour = styles.colour()
    return [
        bars.encode(x_interval, alt.X2("x_high:Q"), y, colour),
        bars.encode(x, y_interval, alt.Y2("y_high:Q"), colour),
    ]


def _draw_numbers(members: pl.DataFrame, reaches: dict[str, AxisRange], x: alt.X, y: alt.Y) -> Any:
    """Draws the numbers of the points.

    Points that are close to each other share the label above the first.
    """
    labels: list[dict[str, Any]] = []
    label_distances = {
        axis: _LABEL_DISTANCE * (reach.high - reach.low) for axis, reach in reaches.items()
    }
    for row in members.sort("place").to_dicts():
        neighbours = [
            label
            for label in labels
            if all(abs(label[axis] - row[axis]) < label_distances[axis] for axis in label_distances)
        ]
        if neighbours:
            neighbours[0]["places"].append(row["place"])
        else:
            labels.append({"x": row["x"], "y": row["y"], "places": [row["place"]]})
    table = pl.DataFrame([{**label, "places": ranges_text(label["places"])} for label in labels])
    words = chart_with_data(table).mark_text(
        style=ANNOTATION, align="right", baseline="top", dx=-6, dy=5
    )
    return words.encode(x, y, alt.Text("places:N"))


def _tooltip(x_title: str, y_title: str) -> list[alt.Tooltip]:
    """Returns the tooltip of a point: setup, and both metrics with their bounds."""
    return [
        alt.Tooltip("setup:N", title="configuration"),
        alt.Tooltip("x:Q", title=x_title, format=",.4~g"),
        alt.Tooltip("y:Q", title=y_title, format=",.4~g"),
    ]


def _describe(members: pl.DataFrame, x_title: str, y_title: str) -> str:
    """Returns the chart's description for readers who cannot see it."""
    texts: Sequence[str] = [
        f"{row['place']}, {row['setup']}: {three_digits(row['x'])}, {three_digits(row['y'])}"
        for row in members.to_dicts()
    ]
    return f"Points of {x_title} and {y_title}. On the line: {'; '.join(texts)}."
