# SPDX-License-Identifier: MIT
"""Determines the activity of each CPU at each moment: a process, idle, or the scheduler."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schedlab.metrics.lives import Lives
from schedlab.trace import Kind, Trace
from schedlab.trace.cpu_records import CpuSorter
from schedlab.trace.format import is_kind
from schedlab.trace.model import Integers

IDLE, SCHEDULER, UNKNOWN = -1, -2, -3
"""Values of `occupant` other than a process."""


@dataclass(frozen=True, eq=False)
class Occupancy:
    """Segments of activity of all CPUs, sorted by CPU and time.

    Each segment lasts until the next one of its CPU; the last one lasts until the trace ends.
    """

    begin_ns: Integers
    occupant: Integers
    """A life, IDLE, SCHEDULER or UNKNOWN."""
    end_ns: int
    """The end of the trace."""
    first: Integers
    """Index of the first segment of each CPU, followed by the number of segments twice: an unknown
    CPU has no segments.
    """

    def overlapping(
        self, cpu: Integers, begin_ns: Integers, end_ns: Integers
    ) -> tuple[Integers, Integers, Integers, Integers]:
        """Returns the activity during intervals on CPUs, as four arrays: index of the interval,
        begin, end, occupant.

        The pieces of an interval add up to it exactly. Times before a CPU's first record or after
        its END are UNKNOWN, and so are unknown CPUs.
        """
        cpu = np.where((cpu >= 0) & (cpu < len(self.first) - 2), cpu, len(self.first) - 2)
        low = self._segment_positions(cpu, begin_ns, "right") - 1
        high = np.maximum(self._segment_positions(cpu, end_ns, "left"), low + 1)
        count = high - low
        intervals = np.repeat(np.arange(len(cpu)), count)
        segment_index = (
            np.arange(len(intervals)) - np.repeat(np.cumsum(count) - count, count) + low[intervals]
        )
        is_known = segment_index >= self.first[cpu[intervals]]
        is_last = segment_index == high[intervals] - 1
        segment = np.maximum(segment_index, 0)
        begins = np.where(is_known, self.begin_ns[segment], begin_ns[intervals])
        ends = np.where(
            is_last,
            end_ns[intervals],
            self.begin_ns[np.minimum(segment_index + 1, len(self.begin_ns) - 1)],
        )
        begins = np.maximum(begins, begin_ns[intervals])
        occupant = np.where(is_known, self.occupant[segment], UNKNOWN)
        overlaps = ends > begins
        return intervals[overlaps], begins[overlaps], ends[overlaps], occupant[overlaps]

    def some_idle_before(self, time_ns: Integers) -> Integers:
        """Returns, for each time, how long at least one CPU had been idle until then."""
        ends, lengths = self._idle
        finished = np.searchsorted(ends, time_ns, side="right")
        totals = np.concatenate(([0], np.cumsum(lengths)))
        ends, lengths = np.append(ends, 0), np.append(lengths, 0)
        started_ns = np.maximum(time_ns - (ends - lengths)[finished], 0)
        idle_before: Integers = totals[finished] + np.where(finished < len(ends) - 1, started_ns, 0)
        return idle_before

    @cached_property
    def _idle(self) -> tuple[Integers, Integers]:
        """Disjoint intervals with at least one idle CPU, in order: ends and lengths."""
        segment_ends = np.append(self.begin_ns[1:], 0)
        cpus_with_segments = np.flatnonzero(np.diff(self.first[:-1]))
        segment_ends[self.first[cpus_with_segments + 1] - 1] = self.end_ns
        idle_segments = np.flatnonzero(self.occupant == IDLE)
        times = np.concatenate((self.begin_ns[idle_segments], segment_ends[idle_segments]))
        change = np.repeat((1, -1), len(idle_segments))
        order = np.lexsort((-change, times))
        times, idle_cpus = times[order], np.cumsum(change[order])
        ends = np.flatnonzero(idle_cpus == 0)
        begins = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
        return times[ends], times[ends] - times[begins]

    def _segment_positions(self, cpu: Integers, time_ns: Integers, side: str) -> Integers:
        """Returns where each time belongs in the segments of its CPU."""
        positions = np.empty(len(cpu), np.int64)
        for number in np.unique(cpu).tolist():
            rows = slice(self.first[number], self.first[number + 1])
            selected = cpu == number
            positions[selected] = self.first[number] + np.searchsorted(
                self.begin_ns[rows],
                time_ns[selected],
                side,  # type: ignore[call-overload]
            )
        return positions


def compute_occupancy(trace: Trace, life_table: Lives) -> Occupancy:
    """Returns the activity of the CPUs of a trace. Without scheduler records, no CPU is ever in the scheduler."""
    cpu_records = CpuSorter(trace.header.cpus).take(0, trace.piece(0, len(trace)))
    columns = cpu_records.columns
    has_decisions = trace.has(Kind.SCHEDULER_ENTER)
    at = cpu_records.visits if has_decisions else cpu_records.entries
    ends = np.flatnonzero(is_kind(columns.kind, Kind.END))
    unknown = np.concatenate((ends, at[cpu_records.unseen] if not has_decisions else ends[:0]))
    at = np.union1d(at, ends)
    process = np.where(is_kind(columns.kind[at], Kind.START), 0, columns.process[at])
    life = life_table.life_at(process.astype(np.int64), cpu_records.row[at])
    occupant = np.where(process == 0, IDLE, np.where(life < 0, UNKNOWN, life))
    occupant[is_kind(columns.kind[at], Kind.SCHEDULER_ENTER)] = SCHEDULER
    occupant[np.isin(at, unknown)] = UNKNOWN
    first = np.searchsorted(columns.cpu[at], np.arange(trace.header.cpus + 2))
    return Occupancy(columns.time[at], occupant, trace.end_ns, first)
