# SPDX-License-Identifier: MIT
"""What each CPU says of itself, one CPU after the other, of a part of a trace at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from schedlab.trace.format import RECORD, Kind, ProcessState, is_kind
from schedlab.trace.model import Columns, Integers

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Stories:
    """Records of all CPUs, sorted by CPU, then by their order: those of a part of a trace, and
    before them, of each CPU, those earlier ones on which it depends what the part's may say.

    Arrays of one length, except where it is said.
    """

    begin: int
    """The first row of the part; what is before it comes from earlier parts."""
    row: Integers
    """Of the trace."""
    columns: Columns
    told: Integers
    """Of each CPU of the machine: how many records of it come before those that are here."""

    @cached_property
    def begins(self) -> Integers:
        """Index of the first record of each CPU that has any."""
        return np.flatnonzero(changes(self.columns.cpu))

    @cached_property
    def found_running(self) -> Integers:
        """Indices of records that say which process ran on a CPU when the trace began."""
        found = np.flatnonzero(is_kind(self.columns.kind, Kind.FOUND))
        return found[is_kind(self.columns.first[found], ProcessState.RUNNING)]

    @cached_property
    def entries(self) -> Integers:
        """Indices of records from which on a process has the CPU, or idle."""
        at = np.flatnonzero(is_kind(self.columns.kind, Kind.START, Kind.SWITCH))
        return self._with_found_running(at)

    @cached_property
    def entered(self) -> npt.NDArray[np.uint32]:
        """Of `entries`: the process that has the CPU from there on; 0: idle."""
        at = self.entries
        return np.where(
            is_kind(self.columns.kind[at], Kind.START), np.uint32(0), self.columns.process[at]
        )

    @cached_property
    def counted(self) -> Integers:
        """Indices of records that have the CPU's cycle counter."""
        kinds = (Kind.START, Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT)
        return np.flatnonzero(is_kind(self.columns.kind, *kinds))

    @cached_property
    def visits(self) -> Integers:
        """Indices of records from which on the CPU is in its scheduler, or is in it no more."""
        return self._with_found_running(self.counted)

    def _with_found_running(self, at: Integers) -> Integers:
        return np.sort(np.concatenate((at, self.found_running))) if len(self.found_running) else at

    @cached_property
    def current(self) -> npt.NDArray[np.uint32]:
        """The process that ran on the CPU just before each record; 0: idle."""
        return self.just_before(self.entries, self.entered)

    def just_before(self, at: Integers, value: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        """What held just before each record, if `value` holds from each index in `at` on, on one CPU;
        0 before the first."""
        known = np.zeros(len(self.row), np.uint32)
        known[at] = value
        bounds = np.zeros(len(self.row), bool)
        bounds[self.begins] = True
        bounds[at] = True
        places = np.flatnonzero(bounds)
        holds = np.concatenate((np.zeros(1, np.uint32), known[places]))
        before = np.repeat(holds, np.diff(places + 1, prepend=0, append=len(known)))
        before[self.begins] = 0
        return before

    def following(self, at: Integers) -> Integers:
        """Of indices in their order: the next of them on the same CPU; -1: there is none."""
        return np.where(same_as_next(self.columns.cpu[at]), np.roll(at, -1), -1)

    def kept(self) -> Mask:
        """The records that later parts depend on: of each kind of place the last of each CPU."""
        keep = np.zeros(len(self.row), bool)
        keep[np.append(self.begins[1:], len(keep))[: len(self.begins)] - 1] = True
        for at in (self.entries, self.counted, *([self.visits] if len(self.found_running) else [])):
            keep[self._last_of_cpus(at)] = True
        words = ~is_kind(self.columns.kind, Kind.TEXT)
        if not words.all():
            last_words = self._last_of_cpus(np.flatnonzero(words))
            keep[last_words] = True
            keep[self._unfinished(last_words)] = True
        return keep

    def _last_of_cpus(self, at: Integers) -> Integers:
        last: Integers = at[~same_as_next(self.columns.cpu[at])]
        return last

    def _unfinished(self, last_words: Integers) -> Integers:
        """Indices of the records of texts with which CPUs end."""
        last = np.full(len(self.told), -1)
        last[self.columns.cpu[last_words]] = last_words
        texts = np.flatnonzero(is_kind(self.columns.kind, Kind.TEXT))
        unfinished: Integers = texts[texts > last[self.columns.cpu[texts]]]
        return unfinished


class CpuOrder:
    """Puts the parts of a trace, which come in their order, into that of CPUs."""

    def __init__(self, cpus: int) -> None:
        self._open = Columns.of(np.empty(0, RECORD))
        self._row = np.empty(0, np.int64)
        self._told = np.zeros(cpus, np.int64)

    def take(self, begin: int, columns: Columns) -> Stories:
        """The part that begins at this row. Its CPUs must be those of the machine."""
        known = len(self._row)
        both = self._open.and_then(columns) if known else columns
        order = np.argsort(both.cpu, kind="stable")
        row = order + (begin - known)
        old = np.flatnonzero(order < known)
        row[old] = self._row[order[old]]
        stories = Stories(begin, row, both.at(order), self._told - self._count(self._open))
        self._told += self._count(columns)
        keep = np.flatnonzero(stories.kept())
        self._open, self._row = stories.columns.at(keep), row[keep]
        return stories

    def rest(self) -> Stories:
        """What of the whole trace is still open; no part's records are in it."""
        begin = int(self._row.max(initial=-1)) + 1
        return Stories(begin, self._row, self._open, self._told - self._count(self._open))

    def _count(self, columns: Columns) -> Integers:
        """How many records there are of each CPU."""
        return np.bincount(columns.cpu, minlength=len(self._told))


def same_as_next(values: npt.NDArray[np.integer]) -> Mask:
    """Where a value is the same as the one after it; false at the last."""
    found = np.zeros(len(values), bool)
    np.equal(values[1:], values[:-1], out=found[:-1])
    return found


def changes(values: npt.NDArray[np.integer]) -> Mask:
    """Where a value is not the one before it; true at the first."""
    found = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found
