# SPDX-License-Identifier: MIT
"""Attributes a process's waits slowly, from one time of the trace to the next."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

from schedlab.trace import Kind, ProcessState, Trace


class Naive:
    """Slow reference attribution for one trace."""

    def __init__(self, trace: Trace) -> None:
        self.records = list(
            trace.events.select("time_ns", "cpu", "kind", "process", "first", "second").iter_rows()
        )
        self.has_scheduler_visits = any(
            record[2] == Kind.SCHEDULER_ENTER for record in self.records
        )
        self.times = sorted({record[0] for record in self.records})

    def occupant(self, cpu: int, time: int) -> str | int:
        """Returns what a CPU does starting at a time: a PID, "idle", "scheduler" or "unknown"."""
        cause: str | int = "unknown"
        for at, of, kind, process, first, _ in self.records:
            if of != cpu or at > time:
                continue
            if kind == Kind.START:
                cause = "idle"
            elif kind == Kind.END:
                cause = "unknown"
            elif kind == Kind.FOUND and first == ProcessState.RUNNING:
                cause = process
            elif self.has_scheduler_visits and kind == Kind.SCHEDULER_ENTER:
                cause = "scheduler"
            elif kind == (Kind.SCHEDULER_EXIT if self.has_scheduler_visits else Kind.SWITCH):
                cause = process or "idle"
        return cause

    def waited_while_idle(self, wait: dict[str, Any], cpus: int) -> int:
        """Returns for how much of a wait some CPU was idle, in ns."""
        edges = self.edges(wait)
        return sum(
            stop - start
            for start, stop in pairwise(edges)
            if any(self.occupant(cpu, start) == "idle" for cpu in range(cpus))
        )

    def edges(self, wait: dict[str, Any]) -> list[int]:
        """Returns the times of all events during a wait, in ns."""
        begin, end = wait["begin_ns"], wait["end_ns"]
        return [begin, *(time for time in self.times if begin < time < end), end]

    def place(self, wait: dict[str, Any], time: int) -> int:
        """Returns the CPU that the process waits for."""
        cpu = int(wait["cpu"])
        last = wait["end_row"] if wait["end_row"] is not None else len(self.records)
        moves = [
            record
            for record in self.records[wait["begin_row"] + 1 : last]
            if record[2] == Kind.MIGRATE and record[3] == wait["pid"]
        ]
        if moves:
            cpu = moves[0][4]
        for record in moves:
            if record[0] <= time:
                cpu = record[5]
        return cpu

    def blame(self, wait: dict[str, Any]) -> Counter[str | int]:
        """Returns the attributed time per cause, in ns."""
        blamed_ns: Counter[str | int] = Counter()
        for start, stop in pairwise(self.edges(wait)):
            if stop > start:
                blamed_ns[self.occupant(self.place(wait, start), start)] += stop - start
        return blamed_ns
