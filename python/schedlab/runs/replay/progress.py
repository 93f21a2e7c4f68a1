# SPDX-License-Identifier: MIT
"""Computes how long each process has computed at any record of a trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from schedlab.metrics.intervals import cpu_end_times
from schedlab.metrics.lives import Lives
from schedlab.runs.replay.charged_costs import Charges
from schedlab.trace import BlockReason, Kind, Trace
from schedlab.trace.format import is_kind
from schedlab.trace.model import Integers

Places = npt.NDArray[np.int64]
ROW_BITS = 40
_ENDING_MAX = 64
"""The most processes considered for one interrupt."""


@dataclass(frozen=True, eq=False)
class Interrupts:
    """Interrupts of timers and devices that wake a process, sorted by CPU and row."""

    cpu: Integers
    row: Integers
    time_ns: Integers
    until: Integers
    """Cumulative cost (ns) of the interrupts on the CPU up to this one, for the interrupted processes."""

    def lost(self, cpu: Integers, begin: Integers, end: Integers, time: Integers) -> Integers:
        """Returns the cost (ns) of interrupts on CPUs between two rows.

        Interrupts at `time` are excluded, because they ended the stay.
        """
        if len(self.row) == 0:
            return np.zeros(len(cpu), np.int64)
        key = _key(self.cpu, self.row)
        sums = np.append(0, self.until)
        last = np.searchsorted(key, _key(cpu, end))
        first = np.searchsorted(key, _key(cpu, begin))
        at = np.maximum(last - 1, 0)
        for _ in range(_ENDING_MAX):
            same = (last > first) & (self.time_ns[at] == time)
            last, at = last - same, np.maximum(at - same, 0)
        lost: Integers = sums[last] - sums[first]
        return lost


def interrupts(trace: Trace, charges: Charges) -> Interrupts:
    rows = trace.rows(Kind.WAKEUP)
    rows = rows[trace.column("first")[rows] == 0]
    rows = rows[np.argsort(trace.column("cpu")[rows], kind="stable")]
    cpu = trace.column("cpu")[rows].astype(np.int64)
    time = trace.column("time_ns")[rows].astype(np.int64)
    return Interrupts(cpu, rows, time, charges.wakeup * np.arange(1, len(rows) + 1))


@dataclass(frozen=True, eq=False)
class Stays:
    """Intervals when a process was on a CPU outside the scheduler, sorted by CPU and row."""

    trace: Trace
    charges: Charges
    life: Integers
    cpu: Integers
    row: Integers
    """The row of the record where each stay begins."""
    decided_ns: Integers
    """Time when the CPU began to pick, or when the previous process called the kernel and left.

    Only later ticks count.
    """
    begin_ns: Integers
    end_ns: Integers
    end_row: Integers
    called_ns: Integers
    """For each record of the trace, the time of the kernel call that caused it."""
    end_called_ns: Integers
    """Time of the kernel call that ended the stay."""
    before: Integers
    """Computing time of the process before the stay, without the machine's costs."""
    interrupts: Interrupts

    def running(self, cpu: Integers, row: Integers) -> Integers:
        """Returns the number of the process on a CPU at a row; −1 if there is none."""
        place = self.place(cpu, row)
        has_stay = place >= 0
        has_stay[has_stay] = row[has_stay] <= self.end_row[place[has_stay]]
        return np.where(has_stay, self.life[np.maximum(place, 0)], -1) if len(self.life) else place

    def place(self, cpu: Integers, row: Integers) -> Places:
        """Returns the last stay on a CPU that begins before a row; −1 if there is none."""
        place = np.searchsorted(_key(self.cpu, self.row), _key(cpu, row)) - 1
        has_stay = place >= 0
        has_stay[has_stay] = self.cpu[place[has_stay]] == cpu[has_stay]
        return np.where(has_stay, place, -1)

    def computed(self, life: Integers, row: Integers) -> Integers:
        """Returns the computing time of each process at a row, in nanoseconds."""
        if len(self.life) == 0:
            return np.zeros(len(row), np.int64)
        order = np.lexsort((self.row, self.life))
        place = np.searchsorted(_key(self.life[order], self.row[order]), _key(life, row)) - 1
        has_stay = place >= 0
        stay = order[np.maximum(place, 0)]
        has_stay &= self.life[stay] == life
        inside = row < self.end_row[stay]
        time = np.where(inside, self.trace.column("time_ns")[row], self.end_ns[stay])
        called = np.where(inside, self.called_ns[row], self.end_called_ns[stay])
        spent = self._within(stay, time, called, np.minimum(row, self.end_row[stay]))
        return np.where(has_stay, self.before[stay] + spent, 0)

    def _within(self, stay: Places, time: Integers, called: Integers, row: Integers) -> Integers:
        """Returns the computing time (ns) within a stay until a time and row.

        The process called the kernel at `called`, so later ticks had to wait.
        """
        spent: Integers = np.maximum(time - self.begin_ns[stay], 0)
        tick_ns = self.trace.header.tick_ns
        if tick_ns:
            ticks = (called - 1) // tick_ns - self.decided_ns[stay] // tick_ns
            spent -= self.charges.tick * np.where(
                time > self.begin_ns[stay], np.maximum(ticks, 0), 0
            )
        return spent - self.interrupts.lost(self.cpu[stay], self.row[stay], row, time)


def stays(trace: Trace, life_table: Lives, charges: Charges) -> Stays:
    """Returns the stays from SCHEDULER_EXIT to SCHEDULER_ENTER; in a trace without them, from SWITCH to SWITCH."""
    kind, time = trace.column("kind"), trace.column("time_ns")
    scheduler = trace.rows(Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT)
    bounds = (Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT) if len(scheduler) else (Kind.SWITCH,)
    rows = trace.rows(Kind.START, *bounds)
    rows = rows[np.argsort(trace.column("cpu")[rows], kind="stable")]
    cpu = trace.column("cpu")[rows].astype(np.int64)
    after = np.append(cpu[1:] == cpu[:-1], False) if len(rows) else np.empty(0, bool)
    next_row = np.where(after, np.roll(rows, -1), len(kind))
    is_start = (kind[rows] == bounds[-1]) & (trace.column("process")[rows] != 0)
    before = np.where(np.roll(after, 1), np.roll(rows, 1), rows)[is_start]
    last = cpu_end_times(trace)
    rows, cpu, next_row = rows[is_start], cpu[is_start], next_row[is_start]
    ended = next_row < len(kind)
    end = (
        np.where(ended, time[np.minimum(next_row, len(kind) - 1)], last[cpu]) if len(rows) else rows
    )
    pid = trace.column("process")[rows].astype(np.int64)
    called = _called(trace, charges)
    by = _ended_by(trace, cpu, rows, next_row)
    end_called = np.where(by >= 0, called[by], end) if len(rows) else rows
    follows = np.zeros(len(rows), bool)
    follows[1:] = (cpu[1:] == cpu[:-1]) & (before[1:] == next_row[:-1]) & (by[:-1] >= 0)
    decided = np.where(follows, np.roll(end_called, 1) - 1, time[before]) if len(rows) else rows
    return _with_sums(
        Stays(
            trace=trace,
            charges=charges,
            life=life_of(life_table, pid, rows),
            cpu=cpu,
            row=rows,
            decided_ns=decided,
            begin_ns=time[rows],
            end_ns=np.maximum(end, time[rows]),
            end_row=next_row,
            called_ns=called,
            end_called_ns=end_called,
            before=np.zeros(len(rows), np.int64),
            interrupts=interrupts(trace, charges),
        )
    )


def life_of(life_table: Lives, pid: Integers, row: Integers) -> Integers:
    """Like Timeline.life_at, but also finds processes that existed before the trace."""
    life = life_table.steps.life_at(pid, row)
    unknown = np.flatnonzero((life < 0) & (pid != 0))
    if len(unknown) == 0 or len(life_table) == 0:
        return life
    first = np.searchsorted(life_table.pid, pid[unknown])  # lives are sorted by PID
    first = np.minimum(first, len(life_table) - 1)
    is_initial = (life_table.pid[first] == pid[unknown]) & (life_table.fork_row[first] < 0)
    life[unknown[is_initial]] = first[is_initial]
    return life


def _with_sums(summed: Stays) -> Stays:
    """Sets the column `before` of each stay: the computing time of the process in earlier stays."""
    if len(summed.life) == 0:
        return summed
    everyone = np.arange(len(summed.life))
    spent = summed._within(everyone, summed.end_ns, summed.end_called_ns, summed.end_row)
    order = np.lexsort((summed.row, summed.life))
    life, cpu = summed.life[order], summed.cpu[order]
    same = np.append(False, life[1:] == life[:-1])
    moved = summed.charges.migration * (same & (cpu != np.roll(cpu, 1)))
    computed = spent[order] - moved
    sums = np.cumsum(computed) - computed
    first = np.maximum.accumulate(np.where(same, 0, np.arange(len(life))))
    summed.before[order] = sums - sums[first] - moved
    return summed


def _called(trace: Trace, charges: Charges) -> Integers:
    """Returns, for each record, the time of the kernel call that caused it.

    Records without a call have their own time.
    """
    kind, first = trace.column("kind"), trace.column("first")
    reason = np.where(kind == Kind.BLOCK, first, 0)
    slept = (reason > 0) & (reason != BlockReason.CHILD) & (reason != BlockReason.PIPE)
    cost = np.select(
        [slept, reason == BlockReason.PIPE, kind == Kind.FORK, kind == Kind.EXIT],
        [charges.sleep, charges.pipe, charges.fork, charges.exit],
        charges.call,
    )
    cost[kind == Kind.WAKEUP] = charges.pipe
    time = trace.column("time_ns").astype(np.int64)
    called = time - cost
    acts = is_kind(
        kind, Kind.BLOCK, Kind.YIELD, Kind.FORK, Kind.EXIT, Kind.MARK, Kind.WAKEUP, Kind.ATTRIBUTE
    )
    return np.where(acts, called, time)


def _ended_by(trace: Trace, cpu: Integers, begin: Integers, end: Integers) -> Integers:
    """Returns the record where each stay's process gave up its CPU; −1 if it was preempted."""
    rows = trace.rows(Kind.BLOCK, Kind.YIELD, Kind.EXIT)
    rows = rows[np.argsort(trace.column("cpu")[rows], kind="stable")]
    if len(rows) == 0:
        return np.full(len(cpu), -1)
    key = _key(trace.column("cpu")[rows].astype(np.int64), rows)
    at = np.searchsorted(key, _key(cpu, end)) - 1
    ending_rows = rows[np.maximum(at, 0)]
    is_ended = (at >= 0) & (key[np.maximum(at, 0)] > _key(cpu, begin))
    return np.where(is_ended, ending_rows, -1)


def _key(of: Integers, row: Integers) -> Integers:
    return (of.astype(np.int64) << ROW_BITS) | row
