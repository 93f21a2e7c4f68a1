# SPDX-License-Identifier: MIT
"""Defines steps, which change a process's state, and how to look them up."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from schedlab.trace.cpu_records import is_change
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
"""State after ENDED: the process is on its CPU for the last time. Not a value of ProcessState."""

OUT_OF_SIGHT = 7
"""State after UNSEEN, until the process is FOUND again. Not a value of ProcessState."""

ROW_BITS = 32
"""Bits for a row, and for a PID, in the number that steps are sorted by."""


_TABLE_SPAN_MAX = 1 << 16
"""If PIDs lie in a range of at most this size, a table is used to look them up."""


@dataclass(frozen=True, eq=False)
class ProcessSteps:
    """Steps of processes, sorted by process and time, as arrays of equal length.

    `row` is the row in the trace's events. `after` is the process's state after the step. `life`
    numbers the processes: a life is a PID from its fork, or its first appearance, to its exit.
    Lives are numbered from 0 in the order of PID and fork.
    """

    pid: Integers
    row: Integers
    step: npt.NDArray[np.int8]
    after: npt.NDArray[np.int8]
    life: Integers

    @property
    def first(self) -> Integers:
        """Index of each life's first step."""
        return np.flatnonzero(is_change(self.life))

    def life_at(self, pid: Integers, row: Integers) -> Integers:
        """Returns the life that each PID had at each row; −1 if unknown."""
        return life_at(self.pid[self.first], self.row[self.first], pid, row)

    def last_before(self, pid: Integers, row: Integers) -> Integers:
        """Returns the index of each PID's last step before each row; −1 if there is none."""
        if len(self.pid) == 0:
            return np.full(len(pid), -1)
        index = np.searchsorted(sort_key(self.pid, self.row), sort_key(pid, row)) - 1
        return np.where((index >= 0) & (self.pid[index] == pid), index, -1)


def sort_key(pid: npt.NDArray[np.integer], row: Integers) -> Integers:
    """Returns a number that sorts steps by process and row."""
    return (pid.astype(np.int64) << ROW_BITS) | row


def life_at(
    start_rows: Integers, begin_row: Integers, pid: npt.NDArray[np.integer], row: Integers
) -> Integers:
    """Returns the life that each PID had at each row; −1 if there is none.

    `start_rows` and `begin_row`: PID and first row of each life; lives are sorted by both.
    """
    if len(start_rows) == 0:
        return np.full(len(pid), -1)
    # The row of a fork already belongs to the child. If the trace lacks the beginning of a life,
    # steps may precede the first fork of its PID.
    span = int(start_rows[-1] - start_rows[0]) + 1
    if span <= _TABLE_SPAN_MAX + 2 * len(pid) and (start_rows[1:] > start_rows[:-1]).all():
        candidates = np.take(
            _life_index_table(start_rows, span),
            pid.astype(np.int64) - (start_rows[0] - 1),
            mode="clip",
        )
        return np.where(row >= begin_row[candidates], candidates, -1)
    candidates = (
        np.searchsorted(sort_key(start_rows, begin_row), sort_key(pid, row), side="right") - 1
    )
    return np.where((candidates >= 0) & (start_rows[candidates] == pid), candidates, -1)


def _life_index_table(start_rows: Integers, span: int) -> Integers:
    """Returns a table that maps PIDs to the index of their first life; −1 for unused PIDs.

    It reaches from one before the first PID to one after the last.
    """
    table = np.full(span + 2, -1)
    table[start_rows - (start_rows[0] - 1)] = np.arange(len(start_rows))
    return table
