# SPDX-License-Identifier: MIT
"""Defines the steps that change a process's state, in order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from schedlab.trace.cpu_records import changes
from schedlab.trace.model import Integers


class Step(IntEnum):
    """How a record changes a process's state."""

    BORN = 0  # FORK, for the child
    OUT = 1  # SWITCH, for the process that leaves the CPU
    IN = 2  # SWITCH, for the process that gets the CPU
    WOKEN = 3  # WAKEUP
    ENDED = 4  # EXIT: it still runs, but will only leave its CPU
    FOUND = 5  # FOUND: it existed before the trace, or is visible again
    UNSEEN = 6  # LOST: its state is unknown after this record


EXITING = 5
"""The state after ENDED: on its CPU for the last time. Not a value of ProcessState."""

OUT_OF_SIGHT = 7
"""The state after UNSEEN, until the process is FOUND again. Not a value of ProcessState."""

FIELD = 32
"""Bits for a row, and for a PID, in the sort key of steps."""


_DENSE = 1 << 16
"""If PIDs span at most this range, they are looked up in a table."""


@dataclass(frozen=True, eq=False)
class Timeline:
    """Steps sorted by process and time. A life is a PID from its fork, or its first appearance, to its exit.

    Arrays of equal length: `pid`, `row` (in the events), `step`, `after` (the process's state after
    the step), `life` (a number per life, starting at 0, in the order of PID and fork).
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
        """Returns the life that each PID had at each row of the events; −1 if unknown."""
        return life_at(self.pid[self.first], self.row[self.first], pid, row)

    def last_before(self, pid: Integers, row: Integers) -> Integers:
        """Returns the index of each PID's last step before each row of the events; −1 if there is none."""
        if len(self.pid) == 0:
            return np.full(len(pid), -1)
        index = np.searchsorted(key(self.pid, self.row), key(pid, row)) - 1
        return np.where((index >= 0) & (self.pid[index] == pid), index, -1)


def key(pid: npt.NDArray[np.integer], row: Integers) -> Integers:
    """Returns a key that sorts by process and row."""
    return (pid.astype(np.int64) << FIELD) | row


def life_at(
    start_rows: Integers, begin_row: Integers, pid: npt.NDArray[np.integer], row: Integers
) -> Integers:
    """Returns the life that each PID had at each row; −1 if there is none.

    `start_rows` and `begin_row`: PID and first row of each life; lives are sorted by both.
    """
    if len(start_rows) == 0:
        return np.full(len(pid), -1)
    # The fork's own row already belongs to the life that it begins. If the trace lacks its
    # beginning, steps may precede the first fork of their PID.
    span = int(start_rows[-1] - start_rows[0]) + 1
    if span <= _DENSE + 2 * len(pid) and (start_rows[1:] > start_rows[:-1]).all():
        lives = np.take(
            _places(start_rows, span), pid.astype(np.int64) - (start_rows[0] - 1), mode="clip"
        )
        return np.where(row >= begin_row[lives], lives, -1)
    lives = np.searchsorted(key(start_rows, begin_row), key(pid, row), side="right") - 1
    return np.where((lives >= 0) & (start_rows[lives] == pid), lives, -1)


def _places(start_rows: Integers, span: int) -> Integers:
    """Returns a table of the index of each PID, from one before the first PID to one after the last; −1 for gaps."""
    table = np.full(span + 2, -1)
    table[start_rows - (start_rows[0] - 1)] = np.arange(len(start_rows))
    return table
