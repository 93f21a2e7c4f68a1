# SPDX-License-Identifier: MIT
"""Heat map of a metric over two dimensions. Larger values are darker."""

from collections.abc import Sequence

import altair as alt
import polars as pl

from schedlab.base.display.numbers import three_digits
from schedlab.report.charts.parts import chart_with_data, join_sentences
from schedlab.report.charts.theme import SMALL_TEXT_SIZE, WIDTH
from schedlab.report.model import Chart

_ROW_HEIGHT = 34
_NUMBERED_CELLS_MAX = 150
"""Maximum number of cells that show their numbers."""
_DARK_FRACTION = 0.55
"""Fraction of the range from minimum to maximum above which a cell counts as dark."""
_MINIMUM_COLOUR, _MAXIMUM_COLOUR = "#e4eef7", "#12426b"
"""The colours of the minimum and the maximum."""


def heat(
    name: str,
    data: pl.DataFrame,
    *,
    title: str,
    caption: str,
    x_title: str,
    y_title: str,
    value_title: str,
    x_order: Sequence[str],
    y_order: Sequence[str],
) -> Chart:
    """Draws a heat map. `data` has one row per pair that was run: x, y (texts), value and runs.

    Values have the unit of `value_title`. `runs`: the number of runs.
    """
    low, high = (float(str(limit)) for limit in (data["value"].min(), data["value"].max()))
    dark_limit = low + _DARK_FRACTION * (high - low)
    shown = data.with_columns(
        words=pl.col("value").map_elements(three_digits, return_dtype=pl.String),
        dark=pl.col("value") > dark_limit,
    )
    x = alt.X("x:N", title=x_title, sort=list(x_order), axis=alt.Axis(labelAngle=0))
    y = alt.Y("y:N", title=y_title, sort=list(y_order)[::-1])
    scale = alt.Scale(
        domain=[low, high if high > low else low + 1], range=[_MINIMUM_COLOUR, _MAXIMUM_COLOUR]
    )
    shared_chart = chart_with_data(shown)
    rectangles = shared_chart.mark_rect().encode(
        x,
        y,
        alt.Color("value:Q", scale=scale, legend=alt.Legend(title=value_title)),
        tooltip=[
            alt.Tooltip("x:N", title=x_title),
            alt.Tooltip("y:N", title=y_title),
            alt.Tooltip("value:Q", title=value_title, format=",.4~g"),
            alt.Tooltip("runs:Q", title="runs"),
        ],
    )
    layers = [rectangles]
    if len(data) <= _NUMBERED_CELLS_MAX:
        text_colour = alt.condition("datum.dark", alt.value("#ffffff"), alt.value("#111111"))
        numbers = shared_chart.mark_text(fontSize=SMALL_TEXT_SIZE).encode(
            x, y, alt.Text("words:N"), color=text_colour
        )
        layers.append(numbers)
    height = max(3, len(y_order)) * _ROW_HEIGHT
    least, most = (data.sort("value").row(at, named=True) for at in (0, -1))
    return Chart(
        name,
        title,
        alt.layer(*layers).properties(width=WIDTH, height=height),
        data,
        join_sentences(
            caption, "Configurations without a colour were not run." if _has_gaps(data) else ""
        ),
        f"{value_title} by {x_title} and {y_title}. Least: {_cell_text(least)}; most: {_cell_text(most)}.",
    )


def _has_gaps(data: pl.DataFrame) -> bool:
    """Returns whether a combination of x and y has no value."""
    return len(data) < data["x"].n_unique() * data["y"].n_unique()


def _cell_text(row: dict[str, object]) -> str:
    """Returns a value and its position in words."""
    return f"{three_digits(float(str(row['value'])))} at {row['x']}, {row['y']}"
