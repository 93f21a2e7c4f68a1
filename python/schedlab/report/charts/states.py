# SPDX-License-Identifier: MIT
"""Draws the states of tasks over time, and a single wait with the tasks that caused it."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from schedlab.base.display.names import visible_in_chart
from schedlab.base.display.numbers import duration, percent
from schedlab.report.charts.parts import Styles, chart_with_data, join_sentences
from schedlab.report.charts.processes import (
    Span,
    TimeAxis,
    chart_processes,
    chart_span,
    merge_for_page,
)
from schedlab.report.charts.theme import ANNOTATION, WIDTH
from schedlab.report.model import Chart
from schedlab.trace import Kind, Trace

ROW_HEIGHT = 26
RUNNING_LABEL, WAITING_LABEL = "runs", "waits for a CPU"
_STATE_LABELS = {"running": RUNNING_LABEL, "runnable": WAITING_LABEL}


def states(
    name: str,
    trace: Trace,
    *,
    title: str,
    caption: str,
    groups: Sequence[str],
    begin_ns: int | None = None,
    end_ns: int | None = None,
    causes: Mapping[tuple[str, str], str] | None = None,
) -> Chart:
    """Draws a row for each task of these groups, in their order, with a colour for each state.

    `causes`: labels of blocked states by group and cause, such as the name of the task that a
    reader of a pipe waits for.
    """
    processes = chart_processes(trace)
    span = chart_span(processes.window, begin_ns, end_ns)
    blocked = pl.col("cause").cast(pl.String)
    for (group, cause), label in (causes or {}).items():
        is_cause = (pl.col("group") == group) & (pl.col("cause").cast(pl.String) == cause)
        blocked = pl.when(is_cause).then(pl.lit(label)).otherwise(blocked)
    intervals = (
        span.clip(processes.intervals())
        .filter(pl.col("group").is_in(list(groups)))
        .select(
            "pid",
            "name",
            "group",
            "label",
            state_label(blocked).alias("series"),
            "begin_ns",
            "end_ns",
        )
    )
    drawn, merged = merge_for_page(intervals, ["label", "series"], span)
    axis = TimeAxis(span, processes.window.begin_ns, "ms", trace.header.tick_ns)
    chart = draw_states(drawn, axis, _row_labels(intervals, groups))
    return Chart(
        name,
        title,
        chart,
        intervals,
        join_sentences(caption, merged),
        describe_states(intervals, span.length_ns),
    )


def _row_labels(intervals: pl.DataFrame, groups: Sequence[str]) -> list[str]:
    """Returns the labels of the rows: tasks by group, in the order of `groups`, then by PID."""
    place = {group: number for number, group in enumerate(groups)}
    lanes = intervals.select("label", "group", "pid").unique()
    return [
        label
        for label, _, _ in sorted(lanes.iter_rows(), key=lambda lane: (place[lane[1]], lane[2]))
    ]


def state_label(blocked: pl.Expr | None = None) -> pl.Expr:
    """Returns an expression for a state in words.

    `blocked`: names of blocked states; default: the cause.
    """
    blocked_state = pl.col("cause").cast(pl.String) if blocked is None else blocked
    return pl.col("state").replace_strict(_STATE_LABELS, default=blocked_state)


def row_scale(rows: Sequence[str]) -> alt.Scale:
    """Returns a scale with fixed rows, so that layers with different content agree."""
    return alt.Scale(domain=[visible_in_chart(row) for row in rows])


def draw_states(drawn: pl.DataFrame, axis: TimeAxis, rows: list[str]) -> Any:
    """Draws bars of `label`, `series`, `begin_ns`, `end_ns`, with one row per label."""
    others = sorted(set(drawn["series"]) - {RUNNING_LABEL, WAITING_LABEL})
    styles = Styles([RUNNING_LABEL, WAITING_LABEL, *others], policies=False, muted=[])
    look = alt.Axis(ticks=False, domain=False)
    bars = axis.bars(
        drawn,
        ["label", "series"],
        alt.Y("label:N", title=None, scale=row_scale(rows), axis=look),
        styles.colour(symbolType="square"),
        height={"band": 0.75},
        tooltip=[
            alt.Tooltip("label:N", title="process"),
            alt.Tooltip("series:N", title="it"),
            *axis.tooltips(),
        ],
    )
    return bars.properties(width=WIDTH, height=ROW_HEIGHT * len(rows))


def describe_states(intervals: pl.DataFrame, length_ns: int) -> str:
    """Returns the fractions of time in each state, by task."""
    sums = (
        intervals.group_by("label", "series", maintain_order=True)
        .agg((pl.col("end_ns") - pl.col("begin_ns")).sum().alias("sum"))
        .sort("label", "sum", descending=[False, True])
    )
    parts = [
        f"{label} {series} {percent(time / length_ns)}" for label, series, time in sums.iter_rows()
    ]
    return f"What each process did in {duration(length_ns)}: " + ", ".join(parts) + "."


_MARGIN_FRACTION = 0.12
"""Margin before and after the wait, as a fraction of its length."""


def one_wait(
    name: str,
    trace: Trace,
    *,
    title: str,
    caption: str,
    lives: Sequence[int],
    begin_ns: int,
    end_ns: int,
) -> Chart:
    """Draws a wait from `begin_ns` to `end_ns`, between dashed lines, with a row for each task.

    `lives`: the tasks (schedlab.metrics.lives). The first is the waiting task. Thin lines lead from
    a task to the task that it wakes.
    """
    processes = chart_processes(trace)
    margin_ns = max(int((end_ns - begin_ns) * _MARGIN_FRACTION), trace.clock_step_ns, 1)
    span = Span(max(begin_ns - margin_ns, trace.begin_ns), min(end_ns + margin_ns, trace.end_ns))
    intervals = (
        span.clip(processes.intervals())
        .filter(pl.col("life").is_in(list(lives)))
        .select("life", "pid", "label", state_label().alias("series"), "begin_ns", "end_ns")
    )
    labels = dict(processes.names.select("life", "label").iter_rows())
    rows = [labels[life] for life in lives]
    drawn, merged = merge_for_page(intervals, ["label", "series"], span)
    axis = TimeAxis(span, processes.window.begin_ns, "ms", trace.header.tick_ns)
    bars = draw_states(drawn, axis, rows)
    wakeups = _find_wakeups(trace, processes.life_table.life_at, labels, lives, span)
    layers = [bars, _draw_limits(axis, begin_ns, end_ns)]
    if len(wakeups):
        layers.append(_draw_wakeups(axis, wakeups, rows))
    return Chart(
        name,
        title,
        alt.layer(*layers),
        intervals.drop("life"),
        join_sentences(caption, merged),
        describe_states(intervals, span.length_ns),
    )


def _find_wakeups(
    trace: Trace, life_at: Any, labels: dict[int, str], lives: Sequence[int], span: Span
) -> pl.DataFrame:
    """Returns the wake-ups of one of the tasks by another within
    the span: time_ns, waker, woken.
    """
    rows = trace.rows(Kind.WAKEUP)
    woken = life_at(trace.at("process", rows).astype("int64"), rows)
    waker = life_at(trace.at("first", rows).astype("int64"), rows)
    wakeups = pl.DataFrame({"time_ns": trace.at("time_ns", rows), "waker": waker, "woken": woken})
    is_among_lives = pl.all_horizontal(pl.col("waker", "woken").is_in(list(lives)))
    is_inside_span = pl.col("time_ns").is_between(span.begin_ns, span.end_ns)
    return wakeups.filter(is_among_lives & is_inside_span).with_columns(
        pl.col("waker", "woken").replace_strict(labels, return_dtype=pl.String)
    )


def _draw_limits(axis: TimeAxis, begin_ns: int, end_ns: int) -> Any:
    """Draws a dashed line at the beginning and at the end of the wait."""
    rows = pl.DataFrame({"time_ns": [begin_ns, end_ns]}).select(*axis.embed("time_ns"))
    drawn = chart_with_data(rows).transform_calculate(at=axis.in_units("time"))
    return drawn.mark_rule(style=ANNOTATION, strokeDash=[3, 3]).encode(axis.x("at"))


def _draw_wakeups(axis: TimeAxis, wakeups: pl.DataFrame, rows: Sequence[str]) -> Any:
    """Draws an arrow from the waking to the woken task for each wake-up."""
    drawn = chart_with_data(
        wakeups.select("waker", "woken", *axis.embed("time_ns"))
    ).transform_calculate(at=axis.in_units("time"))
    x = axis.x("at")
    line = drawn.mark_rule(style=ANNOTATION, strokeWidth=1).encode(
        x, alt.Y("waker:N", scale=row_scale(rows)), alt.Y2("woken:N")
    )
    head = drawn.mark_point(style=ANNOTATION, shape="triangle-right", size=30, filled=True).encode(
        x,
        alt.Y("woken:N", scale=row_scale(rows)),
        tooltip=[
            alt.Tooltip("waker:N", title="woken by"),
            alt.Tooltip("woken:N", title="process"),
            alt.Tooltip("at:Q", title=f"at ({axis.unit})", format=",.6~g"),
        ],
    )
    return alt.layer(line, head)
