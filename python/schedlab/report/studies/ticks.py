# SPDX-License-Identifier: MIT
"""Who ran at each tick of one CPU, and on which level: what study 4's kernel printed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl

from schedlab.metrics import state_intervals
from schedlab.trace import Kind, MarkKind, Trace
from schedlab.trace.model import Integers


def begin_tick(trace: Trace) -> int:
    """The machine's tick in which what is measured begins; 0 without a mark."""
    return int(_window(trace)[0]) // trace.header.tick_ns


def at_ticks(trace: Trace, pids: list[int], cpu: int = 0) -> pl.DataFrame:
    """The ticks in the window at whose middle one of these processes ran.

    Columns: tick (from the window's beginning), machine_tick (from the machine's start), pid,
    level: what the policy remarked when it picked it. A remark of 0 is not recorded, so level is
    null all through under policies that never say anything, and 0 where others say nothing.
    """
    begin, end = _window(trace)
    tick_ns = trace.header.tick_ns
    ticks = np.arange(begin // tick_ns, end // tick_ns + 1)
    times, who, remarks = _picks(trace, cpu)
    place = np.searchsorted(times, ticks * tick_ns + tick_ns // 2, side="right") - 1
    known = (place >= 0) & (ticks * tick_ns + tick_ns // 2 <= end)
    ticks, place = ticks[known], place[known]
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
    """One row for each time that a process had the CPU for ticks on end, on one level.

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
    """The turns as the chart of schedules takes them: of ticks with the columns tick, pid and level, from tick 0 on.
    Processes are called A, B, C in the order of their PIDs."""
    first = ticks["tick"].min() or 0
    names = {pid: chr(ord("A") + place) for place, pid in enumerate(sorted(set(ticks["pid"])))}
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
    """The commonest of some whole numbers, and what part of them it is; of none: (0, 0)."""
    counted = Counter(values.to_list()).most_common(1)
    return (counted[0][0], counted[0][1] / len(values)) if counted else (0, 0.0)


def boosts(ticks: pl.DataFrame) -> list[int]:
    """The machine's ticks from which on a process ran on the top level again, after a lower one."""
    levels = ticks["level"]
    if levels.null_count() == len(levels):
        return []
    top = levels.max()
    raised = ticks.filter((pl.col("level") == top) & (pl.col("level").shift() < top))
    return [int(tick) for tick in raised["machine_tick"]]


def waiting_by_level(trace: Trace, pids: list[int]) -> pl.DataFrame:
    """How long these processes waited for a CPU, by the level on which they were picked then.

    Columns: level (0 also where the policy said nothing), waiting_ns.
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


def _window(trace: Trace) -> tuple[int, int]:
    """Its times: between the first two marks, or else the whole trace."""
    marks = trace.events.filter(pl.col("kind") == int(Kind.MARK))
    begins = marks.filter(pl.col("first") == int(MarkKind.BEGIN))["time_ns"]
    begin = int(begins[0]) if len(begins) else trace.begin_ns
    ends = marks.filter((pl.col("first") == int(MarkKind.END)) & (pl.col("time_ns") >= begin))[
        "time_ns"
    ]
    return begin, int(ends[0]) if len(ends) else trace.end_ns


def _picks(trace: Trace, cpu: int) -> tuple[Integers, Integers, Integers]:
    """The times at which a CPU left the scheduler, the process that it chose, and the policy's
    remark; 0: none."""
    rows = trace.rows(Kind.SCHEDULER_ENTER, Kind.DECISION, Kind.SCHEDULER_EXIT)
    rows = rows[trace.column("cpu")[rows] == cpu]
    kind, second = trace.column("kind")[rows], trace.column("second")[rows].astype(np.int64)
    exits = np.flatnonzero(kind == Kind.SCHEDULER_EXIT)
    remarked = (exits > 0) & (kind[exits - 1] == Kind.DECISION)
    remarks = np.where(remarked, second[exits - 1], 0)
    return trace.column("time_ns")[rows[exits]], trace.column("process")[rows[exits]], remarks
