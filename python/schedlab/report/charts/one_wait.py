# SPDX-License-Identifier: MIT
"""One wait of a process, with those that it waited for: what each did meanwhile, and who woke whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from schedlab.report.charts.parts import chart_of, sentences
from schedlab.report.charts.processes import Span, TimeAxis, drawable, people_of
from schedlab.report.charts.states import (
    chart_of_states,
    named_states,
    row_scale,
    words_of_states,
)
from schedlab.report.charts.theme import ANNOTATION
from schedlab.report.model import Chart
from schedlab.trace import Kind, Trace

_BESIDE = 0.12
"""What is shown before and after the wait, as a part of it."""


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
    """A row for each of some processes (schedlab.metrics.lives): the first is the one that waits, from `begin_ns` to
    `end_ns`, which dashed lines mark. A thin line leads from a process to the one that it wakes."""
    people = people_of(trace)
    beside = max(int((end_ns - begin_ns) * _BESIDE), trace.clock_step_ns, 1)
    span = Span(max(begin_ns - beside, trace.begin_ns), min(end_ns + beside, trace.end_ns))
    found = (
        span.clip(people.intervals())
        .filter(pl.col("life").is_in(list(lives)))
        .select("life", "pid", "label", named_states().alias("series"), "begin_ns", "end_ns")
    )
    labels = dict(people.names.select("life", "label").iter_rows())
    rows = [labels[life] for life in lives]
    drawn, merged = drawable(found, ["label", "series"], span)
    axis = TimeAxis(span, people.window.begin_ns, "ms", trace.header.tick_ns)
    bars = chart_of_states(drawn, axis, rows)
    wakeups = _wakeups(trace, people.who.life_at, labels, lives, span)
    layers = [bars, _limits(axis, begin_ns, end_ns)]
    if len(wakeups):
        layers.append(_arrows(axis, wakeups, rows))
    return Chart(
        name,
        title,
        alt.layer(*layers),
        found.drop("life"),
        sentences(caption, merged),
        words_of_states(found, span.length_ns),
    )


def _wakeups(
    trace: Trace, life_at: Any, labels: dict[int, str], lives: Sequence[int], span: Span
) -> pl.DataFrame:
    """Wake-ups in the span by one of the processes of another: time_ns, waker, woken."""
    rows = trace.rows(Kind.WAKEUP)
    woken = life_at(trace.at("process", rows).astype("int64"), rows)
    waker = life_at(trace.at("first", rows).astype("int64"), rows)
    found = pl.DataFrame({"time_ns": trace.at("time_ns", rows), "waker": waker, "woken": woken})
    among = pl.all_horizontal(pl.col("waker", "woken").is_in(list(lives)))
    inside = pl.col("time_ns").is_between(span.begin_ns, span.end_ns)
    return found.filter(among & inside).with_columns(
        pl.col("waker", "woken").replace_strict(labels, return_dtype=pl.String)
    )


def _limits(axis: TimeAxis, begin_ns: int, end_ns: int) -> Any:
    rows = pl.DataFrame({"time_ns": [begin_ns, end_ns]}).select(*axis.embed("time_ns"))
    drawn = chart_of(rows).transform_calculate(at=axis.in_units("time"))
    return drawn.mark_rule(style=ANNOTATION, strokeDash=[3, 3]).encode(axis.x("at"))


def _arrows(axis: TimeAxis, wakeups: pl.DataFrame, rows: Sequence[str]) -> Any:
    drawn = chart_of(wakeups.select("waker", "woken", *axis.embed("time_ns"))).transform_calculate(
        at=axis.in_units("time")
    )
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
