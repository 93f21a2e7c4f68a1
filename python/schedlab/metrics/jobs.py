# SPDX-License-Identifier: MIT
"""Computes release, completion and lateness of the jobs of tasks with deadlines (docs/metrics.md)."""

import numpy as np
import polars as pl

from schedlab.metrics.columns import nullable
from schedlab.metrics.lives import LifeTable, attribute_at, lives
from schedlab.metrics.processes import process_table
from schedlab.metrics.window import Windows, measured_window
from schedlab.trace import AttributeKind, Kind, MarkKind, Trace, TraceFacts
from schedlab.trace.joined import facts_of_run
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
"""Release time in a MARK_JOB that withdraws the process's previous job."""


def jobs(trace: Trace) -> pl.DataFrame:
    """Returns the workload's jobs that count in the window, sorted by process and release.

    Columns: pid, group, and those of SCHEMA. All times but response and lateness are times of the
    trace. If a job was not done when the window ended, `done_ns` and `response_ns` are null, and
    `lateness_ns` is its lateness at that time.
    """
    life_table, window = lives(trace), measured_window(trace)
    workload = process_table(trace, life_table, window).filter(pl.col("role") == "workload")
    return workload.select("life", "pid", "group").join(
        jobs_of(trace, life_table, Windows([window], facts_of_run(trace))),
        on="life",
        how="inner",
        maintain_order="left_right",
    )


def jobs_of(trace: TraceFacts, life_table: LifeTable, windows: Windows) -> pl.DataFrame:
    """Returns the jobs of all processes that count in the windows, with the columns of SCHEMA."""
    marks = trace.rows(Kind.MARK)
    marks = marks[trace.at("first", marks) == MarkKind.JOB]
    if len(marks) == 0:
        return pl.DataFrame(schema=SCHEMA)
    life = life_table.life_at(trace.at("process", marks).astype(np.int64), marks)
    order = np.lexsort((marks, life))
    order = order[life[order] >= 0]
    life, row = life[order], marks[order]
    release = trace.at("second", row).astype(np.int64)
    done_row, withdrawn = _job_ends(life_table, life, row, release)
    valid = (release != WITHDRAWN) & ~withdrawn
    life, release, done_row = life[valid], release[valid], done_row[valid]
    run = windows.runs.of_pids(life_table.pid[life])
    end_row, end_ns = windows.end_row[run], windows.end_ns[run]
    undone = (done_row < 0) | (done_row > end_row)
    until_row = np.where(undone, end_row, done_row)
    within = _relative_deadline(trace, life_table, life, until_row)
    done = np.where(undone, end_ns, trace.at("time_ns", until_row)).astype(np.int64)
    deadline = release + within
    is_counted = (within > 0) & (release >= windows.begin_ns[run]) & (release <= end_ns)
    is_counted &= ~undone | (deadline < end_ns)
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
    ).filter(pl.Series(is_counted))


def _job_ends(
    life_table: LifeTable, life: Integers, row: Integers, release: Integers
) -> tuple[Integers, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Returns the row where each job is done, and whether the job is withdrawn.

    A job is done at its process's next mark or exit; −1 if there is neither. It is withdrawn if the
    next mark is WITHDRAWN.
    """
    followed = np.append(life[1:] == life[:-1], False)
    following = np.append(np.arange(1, len(row)), 0)
    done_row = np.where(followed, row[following], life_table.exit_row[life])
    return done_row, followed & (release[following] == WITHDRAWN)


def _relative_deadline(
    trace: TraceFacts, life_table: LifeTable, life: Integers, row: Integers
) -> Integers:
    """Returns the time (ns) from release to deadline by the process's attributes at a row; 0
    without a deadline.
    """
    runtime, deadline, period = (
        attribute_at(trace, life_table, kind, life, row, 0, inherited=False)
        for kind in (AttributeKind.RUNTIME, AttributeKind.DEADLINE, AttributeKind.PERIOD)
    )
    shorter = (deadline > 0) & (deadline < period)
    deadlines: Integers = np.where(runtime > 0, np.where(shorter, deadline, period), 0)
    return deadlines
