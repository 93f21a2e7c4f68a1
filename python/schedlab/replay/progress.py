# SPDX-License-Identifier: MIT
"""How much each process had computed at any record of a trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from schedlab.metrics.intervals import cpu_end_times
from schedlab.metrics.lives import Lives
from schedlab.replay.charges import Charges
from schedlab.trace import Kind, Trace
from schedlab.trace.model import Integers

Places = npt.NDArray[np.int64]
_ROW_BITS = 40


@dataclass(frozen=True, eq=False)
class Stays:
    """Stretches that processes were on a CPU, without the scheduler's. Sorted by CPU and row."""

    trace: Trace
    charges: Charges
    life: Integers
    cpu: Integers
    row: Integers
    """Of the record with which it begins."""
    decided_ns: Integers
    """When the CPU began to pick the process: ticks count from there."""
    begin_ns: Integers
    end_ns: Integers
    end_row: Integers
    before: Integers
    """What the process had computed before it, less what the machine took of its time."""

    def running(self, cpu: Integers, row: Integers) -> Integers:
        """The life that was on a CPU at a row; -1: none."""
        place = self.place(cpu, row)
        found = place >= 0
        found[found] = row[found] <= self.end_row[place[found]]
        return np.where(found, self.life[np.maximum(place, 0)], -1) if len(self.life) else place

    def place(self, cpu: Integers, row: Integers) -> Places:
        """The stay on a CPU that is the last to begin before a row; -1: none."""
        place = np.searchsorted(_key(self.cpu, self.row), _key(cpu, row)) - 1
        found = place >= 0
        found[found] = self.cpu[place[found]] == cpu[found]
        return np.where(found, place, -1)

    def computed(self, life: Integers, row: Integers) -> Integers:
        """What each life had computed at a row, in ns."""
        if len(self.life) == 0:
            return np.zeros(len(row), np.int64)
        order = np.lexsort((self.row, self.life))
        place = np.searchsorted(_key(self.life[order], self.row[order]), _key(life, row)) - 1
        found = place >= 0
        stay = order[np.maximum(place, 0)]
        found &= self.life[stay] == life
        inside = row <= self.end_row[stay]
        time = np.where(inside, self.trace.column("time_ns")[row], self.end_ns[stay])
        return np.where(found, self.before[stay] + self._within(stay, time), 0)

    def _within(self, stay: Places, time: Integers) -> Integers:
        return _computing(
            self.decided_ns[stay],
            self.begin_ns[stay],
            time,
            self.trace.header.tick_ns,
            self.charges.tick,
        )


def stays(trace: Trace, who: Lives, charges: Charges) -> Stays:
    """From SCHEDULER_EXIT to SCHEDULER_ENTER; in a trace without them, from SWITCH to SWITCH."""
    kind, time = trace.column("kind"), trace.column("time_ns")
    scheduler = trace.rows(Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT)
    bounds = (Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT) if len(scheduler) else (Kind.SWITCH,)
    rows = trace.rows(Kind.START, *bounds)
    rows = rows[np.argsort(trace.column("cpu")[rows], kind="stable")]
    cpu = trace.column("cpu")[rows].astype(np.int64)
    after = np.append(cpu[1:] == cpu[:-1], False) if len(rows) else np.empty(0, bool)
    next_row = np.where(after, np.roll(rows, -1), len(kind))
    begun = (kind[rows] == bounds[-1]) & (trace.column("process")[rows] != 0)
    before = np.where(np.roll(after, 1), np.roll(rows, 1), rows)[begun]
    last = cpu_end_times(trace)
    rows, cpu, next_row = rows[begun], cpu[begun], next_row[begun]
    ended = next_row < len(kind)
    end = (
        np.where(ended, time[np.minimum(next_row, len(kind) - 1)], last[cpu]) if len(rows) else rows
    )
    pid = trace.column("process")[rows].astype(np.int64)
    return _with_sums(
        Stays(
            trace=trace,
            charges=charges,
            life=life_of(who, pid, rows),
            cpu=cpu,
            row=rows,
            decided_ns=time[before],
            begin_ns=time[rows],
            end_ns=np.maximum(end, time[rows]),
            end_row=next_row,
            before=np.zeros(len(rows), np.int64),
        )
    )


def life_of(who: Lives, pid: Integers, row: Integers) -> Integers:
    """As Timeline.life_at, also for processes that were there before the trace began."""
    life = who.steps.life_at(pid, row)
    unknown = np.flatnonzero((life < 0) & (pid != 0))
    if len(unknown) == 0 or len(who) == 0:
        return life
    first = np.searchsorted(who.pid, pid[unknown])  # lives are in the order of PIDs
    first = np.minimum(first, len(who) - 1)
    there = (who.pid[first] == pid[unknown]) & (who.fork_row[first] < 0)
    life[unknown[there]] = first[there]
    return life


def _with_sums(found: Stays) -> Stays:
    """Puts down, for each, what its process computed in those before it."""
    if len(found.life) == 0:
        return found
    spent = found._within(np.arange(len(found.life)), found.end_ns)
    order = np.lexsort((found.row, found.life))
    life, cpu = found.life[order], found.cpu[order]
    same = np.append(False, life[1:] == life[:-1])
    moved = found.charges.migration * (same & (cpu != np.roll(cpu, 1)))
    own = spent[order] - moved
    sums = np.cumsum(own) - own
    first = np.maximum.accumulate(np.where(same, 0, np.arange(len(life))))
    found.before[order] = sums - sums[first] - moved
    return found


def _computing(
    decided: Integers, begin: Integers, time: Integers, tick_ns: int, cost: int
) -> Integers:
    """Of the time since a stay began, what ticks left. A tick that came while the CPU was in the
    kernel took place when it had left it; one at `time` itself is charged to whoever comes then."""
    spent: Integers = np.maximum(time - begin, 0)
    if tick_ns == 0 or cost == 0:
        return spent
    ticks = (time - 1) // tick_ns - decided // tick_ns
    spent -= cost * np.where(time > begin, np.maximum(ticks, 0), 0)
    return spent


def _key(of: Integers, row: Integers) -> Integers:
    return (of.astype(np.int64) << _ROW_BITS) | row
