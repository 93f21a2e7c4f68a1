# SPDX-License-Identifier: MIT
"""Tests jobs on cases computed by hand: which ones count, when they are done, and how late."""

from __future__ import annotations

import pytest

from schedlab.commands.metric_tables import tables
from schedlab.metrics import compute, jobs
from schedlab.trace import AttributeKind, Kind, MarkKind, Trace
from trace_simulator import Record, Script, load

Row = tuple[int, Kind, int, int, int]
RESERVED: tuple[Row, ...] = (
    (100, Kind.ATTRIBUTE, 2, AttributeKind.RUNTIME, 10),
    (100, Kind.ATTRIBUTE, 2, AttributeKind.PERIOD, 100),
)


def job(time: int, release: int) -> Row:
    """Process 2 reports the time of its next job."""
    return (time, Kind.MARK, 2, MarkKind.JOB, release)


def measured(*story: Row, end_ns: int = 1000) -> Trace:
    """Returns metrics: a root forks 2, which runs from 100; the window is from 100 to the end."""
    rows: list[Row] = [
        (0, Kind.START, 0, 0, 0),
        (0, Kind.FORK, 0, 1, 0),
        (0, Kind.SWITCH, 1, 0, 0),
        (100, Kind.MARK, 1, MarkKind.BEGIN, 0),
        (100, Kind.FORK, 1, 2, 0),
        (100, Kind.BLOCK, 1, 2, 0),
        (100, Kind.SWITCH, 2, 1, 3),
        *story,
        (end_ns, Kind.MARK, 2, MarkKind.END, 0),
    ]
    rows.append((end_ns, Kind.END, 0, 0, len(rows) + 1))
    records = [
        Record(time, number, process, kind, 0, first, second)
        for number, (time, kind, process, first, second) in enumerate(rows)
    ]
    return load(records, Script(cpus=1))


def test_a_job_is_done_at_the_next_mark() -> None:
    trace = measured(*RESERVED, job(100, 100), job(180, 200), job(330, 330), job(400, 0))
    job_table = jobs(trace)
    assert job_table.select("pid", "release_ns", "done_ns", "response_ns").rows() == [
        (2, 100, 180, 80),
        (2, 200, 330, 130),
    ]  # the job of 330 was withdrawn
    assert job_table["lateness_ns"].to_list() == [-20, 30]
    (row,) = compute(trace).processes.filter(pid=2).to_dicts()
    assert (row["jobs"], row["misses"], row["miss_share"]) == (2, 1, 0.5)
    assert (row["lateness_mean_ns"], row["lateness_max_ns"]) == (5, 30)
    assert (row["tardiness_mean_ns"], row["job_response_max_ns"]) == (15, 130)
    assert compute(trace).summary["misses"].to_list() == [1]


@pytest.mark.parametrize(("deadline", "lateness"), [(0, -20), (30, 50), (100, -20), (101, -20)])
def test_a_deadline_is_within_the_period(deadline: int, lateness: int) -> None:
    shorter: Row = (100, Kind.ATTRIBUTE, 2, AttributeKind.DEADLINE, deadline)
    job_table = jobs(measured(*RESERVED, shorter, job(100, 100), job(180, 0), job(190, 0)))
    assert job_table["lateness_ns"].to_list() == []
    job_table = jobs(measured(*RESERVED, shorter, job(100, 100), job(180, 5000)))
    assert job_table["lateness_ns"].to_list() == [lateness]


def test_a_job_that_is_not_done_is_missed_once_its_deadline_is_over() -> None:
    job_table = jobs(measured(*RESERVED, job(100, 850)))
    assert job_table.select("done_ns", "response_ns", "lateness_ns").rows() == [(None, None, 50)]
    assert jobs(measured(*RESERVED, job(100, 950))).is_empty()


def test_a_task_without_runtime_has_no_jobs() -> None:
    trace = measured(RESERVED[1], job(100, 100), job(180, 200))
    assert jobs(trace).is_empty()
    (row,) = compute(trace).summary.to_dicts()
    assert (row["jobs"], row["misses"], row["miss_share"]) == (0, 0, None)


def test_a_child_does_not_inherit_deadlines() -> None:
    """This follows policies/support/attributes.h."""
    forked: tuple[Row, ...] = (
        (110, Kind.FORK, 2, 3, 0),
        (120, Kind.BLOCK, 2, 2, 0),
        (120, Kind.SWITCH, 3, 2, 3),
        (120, Kind.MARK, 3, MarkKind.JOB, 120),
        (300, Kind.MARK, 3, MarkKind.JOB, 300),
        (300, Kind.WAKEUP, 2, 0, 0),
        (300, Kind.BLOCK, 3, 1, 0),
        (300, Kind.SWITCH, 2, 3, 3),
    )
    assert jobs(measured(*RESERVED, *forked)).is_empty()


def test_tables_show_deadlines_if_jobs_exist() -> None:
    def sections(trace: Trace) -> list[str]:
        (overall, groups) = tables([("here", compute(trace))])
        return [str(cell) for table in (overall, groups) for cell in table.columns[1].cells]

    late = measured(*RESERVED, job(100, 100), job(250, 300))
    assert sections(late).count("missed, of jobs") == 2
    assert "missed, of jobs" not in sections(measured())
