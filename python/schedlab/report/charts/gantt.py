# SPDX-License-Identifier: MIT
"""Gantt chart: which task ran on each CPU over time."""

from typing import Any

import altair as alt
import polars as pl

from schedlab.base.display.numbers import duration, percent
from schedlab.metrics import scheduler_intervals
from schedlab.report.charts.parts import (
    Styles,
    join_sentences,
    legend_selection,
    opacity_if,
    zoom_along_time,
)
from schedlab.report.charts.processes import (
    IDLE,
    OUTSIDE,
    ROOT,
    ChartProcesses,
    Colouring,
    Span,
    TimeAxis,
    chart_processes,
    chart_span,
    merge_for_page,
    readable_span,
    row_axis,
)
from schedlab.report.charts.theme import FAINT, WIDTH
from schedlab.report.model import Chart
from schedlab.trace import Trace

ROW_HEIGHT = 38
READABLE_PER_CPU = 200
"""Number of intervals per CPU that are drawn: a few pixels each."""
SCHEDULER_CELLS = 240
_CPU_LABEL = pl.format("CPU {}", "cpu").alias("cpu")


def gantt(
    name: str,
    trace: Trace,
    *,
    title: str,
    caption: str,
    colour: Colouring,
) -> Chart:
    """Draws a row for each CPU: the running task, idle time, and below it the scheduler's load.

    The readable part of the measured window is drawn. `colour`: whether colours are tasks or
    groups. `data`: all intervals of the drawn part, unrounded and unmerged.
    """
    processes = chart_processes(trace)
    span = readable_span(processes, chart_span(processes.window, None, None), READABLE_PER_CPU)
    intervals = _visible_intervals(processes, span)
    axis = TimeAxis(span, processes.window.begin_ns, "ticks", trace.header.tick_ns)
    drawn, merged = _add_series(intervals, span, colour)
    visits = _scheduler_load(trace, span)
    return Chart(
        name,
        title,
        _draw(drawn, visits, axis, trace.header.cpus),
        intervals,
        join_sentences(caption, *_caption_notes(processes, span, visits), merged),
        _describe(intervals, span, trace.header.cpus),
    )


def _visible_intervals(processes: ChartProcesses, span: Span) -> pl.DataFrame:
    """Returns the running and idle intervals within the span."""
    running = processes.running().select(
        "cpu", "pid", "name", "group", "label", "begin_ns", "end_ns", "why"
    )
    idle = processes.idle().with_columns(
        pid=pl.lit(0, pl.Int64), name=pl.lit(IDLE), group=pl.lit(IDLE), label=pl.lit(IDLE)
    )
    intervals = pl.concat([running, idle], how="diagonal")
    return span.clip(intervals).sort("cpu", "begin_ns")


def _add_series(intervals: pl.DataFrame, span: Span, by: Colouring) -> tuple[pl.DataFrame, str]:
    """Returns the drawn intervals with their colour's series, and a note
    for the caption on merged ones.
    """
    series = pl.col("label") if by == "process" else pl.col("group")
    outside = pl.col("group").is_in([IDLE, ROOT, OUTSIDE])
    shown = intervals.with_columns(series=pl.when(outside).then("group").otherwise(series))
    return merge_for_page(shown, ["cpu", "series"], span)


def _scheduler_load(trace: Trace, span: Span) -> pl.DataFrame:
    """Returns the scheduler's load per CPU and time cell: cpu,
    begin_ns, end_ns, fraction of cycles.
    """
    visits = scheduler_intervals(trace).filter(
        (pl.col("what") == "scheduler")
        & pl.col("begin_ns").is_between(span.begin_ns, span.end_ns, closed="left")
    )
    cell = span.length_ns / SCHEDULER_CELLS
    cycles = cell * trace.header.cycles_per_second / 1e9
    cell_index = ((pl.col("begin_ns") - span.begin_ns) / cell).floor()
    return (
        visits.group_by("cpu", cell_index.alias("cell"), maintain_order=True)
        .agg(part=(pl.col("cycles").sum() / cycles).clip(0, 1), visits=pl.len())
        .with_columns(
            begin_ns=(span.begin_ns + pl.col("cell") * cell).cast(pl.Int64),
            end_ns=(span.begin_ns + (pl.col("cell") + 1) * cell).cast(pl.Int64),
        )
        .sort("cpu", "cell")
        .drop("cell")
    )


def _draw(drawn: pl.DataFrame, visits: pl.DataFrame, axis: TimeAxis, cpus: int) -> Any:
    """Draws the running tasks, the idle time and the scheduler's load."""
    rows = [f"CPU {cpu}" for cpu in range(cpus)]
    y = row_axis("cpu", rows, 0.3)
    chosen = legend_selection()
    layers = [
        _draw_idle(drawn, axis, y),
        _draw_running(drawn, axis, y, chosen).add_params(chosen, zoom_along_time()),
        *_draw_scheduler_load(visits, axis, y),
    ]
    return alt.layer(*layers).properties(width=WIDTH, height=ROW_HEIGHT * cpus + 4)


def _draw_idle(drawn: pl.DataFrame, axis: TimeAxis, y: alt.Y) -> Any:
    """Draws the intervals when a CPU was idle."""
    idle = drawn.filter(pl.col("series") == IDLE)
    tooltip = [alt.Tooltip("cpu:N", title="idle"), *axis.tooltips()]
    return axis.bars(idle, [_CPU_LABEL], y, style=FAINT, height=2, tooltip=tooltip)


def _draw_running(drawn: pl.DataFrame, axis: TimeAxis, y: alt.Y, chosen: alt.Parameter) -> Any:
    """Draws the intervals of running tasks, with a colour for each series."""
    running = drawn.filter(pl.col("series") != IDLE)
    series = _legend_order(running)
    styles = Styles(series, policies=False, muted=[ROOT, OUTSIDE])
    return axis.bars(
        running,
        [_CPU_LABEL, "series", "pid", "name", "group", "why", "merged"],
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
    """Returns the series in the legend's order: by PID, and last the tasks outside the workload."""
    outside = [ROOT, OUTSIDE]
    names = running.group_by("series").agg(pl.col("pid").min()).sort("pid")["series"].to_list()
    return [name for name in names if name not in outside] + [
        name for name in outside if name in names
    ]


def _draw_scheduler_load(visits: pl.DataFrame, axis: TimeAxis, y: alt.Y) -> list[alt.Chart]:
    """Draws a strip below each CPU, darker where the scheduler used more of the time."""
    if visits.is_empty():
        return []
    shown = visits.with_columns(percent=pl.col("part") * 100)
    scale = alt.Scale(domain=[0, _largest_load(visits) * 100], range=[0, 0.9])
    strip = axis.bars(
        shown,
        [_CPU_LABEL, "percent", "visits"],
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


def _largest_load(visits: pl.DataFrame) -> float:
    """Returns the largest load of a time cell; 1 if there is none."""
    largest: Any = visits["part"].max()
    return float(largest or 0) or 1.0


def _caption_notes(processes: ChartProcesses, span: Span, visits: pl.DataFrame) -> list[str]:
    """Returns the sentences of the caption on the drawn part and on the scheduler's load."""
    return [
        processes.drawn_part_text(span),
        "A thin line: idle.",
        "The strip below each CPU: the scheduler's share of the time; the darkest is"
        f" {percent(_largest_load(visits))}."
        if len(visits)
        else "",
    ]


def _describe(intervals: pl.DataFrame, span: Span, cpus: int) -> str:
    """Returns the chart's description for readers who cannot see it."""
    length = pl.col("end_ns") - pl.col("begin_ns")
    sums = (
        intervals.group_by("group")
        .agg(length.sum().alias("sum"))
        .sort("sum", descending=True)
        .head(8)
    )
    texts = [
        f"{group} {percent(time / (span.length_ns * cpus))}" for group, time in sums.iter_rows()
    ]
    return f"Gantt chart of {cpus} CPUs over {duration(span.length_ns)}: " + ", ".join(texts) + "."
