# SPDX-License-Identifier: MIT
"""Draws means over the number of CPUs or tasks with their intervals, and published values."""

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
    compute_means,
    join_sentences,
    legend_selection,
    opacity_if,
    order_series,
    plotted_values,
)
from schedlab.report.charts.theme import ANNOTATION, IDEAL, PUBLISHED_DASH, WIDTH
from schedlab.report.model import Chart

HEIGHT = 300
ERROR_BARS_MAX = 8
"""Maximum number of intervals that are drawn as bars. More are drawn as a band."""


def lines(
    name: str,
    data: pl.DataFrame,
    *,
    title: str,
    caption: str,
    x: str,
    y: str,
    x_title: str,
    y_title: str,
    series: str = "policy",
    policies: bool = True,
    order: Sequence[str] | None = None,
    ideal: pl.DataFrame | None = None,
    ideal_title: str = "ideal",
    published: pl.DataFrame | None = None,
    log: bool = False,
) -> Chart:
    """Draws the mean of `y` at each `x`, with the interval of `comparison.statistics.estimate`.

    `data` has one row per run with the columns `x`, `y` and `series`, in the units of the axes. A
    null `y` is a failed run, which replaces the mean by a cross. `published` has the same
    columns. `ideal` has `x` and `y`, and `series` if it has several named lines. `policies`: the
    series are policies, with their usual colours; other series take the palette in order. `log`:
    the axis of `y` is logarithmic.
    """
    names = {x: "x", y: "y", series: "series"}
    mean_rows = compute_means(data.select(*names).rename(names), ["series", "x"], "y")
    frames = [mean_rows.with_columns(kind=pl.lit("measured"))]
    if published is not None:
        published_rows = published.select(*names).rename({**names, y: "mean"}).drop_nulls()
        frames.append(published_rows.with_columns(kind=pl.lit("published")))
    if ideal is not None:
        named_ideal = (
            ideal if "series" in ideal.columns else ideal.with_columns(series=pl.lit(ideal_title))
        )
        ideal_rows = (
            named_ideal.select(x, y, "series")
            .rename({x: "x", y: "mean"})
            .unique()
            .sort("series", "x")
        )
        frames.append(ideal_rows.with_columns(kind=pl.lit("ideal")))
    points = pl.concat(frames, how="diagonal_relaxed").sort("kind", "series", "x")
    shown = points.filter(pl.col("kind") != "ideal")["series"]
    styles = Styles(order_series(shown, order, policies=policies), policies=policies)
    reach = axis_range(plotted_values(points), log=log, zero=not log)
    chart = _layers(points, styles, x_title, y_title, reach).properties(width=WIDTH, height=HEIGHT)
    return Chart(
        name,
        title,
        chart,
        points,
        join_sentences(
            caption, *_caption_notes(points), CUT_NOTE if reach.cuts_interval(points) else ""
        ),
        _describe(points, x_title, y_title),
    )


def _layers(
    points: pl.DataFrame, styles: Styles, x_title: str, y_title: str, reach: AxisRange
) -> Any:
    """Returns the layers of the chart: ideal, published and measured points."""
    places = sorted(points["x"].unique().to_list())
    margin = 0.04 * (places[-1] - places[0] or 1)
    x = alt.X(
        "x:Q",
        title=x_title,
        scale=alt.Scale(domain=[places[0] - margin, places[-1] + margin], nice=False),
        axis=alt.Axis(values=places, grid=False, format="~g", labelOverlap=True),
    )
    y = alt.Y(
        "mean:Q",
        title=y_title,
        scale=reach.scale(),
        axis=alt.Axis(format=NUMBER_FORMAT, tickCount=6),
    )
    chosen = legend_selection()
    measured = _points_of_kind(points, "measured")
    drawn = chart_with_data(measured.filter(pl.col("failed") == 0))
    tooltip = [
        alt.Tooltip("series:N", title="series"),
        alt.Tooltip("x:Q", title=x_title),
        alt.Tooltip("mean:Q", title=y_title, format=NUMBER_FORMAT),
        alt.Tooltip("low:Q", title="95 % interval from", format=NUMBER_FORMAT),
        alt.Tooltip("high:Q", title="to", format=NUMBER_FORMAT),
        alt.Tooltip("runs:Q", title="runs"),
    ]
    if reach.log:
        drawn = chart_with_data(
            measured.filter(pl.col("failed") == 0).with_columns(pl.col("low").clip(reach.low))
        )
    has_many_places = len(places) > ERROR_BARS_MAX
    band = (
        drawn.mark_area(clip=True) if has_many_places else drawn.mark_rule(strokeWidth=2, clip=True)
    ).encode(
        x,
        alt.Y("low:Q", title=y_title),
        alt.Y2("high:Q"),
        styles.colour(),
        opacity=opacity_if(chosen, 0.18 if has_many_places else 0.55),
    )
    line = drawn.mark_line(strokeWidth=2).encode(
        x, y, styles.colour(), styles.dash(), opacity=opacity_if(chosen)
    )
    point_marks = drawn.mark_point(filled=True, size=55).encode(
        x,
        y,
        styles.colour(symbolStrokeWidth=0),
        styles.shape(),
        opacity=opacity_if(chosen),
        tooltip=tooltip,
    )
    layers = [
        *_draw_ideal(points, x, y),
        band.add_params(chosen),
        line,
        *_draw_published(points, styles, x, y, chosen, (x_title, y_title)),
        point_marks,
    ]
    return alt.layer(*layers, *_draw_failures(measured, styles, x))


def _points_of_kind(points: pl.DataFrame, kind: str) -> pl.DataFrame:
    """Returns the points of a kind (`measured`, `published`, `ideal`) without empty columns."""
    rows = points.filter(pl.col("kind") == kind).drop("kind")
    return rows[[column.name for column in rows if column.null_count() < len(rows)]]


def _draw_ideal(points: pl.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Draws the ideal lines, or nothing without an ideal."""
    ideal_points = _points_of_kind(points, "ideal")
    if ideal_points.is_empty():
        return []
    line = (
        chart_with_data(ideal_points)
        .mark_line(style=IDEAL, clip=True)
        .encode(x, y, detail="series:N")
    )
    label = (
        chart_with_data(ideal_points.sort("x").group_by("series", maintain_order=True).last())
        .mark_text(style=ANNOTATION, align="left", baseline="middle", dx=8)
        .encode(x, y, text="series:N")
    )
    return [line, label]


def _draw_published(
    points: pl.DataFrame,
    styles: Styles,
    x: alt.X,
    y: alt.Y,
    chosen: alt.Parameter,
    titles: tuple[str, str],
) -> list[alt.Chart]:
    """Draws the published points and the dotted lines between them."""
    published_points = _points_of_kind(points, "published")
    if published_points.is_empty():
        return []
    drawn = chart_with_data(published_points)
    line = drawn.mark_line(strokeWidth=1.25, strokeDash=list(PUBLISHED_DASH)).encode(
        x, y, styles.colour(), opacity=opacity_if(chosen)
    )
    point_marks = drawn.mark_point(filled=False, size=55, strokeWidth=1.5).encode(
        x,
        y,
        styles.colour(),
        styles.shape(),
        opacity=opacity_if(chosen),
        tooltip=[
            alt.Tooltip("series:N", title="published"),
            alt.Tooltip("x:Q", title=titles[0]),
            alt.Tooltip("mean:Q", title=titles[1], format=NUMBER_FORMAT),
        ],
    )
    return [line, point_marks]


def _draw_failures(measured: pl.DataFrame, styles: Styles, x: alt.X) -> list[alt.Chart]:
    """Draws a cross at the bottom for each mean that is missing because runs failed."""
    failed = measured.filter(pl.col("failed") > 0).select("series", "x", "runs", "failed")
    if failed.is_empty():
        return []
    marks = chart_with_data(failed).mark_point(shape="cross", angle=45, size=90, filled=True)
    return [
        marks.encode(
            x,
            y=alt.value({"expr": "height"}),
            color=styles.colour(),
            tooltip=[
                alt.Tooltip("series:N", title="series"),
                alt.Tooltip("failed:Q", title="runs without a value"),
                alt.Tooltip("runs:Q", title="of"),
            ],
        )
    ]


def _caption_notes(points: pl.DataFrame) -> list[str]:
    """Returns the sentences of the caption on lines, intervals and failed runs."""
    kinds = set(points["kind"])
    measured = points.filter(pl.col("kind") == "measured")
    several = bool((measured["runs"] > 1).any())
    failed = bool((measured["failed"] > 0).any())
    return [
        "Points: means over the runs; the bars or bands about them: 95 % intervals."
        if several
        else "",
        "Hollow points on dotted lines: published." if "published" in kinds else "",
        "Thin line without points: the ideal." if "ideal" in kinds else "",
        "A cross at the bottom: a run failed or has no such value, so there is no mean."
        if failed
        else "",
    ]


def _describe(points: pl.DataFrame, x_title: str, y_title: str) -> str:
    """Returns the chart's description for readers who cannot see it."""
    texts = []
    for (kind, series), rows in points.drop_nulls("mean").group_by(
        "kind", "series", maintain_order=True
    ):
        first, last = rows.row(0, named=True), rows.row(-1, named=True)
        curve_name = f"{series} ({kind})" if kind != "ideal" else str(series)
        texts.append(
            f"{curve_name}: {three_digits(first['mean'])} at {first['x']:g}, "
            f"{three_digits(last['mean'])} at {last['x']:g}"
        )
    return f"Lines of {y_title} over {x_title}. " + "; ".join(texts) + "."
