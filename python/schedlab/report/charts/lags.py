# SPDX-License-Identifier: MIT
"""Draws the lag of each task over time: the CPU time that it is owed."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from schedlab.base.display.numbers import duration
from schedlab.metrics import lags
from schedlab.report.charts.parts import (
    NUMBERS,
    STROKE_SIZE,
    NothingToDraw,
    Styles,
    chart_of,
    chosen_in_legend,
    opacity_if,
    sentences,
)
from schedlab.report.charts.processes import TimeAxis, Unit, processes_of, span_of
from schedlab.report.charts.theme import WIDTH
from schedlab.report.model import Chart
from schedlab.trace import Trace

PROCESSES_MOST = 7
PLACES = 600
"""Maximum number of points per task. With more, the extremes of each time cell are drawn."""


def lag_over_time(
    name: str,
    trace: Trace,
    *,
    title: str,
    caption: str,
    length_ns: int | None = None,
    unit: Unit = "ms",
) -> Chart:
    """Draws the lag of each task of the workload (docs/metrics.md), from the start of the window.

    With more than PROCESSES_MOST tasks, those with the largest absolute lag are drawn. `length_ns`:
    length of the drawn part. Raises NothingToDraw if fewer than two tasks wanted a CPU in it.
    """
    processes = processes_of(trace)
    begin = processes.window.begin_ns
    span = span_of(processes.window, None, None if length_ns is None else begin + length_ns)
    axis = TimeAxis(span, begin, unit, trace.header.tick_ns)
    owed = (
        lags(trace)
        .filter(pl.col("time_ns").is_between(span.begin_ns, span.end_ns))
        .join(processes.names.select("life", "label"), on="life", maintain_order="left")
    )
    if owed["life"].n_unique() < 2:
        raise NothingToDraw(f"chart {name}: no two processes wanted a CPU in that time")
    far = owed.group_by("life", "label").agg(most=pl.col("lag_ns").abs().max())
    order = far.sort("most", "life", descending=[True, False])["life"].to_list()
    shown = far.filter(pl.col("life").is_in(order[:PROCESSES_MOST])).sort("life")
    data = owed.select("label", "life", "time_ns", "lag_ns")
    return Chart(
        name,
        title,
        _chart(data.filter(pl.col("life").is_in(shown["life"].implode())), axis, shown),
        data.drop("life"),
        sentences(caption, *_remarks(len(far), len(shown))),
        _words(data),
    )


def _chart(data: pl.DataFrame, axis: TimeAxis, shown: pl.DataFrame) -> Any:
    parts = [_thinned(part) for part in data.partition_by("life", maintain_order=True)]
    drawn = pl.concat(parts).with_columns(lag_ms=pl.col("lag_ns") / 1e6)
    styles = Styles(shown["label"].to_list(), policies=False)
    chosen = chosen_in_legend()
    rows = drawn.select(*axis.embed("time_ns"), "lag_ms", series="label")
    picture = chart_of(rows, digits=4).transform_calculate(at=axis.in_units("time"))
    x = axis.x("at")
    line = picture.mark_line(strokeWidth=1.8).encode(
        x,
        alt.Y("lag_ms:Q", title="lag (ms)", axis=alt.Axis(format=NUMBERS)),
        styles.colour(symbolSize=STROKE_SIZE),
        opacity=opacity_if(chosen),
        tooltip=[
            alt.Tooltip("series:N", title="process"),
            alt.Tooltip("at:Q", title=f"at ({axis.unit})", format=NUMBERS),
            alt.Tooltip("lag_ms:Q", title="lag (ms)", format=NUMBERS),
        ],
    )
    return line.add_params(chosen).properties(width=WIDTH, height=260)


def _thinned(part: pl.DataFrame) -> pl.DataFrame:
    """Returns one task's rows: all of them, or the minimum and maximum lag of each time cell."""
    if len(part) <= PLACES:
        return part
    place = np.arange(len(part)) * (PLACES // 2) // len(part)
    grouped = part.with_columns(place=pl.Series(place)).group_by("place", maintain_order=True)
    ends = (pl.all().get(pl.col("lag_ns").arg_min()), pl.all().get(pl.col("lag_ns").arg_max()))
    return (
        pl.concat([grouped.agg(end) for end in ends])
        .drop("place")
        .unique(maintain_order=True)
        .sort("time_ns", maintain_order=True)
    )


def _remarks(processes: int, shown: int) -> list[str]:
    return [
        "Above 0: the process received less than its part; below 0: more.",
        f"The {shown} of {processes} processes whose lag was farthest from 0."
        if shown < processes
        else "",
    ]


def _words(data: pl.DataFrame) -> str:
    least, most = (
        data.sort("lag_ns", "time_ns").row(place, named=True) for place in (0, len(data) - 1)
    )
    return (
        "The lag of each process over time: at most"
        f" {duration(most['lag_ns'])} owed to {most['label']}, and"
        f" {duration(-least['lag_ns'])} had too early by {least['label']}."
    )
