# SPDX-License-Identifier: MIT
"""Attributes each moment of a wait to its cause.

A runnable process waits at one CPU, where it was placed or ran last, until it migrates. The
activity of that CPU is the cause of the wait. A blocked process waits for its waker: the waker's
activity is the cause. If the waker waited too, its own wait is attributed in the same way, and so
on. The parts therefore add up to the wait exactly.

The chain of wakers follows critical path analysis (Yang and Miller, 1988).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from schedlab.analysis.explanation.occupancy import (
    IDLE,
    SCHEDULER,
    UNKNOWN,
    Occupancy,
    compute_occupancy,
)
from schedlab.analysis.tables.trace_tables import TraceTables
from schedlab.trace import Kind
from schedlab.trace.model import Integers

_REASONS_OF_PROCESSES = ("child", "pipe", "lock", "journal", "exit", "other")
"""Reasons for blocking that end by an action of another process."""


class Cause(str, Enum):
    """The cause of a part of a wait."""

    RAN = "ran"
    """Another process had the CPU; or a process in the chain ran itself."""
    IDLE = "idle"
    """The CPU idled."""
    SCHEDULER = "scheduler"
    """The CPU was in the scheduler."""
    BLOCKED = "blocked"
    """A process waited for something other than a process; `reason` names it."""
    UNKNOWN = "unknown"
    """The trace does not contain the cause."""


@dataclass(frozen=True)
class Blame:
    """One part of a wait: from when to when, and why."""

    begin_ns: int
    end_ns: int
    chain: tuple[int, ...]
    """The processes (lives) that were waited for: each by its predecessor, the first by the process itself."""
    cause: Cause
    life: int | None = None
    """The process that ran."""
    cpu: int | None = None
    """The CPU where this happened."""
    reason: str = ""
    """For BLOCKED: sleep, disk and so on; or `ended`."""

    @property
    def duration_ns(self) -> int:
        """Returns the length of the part in ns."""
        return self.end_ns - self.begin_ns


_Span = tuple[int, int, int, tuple[int, ...]]
"""A process, begin and end, and the chain of processes that leads to it."""
_CAUSES = {IDLE: Cause.IDLE, SCHEDULER: Cause.SCHEDULER, UNKNOWN: Cause.UNKNOWN}


class Blames:
    """Breaks down the waits of one trace."""

    def __init__(self, tables: TraceTables) -> None:
        """Prepares to break down the waits of a trace."""
        self.tables = tables
        self._first_states = np.searchsorted(
            self._life_of_states, np.arange(len(tables.lives) + 1)
        )  # index of each life's first state

    def of(self, life: int, begin_ns: int, end_ns: int) -> list[Blame]:
        """Returns what a process did and waited for between two times: consecutive parts without gaps.

        While the process itself ran, the parts are RAN with itself as `life` and an empty chain.
        """
        blames: list[Blame] = []
        open_spans: list[_Span] = [(life, begin_ns, end_ns, ())]
        while open_spans:
            for part in self._parts(*open_spans.pop()):
                if isinstance(part, Blame):
                    blames.append(part)
                else:
                    open_spans.append(part)
        return sorted(blames, key=lambda part: part.begin_ns)

    @cached_property
    def occupancy(self) -> Occupancy:
        """What each CPU did at each time."""
        return compute_occupancy(self.tables.trace, self.tables.lives)

    def split_at_migrations(self, waits: Integers) -> tuple[Integers, Integers, Integers, Integers]:
        """Splits waits (indices of `tables.waits`) at migrations.

        Returns four arrays with one element per piece: position in `waits`, CPU, begin and end in
        nanoseconds.
        """
        cpu, begin, end = (
            self._wait_columns[name][waits] for name in ("cpu", "begin_ns", "end_ns")
        )
        low, high = (
            np.searchsorted(self._migrations[0], self._migration_sort_keys(name, waits))
            for name in ("begin_row", "end_row")
        )
        moves = high - low
        if not moves.any():
            return np.arange(len(waits)), cpu, begin, end
        count = moves + 1
        wait_indices = np.repeat(np.arange(len(waits)), count)
        number = np.arange(len(wait_indices)) - np.repeat(np.cumsum(count) - count, count)
        _, time, left, reached = self._migrations
        after = np.minimum(low[wait_indices] + number, len(time) - 1)
        before = np.maximum(low[wait_indices] + number - 1, 0)
        first, last = number == 0, number == moves[wait_indices]
        piece_cpus = np.where(first, left[after], reached[before])
        piece_cpus = np.where(moves[wait_indices] == 0, cpu[wait_indices], piece_cpus)
        begins = np.where(first, begin[wait_indices], time[before])
        ends = np.where(last, end[wait_indices], time[after])
        return wait_indices, piece_cpus, np.minimum(begins, ends), ends

    def _parts(
        self, life: int, begin_ns: int, end_ns: int, chain: tuple[int, ...]
    ) -> Iterator[Blame | _Span]:
        """Yields finished parts, and spans that must be broken down further."""
        intervals = range(int(self._first_states[life]), int(self._first_states[life + 1]))
        states, start = self._state_columns, begin_ns
        if intervals and begin_ns < states["begin_ns"][intervals[0]]:
            start = min(int(states["begin_ns"][intervals[0]]), end_ns)
            yield self._part_before_fork(life, begin_ns, start, chain)
        for index in intervals:
            end = min(end_ns, int(states["end_ns"][index]))
            if start < end:
                yield from self._parts_of_state(index, start, end, chain)
                start = end
        if start < end_ns:
            yield Blame(start, end_ns, chain, Cause.BLOCKED, reason="ended")

    def _part_before_fork(
        self, life: int, begin_ns: int, end_ns: int, chain: tuple[int, ...]
    ) -> Blame | _Span:
        """Returns the part before the fork, when the process waits for its parent."""
        parent = int(self.tables.lives.parent[life])
        if parent < 0 or parent in chain or not chain:
            return Blame(begin_ns, end_ns, chain, Cause.UNKNOWN)
        return (parent, begin_ns, end_ns, (*chain, parent))

    def _parts_of_state(
        self, index: int, begin_ns: int, end_ns: int, chain: tuple[int, ...]
    ) -> Iterator[Blame | _Span]:
        """Yields the parts of one state (index `index` of `states`), from `begin_ns` to `end_ns`."""
        states = self._state_columns
        life, state = int(self._life_of_states[index]), self.tables.states["state"][index]
        if state == "running":
            cpu = int(states["cpu"][index])
            yield Blame(begin_ns, end_ns, chain, Cause.RAN, life, cpu)
        elif state == "runnable":
            yield from self._parts_of_waiting(index, begin_ns, end_ns, chain)
        else:
            reason = self.tables.states["cause"][index].removeprefix("blocked: ")
            waker = int(self._wakers[index])
            if (
                reason in _REASONS_OF_PROCESSES
                and waker >= 0
                and waker != life
                and waker not in chain
            ):
                yield (waker, begin_ns, end_ns, (*chain, waker))
            else:
                yield Blame(begin_ns, end_ns, chain, Cause.BLOCKED, reason=reason)

    def _parts_of_waiting(
        self, index: int, begin_ns: int, end_ns: int, chain: tuple[int, ...]
    ) -> Iterator[Blame]:
        """Yields what the CPUs did while a runnable process waited for them."""
        wait = np.searchsorted(
            self._wait_columns["begin_row"][self._waits_by_row],
            self._state_columns["begin_row"][index],
        )
        _, cpus, begins, ends = self.split_at_migrations(self._waits_by_row[wait : wait + 1])
        begins, ends = np.maximum(begins, begin_ns), np.minimum(ends, end_ns)
        non_empty = begins < ends
        cpus, begins, ends = cpus[non_empty], begins[non_empty], ends[non_empty]
        segments, begins, ends, occupants = self.occupancy.overlapping(cpus, begins, ends)
        for cpu, begin, end, occupant in zip(
            cpus[segments].tolist(), begins.tolist(), ends.tolist(), occupants.tolist(), strict=True
        ):
            if occupant >= 0:
                yield Blame(begin, end, chain, Cause.RAN, occupant, cpu)
            else:
                yield Blame(begin, end, chain, _CAUSES[occupant], cpu=cpu)

    @cached_property
    def _life_of_states(self) -> Integers:
        """Returns the process of each state, as an array."""
        return self.tables.states["life"].to_numpy()

    @cached_property
    def _state_columns(self) -> dict[str, Integers]:
        names = ("begin_ns", "end_ns", "begin_row", "cpu")
        return {name: self.tables.states[name].to_numpy() for name in names}

    @cached_property
    def _wakers(self) -> Integers:
        """For each state, the process that ended it by a wake-up; -1 if none did."""
        wakers = np.full(len(self._life_of_states), -1)
        blocked = (self.tables.states["state"] == "blocked").to_numpy()
        wakers[blocked] = self.tables.blocks["waker_life"].fill_null(-1).to_numpy()
        return wakers

    @cached_property
    def _wait_columns(self) -> dict[str, Integers]:
        names = ("pid", "cpu", "begin_ns", "end_ns", "begin_row")
        waits = self.tables.waits
        last = len(self.tables.trace)
        return {
            **{name: waits[name].to_numpy().astype(np.int64) for name in names},
            "end_row": waits["end_row"].fill_null(last).to_numpy(),
        }

    @cached_property
    def _waits_by_row(self) -> Integers:
        """Indices of the waits, sorted by their first row."""
        return np.argsort(self._wait_columns["begin_row"], kind="stable")

    @cached_property
    def _migrations(self) -> tuple[Integers, Integers, Integers, Integers]:
        """MIGRATE records sorted by process and row: key, time, source CPU, target CPU."""
        trace = self.tables.trace
        rows = trace.rows(Kind.MIGRATE)
        if len(rows) == 0:
            return rows, rows, rows, rows
        keys = (trace.at("process", rows).astype(np.int64) << 32) | rows
        order = np.argsort(keys)
        rows = rows[order]
        return (
            keys[order],
            trace.at("time_ns", rows),
            trace.at("first", rows).astype(np.int64),
            trace.at("second", rows).astype(np.int64),
        )

    def _migration_sort_keys(self, name: str, waits: Integers) -> Integers:
        """Returns numbers that sort waits by PID and by the row in the column `name`."""
        keys: Integers = (self._wait_columns["pid"][waits] << 32) | self._wait_columns[name][waits]
        return keys
