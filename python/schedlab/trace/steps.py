# SPDX-License-Identifier: MIT
"""Sorts the steps (state changes) of processes by process, part by part of a trace."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schedlab.trace.cpu_records import Mask, equals_next, is_change, stable_order
from schedlab.trace.format import Kind, LossKind, ProcessState, is_kind
from schedlab.trace.model import Columns, Integers, Trace
from schedlab.trace.timeline import EXITING, OUT_OF_SIGHT, ProcessSteps, Step

_STEP_OF_KIND = {
    Kind.FORK: Step.BORN,
    Kind.SWITCH: Step.OUT,
    Kind.WAKEUP: Step.WOKEN,
    Kind.EXIT: Step.ENDED,
    Kind.FOUND: Step.FOUND,
    Kind.LOST: Step.UNSEEN,
}
"""The step that a record of each kind means for its process.

A SWITCH means two steps, OUT and IN. LOST is a step only if it is UNSEEN.
"""
_FIRST_STEP = np.zeros(max(_STEP_OF_KIND) + 1, np.int8)
_FIRST_STEP[list(_STEP_OF_KIND)] = list(_STEP_OF_KIND.values())


@dataclass(frozen=True, eq=False)
class Steps(ProcessSteps):
    """The steps in a part of a trace, sorted by process.

    Each process's last step of earlier parts precedes them; if that was an EXIT, the step before
    it, too. `life` numbers lives by their first appearance.
    """

    time: Integers
    """Nanoseconds."""
    cpu: npt.NDArray[np.uint16]
    """The CPU whose record it is."""
    begin: int
    """First row of the part; steps with smaller rows come from earlier parts."""

    def of(self, at: Integers) -> Steps:
        """Returns the steps with these indices."""
        columns = {field.name: getattr(self, field.name)[at] for field in fields(self)[:-1]}
        return replace(self, **columns)

    @cached_property
    def needed_later(self) -> Mask:
        """For each step: true if later parts depend on it."""
        keep = ~equals_next(self.pid)
        ended = is_kind(self.step, Step.ENDED)
        if ended.any():
            others = np.flatnonzero(~ended)
            keep[others[~equals_next(self.pid[others])]] = True
        return keep


class StepSorter:
    """Sorts consecutive parts of a trace by process."""

    def __init__(self) -> None:
        none = np.empty(0, np.int64)
        few = np.empty(0, np.int8)
        self._last = Steps(none, none, few, few, none, none, np.empty(0, np.uint16), 0)
        self.lives = 0
        """Number of lives so far."""

    def take(self, begin: int, columns: Columns) -> Steps:
        """Returns the steps of the part that begins at this row."""
        carried = self._last
        carried_count = len(carried.pid)
        new = _extract_steps(columns)
        pid = np.concatenate((carried.pid, new.pid))
        order = stable_order(pid)[np.count_nonzero(pid == 0) :]
        pid = pid[order]
        packed = np.concatenate((_pack_step(carried.step, carried.after, carried.cpu), new.packed))[
            order
        ]
        step, after = packed.astype(np.int8), (packed >> 8).astype(np.int8)
        at = np.concatenate((np.zeros(carried_count, np.int64), new.at))[order]
        row, time = at + begin, columns.time[at]
        carried_positions = np.flatnonzero(order < carried_count)
        row[carried_positions], time[carried_positions] = (
            carried.row[order[carried_positions]],
            carried.time[order[carried_positions]],
        )
        life = self._number_lives(pid, step, order, row >= begin)
        cpu = (packed >> 16).astype(np.uint16)
        steps = Steps(pid, row, step, after, life, time, cpu, begin)
        self._last = steps.of(np.flatnonzero(steps.needed_later))
        return steps

    def rest(self) -> Steps:
        """Returns, after the last part, each process's last step, and the last before its EXIT."""
        return self._last

    def _number_lives(
        self, pid: Integers, step: npt.NDArray[np.int8], place: Integers, is_new: Mask
    ) -> Integers:
        begins = np.flatnonzero(is_change(pid) | is_kind(step, Step.BORN))
        born = is_new[begins]
        life_numbers = np.empty(len(begins), np.int64)
        life_numbers[~born] = self._last.life[place[begins[~born]]]
        born_count = int(np.count_nonzero(born))
        life_numbers[born] = np.arange(self.lives, self.lives + born_count)
        self.lives += born_count
        return np.repeat(life_numbers, np.diff(begins, append=len(pid)))


def sort_steps(trace: Trace) -> Steps:
    """Returns the steps of all processes, sorted. PID 0, the idle process, has none."""
    return StepSorter().take(0, trace.columns)


class _UnsortedSteps(NamedTuple):
    """Steps in the order of their records, before they are sorted; arrays of equal length."""

    at: Integers
    """Index of the record."""
    pid: Integers
    """0: the idle process, which has no steps."""
    packed: npt.NDArray[np.uint32]
    """Step, next state and CPU, packed by _pack_step."""


def _extract_steps(columns: Columns) -> _UnsortedSteps:
    """Returns the steps of a part, in the order of its records."""
    rows = np.flatnonzero(is_kind(columns.kind, *_STEP_OF_KIND))
    kind = columns.kind[rows]
    lost = is_kind(kind, Kind.LOST)
    if lost.any():
        is_step = ~lost | (columns.first[rows] == LossKind.UNSEEN)
        rows, kind = rows[is_step], kind[is_step]
    times = 1 + is_kind(kind, Kind.SWITCH)
    at, step = (np.repeat(rows, times), np.repeat(np.take(_FIRST_STEP, kind), times))
    # a switch is also a step of the process that gets the CPU
    step[1:] += at[1:] == at[:-1]
    first = columns.first[at]
    pid = np.where(is_kind(step, Step.BORN, Step.OUT), first, columns.process[at])
    after = np.take(_STATE_AFTER, step)
    switches = rows[is_kind(kind, Kind.SWITCH)]
    after[np.flatnonzero(is_kind(step, Step.OUT))] = np.minimum(columns.second[switches], 127)
    initial = np.flatnonzero(is_kind(step, Step.FOUND))
    after[initial] = np.minimum(first[initial], 127)
    return _UnsortedSteps(at, pid.astype(np.int64), _pack_step(step, after, columns.cpu[at]))


def _pack_step(
    step: npt.NDArray[np.int8], after: npt.NDArray[np.int8], cpu: npt.NDArray[np.uint16]
) -> npt.NDArray[np.uint32]:
    """Packs step, next state and CPU into one number, so that they are sorted together."""
    packed: npt.NDArray[np.uint32] = cpu.astype(np.uint32)
    packed <<= 16
    packed |= after.astype(np.uint32) << 8
    packed |= step.astype(np.uint32)
    return packed


_STATE_AFTER = np.array(
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
