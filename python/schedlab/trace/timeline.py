# SPDX-License-Identifier: MIT
"""What happened to each process, in order: the steps that change what it does."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from schedlab.trace.model import Integers
from schedlab.trace.stories import changes


class Step(IntEnum):
    """How a record changes what a process does."""

    BORN = 0  # FORK, of the child
    OUT = 1  # SWITCH, of the process that leaves it
    IN = 2  # SWITCH, of the process that gets the CPU
    WOKEN = 3  # WAKEUP
    ENDED = 4  # EXIT: it still runs, but will only leave its CPU
    FOUND = 5  # FOUND: it lived before the trace, or is seen again
    UNSEEN = 6  # LOST: what it does is unknown from here on


EXITING = 5
"""The state after ENDED: on its CPU for the last time. Beyond those of ProcessState."""

OUT_OF_SIGHT = 7
"""The state after UNSEEN, until the process is FOUND again. Beyond those of ProcessState."""

FIELD = 32
"""Bits for a row, and for a PID, in a key that sorts steps."""


_DENSE = 1 << 16
"""PIDs that span no more than this are looked up in a table."""


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
        return np.flatnonzero(changes(self.life))

    def life_at(self, pid: Integers, row: Integers) -> Integers:
        """The life that each PID had at each row of the events; -1: none that the trace knows."""
        return life_at(self.pid[self.first], self.row[self.first], pid, row)

    def last_before(self, pid: Integers, row: Integers) -> Integers:
        """Index of each PID's last step before each row of the events; -1: there is none."""
        if len(self.pid) == 0:
            return np.full(len(pid), -1)
        index = np.searchsorted(key(self.pid, self.row), key(pid, row)) - 1
        return np.where((index >= 0) & (self.pid[index] == pid), index, -1)


def key(pid: npt.NDArray[np.integer], row: Integers) -> Integers:
    """Sorts steps by process, then by row."""
    return (pid.astype(np.int64) << FIELD) | row


def life_at(
    start_rows: Integers, begin_row: Integers, pid: npt.NDArray[np.integer], row: Integers
) -> Integers:
    """The life that each PID had at each row; -1: none. `start_rows`, `begin_row`: of each life, its PID and
    where it begins; lives are in the order of both."""
    if len(start_rows) == 0:
        return np.full(len(pid), -1)
    # The fork's own row already belongs to the life that it begins; and steps may come before the first
    # fork of their PID, in traces that lack their beginning.
    span = int(start_rows[-1] - start_rows[0]) + 1
    if span <= _DENSE + 2 * len(pid) and (start_rows[1:] > start_rows[:-1]).all():
        lives = np.take(
            _places(start_rows, span), pid.astype(np.int64) - (start_rows[0] - 1), mode="clip"
        )
        return np.where(row >= begin_row[lives], lives, -1)
    lives = np.searchsorted(key(start_rows, begin_row), key(pid, row), side="right") - 1
    return np.where((lives >= 0) & (start_rows[lives] == pid), lives, -1)


def _places(start_rows: Integers, span: int) -> Integers:
    """The place of each PID, from that before the first to that after the last; -1: it is not there."""
    table = np.full(span + 2, -1)
    table[start_rows - (start_rows[0] - 1)] = np.arange(len(start_rows))
    return table
