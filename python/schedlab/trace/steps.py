# SPDX-License-Identifier: MIT
"""Sorts the steps of processes by process, one part of a trace at a time."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schedlab.trace.cpu_records import Mask, changes, same_as_next, stable_order
from schedlab.trace.format import Kind, LossKind, ProcessState, is_kind
from schedlab.trace.model import Columns, Integers, Trace
from schedlab.trace.timeline import EXITING, OUT_OF_SIGHT, Step, Timeline

_STEPS = {
    Kind.FORK: Step.BORN,
    Kind.SWITCH: Step.OUT,
    Kind.WAKEUP: Step.WOKEN,
    Kind.EXIT: Step.ENDED,
    Kind.FOUND: Step.FOUND,
    Kind.LOST: Step.UNSEEN,
}
"""The step for each kind of record. A SWITCH makes two steps, OUT and IN; LOST is a step only if it is UNSEEN."""
_FIRST_STEP = np.zeros(max(_STEPS) + 1, np.int8)
_FIRST_STEP[list(_STEPS)] = list(_STEPS.values())


@dataclass(frozen=True, eq=False)
class Steps(Timeline):
    """The steps of a part of a trace, preceded by each process's last step of earlier parts.

    If that was an EXIT, the step before it is included, too. `life` numbers lives by their first
    appearance.
    """

    time: Integers
    """Nanoseconds."""
    cpu: npt.NDArray[np.uint16]
    """The CPU that wrote the record."""
    begin: int
    """The first row of the part; earlier rows come from earlier parts."""

    def of(self, at: Integers) -> Steps:
        """Returns some of the steps, by their indices."""
        chosen = {field.name: getattr(self, field.name)[at] for field in fields(self)[:-1]}
        return replace(self, **chosen)

    @cached_property
    def needed_later(self) -> Mask:
        """Marks the steps that later parts depend on."""
        keep = ~same_as_next(self.pid)
        ended = is_kind(self.step, Step.ENDED)
        if ended.any():
            others = np.flatnonzero(~ended)
            keep[others[~same_as_next(self.pid[others])]] = True
        return keep


class ProcessOrder:
    """Sorts consecutive parts of a trace by process."""

    def __init__(self) -> None:
        none = np.empty(0, np.int64)
        few = np.empty(0, np.int8)
        self._last = Steps(none, none, few, few, none, none, np.empty(0, np.uint16), 0)
        self.lives = 0
        """Number of lives so far."""

    def take(self, begin: int, columns: Columns) -> Steps:
        """Returns the steps of the part that begins at this row."""
        last = self._last
        known = len(last.pid)
        new = _steps_of(columns)
        pid = np.concatenate((last.pid, new.pid))
        order = stable_order(pid)[np.count_nonzero(pid == 0) :]
        pid = pid[order]
        facts = np.concatenate((_facts(last.step, last.after, last.cpu), new.facts))[order]
        step, after = facts.astype(np.int8), (facts >> 8).astype(np.int8)
        at = np.concatenate((np.zeros(known, np.int64), new.at))[order]
        row, time = at + begin, columns.time[at]
        old = np.flatnonzero(order < known)
        row[old], time[old] = last.row[order[old]], last.time[order[old]]
        life = self._lives_of(pid, step, order, row >= begin)
        cpu = (facts >> 16).astype(np.uint16)
        steps = Steps(pid, row, step, after, life, time, cpu, begin)
        self._last = steps.of(np.flatnonzero(steps.needed_later))
        return steps

    def rest(self) -> Steps:
        """Returns the last step of each process in the whole trace (and the last before its EXIT)."""
        return self._last

    def _lives_of(
        self, pid: Integers, step: npt.NDArray[np.int8], place: Integers, new: Mask
    ) -> Integers:
        begins = np.flatnonzero(changes(pid) | is_kind(step, Step.BORN))
        born = new[begins]
        number = np.empty(len(begins), np.int64)
        number[~born] = self._last.life[place[begins[~born]]]
        count = int(np.count_nonzero(born))
        number[born] = np.arange(self.lives, self.lives + count)
        self.lives += count
        return np.repeat(number, np.diff(begins, append=len(pid)))


def timeline(trace: Trace) -> Steps:
    """Returns the sorted steps of all processes. The idle process, PID 0, has none."""
    return ProcessOrder().take(0, trace.columns)


class _New(NamedTuple):
    """Steps in the order of their records, as arrays of equal length."""

    at: Integers
    """Index of the record."""
    pid: Integers
    """0: the idle process, which has no steps."""
    facts: npt.NDArray[np.uint32]
    """See _facts."""


def _steps_of(columns: Columns) -> _New:
    rows = np.flatnonzero(is_kind(columns.kind, *_STEPS))
    kind = columns.kind[rows]
    lost = is_kind(kind, Kind.LOST)
    if lost.any():
        steps = ~lost | (columns.first[rows] == LossKind.UNSEEN)
        rows, kind = rows[steps], kind[steps]
    times = 1 + is_kind(kind, Kind.SWITCH)
    at, step = np.repeat(rows, times), np.repeat(np.take(_FIRST_STEP, kind), times)
    # The second step of a switch.
    step[1:] += at[1:] == at[:-1]
    first = columns.first[at]
    pid = np.where(is_kind(step, Step.BORN, Step.OUT), first, columns.process[at])
    after = np.take(_AFTER, step)
    switches = rows[is_kind(kind, Kind.SWITCH)]
    after[np.flatnonzero(is_kind(step, Step.OUT))] = np.minimum(columns.second[switches], 127)
    initial = np.flatnonzero(is_kind(step, Step.FOUND))
    after[initial] = np.minimum(first[initial], 127)
    return _New(at, pid.astype(np.int64), _facts(step, after, columns.cpu[at]))


def _facts(
    step: npt.NDArray[np.int8], after: npt.NDArray[np.int8], cpu: npt.NDArray[np.uint16]
) -> npt.NDArray[np.uint32]:
    """Packs step, next state and CPU of the record into one number, so that they are sorted together."""
    facts: npt.NDArray[np.uint32] = cpu.astype(np.uint32)
    facts <<= 16
    facts |= after.astype(np.uint32) << 8
    facts |= step.astype(np.uint32)
    return facts


_AFTER = np.array(
    [
        ProcessState.RUNNABLE,  # BORN
        ProcessState.NEW,  # OUT: the record contains the state
        ProcessState.RUNNING,  # IN
        ProcessState.RUNNABLE,  # WOKEN
        EXITING,  # ENDED
        ProcessState.NEW,  # FOUND: the record contains the state
        OUT_OF_SIGHT,  # UNSEEN
    ],
    np.int8,
)
