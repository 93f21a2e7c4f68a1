# SPDX-License-Identifier: MIT
"""Draws each group's share of the CPUs over time, and its ideal share."""

from typing import Any

import altair as alt
import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab.base.display.numbers import percent
from schedlab.metrics import compute
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
from schedlab.report.charts.processes import Span, TimeAxis, chart_processes, chart_span
from schedlab.report.charts.theme import WIDTH
from schedlab.report.model import Chart
from schedlab.trace import Trace

TIME_CELLS = 300
"""Number of points of a curve."""
SLIDING_TICKS = 50
GROUPS_MAX = 8
SETTLING_FRACTION = 0.04
"""Fraction of the length before which shares fluctuate, and may exceed the axis."""
IDEAL_DASH = [5, 3]
Floats = npt.NDArray[np.float64]


def shares_over_time(
    name: str,
    trace: Trace,
    *,
    title: str,
    caption: str,
    sliding_ticks: int = SLIDING_TICKS,
) -> Chart:
    """Draws each group's share of the workload's CPU time: since the start, and in a sliding window.

    Thick lines are shares since the start of the window. Thin lines are shares over the last
    `sliding_ticks` (0: no thin lines). Dashed lines are ideal shares in the whole window
    (schedlab.metrics). If there are more than GROUPS_MAX groups, those with the most CPU time are
    drawn.
    """
    processes = chart_processes(trace)
    span = chart_span(processes.window, None, None)
    axis = TimeAxis(span, processes.window.begin_ns, "ticks", trace.header.tick_ns)
    running = span.clip(processes.running().filter(pl.col("role") == "workload"))
    if running.is_empty():
        raise NothingToDraw(
            f"chart {name}: no process of the workload ran in the measured time; choose another run"
        )
    sliding_ns = sliding_ticks * trace.header.tick_ns
    share_rows = _shares_by_group(running, span, sliding_ns)
    metrics = compute(trace).groups
    ideal = dict(metrics.select("group", "ideal_share").drop_nulls().iter_rows())
    data = share_rows.with_columns(
        ideal_share=pl.col("group").replace_strict(ideal, default=None, return_dtype=pl.Float64)
    )
    running_times = running.group_by("group").agg(
        (pl.col("end_ns") - pl.col("begin_ns")).sum().alias("ran")
    )
    groups_by_time = running_times.sort("ran", "group", descending=[True, False])["group"].to_list()
    drawn_groups = sorted(groups_by_time[:GROUPS_MAX])
    return Chart(
        name,
        title,
        _draw(
            data.filter(pl.col("group").is_in(drawn_groups)), axis, drawn_groups, bool(sliding_ns)
        ),
        data,
        join_sentences(
            caption, *_caption_notes(len(groups_by_time), len(drawn_groups), sliding_ticks)
        ),
        _describe(data, drawn_groups),
    )


def running_time_until(begin: npt.ArrayLike, end: npt.ArrayLike, times: Floats) -> Floats:
    """Returns the total length of intervals up to each time, exactly: Σ
    min(max(t − begin, 0), length).

    This equals Σ (t − begin) over started intervals minus Σ (t − end) over ended ones.
    """
    return _elapsed_since(np.sort(np.asarray(begin, float)), times) - _elapsed_since(
        np.sort(np.asarray(end, float)), times
    )


def _elapsed_since(moments: Floats, times: Floats) -> Floats:
    """Returns Σ (t − moment) over the moments up to each time t, in `times`."""
    count = np.searchsorted(moments, times, side="right")
    sums = np.concatenate(([0.0], np.cumsum(moments)))
    elapsed: Floats = count * times - sums[count]
    return elapsed


def _shares_by_group(running: pl.DataFrame, span: Span, sliding_ns: int) -> pl.DataFrame:
    """Returns time_ns, group, share since the start, share over the last `sliding_ns`."""
    times = np.linspace(0, span.length_ns, TIME_CELLS + 1)
    by_group = {
        str(group): (
            (rows["begin_ns"] - span.begin_ns).to_numpy(),
            (rows["end_ns"] - span.begin_ns).to_numpy(),
        )
        for (group,), rows in running.sort("group").group_by("group", maintain_order=True)
    }
    running_time = {group: running_time_until(*ends, times) for group, ends in by_group.items()}
    sliding_begin = np.maximum(times - sliding_ns, 0)
    sliding_times = {
        group: running_time[group] - running_time_until(*ends, sliding_begin)
        for group, ends in by_group.items()
    }
    total, total_sliding = sum(running_time.values()), sum(sliding_times.values())
    # Before its full length has passed, the sliding window would equal the share since the start.
    window_is_full = times >= sliding_ns if sliding_ns else np.zeros(len(times), bool)
    frames = [
        pl.DataFrame(
            {
                "time_ns": (span.begin_ns + times).round().astype(np.int64),
                "group": pl.Series([group] * len(times), dtype=pl.String),
                "share": _quotients(running_time[group], total),
                "sliding_share": np.where(
                    window_is_full, _quotients(sliding_times[group], total_sliding), np.nan
                ),
            }
        )
        for group in by_group
    ]
    return pl.concat(frames).fill_nan(None)


def _quotients(of: Floats, total: Any) -> Floats:
    """Returns the quotients; NaN where the total is 0."""
    part: Floats = np.divide(of, total, out=np.full_like(of, np.nan), where=np.asarray(total) > 0)
    return part


def _draw(data: pl.DataFrame, axis: TimeAxis, groups: list[str], sliding: bool) -> Any:
    """Draws the shares of all groups. `sliding`: also draws the shares in the sliding window."""
    styles = Styles(groups, policies=False)
    hundred = [(pl.col(name) * 100) for name in ("share", "sliding_share", "ideal_share")]
    rows = data.select(*axis.embed("time_ns"), *hundred, series="group")
    drawn = chart_with_data(rows, digits=4).transform_calculate(at=axis.in_units("time"))
    chosen = legend_selection()
    x = axis.x("at")
    y = alt.Y(
        "share:Q",
        title="share of CPU time (%)",
        scale=alt.Scale(domain=[0, _axis_end(data) * 100]),
        axis=alt.Axis(format=NUMBER_FORMAT),
    )
    tooltip = [
        alt.Tooltip("series:N", title="group"),
        alt.Tooltip("at:Q", title=f"at ({axis.unit})", format=NUMBER_FORMAT),
        alt.Tooltip("share:Q", title="since the beginning (%)"),
        alt.Tooltip("sliding_share:Q", title="recently (%)"),
        alt.Tooltip("ideal_share:Q", title="ideal (%)"),
    ]
    late = drawn.mark_line(strokeWidth=1, clip=True).encode(
        x,
        alt.Y("sliding_share:Q"),
        styles.colour(symbolSize=STROKE_SIZE),
        opacity=opacity_if(chosen, 0.45),
    )
    ideal = drawn.mark_line(strokeWidth=1.5, strokeDash=IDEAL_DASH).encode(
        x, alt.Y("ideal_share:Q"), styles.colour(symbolSize=STROKE_SIZE), opacity=opacity_if(chosen)
    )
    total_line = drawn.mark_line(strokeWidth=2.5, clip=True).encode(
        x, y, styles.colour(symbolSize=STROKE_SIZE), opacity=opacity_if(chosen), tooltip=tooltip
    )
    return alt.layer(*([late] if sliding else []), ideal, total_line.add_params(chosen)).properties(
        width=WIDTH, height=300
    )


def _axis_end(data: pl.DataFrame) -> float:
    """Returns the end of the axis. Early shares, when few tasks have run, may exceed it."""
    begin = data["time_ns"].min()
    length: Any = data["time_ns"].max() - begin  # type: ignore[operator]
    settled = data.filter(pl.col("time_ns") >= begin + SETTLING_FRACTION * length)
    most = settled.select(pl.max_horizontal(pl.max("share", "sliding_share", "ideal_share"))).item()
    return min(float(most or 1.0) * 1.1, 1.0)


def _caption_notes(groups: int, shown: int, sliding_ticks: int) -> list[str]:
    """Returns the sentences of the caption on omitted groups and on the sliding window."""
    return [
        "Thick: the share since the beginning; dashed: the ideal share.",
        f"Thin: the share over the last {sliding_ticks} ticks." if sliding_ticks else "",
        f"The {shown} of {groups} groups that ran most." if shown < groups else "",
    ]


def _describe(data: pl.DataFrame, groups: list[str]) -> str:
    """Returns the chart's description for readers who cannot see it."""
    last_shares = data.filter(pl.col("time_ns") == pl.col("time_ns").max())
    texts = [
        f"{row['group']} {percent(row['share'])} (ideal {percent(row['ideal_share'])})"
        for row in last_shares.to_dicts()
        if row["group"] in groups
    ]
    return "Shares of CPU time by group over time; at the end: " + ", ".join(texts) + "."
