# SPDX-License-Identifier: MIT
"""What each CPU did at each moment: a process ran, it idled, or it was in the scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schedlab.metrics.lives import Lives
from schedlab.trace import Kind, Trace
from schedlab.trace.format import is_kind
from schedlab.trace.model import Integers
from schedlab.trace.stories import CpuOrder

IDLE, SCHEDULER, UNKNOWN = -1, -2, -3
"""In place of a process."""


@dataclass(frozen=True, eq=False)
class Occupancy:
    """Segments of the time of all CPUs, sorted by CPU, then by time: each lasts until the next of its CPU, the last
    until the trace ends."""

    begin_ns: Integers
    occupant: Integers
    """A life, IDLE, SCHEDULER or UNKNOWN."""
    end_ns: int
    """The trace's."""
    first: Integers
    """Of each CPU of the machine: its first segment; then twice the end of the last CPU's, as of a CPU without any."""

    def overlapping(
        self, cpu: Integers, begin_ns: Integers, end_ns: Integers
    ) -> tuple[Integers, Integers, Integers, Integers]:
        """Of times on CPUs, what each of those did: arrays of which time, from when, until when, and the occupant.

        Together they are exactly as long as the times; UNKNOWN is what lies before a CPU's first record or after its
        END, or is of a CPU that the machine does not have.
        """
        cpu = np.where((cpu >= 0) & (cpu < len(self.first) - 2), cpu, len(self.first) - 2)
        low = self._place(cpu, begin_ns, "right") - 1
        high = np.maximum(self._place(cpu, end_ns, "left"), low + 1)
        count = high - low
        which = np.repeat(np.arange(len(cpu)), count)
        at = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count) + low[which]
        known = at >= self.first[cpu[which]]
        last = at == high[which] - 1
        segment = np.maximum(at, 0)
        begins = np.where(known, self.begin_ns[segment], begin_ns[which])
        ends = np.where(
            last, end_ns[which], self.begin_ns[np.minimum(at + 1, len(self.begin_ns) - 1)]
        )
        begins = np.maximum(begins, begin_ns[which])
        occupant = np.where(known, self.occupant[segment], UNKNOWN)
        overlaps = ends > begins
        return which[overlaps], begins[overlaps], ends[overlaps], occupant[overlaps]

    def some_idle_before(self, time_ns: Integers) -> Integers:
        """How long, up to each of some times, at least one CPU had been idle."""
        ends, lengths = self._idle
        done = np.searchsorted(ends, time_ns, side="right")
        totals = np.concatenate(([0], np.cumsum(lengths)))
        ends, lengths = np.append(ends, 0), np.append(lengths, 0)
        started_ns = np.maximum(time_ns - (ends - lengths)[done], 0)
        idle_before: Integers = totals[done] + np.where(done < len(ends) - 1, started_ns, 0)
        return idle_before

    @cached_property
    def _idle(self) -> tuple[Integers, Integers]:
        """Times without overlap in which some CPU idles, in their order: ends and lengths."""
        segment_ends = np.append(self.begin_ns[1:], 0)
        has = np.flatnonzero(np.diff(self.first[:-1]))
        segment_ends[self.first[has + 1] - 1] = self.end_ns
        at = np.flatnonzero(self.occupant == IDLE)
        times = np.concatenate((self.begin_ns[at], segment_ends[at]))
        change = np.repeat((1, -1), len(at))
        order = np.lexsort((-change, times))
        times, idle_cpus = times[order], np.cumsum(change[order])
        ends = np.flatnonzero(idle_cpus == 0)
        begins = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
        return times[ends], times[ends] - times[begins]

    def _place(self, cpu: Integers, time_ns: Integers, side: str) -> Integers:
        """Where in the segments of its CPU each time belongs."""
        places = np.empty(len(cpu), np.int64)
        for number in np.unique(cpu).tolist():
            rows = slice(self.first[number], self.first[number + 1])
            selected = cpu == number
            places[selected] = self.first[number] + np.searchsorted(
                self.begin_ns[rows],
                time_ns[selected],
                side,  # type: ignore[call-overload]
            )
        return places


def occupancy(trace: Trace, who: Lives) -> Occupancy:
    """What the CPUs of a trace did. A machine that does not tell of its scheduler is never in it."""
    stories = CpuOrder(trace.header.cpus).take(0, trace.piece(0, len(trace)))
    columns = stories.columns
    has_decisions = trace.has(Kind.SCHEDULER_ENTER)
    at = stories.visits if has_decisions else stories.entries
    ends = np.flatnonzero(is_kind(columns.kind, Kind.END))
    unknown = np.concatenate((ends, at[stories.unseen] if not has_decisions else ends[:0]))
    at = np.union1d(at, ends)
    process = np.where(is_kind(columns.kind[at], Kind.START), 0, columns.process[at])
    life = who.life_at(process.astype(np.int64), stories.row[at])
    occupant = np.where(process == 0, IDLE, np.where(life < 0, UNKNOWN, life))
    occupant[is_kind(columns.kind[at], Kind.SCHEDULER_ENTER)] = SCHEDULER
    occupant[np.isin(at, unknown)] = UNKNOWN
    first = np.searchsorted(columns.cpu[at], np.arange(trace.header.cpus + 2))
    return Occupancy(columns.time[at], occupant, trace.end_ns, first)
