# SPDX-License-Identifier: MIT
"""Box plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab.metrics.tables import three_digits
from schedlab.report.charts.nothing import NothingToDraw
from schedlab.report.charts.parts import (
    NUMBERS,
    Looks,
    chart_of,
    ordered,
    panels_of,
    reach_of,
    sentences,
    stacked,
)
from schedlab.report.charts.theme import WIDTH
from schedlab.report.model import Chart

ROW_HEIGHT = 26
WHISKER = 1.5
"""Interquartile ranges that a whisker reaches at most (Tukey, Exploratory Data Analysis, 1977)."""
POINTS_MOST = 150
"""The most points of a box: if more values lie beyond the whiskers, they are thinned out, and the
outermost are kept."""


def boxes(
    name: str,
    data: pl.DataFrame,
    *,
    title: str,
    caption: str,
    category: str,
    value: str,
    x_title: str,
    policies: bool = True,
    category_order: Sequence[str] | None = None,
    panel: str | None = None,
    log: bool = False,
) -> Chart:
    """A box for each `category`, from `data` with a row a process (or whatever is counted).

    The box is from the first to the third quartile with a line at the median; the whiskers reach
    to the farthest value within 1.5 interquartile ranges of the box (Tukey, 1977), and each value
    beyond is a point. Rows without a value are not counted. `panel` says in which of several
    pictures, one below the other. `log`: values must be above 0; those that are not are left out,
    and the caption says how many. `data` of the chart: a row a box.
    """
    names = {category: "category", value: "value", **({panel: "panel"} if panel else {})}
    rows = data.select(*names).rename(names).drop_nulls("value")
    if not panel:
        rows = rows.with_columns(panel=pl.lit(""))
    left_out = int((rows["value"] <= 0).sum()) if log else 0
    if log:
        rows = rows.filter(pl.col("value") > 0)
    if rows.is_empty():
        raise NothingToDraw(f"chart {name}: there is no value to draw a box of")
    order = ordered(rows["category"], category_order, policies=policies)
    found = _summaries(rows, order)
    return Chart(
        name,
        title,
        _chart(rows, found, Looks(order, policies=policies), x_title, log=log),
        found if panel else found.drop("panel"),
        sentences(caption, *_remarks(left_out)),
        _words(found, x_title),
    )


def box_of(values: npt.ArrayLike) -> dict[str, float]:
    """The numbers of a box: low and high end of the whiskers, quartiles, median, mean.

    Quartiles interpolate linearly, as all quantiles of schedlab (docs/metrics.md).
    """
    sorted_values = np.sort(np.asarray(values, float))
    first, median, third = np.quantile(sorted_values, (0.25, 0.5, 0.75))
    reach = WHISKER * (third - first)
    within = sorted_values[(sorted_values >= first - reach) & (sorted_values <= third + reach)]
    return {
        "count": len(sorted_values),
        "minimum": float(sorted_values[0]),
        # A quartile is between two values: a whisker never ends within the box.
        "low": float(min(within[0], first)),
        "first_quartile": float(first),
        "median": float(median),
        "third_quartile": float(third),
        "high": float(max(within[-1], third)),
        "maximum": float(sorted_values[-1]),
        "mean": float(sorted_values.mean()),
    }


def _summaries(rows: pl.DataFrame, order: list[str]) -> pl.DataFrame:
    panels = rows["panel"].unique(maintain_order=True).to_list()
    by_box = rows.partition_by("panel", "category", as_dict=True)
    return pl.DataFrame(
        [
            {"panel": panel, "category": category, **box_of(by_box[panel, category]["value"])}
            for panel in panels
            for category in order
            if (panel, category) in by_box
        ]
    )


def _chart(
    rows: pl.DataFrame,
    found: pl.DataFrame,
    looks: Looks,
    x_title: str,
    *,
    log: bool,
) -> Any:
    scale = reach_of([*found["minimum"], *found["maximum"]], log=log, zero=True).scale()
    return stacked(
        [
            (
                panel,
                _panel(
                    rows.filter(pl.col("panel") == panel),
                    found.filter(pl.col("panel") == panel),
                    looks,
                    x_title if last else "",
                    scale,
                ),
            )
            for panel, last in panels_of(found["panel"])
        ]
    )


def _panel(
    rows: pl.DataFrame,
    found: pl.DataFrame,
    looks: Looks,
    x_title: str,
    scale: alt.Scale,
) -> Any:
    categories = [each for each in looks.series if each in set(found["category"])]
    looks = looks.only(categories)
    y = alt.Y("series:N", title=None, sort=categories, scale=alt.Scale(domain=categories),
              axis=alt.Axis(ticks=False, domain=False))  # fmt: skip

    def x(column: str) -> alt.X:
        axis = alt.Axis(format=NUMBERS, tickCount=8)
        return alt.X(f"{column}:Q", title=x_title or None, scale=scale, axis=axis)

    colour = looks.channel(alt.Color)
    box = chart_of(found.drop("panel").rename({"category": "series"}))
    tooltip = [
        alt.Tooltip("series:N", title="of"),
        *[
            alt.Tooltip(f"{column}:Q", title=column.replace("_", " "), format=",.4~g")
            for column in (
                "minimum", "low", "first_quartile", "median", "third_quartile", "high", "maximum",
                "mean", "count",
            )
        ],
    ]  # fmt: skip
    layers = [
        box.mark_rule(strokeWidth=1.5).encode(x("low"), alt.X2("high:Q"), y, colour),
        box.mark_tick(thickness=1.5, size=8).encode(x("low"), y, colour),
        box.mark_tick(thickness=1.5, size=8).encode(x("high"), y, colour),
        box.mark_bar(height=14, fillOpacity=0.35, strokeWidth=1.5).encode(
            x("first_quartile"),
            alt.X2("third_quartile:Q"),
            y,
            looks.channel(alt.Fill),
            looks.channel(alt.Stroke),
            tooltip=tooltip,
        ),
        box.mark_tick(thickness=2.5, size=16).encode(x("median"), y, colour, tooltip=tooltip),
    ]
    beyond = _beyond(rows, found)
    if len(beyond):
        layers.append(
            chart_of(beyond)
            .mark_point(size=14, filled=True, opacity=0.6)
            .encode(x("value"), y, colour, tooltip=[alt.Tooltip("value:Q", format=",.4~g")])
        )
    return alt.layer(*layers).properties(width=WIDTH, height=ROW_HEIGHT * len(categories))


def _beyond(rows: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """series, value: what lies beyond the whiskers, thinned where it lies dense."""
    parts = []
    for box in found.to_dicts():
        values = rows.filter(pl.col("category") == box["category"])["value"].cast(pl.Float64)
        outside = values.filter((values < box["low"]) | (values > box["high"])).sort()
        step = max(-(-len(outside) // POINTS_MOST), 1)
        kept = (
            pl.concat([outside[:1], outside[1:-1:step], outside[-1:]])
            if len(outside) > POINTS_MOST
            else outside
        )
        parts.append(pl.DataFrame({"series": [box["category"]] * len(kept), "value": kept},
                                  schema={"series": pl.String, "value": pl.Float64}))  # fmt: skip
    return pl.concat(parts)


def _remarks(left_out: int) -> list[str]:
    return [
        "Box: first to third quartile, with the median; whiskers: to the farthest value within 1.5 "
        "interquartile ranges; points: what lies beyond.",
        f"{left_out} values of 0 have no place on a logarithmic axis and are left out."
        if left_out
        else "",
    ]


def _words(found: pl.DataFrame, x_title: str) -> str:
    told = [
        f"{box['panel']} {box['category']}".strip()
        + f": median {three_digits(box['median'])}, quartiles {three_digits(box['first_quartile'])}"
        f" and {three_digits(box['third_quartile'])}, maximum {three_digits(box['maximum'])}"
        for box in found.to_dicts()
    ]
    return f"Box plots of {x_title}. " + "; ".join(told) + "."
