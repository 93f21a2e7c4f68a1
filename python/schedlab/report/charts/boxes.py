# SPDX-License-Identifier: MIT
"""Box plots: minimum, quartiles and maximum of each series, with published values in words."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from schedlab.base.display.numbers import three_digits
from schedlab.report.charts.parts import (
    NUMBER_FORMAT,
    NothingToDraw,
    axis_range,
    chart_with_data,
    join_sentences,
    order_series,
)
from schedlab.report.charts.processes import row_axis
from schedlab.report.charts.theme import PALETTE, WIDTH
from schedlab.report.model import Chart

ROW_HEIGHT = 30
_QUANTILES = {
    "least": 0.0,
    "first quartile": 0.25,
    "median": 0.5,
    "third quartile": 0.75,
    "most": 1.0,
}


def boxes(
    name: str,
    data: pl.DataFrame,
    *,
    title: str,
    caption: str,
    series: str,
    value: str,
    x_title: str,
    order: Sequence[str] | None = None,
    published: Mapping[str, str] | None = None,
) -> Chart:
    """Draws a box for each series: quartiles and median, with lines to the minimum and maximum.

    `published`: published results in words, for series without published numbers; appended to their
    labels. Raises NothingToDraw if there is no value.
    """
    rows = data.select(pl.col(series).cast(pl.String).alias("series"), pl.col(value).alias("value"))
    rows = rows.drop_nulls()
    if rows.is_empty():
        raise NothingToDraw(f"chart {name}: there is no value")
    published_words = published or {}
    titles = {
        name: f"{name}, published: {published_words[name]}" if name in published_words else name
        for name in order_series(rows["series"], order, policies=False)
    }
    summaries = pl.DataFrame(
        [
            {
                "series": title,
                **{name: values.quantile(part, "linear") for name, part in _QUANTILES.items()},
            }
            for name, title in titles.items()
            for values in (rows.filter(pl.col("series") == name)["value"],)
        ]
    )
    return Chart(
        name,
        title,
        _draw(summaries, x_title),
        summaries,
        join_sentences(
            caption,
            "Boxes: first to third quartile, with the median; lines: minimum and maximum.",
        ),
        _describe(summaries, x_title),
    )


def _draw(summaries: pl.DataFrame, x_title: str) -> Any:
    """Draws the boxes. `summaries`: a row for each series, with a column for each of _QUANTILES."""
    reach = axis_range(summaries["most"].to_list(), log=False, zero=True)
    data_chart = chart_with_data(summaries)
    y = row_axis("series", summaries["series"].to_list(), 0.3)
    axis = alt.Axis(format=NUMBER_FORMAT, tickCount=6)
    tooltip = [
        alt.Tooltip("series:N"),
        *(alt.Tooltip(f"{figure}:Q", format=NUMBER_FORMAT) for figure in _QUANTILES),
    ]

    def box_channels(low: str, high: str) -> dict[str, Any]:
        """Returns the channels of a bar between two columns."""
        return {
            "x": alt.X(f"{low}:Q", title=x_title, scale=reach.scale(), axis=axis),
            "x2": alt.X2(f"{high}:Q"),
            "y": y,
        }

    line = data_chart.mark_rule(strokeWidth=1.5, color=PALETTE[0]).encode(
        **box_channels("least", "most")
    )
    box = data_chart.mark_bar(height={"band": 0.7}, color=PALETTE[0]).encode(
        **box_channels("first quartile", "third quartile"), tooltip=tooltip
    )
    middle = data_chart.mark_tick(color="white", thickness=2, bandSize=ROW_HEIGHT * 0.5).encode(
        alt.X("median:Q", scale=reach.scale(), title=x_title, axis=axis), y
    )
    return alt.layer(line, box, middle).properties(
        width=WIDTH, height=ROW_HEIGHT * len(summaries) + 4
    )


def _describe(summaries: pl.DataFrame, x_title: str) -> str:
    """Returns the chart's description for readers who cannot see it."""
    texts = [
        f"{row['series']}: {three_digits(row['first quartile'])} to {three_digits(row['third quartile'])}"
        for row in summaries.iter_rows(named=True)
    ]
    return f"Quartiles of {x_title}. " + "; ".join(texts) + "."
