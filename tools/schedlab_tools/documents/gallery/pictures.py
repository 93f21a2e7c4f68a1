# SPDX-License-Identifier: MIT
"""Draws a comparison: all policies by the measure, and below it the processes under two of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from schedlab.base.display.numbers import with_fitting_unit
from schedlab.report.charts.parts import Styles, chart_with_data
from schedlab.report.charts.processes import (
    Span,
    TimeAxis,
    chart_processes,
    merge_for_page,
    row_axis,
)
from schedlab.report.charts.theme import PALETTE, SLATE, policy_look
from schedlab.report.model import Chart
from schedlab.sweep.objectives import parse_objective
from schedlab.trace import Trace
from schedlab_tools.documents.gallery.extremes import PolicyComparison

WIDTH = 560
"""Pixels of each plot."""
_RANK_HEIGHT, _LANE_HEIGHT = 14, 13
_LANES_MAX = 8
_DRAWN_RUNS_MAX = 120
"""The most runs on all CPUs of a time line, averaged over both policies; more could not be distinguished."""
_LOG_AXIS_RATIO = 20
"""If the largest value exceeds the smallest by this factor, the axis is logarithmic."""
_WAIT_CAUSES = {"wakeup-99th": "woken", "response": "forked"}
"""The cause of the waits that a measure covers; other measures cover all waits."""
_LONG_TERM_MEASURES = ("share-error",)
"""Measures that no single wait shows."""
_WAIT_OPACITY = 0.28
"""The opacity of a wait."""


def draw_comparison(
    name: str, comparison: PolicyComparison, policy: str, policy_trace: Trace, rival: Trace
) -> Chart:
    """Draws the comparison for a policy. `policy_trace`, `rival`: traces of the policy and of the typical one.

    Both time lines show the same interval: around the longest relevant wait of either policy, or
    for shares the second half.
    """
    activities = [_activity(policy_trace), _activity(rival)]
    span_shown = (
        _second_half(activities)
        if comparison.measure in _LONG_TERM_MEASURES
        else _around_longest_wait(activities, _WAIT_CAUSES.get(comparison.measure))
    )
    span = _readable_part(activities, span_shown, policy_trace.header.cpus)
    lanes = _lanes(activities, span)
    groups = sorted({group for activity in activities for group in activity["group"]})
    titles = (policy, comparison.typical)
    lines = [
        _time_line(title, activity, span, lanes, groups, policy_trace.header.tick_ns)
        for title, activity in zip(titles, activities, strict=True)
    ]
    return Chart(
        name,
        "",
        alt.vconcat(_draw_ranking(comparison, policy), *lines, spacing=18).resolve_scale(
            color="independent"
        ),
        pl.DataFrame(),
        "",
        "",
    )


def _draw_ranking(comparison: PolicyComparison, policy: str) -> Any:
    """Draws a row for each policy with its mean and its values."""
    objective = parse_objective(comparison.measure)
    shown = with_fitting_unit(objective.quantity, max(map(max, comparison.values.values())))
    drawn_min = comparison.noticeable * shown.factor or 1e-9
    rows = pl.DataFrame(
        [
            {
                "policy": name,
                "mean": max(comparison.mean(name) * shown.factor, drawn_min),
                "low": max(min(values) * shown.factor, drawn_min),
                "high": max(max(values) * shown.factor, drawn_min),
                "own": name == policy,
            }
            for name, values in comparison.values.items()
        ]
    ).sort("mean", "policy")
    from_least = rows["high"].max() / rows["low"].min() > _LOG_AXIS_RATIO  # type: ignore[operator]
    title = f"{objective.title} ({shown.unit})" if shown.unit else objective.title
    scale = alt.Scale(type="log") if from_least else alt.Scale(zero=True)
    x = alt.X("mean:Q", title=title, scale=scale, axis=alt.Axis(tickCount=6))
    y = alt.Y("policy:N", title=None, sort=rows["policy"].to_list(),
              axis=alt.Axis(ticks=False, domain=False, grid=True, labelOverlap=False))  # fmt: skip
    colour = alt.Color("own:N", legend=None,
                       scale=alt.Scale(domain=[True, False], range=[policy_look(policy).colour, SLATE]))  # fmt: skip
    base = chart_with_data(rows)
    low_bound = x.copy()
    low_bound["shorthand"] = "low:Q"
    return alt.layer(
        base.mark_rule(strokeWidth=1.5, aria=False).encode(low_bound, alt.X2("high:Q"), y, colour),
        base.mark_point(filled=True, size=55, opacity=1, aria=False).encode(x, y, colour),
    ).properties(width=WIDTH, height=_RANK_HEIGHT * len(rows))


def _activity(trace: Trace) -> pl.DataFrame:
    """Returns the states of the workload's processes in the window: label, group, state, begin_ns,
    end_ns since its begin.
    """
    processes = chart_processes(trace)
    window = Span(processes.window.begin_ns, processes.window.end_ns)
    begin = processes.window.begin_ns
    return (
        window.clip(processes.intervals())
        .filter(pl.col("role") == "workload", pl.col("state").is_in(["running", "runnable"]))
        .select(
            "label",
            "pid",
            "group",
            "state",
            pl.col("cause").cast(pl.String),
            pl.col("begin_ns", "end_ns") - begin,
        )
    )


def _second_half(activities: Sequence[pl.DataFrame]) -> Span:
    """Returns the second half of the time when there are processes under both policies."""
    end = min(int(activity.select(pl.col("end_ns").max()).item()) for activity in activities)
    return Span(end // 2, end)


def _around_longest_wait(activities: Sequence[pl.DataFrame], cause: str | None) -> Span:
    """Returns the longest wait with this cause, extended by a quarter of its length on both sides."""
    all_activity = pl.concat(activities)
    length = pl.col("end_ns") - pl.col("begin_ns")
    of_measure = pl.lit(True) if cause is None else pl.col("cause") == cause
    waits = all_activity.filter(pl.col("state") == "runnable", of_measure)
    wait = waits.sort(length, "begin_ns", descending=[True, False]).row(0, named=True)
    quarter = max((wait["end_ns"] - wait["begin_ns"]) // 4, 5_000_000)
    return Span(max(wait["begin_ns"] - quarter, 0), wait["end_ns"] + quarter)


def _readable_part(activities: Sequence[pl.DataFrame], span_shown: Span, cpus: int) -> Span:
    """Returns the beginning of the interval, if the whole interval has too many runs to distinguish."""
    runs = span_shown.clip(pl.concat(activities).filter(pl.col("state") == "running")).sort(
        "begin_ns"
    )
    most = 2 * _DRAWN_RUNS_MAX * cpus
    return (
        span_shown if len(runs) <= most else Span(span_shown.begin_ns, int(runs["begin_ns"][most]))
    )


def _lanes(activities: Sequence[pl.DataFrame], span: Span) -> list[str]:
    """Returns the processes with the longest waits, alternating between groups, sorted by group and PID."""
    shown = span.clip(pl.concat(activities))
    length = pl.col("end_ns") - pl.col("begin_ns")
    rows = (
        shown.group_by("label")
        .agg(
            pl.col("group", "pid").first(),
            waited=length.filter(pl.col("state") == "runnable").max().fill_null(0),
        )
        .sort("waited", "pid", descending=[True, False])
        .with_columns(turn=pl.int_range(pl.len()).over("group"))
        .sort("turn", "waited", "pid", descending=[False, True, False])
    )
    return rows.head(_LANES_MAX).sort("group", "pid")["label"].to_list()


def _time_line(
    title: str,
    activity: pl.DataFrame,
    span: Span,
    lanes: list[str],
    groups: list[str],
    tick_ns: int,
) -> Any:
    """Draws the runs and waits of these processes in the interval."""
    axis = TimeAxis(span, 0, "ms", tick_ns)
    drawn, _ = merge_for_page(
        span.clip(activity).filter(pl.col("label").is_in(lanes)), ["label", "state", "group"], span
    )
    loud = groups[: len(PALETTE) - 1]
    series = pl.when(pl.col("group").is_in(loud)).then("group").otherwise(pl.lit("others"))
    drawn = drawn.with_columns(series=series)
    styles = Styles(
        [*loud, *(["others"] if len(groups) > len(loud) else [])], policies=False, muted=["others"]
    )
    colour = styles.colour()
    colour["legend"] = None  # the rows show their groups
    y = row_axis("label", lanes, 0.15)
    layers = [
        axis.bars(
            drawn.filter(pl.col("state") == state),
            ["label", "series"],
            y,
            colour,
            opacity=opacity,
            aria=False,
        )
        for state, opacity in (("runnable", _WAIT_OPACITY), ("running", 1.0))
    ]
    return alt.layer(*layers).properties(
        width=WIDTH, height=_LANE_HEIGHT * len(lanes), title=alt.TitleParams(title, anchor="start")
    )
