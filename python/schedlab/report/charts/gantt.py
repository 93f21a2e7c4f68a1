# SPDX-License-Identifier: MIT
"""Gantt chart: which task ran on each CPU over time."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from schedlab.base.display.numbers import duration, percent
from schedlab.metrics import scheduler_intervals
from schedlab.report.charts.parts import (
    Styles,
    chosen_in_legend,
    opacity_if,
    sentences,
    zoom_along_time,
)
from schedlab.report.charts.processes import (
    IDLE,
    OTHER,
    ROOT,
    ChartProcesses,
    Colouring,
    Span,
    TimeAxis,
    Unit,
    drawable,
    processes_of,
    readable,
    rows_of,
    span_of,
)
from schedlab.report.charts.theme import FAINT, WIDTH
from schedlab.report.model import Chart
from schedlab.trace import Trace

ROW_HEIGHT = 38
READABLE_PER_CPU = 200
"""Number of intervals per CPU that are drawn if no end is given: a few pixels each."""
PROCESSES_MOST = 7
"""Maximum number of tasks with a colour each. With more tasks, colours are groups."""
SCHEDULER_CELLS = 240
_CPU = pl.format("CPU {}", "cpu").alias("cpu")


def gantt(
    name: str,
    trace: Trace,
    *,
    title: str,
    caption: str,
    begin_ns: int | None = None,
    end_ns: int | None = None,
    colour: Colouring | None = None,
    unit: Unit = "ms",
) -> Chart:
    """Draws a row for each CPU: the running task, idle time, and below it the scheduler's load.

    Without `end_ns`, the readable part of the measured window is drawn. `colour`: whether
    colours are tasks or groups; default: tasks, if they are few. `data`: all intervals of the
    drawn part, unrounded and unmerged.
    """
    processes = processes_of(trace)
    span = span_of(processes.window, begin_ns, end_ns)
    span = readable(processes, span, READABLE_PER_CPU) if end_ns is None else span
    intervals = _intervals(processes, span)
    by: Colouring = colour or _colouring(intervals)
    axis = TimeAxis(span, processes.window.begin_ns, unit, trace.header.tick_ns)
    drawn, merged = _drawn(intervals, span, by)
    visits = _scheduler(trace, span)
    return Chart(
        name,
        title,
        _chart(drawn, visits, axis, by, trace.header.cpus),
        intervals,
        sentences(caption, *_remarks(processes, span, visits), merged),
        _words(intervals, span, trace.header.cpus),
    )


def _intervals(processes: ChartProcesses, span: Span) -> pl.DataFrame:
    running = processes.running().select(
        "cpu", "pid", "name", "group", "label", "begin_ns", "end_ns", "why"
    )
    idle = processes.idle().with_columns(
        pid=pl.lit(0, pl.Int64), name=pl.lit(IDLE), group=pl.lit(IDLE), label=pl.lit(IDLE)
    )
    both = pl.concat([running, idle], how="diagonal")
    return span.clip(both).sort("cpu", "begin_ns")


def _colouring(intervals: pl.DataFrame) -> Colouring:
    return "process" if _workload(intervals)["pid"].n_unique() <= PROCESSES_MOST else "group"


def _workload(intervals: pl.DataFrame) -> pl.DataFrame:
    return intervals.filter(~pl.col("group").is_in([IDLE, ROOT, OTHER]))


def _drawn(intervals: pl.DataFrame, span: Span, by: Colouring) -> tuple[pl.DataFrame, str]:
    """Returns the drawn intervals with their colour's series, and a note
    for the caption on merged ones.
    """
    series = pl.col("label") if by == "process" else pl.col("group")
    outside = pl.col("group").is_in([IDLE, ROOT, OTHER])
    shown = intervals.with_columns(series=pl.when(outside).then("group").otherwise(series))
    return drawable(shown, ["cpu", "series"], span)


def _scheduler(trace: Trace, span: Span) -> pl.DataFrame:
    """Returns the scheduler's load per CPU and time cell: cpu,
    begin_ns, end_ns, fraction of cycles.
    """
    visits = scheduler_intervals(trace).filter(
        (pl.col("what") == "scheduler")
        & pl.col("begin_ns").is_between(span.begin_ns, span.end_ns, closed="left")
    )
    cell = span.length_ns / SCHEDULER_CELLS
    cycles = cell * trace.header.cycles_per_second / 1e9
    place = ((pl.col("begin_ns") - span.begin_ns) / cell).floor()
    return (
        visits.group_by("cpu", place.alias("cell"), maintain_order=True)
        .agg(part=(pl.col("cycles").sum() / cycles).clip(0, 1), visits=pl.len())
        .with_columns(
            begin_ns=(span.begin_ns + pl.col("cell") * cell).cast(pl.Int64),
            end_ns=(span.begin_ns + (pl.col("cell") + 1) * cell).cast(pl.Int64),
        )
        .sort("cpu", "cell")
        .drop("cell")
    )


def _chart(
    drawn: pl.DataFrame, visits: pl.DataFrame, axis: TimeAxis, by: Colouring, cpus: int
) -> Any:
    rows = [f"CPU {cpu}" for cpu in range(cpus)]
    y = rows_of("cpu", rows, 0.3)
    chosen = chosen_in_legend()
    layers = [
        _idle(drawn, axis, y),
        _running(drawn, axis, y, chosen).add_params(chosen, zoom_along_time()),
        *_visits(visits, axis, y),
    ]
    return alt.layer(*layers).properties(width=WIDTH, height=ROW_HEIGHT * cpus + 4)


def _idle(drawn: pl.DataFrame, axis: TimeAxis, y: alt.Y) -> Any:
    idle = drawn.filter(pl.col("series") == IDLE)
    tooltip = [alt.Tooltip("cpu:N", title="idle"), *axis.tooltips()]
    return axis.bars(idle, [_CPU], y, style=FAINT, height=2, tooltip=tooltip)


def _running(drawn: pl.DataFrame, axis: TimeAxis, y: alt.Y, chosen: alt.Parameter) -> Any:
    running = drawn.filter(pl.col("series") != IDLE)
    series = _legend_order(running)
    styles = Styles(series, policies=False, muted=[ROOT, OTHER])
    return axis.bars(
        running,
        [_CPU, "series", "pid", "name", "group", "why", "merged"],
        y,
        styles.colour(symbolType="square"),
        height={"band": 0.72},
        opacity=opacity_if(chosen, 0.9),
        tooltip=[
            alt.Tooltip("cpu:N", title="ran on"),
            alt.Tooltip("pid:Q", title="PID", format="d"),
            alt.Tooltip("name:N"),
            alt.Tooltip("group:N"),
            *axis.tooltips(),
            alt.Tooltip("why:N", title="why it left"),
            alt.Tooltip("merged:Q", title="intervals drawn as one"),
        ],
    )


def _legend_order(running: pl.DataFrame) -> list[str]:
    outside = [ROOT, OTHER]
    names = running.group_by("series").agg(pl.col("pid").min()).sort("pid")["series"].to_list()
    return [name for name in names if name not in outside] + [
        name for name in outside if name in names
    ]


def _visits(visits: pl.DataFrame, axis: TimeAxis, y: alt.Y) -> list[alt.Chart]:
    """Draws a strip below each CPU, darker where the scheduler used more of the time."""
    if visits.is_empty():
        return []
    shown = visits.with_columns(percent=pl.col("part") * 100)
    scale = alt.Scale(domain=[0, _most(visits) * 100], range=[0, 0.9])
    strip = axis.bars(
        shown,
        [_CPU, "percent", "visits"],
        y,
        style=FAINT,
        height=5,
        yOffset=ROW_HEIGHT * 0.42,
        opacity=alt.Opacity("percent:Q", scale=scale, legend=None),
        tooltip=[
            alt.Tooltip("cpu:N", title="scheduler of"),
            *axis.tooltips(),
            alt.Tooltip("percent:Q", title="of that time (%)", format=",.3~g"),
            alt.Tooltip("visits:Q"),
        ],
    )
    return [strip]


def _most(visits: pl.DataFrame) -> float:
    most: Any = visits["part"].max()
    return float(most or 0) or 1.0


def _remarks(processes: ChartProcesses, span: Span, visits: pl.DataFrame) -> list[str]:
    begin, end = (
        duration(time - processes.window.begin_ns) for time in (span.begin_ns, span.end_ns)
    )
    total_ns = processes.window.elapsed_ns
    return [
        f"The chart shows {begin} to {end} of {duration(total_ns)}."
        if span.length_ns < total_ns
        else "",
        "A thin line: idle.",
        "The strip below each CPU: the scheduler's share of the time; the darkest is"
        f" {percent(_most(visits))}."
        if len(visits)
        else "",
    ]


def _words(intervals: pl.DataFrame, span: Span, cpus: int) -> str:
    length = pl.col("end_ns") - pl.col("begin_ns")
    sums = (
        intervals.group_by("group")
        .agg(length.sum().alias("sum"))
        .sort("sum", descending=True)
        .head(8)
    )
    parts = [
        f"{group} {percent(time / (span.length_ns * cpus))}" for group, time in sums.iter_rows()
    ]
    return f"Gantt chart of {cpus} CPUs over {duration(span.length_ns)}: " + ", ".join(parts) + "."
