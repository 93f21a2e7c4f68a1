# SPDX-License-Identifier: MIT
"""One number for each of several things: measured with its interval, published, and ideal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from schedlab.comparison.statistics import Within
from schedlab.metrics.tables import three_digits
from schedlab.report.charts.parts import (
    CUT,
    NUMBERS,
    Looks,
    Reach,
    chart_of,
    chosen_in_legend,
    means,
    opacity_if,
    ordered,
    panels_of,
    reach_of,
    sentences,
    stacked,
    values_of,
)
from schedlab.report.charts.theme import IDEAL, WIDTH
from schedlab.report.model import Chart

ROW_HEIGHT, LINE_HEIGHT = 24, 13
_KEYS = ("panel", "category", "series")


def dots(
    name: str,
    data: pl.DataFrame,
    *,
    title: str,
    caption: str,
    category: str,
    value: str,
    x_title: str,
    series: str | None = None,
    policies: bool = True,
    order: Sequence[str] | None = None,
    category_order: Sequence[str] | None = None,
    panel: str | None = None,
    ideal: pl.DataFrame | None = None,
    published: pl.DataFrame | None = None,
    zero: bool = True,
    log: bool = False,
    within: Within = (0, math.inf),
    description: str = "",
) -> Chart:
    """A row for each `category`: filled points measured, hollow ones published, a stroke the ideal.

    `data` has a row a run with the columns named (a null value is a run that failed: then there is
    a cross on the left instead of a mean). `published` and `ideal` have the same columns; those
    without `series` hold for all. `panel` says in which of several pictures, one below the other.
    `within`: what values are possible, which intervals do not leave.
    """
    names = {value: "value", category: "category"}
    names |= {series: "series"} if series else {}
    names |= {panel: "panel"} if panel else {}
    rows = _complete(data.select(*names).rename(names))
    found = means(rows, _KEYS, "value", within).with_columns(kind=pl.lit("measured"))
    parts = [found]
    for kind, frame in (("published", published), ("ideal", ideal)):
        if frame is not None:
            there = {old: new for old, new in names.items() if old in frame.columns}
            known = _complete(frame.select(*there).rename(there)).rename({"value": "mean"})
            parts.append(
                known.drop_nulls("mean").unique(maintain_order=True).with_columns(kind=pl.lit(kind))
            )
    behind = pl.concat(parts, how="diagonal_relaxed")
    categories = ordered(behind["category"], category_order, policies=False)
    shown = ordered(behind["series"].filter(behind["series"] != ""), order, policies=policies)
    looks = Looks(shown or [""], policies=policies and bool(shown))
    reach = reach_of(values_of(behind), log=log, zero=zero)
    chart = _chart(behind, categories, looks, x_title, reach)
    return Chart(
        name,
        title,
        chart,
        behind.drop([key for key in ("panel", "series") if (behind[key] == "").all()]),
        sentences(caption, *_remarks(behind), CUT if reach.cuts(behind) else ""),
        description or _words(behind, x_title),
    )


def _complete(frame: pl.DataFrame) -> pl.DataFrame:
    """With all keys as words; one that it lacks is empty."""
    return frame.with_columns(
        (pl.col(key).cast(pl.String) if key in frame.columns else pl.lit("")).alias(key)
        for key in _KEYS
    ).select(*_KEYS, "value")


def _chart(
    behind: pl.DataFrame,
    categories: list[str],
    looks: Looks,
    x_title: str,
    reach: Reach,
) -> Any:
    chosen = chosen_in_legend()
    pictures = [
        (
            panel,
            _panel(
                behind.filter(pl.col("panel") == panel), categories, looks, chosen, number == 0,
                alt.X("mean:Q", title=x_title if last else None, scale=reach.scale(),
                      axis=alt.Axis(format=NUMBERS, tickCount=8)),
            ),
        )
        for number, (panel, last) in enumerate(panels_of(behind["panel"]))
    ]  # fmt: skip
    return stacked(pictures)


def _panel(
    behind: pl.DataFrame,
    categories: list[str],
    looks: Looks,
    chosen: alt.Parameter,
    first: bool,
    x: alt.X,
) -> Any:
    """`first`: it brings the parameter, which holds for all panels."""
    rows = [each for each in categories if each in set(behind["category"])]
    y = alt.Y("category:N", title=None, sort=rows, scale=alt.Scale(domain=rows),
              axis=alt.Axis(ticks=False, domain=False, grid=False))  # fmt: skip
    several = len(looks.series) > 1
    own_line: list[Any] = (
        [alt.YOffset("series:N", sort=looks.series, scale=alt.Scale(domain=looks.series))]
        if several
        else []
    )
    faded = opacity_if(chosen) if several else alt.value(1)
    height = max(ROW_HEIGHT, LINE_HEIGHT * len(looks.series)) * len(rows)
    measured = behind.filter(pl.col("kind") == "measured")
    drawn = _without_empty(measured.filter(pl.col("failed") == 0))
    channels = [y, *own_line, looks.colour()]
    bars = drawn.mark_rule(strokeWidth=1.5, clip=True, strokeOpacity=0.6).encode(
        _other(x, "low"), alt.X2("high:Q"), *channels, opacity=faded
    )
    points = drawn.mark_point(filled=True, size=55).encode(
        x, *channels, looks.shape(), opacity=faded, tooltip=_tooltip(several)
    )
    layers: list[Any] = [
        *_strokes(behind, rows, x, y),
        bars.add_params(chosen) if several and first else bars,
        *_hollow(behind, looks, x, [y, *own_line], faded),
        points,
    ]
    failed = measured.filter(pl.col("failed") > 0)
    if len(failed):
        layers.append(
            _without_empty(failed)
            .mark_point(shape="cross", angle=45, size=90, filled=True)
            .encode(
                *channels,
                x=alt.value(0),
                tooltip=[
                    alt.Tooltip("failed:Q", title="runs without a value"),
                    alt.Tooltip("runs:Q", title="of"),
                ],
            )
        )
    return alt.layer(*layers).properties(width=WIDTH, height=height)


def _without_empty(frame: pl.DataFrame) -> Any:
    empty = [column.name for column in frame if column.null_count() == len(frame)]
    return chart_of(frame.drop("kind", "panel", *empty))


def _other(x: alt.X, column: str) -> alt.X:
    copied: alt.X = x.copy()
    copied["shorthand"] = f"{column}:Q"
    return copied


def _tooltip(several: bool) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("category:N", title="of"),
        *([alt.Tooltip("series:N", title="series")] if several else []),
        alt.Tooltip("mean:Q", title="mean", format=",.4~g"),
        alt.Tooltip("low:Q", title="95 % interval from", format=",.4~g"),
        alt.Tooltip("high:Q", title="to", format=",.4~g"),
        alt.Tooltip("runs:Q", title="runs"),
    ]


def _strokes(behind: pl.DataFrame, rows: list[str], x: alt.X, y: alt.Y) -> list[Any]:
    """The ideal: a stroke across the row."""
    ideal = behind.filter(pl.col("kind") == "ideal").unique(
        ["category", "mean"], maintain_order=True
    )
    if ideal.is_empty():
        return []
    return [
        _without_empty(ideal)
        .mark_tick(style=IDEAL, thickness=1.5, height={"band": 0.9})
        .encode(x, y, tooltip=[alt.Tooltip("mean:Q", title="ideal", format=",.4~g")])
    ]


def _hollow(
    behind: pl.DataFrame, looks: Looks, x: alt.X, place: list[Any], faded: Any
) -> list[Any]:
    """What was published. Without a series it stands in the line of the first."""
    published = behind.filter(pl.col("kind") == "published")
    if published.is_empty():
        return []
    named = published.with_columns(pl.col("series").replace({"": looks.series[0]}))
    return [
        _without_empty(named)
        .mark_point(filled=False, size=60, strokeWidth=1.6)
        .encode(
            x,
            *place,
            looks.colour(),
            looks.shape(),
            opacity=faded,
            tooltip=[
                alt.Tooltip("category:N", title="of"),
                alt.Tooltip("mean:Q", title="published", format=",.4~g"),
            ],
        )
    ]


def _remarks(behind: pl.DataFrame) -> list[str]:
    kinds = set(behind["kind"])
    measured = behind.filter(pl.col("kind") == "measured")
    return [
        "Filled: measured, the mean with its 95 % interval."
        if (measured["runs"] > 1).any()
        else "Filled: measured.",
        "Hollow: published." if "published" in kinds else "",
        "Stroke: the ideal." if "ideal" in kinds else "",
        "A cross on the left: a run failed or has no such value, so there is no mean."
        if (measured["failed"] > 0).any()
        else "",
    ]


def _words(behind: pl.DataFrame, x_title: str) -> str:
    told = []
    for row in behind.to_dicts():
        who = " ".join(row[key] for key in _KEYS if row[key])
        told.append(f"{who} ({row['kind']}) {three_digits(row['mean'])}")
    return f"Points of {x_title}. " + "; ".join(told) + "."
