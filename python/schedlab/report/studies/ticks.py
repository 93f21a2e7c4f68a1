# SPDX-License-Identifier: MIT
"""Reads the running task of each tick of a CPU and its level, as study 4's kernel prints them."""

from collections import Counter

import numpy as np
import polars as pl

from schedlab.metrics import measured_window, state_intervals
from schedlab.trace import Kind, Trace
from schedlab.trace.model import Integers


def begin_tick(trace: Trace) -> int:
    """Returns the machine's tick at the start of the measured window; 0 without a mark."""
    return measured_window(trace).begin_ns // trace.header.tick_ns


def at_ticks(trace: Trace, pids: list[int]) -> pl.DataFrame:
    """Returns the ticks of the window whose middle was in a run of one of these tasks on CPU 0.

    Columns: tick (since the start of the window), machine_tick (since the machine's start), pid,
    level (the annotation of the pick). An annotation of 0 is not recorded. So level is null under
    policies without annotations, and 0 where others have none.
    """
    window = measured_window(trace)
    begin, end = window.begin_ns, window.end_ns
    tick_ns = trace.header.tick_ns
    ticks = np.arange(begin // tick_ns, end // tick_ns + 1)
    times, who, remarks = _picks(trace)
    place = np.searchsorted(times, ticks * tick_ns + tick_ns // 2, side="right") - 1
    is_known = (place >= 0) & (ticks * tick_ns + tick_ns // 2 <= end)
    ticks, place = ticks[is_known], place[is_known]
    rows = pl.DataFrame(
        {
            "tick": ticks - begin // tick_ns,
            "machine_tick": ticks,
            "pid": who[place],
            "level": remarks[place],
        }
    ).filter(pl.col("pid").is_in(pids))
    if bool((rows["level"] != 0).any()):
        return rows
    return rows.with_columns(level=pl.lit(None, pl.Int64))


def turns(ticks: pl.DataFrame) -> pl.DataFrame:
    """Returns the runs of consecutive ticks of one task on one level.

    Columns: begin (tick), pid, level, length (ticks).
    """
    changes = (
        pl.col("pid").ne_missing(pl.col("pid").shift())
        | pl.col("level").ne_missing(pl.col("level").shift())
        | (pl.col("tick") != pl.col("tick").shift() + 1)
    )
    return (
        ticks.with_columns(changes.fill_null(True).cum_sum().alias("turn"))
        .group_by("turn", maintain_order=True)
        .agg(
            pl.col("tick").first().alias("begin"),
            pl.col("pid").first(),
            pl.col("level").first(),
            pl.len().alias("length"),
        )
        .drop("turn")
    )


def drawn_turns(kind: str, ticks: pl.DataFrame) -> pl.DataFrame:
    """Returns the time slices for the chart of schedules, starting at tick 0.

    `ticks` has the columns tick, pid and level. Tasks are named A, B, C in the order of their PIDs.
    """
    first = ticks["tick"].min() or 0
    names = {pid: chr(ord("A") + index) for index, pid in enumerate(sorted(set(ticks["pid"])))}
    return (
        turns(ticks)
        .select(
            pl.lit(kind).alias("kind"),
            pl.format("level {}", "level").fill_null("").alias("row"),
            pl.col("pid").replace_strict(names, return_dtype=pl.String).alias("series"),
            (pl.col("begin") - first).cast(pl.Int64).alias("begin"),
            (pl.col("begin") - first + pl.col("length")).cast(pl.Int64).alias("end"),
        )
        .sort("row", "begin", descending=[True, False])
    )


def usual(values: pl.Series) -> tuple[int, float]:
    """Returns the most frequent of some integers, and its fraction of them; (0, 0) for none."""
    counted = Counter(values.to_list()).most_common(1)
    return (counted[0][0], counted[0][1] / len(values)) if counted else (0, 0.0)


def boosts(ticks: pl.DataFrame) -> list[int]:
    """Returns the machine's ticks when a task ran on the top level after a lower level."""
    levels = ticks["level"]
    if levels.null_count() == len(levels):
        return []
    top_level = levels.max()
    raised = ticks.filter((pl.col("level") == top_level) & (pl.col("level").shift() < top_level))
    return [int(tick) for tick in raised["machine_tick"]]


def waiting_by_level(trace: Trace, pids: list[int]) -> pl.DataFrame:
    """Returns the waiting time of these tasks by the level of the pick that ended the wait.

    Columns: level (0 also without an annotation), waiting_ns.
    """
    rows = trace.rows(Kind.SCHEDULER_ENTER, Kind.DECISION, Kind.SWITCH)
    rows = rows[np.argsort(trace.column("cpu")[rows], kind="stable")]
    kind, second = trace.column("kind")[rows], trace.column("second")[rows].astype(np.int64)
    switches = np.flatnonzero(kind == Kind.SWITCH)
    remarked = (switches > 0) & (kind[switches - 1] == Kind.DECISION)
    picked = pl.DataFrame(
        {"end_row": rows[switches], "level": np.where(remarked, second[switches - 1], 0)}
    )
    return (
        state_intervals(trace)
        .filter((pl.col("state") == "runnable") & pl.col("pid").is_in(pids))
        .join(picked.cast({"end_row": pl.Int64}), on="end_row")
        .group_by("level")
        .agg((pl.col("end_ns") - pl.col("begin_ns")).sum().alias("waiting_ns"))
        .sort("level")
    )


def _picks(trace: Trace) -> tuple[Integers, Integers, Integers]:
    """Returns the times when CPU 0 left the scheduler, the chosen tasks,
    and the annotations (0 for none).
    """
    rows = trace.rows(Kind.SCHEDULER_ENTER, Kind.DECISION, Kind.SCHEDULER_EXIT)
    rows = rows[trace.column("cpu")[rows] == 0]
    kind, second = trace.column("kind")[rows], trace.column("second")[rows].astype(np.int64)
    exits = np.flatnonzero(kind == Kind.SCHEDULER_EXIT)
    remarked = (exits > 0) & (kind[exits - 1] == Kind.DECISION)
    remarks = np.where(remarked, second[exits - 1], 0)
    return trace.column("time_ns")[rows[exits]], trace.column("process")[rows[exits]], remarks
