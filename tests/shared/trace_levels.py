# SPDX-License-Identifier: MIT
"""Processes' attributes over time, and which processes waited or ran at each time, from a trace."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import NamedTuple

import polars as pl

from schedlab import metrics
from schedlab.trace import AttributeKind, Kind, Trace
from trace_story import records_of

STANDARD = {AttributeKind.PRIORITY: 5, AttributeKind.TICKETS: 1, AttributeKind.WEIGHT: 5}


class Values:
    """An attribute of all processes: set by users, inherited by fork."""

    def __init__(self, events: Trace, kind: AttributeKind) -> None:
        self.times: dict[int, list[int]] = {}
        self.values: dict[int, list[int]] = {}
        for record in records_of(events):
            if record.kind == Kind.FORK:
                self.change(record.first, record.time_ns, self.last(record.process, STANDARD[kind]))
            elif record.kind == Kind.ATTRIBUTE and record.first == kind:
                self.change(record.process, record.time_ns, record.second)

    def change(self, pid: int, time: int, value: int) -> None:
        self.times.setdefault(pid, []).append(time)
        self.values.setdefault(pid, []).append(value)

    def last(self, pid: int, standard: int) -> int:
        return self.values.get(pid, [standard])[-1]

    def at(self, pid: int, time: int) -> int:
        """Returns the value at this time."""
        return self.values[pid][max(bisect_right(self.times[pid], time) - 1, 0)]

    def pieces(self, pid: int, begin: int, end: int) -> list[tuple[int, int, int]]:
        """Yields begin, end and value: the interval, cut where the value changes."""
        cuts = [begin, *(time for time in self.times[pid] if begin < time < end), end]
        return [(left, right, self.at(pid, left)) for left, right in pairwise(cuts)]


class Piece(NamedTuple):
    """A period of a process at one level in one state: running or waiting."""

    pid: int
    cpu: int
    begin: int
    end: int
    level: int


def pieces_of(events: Trace, values: Values, state: str) -> list[Piece]:
    """Returns every period of a process in a state ("running", "runnable"), in order."""
    table = metrics.state_intervals(events).filter(pl.col("state") == state).sort("begin_ns")
    return [
        Piece(pid, cpu, *piece)
        for pid, cpu, begin, end in table.select("pid", "cpu", "begin_ns", "end_ns").iter_rows()
        for piece in values.pieces(pid, begin, end)
    ]


class Inversion(NamedTuple):
    """The time that a process waited without a break while one CPU ran processes of lower
    precedence.

    Each CPU inspects the others' queues at its ticks, so this time is bounded per CPU. Several CPUs
    may do so in succession: a CPU that picks inspects only its own queue.
    """

    length_ns: int
    pid: int
    begin_ns: int


def longest_inversion(waiting: list[Piece], running: list[Piece]) -> Inversion:
    """A lower level number has precedence."""
    worst = Inversion(0, 0, 0)
    running = sorted(running, key=lambda piece: piece.begin)
    begins = [piece.begin for piece in running]
    longest = max((piece.end - piece.begin for piece in running), default=0)
    for wait in waiting:
        spans: dict[int, tuple[int, int]] = {}
        for run in running[bisect_right(begins, wait.begin - longest - 1) :]:
            if run.begin >= wait.end:
                break
            if run.level <= wait.level or run.end <= wait.begin:
                continue
            begin, end = spans.get(run.cpu, (wait.begin, wait.begin))
            if run.begin > end:
                begin = run.begin
            end = max(end, min(run.end, wait.end))
            spans[run.cpu] = (begin, end)
            worst = max(worst, Inversion(end - max(begin, wait.begin), wait.pid, begin))
    return worst
