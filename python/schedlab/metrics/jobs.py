# SPDX-License-Identifier: MIT
"""Computes release, completion and lateness of the jobs of tasks with deadlines (docs/metrics.md)."""

from __future__ import annotations

import numpy as np
import polars as pl

from schedlab.metrics.columns import nullable
from schedlab.metrics.lives import LifeTable, attribute_at, lives
from schedlab.metrics.processes import process_table
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
"""A MARK_JOB with this release withdraws the process's previous job."""


def jobs(trace: Trace) -> pl.DataFrame:
    """Returns the jobs of the workload's processes that count in the window, by process and release.

    Columns: pid, group, and those of SCHEMA. `deadline_ns` is a time of the trace, like release_ns
    and done_ns. If the window ended before the job, `done_ns` and `response_ns` are null, and
    `lateness_ns` is the lateness at that end.
    """
    life_table, window = lives(trace), measured_window(trace)
    workload = process_table(trace, life_table, window).filter(pl.col("role") == "workload")
    return workload.select("life", "pid", "group").join(
        jobs_of(trace, life_table, window), on="life", how="inner", maintain_order="left_right"
    )


def jobs_of(trace: Facts, life_table: LifeTable, window: Window) -> pl.DataFrame:
    """Returns the jobs of all lives that count in the window, with the columns of SCHEMA."""
    marks = trace.rows(Kind.MARK)
    marks = marks[trace.at("first", marks) == MarkKind.JOB]
    if len(marks) == 0:
        return pl.DataFrame(schema=SCHEMA)
    life = life_table.life_at(trace.at("process", marks).astype(np.int64), marks)
    order = np.lexsort((marks, life))
    order = order[life[order] >= 0]
    life, row = life[order], marks[order]
    release = trace.at("second", row).astype(np.int64)
    done_row, withdrawn = _ends(life_table, life, row, release)
    valid = (release != WITHDRAWN) & ~withdrawn
    life, release, done_row = life[valid], release[valid], done_row[valid]
    undone = (done_row < 0) | (done_row > window.end_row)
    until_row = np.where(undone, window.end_row, done_row)
    within = _relative_deadline(trace, life_table, life, until_row)
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
    """Sets the numbers of jobs and misses to 0 where they are null."""
    return [pl.col("jobs", "misses").fill_null(0)]


def _ends(
    life_table: LifeTable, life: Integers, row: Integers, release: Integers
) -> tuple[Integers, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Returns the row where the job of each mark is done, and whether the next mark withdraws the job.

    A job is done at its process's next mark or exit; −1 if there is neither.
    """
    followed = np.append(life[1:] == life[:-1], False)
    following = np.append(np.arange(1, len(row)), 0)
    done_row = np.where(followed, row[following], life_table.exit_row[life])
    return done_row, followed & (release[following] == WITHDRAWN)


def _relative_deadline(
    trace: Facts, life_table: LifeTable, life: Integers, row: Integers
) -> Integers:
    """Returns the time from a job's release to its deadline, by the attributes of each life at a
    row; 0 if there is no deadline.
    """
    runtime, deadline, period = (
        attribute_at(trace, life_table, kind, life, row, 0, inherited=False)
        for kind in (AttributeKind.RUNTIME, AttributeKind.DEADLINE, AttributeKind.PERIOD)
    )
    shorter = (deadline > 0) & (deadline < period)
    deadlines: Integers = np.where(runtime > 0, np.where(shorter, deadline, period), 0)
    return deadlines
