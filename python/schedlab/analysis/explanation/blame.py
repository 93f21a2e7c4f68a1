# SPDX-License-Identifier: MIT
"""What a process waited for, moment by moment.

A runnable process waits at one CPU, where it was placed or ran last, until it migrates: what that CPU did
meanwhile is what it waited for. A process that another one must wake waits for what that one did meanwhile; if
that one waited itself, for what it waited for; and so on. So the times add up to the wait exactly. (The chain of
wakers is that of critical path analysis: Yang and Miller 1988.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from schedlab.analysis.explanation.occupancy import IDLE, SCHEDULER, UNKNOWN, Occupancy, occupancy
from schedlab.analysis.tables.trace_tables import TraceTables
from schedlab.trace import Kind
from schedlab.trace.model import Integers

_FOR_PROCESSES = ("child", "pipe", "lock", "journal", "exit", "other")
"""Reasons to be blocked that another process ends by what it does."""


class Cause(str, Enum):
    """What the time went by with."""

    RAN = "ran"
    """Another process had the CPU; or, of a process that was waited for, it had one itself."""
    IDLE = "idle"
    """The CPU idled."""
    SCHEDULER = "scheduler"
    """The CPU was in the scheduler."""
    BLOCKED = "blocked"
    """It waited for no process: `reason` says for what."""
    UNKNOWN = "unknown"
    """The trace does not tell."""


@dataclass(frozen=True)
class Blame:
    """A part of a wait."""

    begin_ns: int
    end_ns: int
    chain: tuple[int, ...]
    """The processes (lives) that were waited for: each by the one before it, the first by the process itself."""
    cause: Cause
    life: int | None = None
    """The process that ran."""
    cpu: int | None = None
    """The CPU of which this is told."""
    reason: str = ""
    """Of BLOCKED: sleep, disk …; or `ended`."""

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.begin_ns


_Span = tuple[int, int, int, tuple[int, ...]]
"""A process, two times, and the chain of processes that leads to it."""
_CAUSES = {IDLE: Cause.IDLE, SCHEDULER: Cause.SCHEDULER, UNKNOWN: Cause.UNKNOWN}


class Blames:
    """Takes the waits of one trace apart."""

    def __init__(self, tables: TraceTables) -> None:
        self.tables = tables
        self._first = np.searchsorted(
            self._life, np.arange(len(tables.lives) + 1)
        )  # of each life's states

    def of(self, life: int, begin_ns: int, end_ns: int) -> list[Blame]:
        """What a process did, and waited for, between two times, in their order: parts that follow each other
        without a gap. Parts in which it ran itself are RAN, with itself as `life` and no chain."""
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
    def cpus(self) -> Occupancy:
        """What the CPUs did."""
        return occupancy(self.tables.trace, self.tables.lives)

    def pieces(self, waits: Integers) -> tuple[Integers, Integers, Integers, Integers]:
        """Of waits (indices of `tables.waits`): which of them, at which CPU, from when, until when; one that
        migrates has several pieces."""
        cpu, begin, end = (self._waits[name][waits] for name in ("cpu", "begin_ns", "end_ns"))
        low, high = (
            np.searchsorted(self._moves[0], self._move_keys(name, waits))
            for name in ("begin_row", "end_row")
        )
        moves = high - low
        if not moves.any():
            return np.arange(len(waits)), cpu, begin, end
        count = moves + 1
        which = np.repeat(np.arange(len(waits)), count)
        number = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        _, time, left, reached = self._moves
        after = np.minimum(low[which] + number, len(time) - 1)
        before = np.maximum(low[which] + number - 1, 0)
        first, last = number == 0, number == moves[which]
        at = np.where(first, left[after], reached[before])
        at = np.where(moves[which] == 0, cpu[which], at)
        begins = np.where(first, begin[which], time[before])
        ends = np.where(last, end[which], time[after])
        return which, at, np.minimum(begins, ends), ends

    def _parts(
        self, life: int, begin_ns: int, end_ns: int, chain: tuple[int, ...]
    ) -> Iterator[Blame | _Span]:
        """Parts that are known, and spans that are to be taken apart."""
        intervals = range(int(self._first[life]), int(self._first[life + 1]))
        states, start = self._states, begin_ns
        if intervals and begin_ns < states["begin_ns"][intervals[0]]:
            start = min(int(states["begin_ns"][intervals[0]]), end_ns)
            yield self._before(life, begin_ns, start, chain)
        for at in intervals:
            end = min(end_ns, int(states["end_ns"][at]))
            if start < end:
                yield from self._in_state(at, start, end, chain)
                start = end
        if start < end_ns:
            yield Blame(start, end_ns, chain, Cause.BLOCKED, reason="ended")

    def _before(
        self, life: int, begin_ns: int, end_ns: int, chain: tuple[int, ...]
    ) -> Blame | _Span:
        """Before it was forked, its parent is waited for."""
        parent = int(self.tables.lives.parent[life])
        if parent < 0 or parent in chain or not chain:
            return Blame(begin_ns, end_ns, chain, Cause.UNKNOWN)
        return (parent, begin_ns, end_ns, (*chain, parent))

    def _in_state(
        self, at: int, begin_ns: int, end_ns: int, chain: tuple[int, ...]
    ) -> Iterator[Blame | _Span]:
        states = self._states
        life, state = int(self._life[at]), self.tables.states["state"][at]
        if state == "running":
            cpu = int(states["cpu"][at])
            yield Blame(begin_ns, end_ns, chain, Cause.RAN, life, cpu)
        elif state == "runnable":
            yield from self._waiting(at, begin_ns, end_ns, chain)
        else:
            reason = self.tables.states["cause"][at].removeprefix("blocked: ")
            waker = int(self._waker[at])
            if reason in _FOR_PROCESSES and waker >= 0 and waker != life and waker not in chain:
                yield (waker, begin_ns, end_ns, (*chain, waker))
            else:
                yield Blame(begin_ns, end_ns, chain, Cause.BLOCKED, reason=reason)

    def _waiting(
        self, at: int, begin_ns: int, end_ns: int, chain: tuple[int, ...]
    ) -> Iterator[Blame]:
        wait = np.searchsorted(
            self._waits["begin_row"][self._by_row], self._states["begin_row"][at]
        )
        _, cpus, begins, ends = self.pieces(self._by_row[wait : wait + 1])
        begins, ends = np.maximum(begins, begin_ns), np.minimum(ends, end_ns)
        non_empty = begins < ends
        cpus, begins, ends = cpus[non_empty], begins[non_empty], ends[non_empty]
        which, begins, ends, occupants = self.cpus.overlapping(cpus, begins, ends)
        for cpu, begin, end, occupant in zip(
            cpus[which].tolist(), begins.tolist(), ends.tolist(), occupants.tolist(), strict=True
        ):
            if occupant >= 0:
                yield Blame(begin, end, chain, Cause.RAN, occupant, cpu)
            else:
                yield Blame(begin, end, chain, _CAUSES[occupant], cpu=cpu)

    @cached_property
    def _life(self) -> Integers:
        return self.tables.states["life"].to_numpy()

    @cached_property
    def _states(self) -> dict[str, Integers]:
        names = ("begin_ns", "end_ns", "begin_row", "cpu")
        return {name: self.tables.states[name].to_numpy() for name in names}

    @cached_property
    def _waker(self) -> Integers:
        """Of each state: the process that ended it by waking; -1: none did."""
        wakers = np.full(len(self._life), -1)
        blocked = (self.tables.states["state"] == "blocked").to_numpy()
        wakers[blocked] = self.tables.blocks["waker_life"].fill_null(-1).to_numpy()
        return wakers

    @cached_property
    def _waits(self) -> dict[str, Integers]:
        names = ("pid", "cpu", "begin_ns", "end_ns", "begin_row")
        waits = self.tables.waits
        last = len(self.tables.trace)
        return {
            **{name: waits[name].to_numpy().astype(np.int64) for name in names},
            "end_row": waits["end_row"].fill_null(last).to_numpy(),
        }

    @cached_property
    def _by_row(self) -> Integers:
        return np.argsort(self._waits["begin_row"], kind="stable")

    @cached_property
    def _moves(self) -> tuple[Integers, Integers, Integers, Integers]:
        """MIGRATE records by process, then by row: a key, when, from which CPU, and to which."""
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

    def _move_keys(self, name: str, waits: Integers) -> Integers:
        keys: Integers = (self._waits["pid"][waits] << 32) | self._waits[name][waits]
        return keys
