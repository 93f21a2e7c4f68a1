# SPDX-License-Identifier: MIT
"""Tests lanes of processes, and the waits marked in them, on small traces with known figures."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings

from schedlab.metrics import compute
from schedlab.report import charts
from schedlab.report.charts.processes import chart_processes
from schedlab.report.charts.waits import find_activity, find_inversions, find_starvation
from schedlab.report.model import Chart
from schedlab.trace import AttributeKind, Kind, MarkKind, PreemptReason, ProcessState, Trace
from test_charts import TRACES, WORDS
from trace_simulator import PATIENT, Record, Script, load

MS = 1_000_000


class Story:
    """Builds a trace, act by act, of a machine with a tick of 1 ms; process 1 is the root."""

    def __init__(self, policy: str = "rr", cpus: int = 1) -> None:
        self.records: list[Record] = []
        self.running = [0] * cpus
        for cpu in range(cpus):
            self.emit(0, Kind.START, cpu=cpu)
        self.emit(0, Kind.POLICY, second=int.from_bytes(policy.encode()[:8], "little"))
        self.emit(0, Kind.FORK, 0, 1)
        self.run(0, 1)
        self.emit(0, Kind.MARK, 1, int(MarkKind.BEGIN))

    def emit(
        self, at: float, kind: Kind, process: int = 0, first: int = 0, second: int = 0, cpu: int = 0
    ) -> None:
        number = len(self.records)
        self.records.append(Record(round(at * MS), number, process, kind, cpu, first, second))

    def fork(self, at: float, pid: int, group: str = "", priority: int | None = None) -> None:
        """The root forks it."""
        self.emit(at, Kind.FORK, 1, pid)
        if priority is not None:
            self.emit(at, Kind.ATTRIBUTE, pid, int(AttributeKind.PRIORITY), priority)

    def run(
        self, at: float, pid: int, *, level: int = 0, cpu: int = 0, blocks: bool = False
    ) -> None:
        """Starts this process (0: none); the previous one becomes runnable or blocked."""
        before = self.running[cpu]
        if before and blocks:
            self.emit(at, Kind.BLOCK, before, 3, cpu=cpu)
        self.emit(at, Kind.SCHEDULER_ENTER, before, cpu=cpu)
        if level:
            self.emit(at, Kind.DECISION, pid, 0, level, cpu=cpu)
        if before and not blocks and before != pid:
            self.emit(at, Kind.PREEMPT, before, int(PreemptReason.SLICE), cpu=cpu)
        state = ProcessState.BLOCKED if blocks else ProcessState.RUNNABLE
        if before != pid:
            self.emit(at, Kind.SWITCH, pid, before, int(state) if before else 0, cpu=cpu)
        self.emit(at, Kind.SCHEDULER_EXIT, pid, cpu=cpu)
        self.running[cpu] = pid

    def wake(self, at: float, pid: int, by: int) -> None:
        self.emit(at, Kind.WAKEUP, pid, by, 0)

    def end(self, at: float) -> Trace:
        for cpu in range(len(self.running)):
            record_count = sum(record.cpu == cpu for record in self.records)
            self.emit(at, Kind.END, 0, 0, record_count + 1, cpu=cpu)
        return load(self.records, Script(cpus=len(self.running)))


def lane_intervals(trace: Trace) -> list[tuple[int, float, float, str]]:
    """Returns inversions: the life's number, begin and end in ms, and the running process."""
    processes = chart_processes(trace)
    rows = find_inversions(processes, find_activity(processes)).rows()
    pid = processes.life_table.pid
    return [(int(pid[life]), begin / MS, end / MS, behind) for life, begin, end, behind in rows]


def lanes(trace: Trace, **options: Any) -> Chart:
    return charts.lanes("lanes", trace, **WORDS, **options)


def layers_of(chart: Chart) -> list[str]:
    """Returns the tooltips' titles of a chart's layers."""
    return [layer["encoding"]["tooltip"][0]["title"] for layer in chart.plain["layer"]]


# --- lanes


@settings(PATIENT, max_examples=12)
@given(trace=TRACES)
def test_lanes_have_all_time_of_the_workload(trace: Trace) -> None:
    """Each process's lane is as long as its running, waiting and blocked time in the window."""
    metrics = compute(trace)
    window = metrics.summary.row(0, named=True)
    should = metrics.processes.filter(pl.col("role") == "workload")
    times = ("running_ns", "waiting_ns", "blocked_ns")
    if not window["elapsed_ns"] or not should.select(pl.sum_horizontal(times)).sum().item():
        return
    data = lanes(trace, length_ns=window["elapsed_ns"]).data
    for state, column in zip(("running", "runnable", "blocked"), times, strict=True):
        length = (pl.col("end_ns") - pl.col("begin_ns")).sum()
        drawn_times = dict(data.filter(pl.col("state") == state).group_by("pid").agg(length).rows())
        metric = should.group_by("pid").agg(pl.col(column).sum())
        assert drawn_times == {pid: time for pid, time in metric.rows() if time}


def test_lane_is_coloured_by_level() -> None:
    """A run has the level of its pick, also if it is picked again; a wait has the level of
    the next pick.
    """
    story = Story("mlfq")
    story.fork(0, 2)
    story.fork(0, 3)
    story.run(1, 2, level=3, blocks=True)
    story.run(2, 2, level=2)
    story.run(4, 3, level=3)
    story.run(7, 2, level=1)
    data = lanes(story.end(9)).data.filter(pl.col("pid") == 2)
    assert data.select("state", "level", pl.col("begin_ns", "end_ns") / MS).rows() == [
        ("runnable", 3, 0, 1),
        ("running", 3, 1, 2),
        ("running", 2, 2, 4),
        ("runnable", 1, 4, 7),
        ("running", 1, 7, 9),
    ]


def crowd(processes: int, milliseconds: int) -> Trace:
    """Processes that alternate every tick, except for the last one, which never runs."""
    story = Story()
    for number in range(processes):
        story.fork(0, 2 + number)
    story.run(0, 0, blocks=True)
    for tick in range(milliseconds):
        story.run(tick, 2 + tick % (processes - 1))
    return story.end(milliseconds)


# --- starvation


@pytest.mark.parametrize(
    ("processes", "milliseconds", "starves"),
    [(2, 100, 0), (2, 101, 1), (3, 150, 0), (3, 151, 1), (4, 199, 0), (4, 201, 1)],
)
def test_starvation_is_a_wait_of_fifty_ticks(
    processes: int, milliseconds: int, starves: int
) -> None:
    """This requires at least two processes; on one CPU the last process waits throughout."""
    rows = find_starvation(chart_processes(crowd(processes, milliseconds)))
    assert len(rows) == starves
    for row in rows.to_dicts():
        assert (row["begin_ns"], row["end_ns"]) == (0, milliseconds * MS)


# --- priority inversion


def waiting_behind(priorities: tuple[int, int], until: float, policy: str = "rr") -> Trace:
    """Process 2 runs from 0 ms, process 3 is forked at 2 ms, and is picked at `until`."""
    story = Story(policy)
    story.fork(0, 2, priority=priorities[0])
    story.fork(2, 3, priority=priorities[1])
    story.run(2, 2, blocks=True)
    story.run(until, 3)
    return story.end(until + 5)


def test_inversion_is_a_wait_behind_a_process_of_worse_priority() -> None:
    """0 is the best priority; the policy's use of priorities does not matter."""
    trace = waiting_behind((7, 3), 6)
    assert lane_intervals(trace) == [(3, 2, 6, "")]
    chart = lanes(trace)
    assert "1 time, 4.00 ms in all" in chart.caption and "priority inversion" in layers_of(chart)
    inverted = chart.data.filter(pl.col("inversion_ns") > 0)
    assert inverted.select("pid", "state", "inversion_ns").rows() == [(3, "runnable", 4 * MS)]


def test_inversion_reaches_through_what_a_process_is_blocked_on() -> None:
    """3, the best, is blocked from 1 ms until 2, the worst, wakes it at 14 ms. 2 runs, then waits
    while 4 runs from 3 to 13 ms. That wait is the inversion; 2's own running time is not.
    Before, 4 waits behind 2.
    """
    story = Story("priority")
    for pid, priority in ((2, 9), (3, 1), (4, 5)):
        story.fork(0, pid, priority=priority)
    story.run(0, 3, blocks=True)
    story.run(1, 2, blocks=True)
    story.run(3, 4)
    story.run(13, 2, blocks=True)
    story.wake(14, 3, by=2)
    story.run(14, 3)
    trace = story.end(15)
    assert lane_intervals(trace) == [(3, 3, 13, "2 process 2"), (4, 1, 3, "")]
