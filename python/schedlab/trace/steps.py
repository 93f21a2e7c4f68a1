# SPDX-License-Identifier: MIT
"""Puts what happens into the order of processes, of a part of a trace at a time."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from schedlab.trace.format import Kind, ProcessState, is_kind
from schedlab.trace.model import Columns, Integers, Trace
from schedlab.trace.stories import Mask, changes, same_as_next
from schedlab.trace.timeline import EXITING, FIELD, Step, Timeline

_STEP = 3
"""Bits for a step in a key that sorts steps."""


@dataclass(frozen=True, eq=False)
class Steps(Timeline):
    """The steps of a part of a trace, and before them each process's last one of earlier parts (if
    that was an EXIT, the last before it, too). `life`: in the order in which they begin in parts."""

    time: Integers
    """Nanoseconds."""
    cpu: npt.NDArray[np.uint16]
    """Whose record it was."""
    begin: int
    """The first row of the part; what is before it comes from earlier parts."""

    def of(self, at: Integers) -> Steps:
        """Some of them, by their indices."""
        chosen = {each.name: getattr(self, each.name)[at] for each in fields(self)[:-1]}
        return replace(self, **chosen)

    @cached_property
    def kept(self) -> Mask:
        """Those that later parts depend on."""
        keep = self._last_of_processes(np.arange(len(self.pid)))
        ended = is_kind(self.step, Step.ENDED)
        if ended.any():
            keep |= self._last_of_processes(np.flatnonzero(~ended))
        return keep

    def _last_of_processes(self, at: Integers) -> Mask:
        found = np.zeros(len(self.pid), bool)
        found[at[~same_as_next(self.pid[at])]] = True
        return found


class ProcessOrder:
    """Puts the parts of a trace, which come in their order, into that of processes."""

    def __init__(self) -> None:
        none = np.empty(0, np.int64)
        few = np.empty(0, np.int8)
        self._last = Steps(none, none, few, few, none, none, np.empty(0, np.uint16), 0)
        self.lives = 0
        """So many have begun."""

    def take(self, begin: int, columns: Columns) -> Steps:
        """The part that begins at this row."""
        last = self._last
        keys = np.sort(np.concatenate((_keys_of_last(last), _keys(columns, len(last.pid)))))
        pid = keys >> FIELD
        place = (keys & ((1 << FIELD) - 1)) >> _STEP
        step = (keys & ((1 << _STEP) - 1)).astype(np.int8)
        old = np.flatnonzero(place < len(last.pid))
        at = place - len(last.pid)
        at[old] = 0
        row = at + begin
        time, cpu, after = columns.time[at], columns.cpu[at], _after(columns, step, at)
        for values, known in (
            (row, last.row),
            (time, last.time),
            (cpu, last.cpu),
            (after, last.after),
        ):
            values[old] = known[place[old]]
        life = self._lives_of(pid, step, place, row >= begin)
        steps = Steps(pid, row, step, after, life, time, cpu, begin)
        self._last = steps.of(np.flatnonzero(steps.kept))
        return steps

    def rest(self) -> Steps:
        """The last step of each process in the whole trace (and the last before its EXIT)."""
        return self._last

    def _lives_of(
        self, pid: Integers, step: npt.NDArray[np.int8], place: Integers, new: Mask
    ) -> Integers:
        begins = np.flatnonzero(changes(pid) | is_kind(step, Step.BORN))
        begun = new[begins]
        number = np.empty(len(begins), np.int64)
        number[~begun] = self._last.life[place[begins[~begun]]]
        count = int(np.count_nonzero(begun))
        number[begun] = np.arange(self.lives, self.lives + count)
        self.lives += count
        return np.repeat(number, np.diff(begins, append=len(pid)))


def timeline(trace: Trace) -> Steps:
    """Orders the steps of all processes; idle, process 0, has none."""
    return ProcessOrder().take(0, trace.columns)


_AFTER = np.array(
    [
        ProcessState.RUNNABLE,  # BORN
        ProcessState.NEW,  # OUT: as the record says
        ProcessState.RUNNING,  # IN
        ProcessState.RUNNABLE,  # WOKEN
        EXITING,  # ENDED
        ProcessState.NEW,  # FOUND: as the record says
    ],
    np.int8,
)


def _after(columns: Columns, step: npt.NDArray[np.int8], at: Integers) -> npt.NDArray[np.int8]:
    after = np.take(_AFTER, step)
    for said_by, column in ((Step.OUT, columns.second), (Step.FOUND, columns.first)):
        says = np.flatnonzero(is_kind(step, said_by))
        after[says] = np.minimum(column[at[says]], 127)
    return after


def _keys(columns: Columns, place: int) -> Integers:
    """Of each step its process, its place, counted from `place`, and what it is."""
    kind, process, other = columns.kind, columns.process, columns.first
    switches = np.flatnonzero(is_kind(kind, Kind.SWITCH))
    parts = (
        (np.flatnonzero(is_kind(kind, Kind.FORK)), other, Step.BORN),
        (switches, other, Step.OUT),
        (switches, process, Step.IN),
        (np.flatnonzero(is_kind(kind, Kind.WAKEUP)), process, Step.WOKEN),
        (np.flatnonzero(is_kind(kind, Kind.EXIT)), process, Step.ENDED),
        (np.flatnonzero(is_kind(kind, Kind.FOUND)), process, Step.FOUND),
    )
    keys = np.concatenate(
        [
            (pids[rows].astype(np.int64) << FIELD) | ((rows + place) << _STEP) | int(step)
            for rows, pids, step in parts
        ]
    )
    of_processes: Integers = keys[keys >> FIELD != 0]
    return of_processes


def _keys_of_last(last: Steps) -> Integers:
    return (last.pid << FIELD) | (np.arange(len(last.pid)) << _STEP) | last.step
