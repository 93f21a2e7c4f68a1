# SPDX-License-Identifier: MIT
"""Draws the lag of each task over time: the CPU time that it is owed."""

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from schedlab.base.display.numbers import duration
from schedlab.metrics import lags
from schedlab.report.charts.parts import (
    NUMBER_FORMAT,
    STROKE_SIZE,
    NothingToDraw,
    Styles,
    chart_with_data,
    join_sentences,
    legend_selection,
    opacity_if,
)
from schedlab.report.charts.processes import TimeAxis, chart_processes, chart_span
from schedlab.report.charts.theme import WIDTH
from schedlab.report.model import Chart
from schedlab.trace import Trace

DRAWN_TASKS_MAX = 7
TIME_CELLS = 600
"""Maximum number of points per task. With more, the extremes of each time cell are drawn."""


def lag_over_time(
    name: str,
    trace: Trace,
    *,
    title: str,
    caption: str,
    length_ns: int | None = None,
) -> Chart:
    """Draws the lag of each task of the workload (docs/metrics.md), from the start of the window.

    With more than PROCESSES_MOST tasks, those with the largest absolute lag are drawn. `length_ns`:
    length of the drawn part. Raises NothingToDraw if fewer than two tasks wanted a CPU in it.
    """
    processes = chart_processes(trace)
    begin = processes.window.begin_ns
    span = chart_span(processes.window, None, None if length_ns is None else begin + length_ns)
    axis = TimeAxis(span, begin, "ms", trace.header.tick_ns)
    workload_lags = (
        lags(trace)
        .filter(pl.col("time_ns").is_between(span.begin_ns, span.end_ns))
        .join(processes.names.select("life", "label"), on="life", maintain_order="left")
    )
    if workload_lags["life"].n_unique() < 2:
        raise NothingToDraw(
            f"chart {name}: fewer than two processes wanted a CPU in the drawn time; draw a longer part"
        )
    largest_lags = workload_lags.group_by("life", "label").agg(most=pl.col("lag_ns").abs().max())
    order = largest_lags.sort("most", "life", descending=[True, False])["life"].to_list()
    drawn_tasks = largest_lags.filter(pl.col("life").is_in(order[:DRAWN_TASKS_MAX])).sort("life")
    data = workload_lags.select("label", "life", "time_ns", "lag_ns")
    return Chart(
        name,
        title,
        _draw(data.filter(pl.col("life").is_in(drawn_tasks["life"].implode())), axis, drawn_tasks),
        data.drop("life"),
        join_sentences(caption, *_caption_notes(len(largest_lags), len(drawn_tasks))),
        _describe(data),
    )


def _draw(data: pl.DataFrame, axis: TimeAxis, shown: pl.DataFrame) -> Any:
    """Draws a curve of the lag for each task in `data`."""
    thinned = [_thin_rows(part) for part in data.partition_by("life", maintain_order=True)]
    drawn = pl.concat(thinned).with_columns(lag_ms=pl.col("lag_ns") / 1e6)
    styles = Styles(shown["label"].to_list(), policies=False)
    chosen = legend_selection()
    rows = drawn.select(*axis.embed("time_ns"), "lag_ms", series="label")
    picture = chart_with_data(rows, digits=4).transform_calculate(at=axis.in_units("time"))
    x = axis.x("at")
    line = picture.mark_line(strokeWidth=1.8).encode(
        x,
        alt.Y("lag_ms:Q", title="lag (ms)", axis=alt.Axis(format=NUMBER_FORMAT)),
        styles.colour(symbolSize=STROKE_SIZE),
        opacity=opacity_if(chosen),
        tooltip=[
            alt.Tooltip("series:N", title="process"),
            alt.Tooltip("at:Q", title=f"at ({axis.unit})", format=NUMBER_FORMAT),
            alt.Tooltip("lag_ms:Q", title="lag (ms)", format=NUMBER_FORMAT),
        ],
    )
    return line.add_params(chosen).properties(width=WIDTH, height=260)


def _thin_rows(part: pl.DataFrame) -> pl.DataFrame:
    """Returns one task's rows: all of them, or the minimum and maximum lag of each time cell."""
    if len(part) <= TIME_CELLS:
        return part
    place = np.arange(len(part)) * (TIME_CELLS // 2) // len(part)
    grouped = part.with_columns(place=pl.Series(place)).group_by("place", maintain_order=True)
    ends = (pl.all().get(pl.col("lag_ns").arg_min()), pl.all().get(pl.col("lag_ns").arg_max()))
    return (
        pl.concat([grouped.agg(end) for end in ends])
        .drop("place")
        .unique(maintain_order=True)
        .sort("time_ns", maintain_order=True)
    )


def _caption_notes(processes: int, shown: int) -> list[str]:
    """Returns the sentences of the caption on the sign of the lag and on omitted tasks."""
    return [
        "Above 0: the process received less than its part; below 0: more.",
        f"The {shown} of {processes} processes whose lag was farthest from 0."
        if shown < processes
        else "",
    ]


def _describe(data: pl.DataFrame) -> str:
    """Returns the chart's description for readers who cannot see it."""
    least, most = (
        data.sort("lag_ns", "time_ns").row(place, named=True) for place in (0, len(data) - 1)
    )
    return (
        "The lag of each process over time: at most"
        f" {duration(most['lag_ns'])} owed to {most['label']}, and"
        f" {duration(-least['lag_ns'])} had too early by {least['label']}."
    )
