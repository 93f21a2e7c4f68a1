# SPDX-License-Identifier: MIT
"""What each process did, from when to when: it ran, it waited for a CPU, or it was blocked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from schedlab.base.display.names import visible_in_chart
from schedlab.base.display.numbers import duration, percent
from schedlab.report.charts.parts import Looks, sentences
from schedlab.report.charts.processes import TimeAxis, drawable, people_of, span_of
from schedlab.report.charts.theme import WIDTH
from schedlab.report.model import Chart
from schedlab.trace import Trace

ROW_HEIGHT = 26
RUNS, WAITS = "runs", "waits for a CPU"
_STATES = {"running": RUNS, "runnable": WAITS}


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
    """A row for each process of these groups, in their order, with a colour for each state.

    `causes`: what to call it if a process of a group is blocked (`blocked: pipe`), where that says
    more than its name: for which other process it waits.
    """
    people = people_of(trace)
    span = span_of(people.window, begin_ns, end_ns)
    blocked = pl.col("cause").cast(pl.String)
    for (group, cause), says in (causes or {}).items():
        own = (pl.col("group") == group) & (pl.col("cause").cast(pl.String) == cause)
        blocked = pl.when(own).then(pl.lit(says)).otherwise(blocked)
    found = (
        span.clip(people.intervals())
        .filter(pl.col("group").is_in(list(groups)))
        .select(
            "pid",
            "name",
            "group",
            "label",
            named_states(blocked).alias("series"),
            "begin_ns",
            "end_ns",
        )
    )
    drawn, merged = drawable(found, ["label", "series"], span)
    axis = TimeAxis(span, people.window.begin_ns, "ms", trace.header.tick_ns)
    chart = chart_of_states(drawn, axis, _rows(found, groups))
    return Chart(
        name,
        title,
        chart,
        found,
        sentences(caption, merged),
        words_of_states(found, span.length_ns),
    )


def _rows(found: pl.DataFrame, groups: Sequence[str]) -> list[str]:
    place = {group: number for number, group in enumerate(groups)}
    people = found.select("label", "group", "pid").unique()
    return [
        label
        for label, _, _ in sorted(people.iter_rows(), key=lambda each: (place[each[1]], each[2]))
    ]


def named_states(blocked: pl.Expr | None = None) -> pl.Expr:
    """What a process does, in words. `blocked`: what to call it if it is blocked; its cause, if nothing is said."""
    otherwise = pl.col("cause").cast(pl.String) if blocked is None else blocked
    return pl.col("state").replace_strict(_STATES, default=otherwise)


def row_scale(rows: Sequence[str]) -> alt.Scale:
    """A row for each of these, in their order, whatever is drawn in them: so layers need not agree on one."""
    return alt.Scale(domain=[visible_in_chart(row) for row in rows])


def chart_of_states(drawn: pl.DataFrame, axis: TimeAxis, rows: list[str]) -> Any:
    """Bars of `label`, `series`, `begin_ns`, `end_ns`, a row for each label."""
    others = sorted(set(drawn["series"]) - {RUNS, WAITS})
    looks = Looks([RUNS, WAITS, *others], policies=False, muted=[])
    look = alt.Axis(ticks=False, domain=False)
    bars = axis.bars(
        drawn,
        ["label", "series"],
        alt.Y("label:N", title=None, scale=row_scale(rows), axis=look),
        looks.colour(symbolType="square"),
        height={"band": 0.75},
        tooltip=[
            alt.Tooltip("label:N", title="process"),
            alt.Tooltip("series:N", title="it"),
            *axis.tooltips(),
        ],
    )
    return bars.properties(width=WIDTH, height=ROW_HEIGHT * len(rows))


def words_of_states(found: pl.DataFrame, length_ns: int) -> str:
    """Of each process, the parts of the time."""
    sums = (
        found.group_by("label", "series", maintain_order=True)
        .agg((pl.col("end_ns") - pl.col("begin_ns")).sum().alias("sum"))
        .sort("label", "sum", descending=[False, True])
    )
    parts = [
        f"{label} {series} {percent(time / length_ns)}" for label, series, time in sums.iter_rows()
    ]
    return f"What each process did in {duration(length_ns)}: " + ", ".join(parts) + "."
