# SPDX-License-Identifier: MIT
"""Jobs of tasks that have deadlines: when each was released and done, and how late it was
(docs/metrics.md)."""

from __future__ import annotations

import numpy as np
import polars as pl

from schedlab.metrics.columns import nullable
from schedlab.metrics.lives import LifeTable, attribute_at, lives
from schedlab.metrics.people import people
from schedlab.metrics.window import Window, measured_window
from schedlab.trace import AttributeKind, Facts, Kind, MarkKind, Trace
from schedlab.trace.model import Integers

SCHEMA = {
    "life": pl.Int64,
    "release_ns": pl.Int64,
    "done_ns": pl.Int64,
    "response_ns": pl.Int64,
    "deadline_ns": pl.Int64,
    "lateness_ns": pl.Int64,
}
WITHDRAWN = 0
"""The release in a MARK_JOB by which a process says that the job before it does not come."""


def jobs(trace: Trace) -> pl.DataFrame:
    """The jobs of the workload's processes that count in the window, by process, then release.

    Columns: pid, group, and those of SCHEMA; `deadline_ns` is a time of the trace, as
    release_ns and done_ns are. `done_ns` and `response_ns` are null if the job was not done by the
    window's end: then `lateness_ns` is what it was at that end.
    """
    who, window = lives(trace), measured_window(trace)
    workload = people(trace, who, window).filter(pl.col("role") == "workload")
    return workload.select("life", "pid", "group").join(
        jobs_of(trace, who, window), on="life", how="inner", maintain_order="left_right"
    )


def jobs_of(trace: Facts, who: LifeTable, window: Window) -> pl.DataFrame:
    """The jobs of all lives that count in the window; columns of SCHEMA."""
    marks = trace.rows(Kind.MARK)
    marks = marks[trace.at("first", marks) == MarkKind.JOB]
    if len(marks) == 0:
        return pl.DataFrame(schema=SCHEMA)
    life = who.life_at(trace.at("process", marks).astype(np.int64), marks)
    order = np.lexsort((marks, life))
    order = order[life[order] >= 0]
    life, row = life[order], marks[order]
    release = trace.at("second", row).astype(np.int64)
    done_row, withdrawn = _ends(who, life, row, release)
    valid = (release != WITHDRAWN) & ~withdrawn
    life, release, done_row = life[valid], release[valid], done_row[valid]
    undone = (done_row < 0) | (done_row > window.end_row)
    until_row = np.where(undone, window.end_row, done_row)
    within = _relative_deadline(trace, who, life, until_row)
    done = np.where(undone, window.end_ns, trace.at("time_ns", until_row)).astype(np.int64)
    deadline = release + within
    counts = (within > 0) & (release >= window.begin_ns) & (release <= window.end_ns)
    counts &= ~undone | (deadline < window.end_ns)
    return pl.DataFrame(
        {
            "life": life,
            "release_ns": release,
            "done_ns": nullable(done, undone),
            "response_ns": nullable(done - release, undone),
            "deadline_ns": deadline,
            "lateness_ns": done - deadline,
        },
        schema=SCHEMA,
    ).filter(pl.Series(counts))


def without_jobs() -> list[pl.Expr]:
    """The numbers of jobs and misses of what has none."""
    return [pl.col("jobs", "misses").fill_null(0)]


def _ends(
    who: LifeTable, life: Integers, row: Integers, release: Integers
) -> tuple[Integers, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Where the job of each mark is done: at its process's next one, or its end; -1: nowhere. And
    whether the next one withdraws it."""
    followed = np.append(life[1:] == life[:-1], False)
    following = np.append(np.arange(1, len(row)), 0)
    done_row = np.where(followed, row[following], who.exit_row[life])
    return done_row, followed & (release[following] == WITHDRAWN)


def _relative_deadline(trace: Facts, who: LifeTable, life: Integers, row: Integers) -> Integers:
    """From a job's release to its deadline, by the attributes that each life has at a row; 0: it has no
    deadline."""
    runtime, deadline, period = (
        attribute_at(trace, who, kind, life, row, 0, inherited=False)
        for kind in (AttributeKind.RUNTIME, AttributeKind.DEADLINE, AttributeKind.PERIOD)
    )
    shorter = (deadline > 0) & (deadline < period)
    deadlines: Integers = np.where(runtime > 0, np.where(shorter, deadline, period), 0)
    return deadlines
