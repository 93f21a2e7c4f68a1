# SPDX-License-Identifier: MIT
"""A slow and obvious version of the live model: each answer is computed from all records so far."""

from __future__ import annotations

from naive_metrics import Life, Naive
from schedlab.trace import Kind, ProcessState
from trace_simulator import Record


class Sliding(Naive):
    """Naive's tables, with a sliding window of the last nanoseconds instead of the trace's marks.

    Times must never decrease, on any CPU.
    """

    def __init__(
        self, records: list[Record], cpus: int, cycles_per_second: int, window_ns: int
    ) -> None:
        self.window_ns = window_ns
        super().__init__(records, cpus, cycles_per_second)

    def find_window(self) -> None:
        """Returns the window: the last nanoseconds, or the whole trace if it is shorter."""
        times = [record.time for record in self.records]
        self.begin = max(times[0], times[-1] - self.window_ns)
        self.end = times[-1]
        self.begin_row = next(row for row, time in enumerate(times) if time >= self.begin)
        self.end_row = len(self.records) - 1
        in_the_middle = any(record.kind == Kind.FOUND for record in self.records)
        self.root_pid = None if in_the_middle else 1
        self.elapsed = self.end - self.begin

    def find_cpu_ends(self) -> None:
        """A running process keeps running, except on a CPU that has ended."""
        self.cpu_end = dict.fromkeys(range(self.cpus), self.end)
        for record in self.records:
            if record.kind == Kind.END:
                self.cpu_end[record.cpu] = record.time

    def root(self) -> Life | None:
        """Returns the trace's first process, regardless of the window's start."""
        return self.lives[0] if self.root_pid and self.lives else None

    def responses(self) -> list[int]:
        """Returns the response times of processes that ran for the first time in the window."""
        return [
            life.first_run - life.fork
            for life in self.lives
            if self.role(life) == "workload"
            and life.fork is not None
            and life.first_run is not None
            and life.first_run >= self.begin
        ]


def idle_while_queued(records: list[Record], cpus: int, begin: int) -> int:  # noqa: C901 - a branch for each kind
    """Returns the CPU time spent idle while a process waited at another CPU, after `begin`:
    record by record.
    """
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
