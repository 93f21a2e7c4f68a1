# SPDX-License-Identifier: MIT
"""Finds the waits that a chart marks: starvation and priority inversion (docs/charts.md)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab.metrics.lives import attribute_at
from schedlab.report.charts.levels import find_stays, serves_highest_first
from schedlab.report.charts.processes import ChartProcesses, Span
from schedlab.report.charts.shares import running_time_until
from schedlab.trace import AttributeKind

STARVING_TICKS = 50
"""Starvation is a wait of more ticks than this per ready task and CPU."""
READY_MIN = 2
PRIORITY_DEFAULT = 5
"""The value of PRIORITY_DEFAULT in policies/policy.h."""
INVERSION_SCHEMA = {"life": pl.Int64, "begin_ns": pl.Int64, "end_ns": pl.Int64, "behind": pl.String}


@dataclass(frozen=True)
class Activity:
    """The states of the workload's tasks in the measured window, and the policy's ranking."""

    intervals: pl.DataFrame
    """The intervals of the workload's tasks. Runs are split at each pick of the task.

    `level`: for a run, the level at its pick; for a wait, the level at the next pick; null if
    unknown. `waker`: if a wake-up ends the interval, the waker's PID (0 for an interrupt); else
    null.
    """
    criterion: str
    """The ranking criterion: "priority", "level", or "" for none."""
    ranks: pl.DataFrame
    """`intervals` with `rank`. Lower ranks run first; null if unknown."""


def find_activity(processes: ChartProcesses) -> Activity:
    """Returns the tasks' activity and ranks.

    The rank is the priority if the workload's tasks have different priorities. Otherwise the rank
    is the level, if the policy annotates its picks.
    """
    stays = find_stays(processes)
    woken = pl.col("cause").cast(pl.String).shift(-1).over("life") == "woken"
    workload_intervals = (
        processes.intervals()
        .filter(pl.col("role") == "workload")
        .with_columns(waker=pl.when(woken).then(pl.col("by").shift(-1).over("life")))
    )
    window_intervals = _clip_to_window(processes, _add_levels(workload_intervals, stays))
    life, row = (window_intervals[name].to_numpy() for name in ("life", "begin_row"))
    priority = attribute_at(
        processes.trace, processes.life_table, AttributeKind.PRIORITY, life, row, PRIORITY_DEFAULT
    )
    ranks = pl.Series("rank", priority, dtype=pl.Int64)
    if ranks.n_unique() > 1:
        return Activity(window_intervals, "priority", window_intervals.with_columns(ranks))
    if window_intervals["level"].null_count() == len(window_intervals):
        return Activity(
            window_intervals, "", window_intervals.with_columns(rank=pl.lit(None, pl.Int64))
        )
    sign = -1 if serves_highest_first(stays) else 1
    level_rank = pl.col("picked") * sign
    # The trace has no level for a waiting task, so assume the worse of its last and next levels.
    worse_rank = pl.max_horizontal(
        level_rank.forward_fill().over("life"), level_rank.backward_fill().over("life")
    )
    rank = pl.when(pl.col("state") == "running").then(level_rank).otherwise(worse_rank)
    return Activity(window_intervals, "level", window_intervals.with_columns(rank=rank))


def _clip_to_window(processes: ChartProcesses, intervals: pl.DataFrame) -> pl.DataFrame:
    """Returns the parts of intervals within the measured window."""
    return Span(processes.window.begin_ns, processes.window.end_ns).clip(intervals)


def _add_levels(intervals: pl.DataFrame, stays: pl.DataFrame) -> pl.DataFrame:
    """Splits running intervals at each pick of the task. Column `picked`: the level of each part."""
    runs = intervals.filter(pl.col("state") == "running").sort("life", "begin_ns")
    picks = stays.select("life", "row", at="begin_ns", picked="level").sort("life", "at")
    pieces = (
        picks.join_asof(
            runs.with_row_index("run"),
            left_on="at", right_on="begin_ns", by="life", strategy="backward",
            coalesce=False, check_sortedness=False,
        )
        .filter(pl.col("at") < pl.col("end_ns"))
        .with_columns(first=pl.int_range(pl.len()).over("run") == 0)
        .with_columns(
            begin_ns=pl.when("first").then("begin_ns").otherwise("at"),
            begin_row="row",
            end_ns=pl.coalesce(pl.col("at").shift(-1).over("run"), "end_ns"),
        )
    )  # fmt: skip
    without_level = runs.with_row_index("run").join(pieces, on="run", how="anti").drop("run")
    columns = [*intervals.columns, "picked"]
    return (
        pl.concat(
            [
                intervals.filter(pl.col("state") != "running"),
                pieces.select(columns),
                without_level,
            ],
            how="diagonal",
        )
        .sort("life", "begin_ns", "begin_row")
        .with_columns(level=pl.col("picked").backward_fill().over("life"))
    )


def find_starvation(processes: ChartProcesses) -> pl.DataFrame:
    """Returns the waits of the workload that are starvation: life, begin_ns, end_ns.

    Such a wait exceeds STARVING_TICKS ticks times the number of ready tasks (running or waiting)
    per CPU. The number of ready tasks is the mean during the wait, and at least READY_LEAST.
    """
    intervals = _clip_to_window(processes, processes.intervals())
    ready = intervals.filter(pl.col("state").is_in(["runnable", "running"]))
    waits = intervals.filter((pl.col("state") == "runnable") & (pl.col("role") == "workload"))
    least = STARVING_TICKS * READY_MIN * processes.trace.header.tick_ns
    waits = waits.filter(pl.col("end_ns") - pl.col("begin_ns") > least)
    begin, end = (waits[name].to_numpy().astype(np.float64) for name in ("begin_ns", "end_ns"))
    until_begin, until_end = (
        running_time_until(ready["begin_ns"].to_numpy(), ready["end_ns"].to_numpy(), times)
        for times in (begin, end)
    )
    length = np.maximum(end - begin, 1)
    ready_per_cpu = (until_end - until_begin) / length / processes.trace.header.cpus
    limit = STARVING_TICKS * processes.trace.header.tick_ns * np.maximum(ready_per_cpu, READY_MIN)
    return waits.filter(pl.Series(length > limit)).select("life", "begin_ns", "end_ns")


def find_inversions(processes: ChartProcesses, activity: Activity) -> pl.DataFrame:
    """Returns priority inversions: life, begin_ns, end_ns, `behind`.

    In an inversion, a task waits for a CPU, or is blocked until a waiting task of worse rank wakes
    it. During this time, a task of worse rank runs for longer than a tick without a break.
    `behind`: "" if the task itself waits for a CPU, otherwise the label of the task that blocks it.
    """
    if not activity.criterion:
        return pl.DataFrame(schema=INVERSION_SCHEMA)
    tick = processes.trace.header.tick_ns
    ranked = activity.ranks.drop_nulls("rank")
    runs = ranked.filter(pl.col("state") == "running")
    waiting = ranked.filter(pl.col("state") == "runnable").select(
        "life", "begin_ns", "end_ns", "rank", behind=pl.lit("")
    )
    if activity.criterion == "priority":
        waiting = pl.concat([waiting, _find_blocked_waits(processes, ranked)])
    waiting = waiting.filter(pl.col("end_ns") - pl.col("begin_ns") > tick)
    inverted = [
        (life, begin, end, behind)
        for (rank,), rows in waiting.sort("rank").group_by("rank", maintain_order=True)
        for union in [_merge_intervals(runs.filter(pl.col("rank") > rank))]
        for life, since, until, behind in rows.select(
            "life", "begin_ns", "end_ns", "behind"
        ).iter_rows()
        for begin, end in _overlaps(union, since, until)
        if end - begin > tick
    ]
    return pl.DataFrame(inverted, schema=INVERSION_SCHEMA, orient="row").sort("life", "begin_ns")


def _find_blocked_waits(processes: ChartProcesses, ranked: pl.DataFrame) -> pl.DataFrame:
    """Returns where a task is blocked until a task of worse rank wakes it,
    and that task waits for a CPU.
    """
    blocked = ranked.filter((pl.col("state") == "blocked") & (pl.col("waker") > 0))
    wakers = processes.life_table.life_at(
        blocked["waker"].to_numpy(), blocked["end_row"].to_numpy()
    )
    waits = ranked.filter(pl.col("state") == "runnable").select(
        waker_life="life", since="begin_ns", until="end_ns", waker_rank="rank", behind="label"
    )
    return (
        blocked.with_columns(waker_life=pl.Series(wakers, dtype=pl.Int64))
        .join(waits, on="waker_life", maintain_order="left")
        .filter(
            (pl.col("waker_rank") > pl.col("rank"))
            & (pl.col("since") < pl.col("end_ns"))
            & (pl.col("until") > pl.col("begin_ns"))
        )
        .select(
            "life",
            pl.max_horizontal("begin_ns", "since").alias("begin_ns"),
            pl.min_horizontal("end_ns", "until").alias("end_ns"),
            "rank",
            "behind",
        )
    )


IntervalUnion = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def _merge_intervals(runs: pl.DataFrame) -> IntervalUnion:
    """Returns the beginnings and ends of the union of intervals."""
    ordered = runs.sort("begin_ns")
    begin, end = ordered["begin_ns"].to_numpy(), ordered["end_ns"].to_numpy()
    latest = np.maximum.accumulate(end) if len(end) else end
    starts = np.flatnonzero(np.append(True, begin[1:] > latest[:-1])) if len(begin) else begin
    return begin[starts], latest[np.append(starts[1:], len(begin)) - 1] if len(begin) else end


def _overlaps(union: IntervalUnion, since: int, until: int) -> list[tuple[int, int]]:
    """Returns the parts of the union between two times, in ns."""
    begin, end = union
    first, last = np.searchsorted(end, since, "right"), np.searchsorted(begin, until, "left")
    return [
        (max(int(begin[index]), since), min(int(end[index]), until)) for index in range(first, last)
    ]
