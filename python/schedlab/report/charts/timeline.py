# SPDX-License-Identifier: MIT
"""What each process did, from when to when: for runs with few processes."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from schedlab.metrics.tables import duration
from schedlab.report.charts.nothing import NothingToDraw
from schedlab.report.charts.parts import chart_of, sentences, zoom_along_time
from schedlab.report.charts.processes import People, Span, drawable, people_of, span_of
from schedlab.report.charts.theme import RUNNING_COLOUR, SLATE, WAITING_COLOUR, WIDTH
from schedlab.report.charts.time_axis import TimeAxis, Unit
from schedlab.report.model import Chart
from schedlab.trace import Trace

ROW_HEIGHT = 20
PROCESSES_MOST = 30
_STATES = {
    "running": (RUNNING_COLOUR, 13),
    "waiting": (WAITING_COLOUR, 6),
    "blocked": (SLATE, 1.5),
}
"""Colour and height: a reader that cannot see the one sees the other."""


def timeline(
    name: str,
    trace: Trace,
    *,
    title: str,
    caption: str,
    begin_ns: int | None = None,
    end_ns: int | None = None,
    processes: int = PROCESSES_MOST,
    unit: Unit = "ms",
    description: str = "",
) -> Chart:
    """A row for each of the first `processes` of the workload: running, waiting or blocked."""
    people = people_of(trace)
    span = span_of(people.window, begin_ns, end_ns)
    intervals = _intervals(people, span)
    if intervals.is_empty():
        raise NothingToDraw(f"chart {name}: no process of the workload did anything in that time")
    order = intervals.group_by("life").agg(
        pl.col("label", "begin_ns").sort_by("begin_ns").first()
    ).sort("begin_ns", "life")  # fmt: skip
    shown = order.head(processes)
    of_them = intervals.filter(pl.col("life").is_in(shown["life"].implode()))
    drawn, merged = drawable(of_them, ["life", "state"], span)
    axis = TimeAxis(span, people.window.begin_ns, unit, trace.header.tick_ns)
    return Chart(
        name,
        title,
        _chart(drawn, axis, shown["label"].to_list()),
        intervals.drop("life"),
        sentences(caption, _remarks(len(order), len(shown)), merged),
        description or _words(intervals, span),
    )


def _intervals(people: People, span: Span) -> pl.DataFrame:
    wanted = people.intervals().filter(pl.col("role") == "workload")
    state = pl.col("state").replace({"runnable": "waiting"})
    return span.clip(
        wanted.select(
            "life",
            "pid",
            "name",
            "group",
            "label",
            state,
            "cause",
            "cpu",
            "begin_ns",
            "end_ns",
            "why",
        )
    ).sort("life", "begin_ns")


def _chart(drawn: pl.DataFrame, axis: TimeAxis, rows: list[str]) -> Any:
    y = alt.Y(
        "label:N",
        title="process",
        sort=rows,
        scale=alt.Scale(domain=rows),
        axis=alt.Axis(ticks=False, domain=False, labelPadding=6),
    )
    colours = alt.Color(
        "state:N",
        scale=alt.Scale(domain=list(_STATES), range=[colour for colour, _ in _STATES.values()]),
        legend=alt.Legend(title=None, symbolType="square"),
    )
    return (
        alt.layer(*(_bars(drawn, axis, state, y, colours) for state in reversed(_STATES)))
        .add_params(zoom_along_time())
        .properties(width=WIDTH, height=ROW_HEIGHT * len(rows))
    )


def _bars(drawn: pl.DataFrame, axis: TimeAxis, state: str, y: alt.Y, colours: alt.Color) -> Any:
    rows = drawn.filter(pl.col("state") == state).select(
        "label", "pid", "group", "cpu", "cause", "why", "merged", "state",
        *axis.embed("begin_ns", "end_ns"),
    )  # fmt: skip
    where = [alt.Tooltip("cpu:Q", title="on CPU", format="d")] if state == "running" else []
    return (
        axis.intervals(chart_of(rows))
        .mark_bar(height=_STATES[state][1], clip=True)
        .encode(
            axis.x("from_"),
            alt.X2("to:Q"),
            y,
            colours,
            tooltip=[
                alt.Tooltip("label:N", title="process"),
                alt.Tooltip("state:N"),
                *where,
                *axis.tooltips(),
                alt.Tooltip("cause:N", title="since it was"),
                alt.Tooltip("why:N", title="until it was"),
            ],
        )
    )


def _remarks(processes: int, shown: int) -> str:
    if shown < processes:
        return f"Drawn are the first {shown} of {processes} processes."
    return ""


def _words(intervals: pl.DataFrame, span: Span) -> str:
    length = (pl.col("end_ns") - pl.col("begin_ns")).sum()
    sums = dict(intervals.group_by("state").agg(length).iter_rows())
    parts = [f"{state} {duration(sums.get(state, 0))}" for state in _STATES]
    count = intervals["pid"].n_unique()
    return (
        f"What {count} processes did over {duration(span.length_ns)}; in sum: "
        + ", ".join(parts)
        + "."
    )
