# SPDX-License-Identifier: MIT
"""Spells: each run of a process on a CPU, and each wait in a queue, with its begin and its end."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from schedlab.trace.model import Integers

RUN, WAIT = 0, 1
COLUMNS = 7
"""Slot, RUN or WAIT, CPU (of a wait: whose queue), level, detail (how a run ended, or why it had to
wait), begin, end."""
SPELLS_MAX = 2_000_000
"""At most this many are kept (54 bytes each at most); if the window has more, it becomes shorter.
"""


@dataclass(frozen=True)
class Spells:
    """Some that are over, in the order in which they ended; columns of one length."""

    slot: npt.NDArray[np.int32]
    kind: npt.NDArray[np.int8]
    cpu: npt.NDArray[np.int32]
    level: npt.NDArray[np.int32]
    detail: npt.NDArray[np.int8]
    begin: Integers
    end: Integers

    @classmethod
    def of(cls, rows: array[int]) -> Spells:
        """Spells from rows of COLUMNS numbers, given as one flat array."""
        table = np.frombuffer(rows, np.int64).reshape(-1, COLUMNS)
        return cls(
            table[:, 0].astype(np.int32),
            table[:, 1].astype(np.int8),
            table[:, 2].astype(np.int32),
            table[:, 3].astype(np.int32),
            table[:, 4].astype(np.int8),
            table[:, 5].copy(),
            table[:, 6].copy(),
        )

    def where(self, which: npt.NDArray[np.bool_]) -> Spells:
        """The spells for which `which` is true."""
        return Spells(*(column[which] for column in vars(self).values()))

    def __len__(self) -> int:
        return len(self.slot)


@dataclass
class Sums:
    """Nanoseconds in the window."""

    run: Integers
    """A sum for each slot."""
    wait: Integers
    busy: Integers
    """A sum for each CPU."""
    unseen: Integers
    """A sum for each slot: it was running when its CPU's trace ended, and what it did then is not
    known."""


class SpellLog:
    """The spells of the window, and the sums of them, which grow and shrink with it.

    Nothing is added up twice: a spell is added when it is over, and taken off when it has left the
    window. Only those that lie across the window's begin are looked at each time.
    """

    def __init__(self, cpus: int, slots: int, most: int = SPELLS_MAX) -> None:
        self.count = 0
        self.forgotten_until = 0
        """Spells until then had to go because there were too many."""
        self._most = most
        self._cpus = cpus
        self._blocks: deque[Spells] = deque()
        self._run = np.zeros(slots, np.int64)
        self._wait = np.zeros(slots, np.int64)
        self._busy = np.zeros(cpus, np.int64)

    def add(self, spells: Spells, slots: int) -> None:
        """Spells that are over. `slots`: the capacity of Slots."""
        self._make_room(slots)
        self._sum_up(spells, spells.end - spells.begin, 1)
        self._blocks.append(spells)
        self.count += len(spells)
        while self.count > self._most and len(self._blocks) > 1:
            oldest = self._blocks.popleft()
            self._take_off(oldest)
            self.forgotten_until = max(self.forgotten_until, int(oldest.end.max()))

    def expire(self, begin_ns: int) -> None:
        """Spells that were over by that time go."""
        kept: deque[Spells] = deque()
        while self._blocks:
            block = self._blocks.popleft()
            old = block.end <= begin_ns
            if old.any():
                self._take_off(block.where(old))
                block = block.where(~old)
            if len(block):
                kept.append(block)
        self._blocks = kept

    def over(self, begin_ns: int, slots: int) -> Sums:
        """What lies after that time, up to which all has been expired."""
        self._make_room(slots)
        sums = Sums(
            self._run.copy(), self._wait.copy(), self._busy.copy(), np.zeros_like(self._run)
        )
        for block in self._blocks:
            across = block.begin < begin_ns
            if across.any():
                self._sum_up(block.where(across), begin_ns - block.begin[across], -1, sums)
        return sums

    def _make_room(self, slots: int) -> None:
        if len(self._run) < slots:
            self._run = np.pad(self._run, (0, slots - len(self._run)))
            self._wait = np.pad(self._wait, (0, slots - len(self._wait)))

    def __iter__(self) -> Iterator[Spells]:
        return iter(self._blocks)

    def _take_off(self, spells: Spells) -> None:
        self._sum_up(spells, spells.end - spells.begin, -1)
        self.count -= len(spells)

    def _sum_up(
        self, spells: Spells, durations: Integers, sign: int, sums: Sums | None = None
    ) -> None:
        """Adds (or takes off: -1) durations to the sums; None: to the log's own."""
        run, wait, busy = (
            (self._run, self._wait, self._busy)
            if sums is None
            else (sums.run, sums.wait, sums.busy)
        )
        runs = spells.kind == RUN
        run += sign * _sum_by(spells.slot[runs], durations[runs], len(run))
        wait += sign * _sum_by(spells.slot[~runs], durations[~runs], len(wait))
        busy += sign * _sum_by(spells.cpu[runs], durations[runs], len(busy))


def _sum_by(index: npt.NDArray[np.integer], durations: Integers, length: int) -> Integers:
    """The sum of the durations of each index. (Doubles are exact up to 104 days.)"""
    sums = np.bincount(index, weights=durations, minlength=length)
    return sums.astype(np.int64)
