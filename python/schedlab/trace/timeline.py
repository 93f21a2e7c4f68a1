# SPDX-License-Identifier: MIT
"""What happened to each process, in order: the steps that change what it does."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from schedlab.trace.format import Kind, ProcessState
from schedlab.trace.model import Integers, Trace


class Step(IntEnum):
    """How a record changes what a process does."""

    BORN = 0  # FORK, of the child
    IN = 1  # SWITCH, of the process that gets the CPU
    OUT = 2  # SWITCH, of the process that leaves it
    WOKEN = 3  # WAKEUP
    ENDED = 4  # EXIT: it still runs, but will only leave its CPU
    FOUND = 5  # FOUND: it lived before the trace


EXITING = 5
"""The state after ENDED: on its CPU for the last time. Beyond those of ProcessState."""

_FIELD = 32
"""Bits for a row, and for a PID, in a key that sorts steps."""


@dataclass(frozen=True, eq=False)
class Timeline:
    """Steps sorted by process, then by time. One life: a PID from its fork, or from
    where it was found, to its end.

    Arrays of one length: `pid`, `row` (in the events), `step`, `after` (the
    process's state from here on), `life` (a number per life, from 0, in the
    order of PID and fork).
    """

    pid: Integers
    row: Integers
    step: npt.NDArray[np.int8]
    after: npt.NDArray[np.int8]
    life: Integers

    @property
    def first(self) -> Integers:
        """Index of the first step of each life."""
        return np.flatnonzero(np.diff(self.life, prepend=-1))

    def life_at(self, pid: Integers, row: Integers) -> Integers:
        """The life that each PID had at each row of the events; -1: none that the trace knows."""
        first = self.first
        if len(first) == 0:
            return np.full(len(pid), -1)
        begins = _key(self.pid[first], self.row[first])
        # The fork's own row already belongs to the life that it begins.
        found = np.searchsorted(begins, _key(pid, row), side="right") - 1
        known = (found >= 0) & (self.pid[first[found]] == pid)
        # Steps before the first fork of their PID, in traces that lack their beginning.
        return np.where(known, found, -1)

    def last_before(self, pid: Integers, row: Integers) -> Integers:
        """Index of each PID's last step before each row of the events; -1: there is none."""
        if len(self.pid) == 0:
            return np.full(len(pid), -1)
        found = np.searchsorted(_key(self.pid, self.row), _key(pid, row)) - 1
        return np.where((found >= 0) & (self.pid[found] == pid), found, -1)


def timeline(trace: Trace) -> Timeline:
    """Orders the steps of all processes; idle, process 0, has none."""
    kinds = trace.column("kind")
    process = trace.column("process")
    other = trace.column("first")
    switches = np.flatnonzero(kinds == Kind.SWITCH)
    parts = (
        (np.flatnonzero(kinds == Kind.FORK), other, Step.BORN),
        (switches, other, Step.OUT),
        (switches, process, Step.IN),
        (np.flatnonzero(kinds == Kind.WAKEUP), process, Step.WOKEN),
        (np.flatnonzero(kinds == Kind.EXIT), process, Step.ENDED),
        (np.flatnonzero(kinds == Kind.FOUND), process, Step.FOUND),
    )
    row = np.concatenate([rows for rows, _, _ in parts])
    pid = np.concatenate([pids[rows] for rows, pids, _ in parts]).astype(np.int64)
    step = np.concatenate([np.full(len(rows), step, np.int8) for rows, _, step in parts])
    real = pid != 0
    row, pid, step = row[real], pid[real], step[real]
    order = np.argsort(_key(pid, row))
    row, pid, step = row[order], pid[order], step[order]
    begins = (np.diff(pid, prepend=-1) != 0) | (step == Step.BORN)
    return Timeline(
        pid=pid,
        row=row,
        step=step,
        after=_after(trace, row, step),
        life=np.cumsum(begins) - 1,
    )


_AFTER = np.array(
    [
        ProcessState.RUNNABLE,  # BORN
        ProcessState.RUNNING,  # IN
        ProcessState.NEW,  # OUT: as the record says
        ProcessState.RUNNABLE,  # WOKEN
        EXITING,  # ENDED
        ProcessState.NEW,  # FOUND: as the record says
    ],
    np.int8,
)


def _after(trace: Trace, row: Integers, step: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    after = _AFTER[step]
    for said_by, column in ((Step.OUT, "second"), (Step.FOUND, "first")):
        says = step == said_by
        after[says] = np.minimum(trace.column(column)[row[says]], 127)
    return after


def _key(pid: Integers, row: Integers) -> Integers:
    return (pid.astype(np.int64) << _FIELD) | row
