# SPDX-License-Identifier: MIT
"""Computes how much CPU time each process had used at any record of a trace."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from schedlab.metrics.intervals import cpu_end_times
from schedlab.metrics.lives import Lives
from schedlab.runs.replay.charged_costs import Charges
from schedlab.trace import BlockReason, Kind, Trace
from schedlab.trace.format import is_kind
from schedlab.trace.model import Integers

StayIndices = npt.NDArray[np.int64]
ROW_BITS = 40
_SAME_TIME_MAX = 64
"""Maximum number of processes woken by one interrupt, whose cost is then excluded."""


@dataclass(frozen=True, eq=False)
class Interrupts:
    """Wake-ups by timers and devices, sorted by CPU and row.

    They interrupt the process on the CPU, and so cost it time.
    """

    cpu: Integers
    row: Integers
    time_ns: Integers
    total_ns: Integers
    """Total cost (ns) of the CPU's interrupts up to and including this one."""

    def cost_between(
        self, cpu: Integers, begin: Integers, end: Integers, time: Integers
    ) -> Integers:
        """Returns the cost (ns) of the interrupts on CPUs between the rows `begin` and `end`.

        Interrupts at the time `time` are excluded: they ended the stay, and did not delay it.
        """
        if len(self.row) == 0:
            return np.zeros(len(cpu), np.int64)
        sort_keys = _sort_key(self.cpu, self.row)
        sums = np.append(0, self.total_ns)
        ends = np.searchsorted(sort_keys, _sort_key(cpu, end))
        begins = np.searchsorted(sort_keys, _sort_key(cpu, begin))
        at = np.maximum(ends - 1, 0)
        for _ in range(_SAME_TIME_MAX):
            same = (ends > begins) & (self.time_ns[at] == time)
            ends, at = (ends - same, np.maximum(at - same, 0))
        cost_between: Integers = sums[ends] - sums[begins]
        return cost_between


def find_interrupts(trace: Trace, charges: Charges) -> Interrupts:
    """Returns the wake-ups by interrupts in a trace."""
    rows = trace.rows(Kind.WAKEUP)
    rows = rows[trace.column("first")[rows] == 0]
    rows = rows[np.argsort(trace.column("cpu")[rows], kind="stable")]
    cpu = trace.column("cpu")[rows].astype(np.int64)
    time = trace.column("time_ns")[rows].astype(np.int64)
    return Interrupts(cpu, rows, time, charges.wakeup * np.arange(1, len(rows) + 1))


@dataclass(frozen=True, eq=False)
class CpuStays:
    """Intervals during which a CPU ran a process, without the time of the scheduler; sorted by CPU and row."""

    trace: Trace
    charges: Charges
    life: Integers
    cpu: Integers
    row: Integers
    """The row of the record where each stay begins."""
    decided_ns: Integers
    """Time (ns) when the CPU began to pick the process. Only later ticks interrupt the stay."""
    begin_ns: Integers
    end_ns: Integers
    end_row: Integers
    called_ns: Integers
    """For each record of the trace, the time (ns) when the kernel call that caused it began."""
    end_called_ns: Integers
    """Time (ns) when the kernel call that ended the stay began."""
    computed_before_ns: Integers
    """CPU time (ns) that the process had used before the stay, without the machine's costs."""
    interrupts: Interrupts
    """All interrupts of the trace."""

    def running(self, cpu: Integers, row: Integers) -> Integers:
        """Returns the index of the process on each CPU at a row; −1 if there is none."""
        place = self.place(cpu, row)
        has_stay = place >= 0
        has_stay[has_stay] = row[has_stay] <= self.end_row[place[has_stay]]
        return np.where(has_stay, self.life[np.maximum(place, 0)], -1) if len(self.life) else place

    def place(self, cpu: Integers, row: Integers) -> StayIndices:
        """Returns the index of the last stay that begins before a row on each CPU; −1 if there is none."""
        index = np.searchsorted(_sort_key(self.cpu, self.row), _sort_key(cpu, row)) - 1
        has_stay = index >= 0
        has_stay[has_stay] = self.cpu[index[has_stay]] == cpu[has_stay]
        return np.where(has_stay, index, -1)

    def computed(self, life: Integers, row: Integers) -> Integers:
        """Returns the CPU time (ns) that each process had used at a row, without the machine's costs."""
        if len(self.life) == 0:
            return np.zeros(len(row), np.int64)
        order = np.lexsort((self.row, self.life))
        index = (
            np.searchsorted(_sort_key(self.life[order], self.row[order]), _sort_key(life, row)) - 1
        )
        has_stay = index >= 0
        stay = order[np.maximum(index, 0)]
        has_stay &= self.life[stay] == life
        inside = row < self.end_row[stay]
        time = np.where(inside, self.trace.column("time_ns")[row], self.end_ns[stay])
        called = np.where(inside, self.called_ns[row], self.end_called_ns[stay])
        spent = self._computing_within(stay, time, called, np.minimum(row, self.end_row[stay]))
        return np.where(has_stay, self.computed_before_ns[stay] + spent, 0)

    def _computing_within(
        self, stay: StayIndices, time: Integers, called: Integers, row: Integers
    ) -> Integers:
        """Returns the CPU time (ns) used within a stay until a time and row.

        The process entered the kernel at `called`; later ticks were not handled before the end of
        the call.
        """
        spent: Integers = np.maximum(time - self.begin_ns[stay], 0)
        tick_ns = self.trace.header.tick_ns
        if tick_ns:
            ticks = (called - 1) // tick_ns - self.decided_ns[stay] // tick_ns
            spent -= self.charges.tick * np.where(
                time > self.begin_ns[stay], np.maximum(ticks, 0), 0
            )
        return spent - self.interrupts.cost_between(self.cpu[stay], self.row[stay], row, time)


def find_cpu_stays(trace: Trace, life_table: Lives, charges: Charges) -> CpuStays:
    """Returns all stays of a trace.

    They last from SCHEDULER_EXIT to SCHEDULER_ENTER or, in a trace without these records, from
    SWITCH to SWITCH.
    """
    kind, time = trace.column("kind"), trace.column("time_ns")
    scheduler = trace.rows(Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT)
    bounds = (Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT) if len(scheduler) else (Kind.SWITCH,)
    rows = trace.rows(Kind.START, *bounds)
    rows = rows[np.argsort(trace.column("cpu")[rows], kind="stable")]
    cpu = trace.column("cpu")[rows].astype(np.int64)
    goes_on = np.append(cpu[1:] == cpu[:-1], False) if len(rows) else np.empty(0, bool)
    next_row = np.where(goes_on, np.roll(rows, -1), len(kind))
    is_start = (kind[rows] == bounds[-1]) & (trace.column("process")[rows] != 0)
    computed_before_ns = np.where(np.roll(goes_on, 1), np.roll(rows, 1), rows)[is_start]
    last = cpu_end_times(trace)
    rows, cpu, next_row = rows[is_start], cpu[is_start], next_row[is_start]
    ended = next_row < len(kind)
    end = (
        np.where(ended, time[np.minimum(next_row, len(kind) - 1)], last[cpu]) if len(rows) else rows
    )
    pid = trace.column("process")[rows].astype(np.int64)
    called = _call_begin(trace, charges)
    by = _leaving_row(trace, cpu, rows, next_row)
    end_called = np.where(by >= 0, called[by], end) if len(rows) else rows
    follows = np.zeros(len(rows), bool)
    follows[1:] = (cpu[1:] == cpu[:-1]) & (computed_before_ns[1:] == next_row[:-1]) & (by[:-1] >= 0)
    decided = (
        np.where(follows, np.roll(end_called, 1) - 1, time[computed_before_ns])
        if len(rows)
        else rows
    )
    return _add_earlier_cpu_time(
        CpuStays(
            trace=trace,
            charges=charges,
            life=find_life(life_table, pid, rows),
            cpu=cpu,
            row=rows,
            decided_ns=decided,
            begin_ns=time[rows],
            end_ns=np.maximum(end, time[rows]),
            end_row=next_row,
            called_ns=called,
            end_called_ns=end_called,
            computed_before_ns=np.zeros(len(rows), np.int64),
            interrupts=find_interrupts(trace, charges),
        )
    )


def find_life(life_table: Lives, pid: Integers, row: Integers) -> Integers:
    """Returns the index of the process with a PID at a row.

    Unlike ProcessSteps.life_at, also finds processes that existed before the trace.
    """
    life = life_table.steps.life_at(pid, row)
    unknown = np.flatnonzero((life < 0) & (pid != 0))
    if len(unknown) == 0 or len(life_table) == 0:
        return life
    first = np.searchsorted(life_table.pid, pid[unknown])  # lives are sorted by PID
    first = np.minimum(first, len(life_table) - 1)
    is_initial = (life_table.pid[first] == pid[unknown]) & (life_table.fork_row[first] < 0)
    life[unknown[is_initial]] = first[is_initial]
    return life


def _add_earlier_cpu_time(cpu_stays: CpuStays) -> CpuStays:
    """Sets the column with each process's CPU time before a stay, from its earlier stays."""
    if len(cpu_stays.life) == 0:
        return cpu_stays
    all_stays = np.arange(len(cpu_stays.life))
    spent = cpu_stays._computing_within(
        all_stays, cpu_stays.end_ns, cpu_stays.end_called_ns, cpu_stays.end_row
    )
    order = np.lexsort((cpu_stays.row, cpu_stays.life))
    life, cpu = cpu_stays.life[order], cpu_stays.cpu[order]
    is_same_life = np.append(False, life[1:] == life[:-1])
    migration_cost = cpu_stays.charges.migration * (is_same_life & (cpu != np.roll(cpu, 1)))
    computed = spent[order] - migration_cost
    sums = np.cumsum(computed) - computed
    first_stays = np.maximum.accumulate(np.where(is_same_life, 0, np.arange(len(life))))
    cpu_stays.computed_before_ns[order] = sums - sums[first_stays] - migration_cost
    return cpu_stays


def _call_begin(trace: Trace, charges: Charges) -> Integers:
    """Returns, for each record, the time (ns) when the kernel call that caused it began.

    A record without a call has its own time.
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


def _leaving_row(trace: Trace, cpu: Integers, begin: Integers, end: Integers) -> Integers:
    """Returns the row where each stay's process left its CPU; −1 if it was preempted."""
    rows = trace.rows(Kind.BLOCK, Kind.YIELD, Kind.EXIT)
    rows = rows[np.argsort(trace.column("cpu")[rows], kind="stable")]
    if len(rows) == 0:
        return np.full(len(cpu), -1)
    sort_keys = _sort_key(trace.column("cpu")[rows].astype(np.int64), rows)
    last_rows = np.searchsorted(sort_keys, _sort_key(cpu, end)) - 1
    ending_rows = rows[np.maximum(last_rows, 0)]
    is_ended = (last_rows >= 0) & (sort_keys[np.maximum(last_rows, 0)] > _sort_key(cpu, begin))
    return np.where(is_ended, ending_rows, -1)


def _sort_key(cpu_or_life: Integers, row: Integers) -> Integers:
    return (cpu_or_life.astype(np.int64) << ROW_BITS) | row
