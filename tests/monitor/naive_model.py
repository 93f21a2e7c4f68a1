# SPDX-License-Identifier: MIT
"""What the live model should say, slow and obvious: from all records so far, at each question anew."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from naive_metrics import Life, Naive
from schedlab.trace import Kind, ProcessState
from trace_simulator import Record


class Sliding(Naive):
    """Naive's tables, with the last nanoseconds as window, as if the trace's marks were not there.

    Times must never go back, on whatever CPU.
    """

    def __init__(
        self, records: list[Record], cpus: int, cycles_per_second: int, window_ns: int
    ) -> None:
        self.window_ns = window_ns
        super().__init__(records, cpus, cycles_per_second)

    def find_window(self) -> None:
        """The last nanoseconds, or all that there is."""
        times = [record.time for record in self.records]
        self.begin = max(times[0], times[-1] - self.window_ns)
        self.end = times[-1]
        self.begin_row = next(row for row, time in enumerate(times) if time >= self.begin)
        self.end_row = len(self.records) - 1
        in_the_middle = any(record.kind == Kind.FOUND for record in self.records)
        self.root_pid = None if in_the_middle else 1
        self.elapsed = self.end - self.begin

    def find_cpu_ends(self) -> None:
        """Who runs goes on running, but on a CPU that has ended."""
        self.cpu_end = dict.fromkeys(range(self.cpus), self.end)
        for record in self.records:
            if record.kind == Kind.END:
                self.cpu_end[record.cpu] = record.time

    def root(self) -> Life | None:
        """The trace's first process, whenever the window begins."""
        return self.lives[0] if self.root_pid and self.lives else None

    def responses(self) -> list[int]:
        """Of those who ran for the first time in the window."""
        return [
            life.first_run - life.fork
            for life in self.lives
            if self.role(life) == "workload"
            and life.fork is not None
            and life.first_run is not None
            and life.first_run >= self.begin
        ]


@dataclass
class Stretch:
    """A time in a queue."""

    pid: int
    queue: int
    told: bool
    """The trace says which queue; else it is where the fork was, until one knows better."""
    begin: int
    end: int


class Queues:
    """Who waited where, and who ran where: by one loop, nothing clever."""

    def __init__(self, records: list[Record], cpus: int) -> None:
        self.now = records[-1].time
        self.cpus = cpus
        self.waits: list[Stretch] = []
        self.runs: list[Stretch] = []
        self.open: dict[int, Stretch] = {}
        self.running: dict[int, Stretch] = {}
        self.started: dict[int, int] = {}
        self.ended: dict[int, int] = {}
        for record in records:
            self.take(record)
        for stretch in self.open.values():
            stretch.end = self.now
        for cpu, stretch in self.running.items():
            stretch.end = self.ended.get(cpu, self.now)

    def take(self, record: Record) -> None:  # noqa: C901 - a branch for each kind
        """One record."""
        kind, time, cpu, pid = record.kind, record.time, record.cpu, record.process
        if kind == Kind.START:
            self.started[cpu] = time
        elif kind == Kind.END:
            self.ended[cpu] = time
        elif kind == Kind.FORK:
            # Who had the PID before is somebody else.
            self.waits = [wait for wait in self.waits if wait.pid != record.first]
            self.wait(record.first, cpu, False, time)
        elif kind == Kind.FOUND and record.first == ProcessState.RUNNABLE:
            self.wait(pid, cpu, False, time)
        elif kind == Kind.FOUND and record.first == ProcessState.RUNNING:
            self.run(pid, cpu, time)
        elif kind == Kind.WAKEUP:
            self.wait(pid, record.second, True, time)
        elif kind == Kind.MIGRATE and pid in self.open:
            self.move(pid, record.first, record.second, time)
        elif kind == Kind.SWITCH:
            if record.first:
                self.running.pop(cpu).end = time
            if record.first and record.second == ProcessState.RUNNABLE:
                self.wait(record.first, cpu, True, time)
            if pid:
                stretch = self.open.pop(pid)
                stretch.end = time
                if not stretch.told:
                    stretch.queue = cpu
                self.run(pid, cpu, time)

    def wait(self, pid: int, queue: int, told: bool, time: int) -> None:
        self.open[pid] = Stretch(pid, queue, told, time, time)
        self.waits.append(self.open[pid])

    def run(self, pid: int, cpu: int, time: int) -> None:
        self.running[cpu] = Stretch(pid, cpu, True, time, time)
        self.runs.append(self.running[cpu])

    def move(self, pid: int, come_from: int, to: int, time: int) -> None:
        stretch = self.open[pid]
        if not stretch.told:
            stretch.queue, stretch.told = come_from, True
        if stretch.queue != to:
            stretch.end = time
            self.wait(pid, to, True, time)

    def idles(self, cpu: int, time: int) -> bool:
        """Does nobody run on the CPU right after this time?"""
        there = self.started.get(cpu, self.now) <= time < self.ended.get(cpu, self.now)
        return there and not any(
            run.queue == cpu and run.begin <= time < run.end for run in self.runs
        )

    def explain(self, pid: int, begin: int) -> dict[str, Any]:
        """Nanosecond by nanosecond between any two changes."""
        waits = [wait for wait in self.waits if wait.pid == pid]
        edges = sorted(
            {begin, self.now}
            | {
                edge
                for part in (self.waits, self.runs)
                for one in part
                for edge in (one.begin, one.end)
            }
            | set(self.started.values())
            | set(self.ended.values())
        )
        parts: Counter[tuple[int, int]] = Counter()
        total = idle_elsewhere = 0
        for left, right in pairwise(edges):
            wait = next((one for one in waits if one.begin <= left < one.end), None)
            if left < begin or wait is None:
                continue
            total += right - left
            runner = next(
                (r.pid for r in self.runs if r.queue == wait.queue and r.begin <= left < r.end),
                None,
            )
            if runner is not None:
                parts[wait.queue, runner] += right - left
            elif self.idles(wait.queue, left):
                parts[wait.queue, 0] += right - left
            others = (cpu for cpu in range(self.cpus) if cpu != wait.queue)
            idle_elsewhere += (right - left) * any(self.idles(cpu, left) for cpu in others)
        return {"total_ns": total, "parts": dict(parts), "idle_elsewhere_ns": idle_elsewhere}


def idle_while_queued(records: list[Record], cpus: int, begin: int) -> int:  # noqa: C901 - a branch for each kind
    """CPU time spent idle while a process waited at another CPU, after `begin`: record by record."""
    queue_of: dict[int, int] = {}
    idle: set[int] = set()
    total = 0
    last = records[0].time
    for record in records:
        kind, cpu, pid = record.kind, record.cpu, record.process
        since = max(last, begin)
        for idler in idle:
            if any(queue != idler for queue in queue_of.values()):
                total += max(record.time - since, 0)
        last = record.time
        if kind == Kind.START:
            idle.add(cpu)
        elif kind == Kind.END:
            idle.discard(cpu)
        elif kind == Kind.FORK:
            queue_of[record.first] = cpu
        elif kind == Kind.FOUND:
            if record.first == ProcessState.RUNNABLE:
                queue_of[pid] = cpu
            elif record.first == ProcessState.RUNNING:
                idle.discard(cpu)
        elif kind == Kind.WAKEUP or (kind == Kind.MIGRATE and pid in queue_of):
            queue_of[pid] = record.second
        elif kind == Kind.SWITCH:
            if record.first and record.second == ProcessState.RUNNABLE:
                queue_of[record.first] = cpu
            if pid:
                queue_of.pop(pid, None)
                idle.discard(cpu)
            else:
                idle.add(cpu)
    return total
