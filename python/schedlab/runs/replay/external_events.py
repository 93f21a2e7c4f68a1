# SPDX-License-Identifier: MIT
"""Finds external events in a recording: arrivals of processes, and interrupts that end waits."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from schedlab.metrics.lives import Lives
from schedlab.runs.replay.progress import ROW_BITS, life_of
from schedlab.trace import BlockReason, Kind, Trace
from schedlab.trace.model import Integers
from schedlab.workload.model import ATTRIBUTES

Flags = npt.NDArray[np.bool_]

GIVEN = (BlockReason.PIPE, BlockReason.CONSOLE)
"""Kinds of waits that another process normally ends.

If an interrupt ends such a wait, an external event caused it.
"""


@dataclass(frozen=True)
class Coming:
    """An arrival: a new process, or an item for an existing process that waited for it."""

    row: int
    time_ns: int
    life: int
    is_process: bool


@dataclass(frozen=True)
class Outside:
    """All external events, in order."""

    comings: tuple[Coming, ...] = ()
    by: int = -1
    """The number of the process that creates the arrivals, as in the simulator's traces; −1 if unknown."""

    @property
    def processes(self) -> frozenset[int]:
        """The numbers of the processes that arrived."""
        return frozenset(coming.life for coming in self.comings if coming.is_process)


NOTHING = Outside()


def outside(trace: Trace, life_table: Lives, omitted: Integers) -> Outside:
    """Returns the external events in a trace.

    These are forks without a parent process, and waits for a pipe or the console that an interrupt
    ended.
    """
    time, pid = trace.column("time_ns"), trace.column("process").astype(np.int64)
    forked = np.flatnonzero(life_table.fork_row >= 0)
    forked = forked[(pid[life_table.fork_row[forked]] == 0) & ~np.isin(forked, omitted)]
    woken = trace.rows(Kind.WAKEUP)
    woken = woken[trace.column("first")[woken] == 0]
    life = life_of(life_table, pid[woken], woken)
    block = _blocks(trace, life_table, woken, life)
    reason = np.where(block >= 0, trace.column("first")[block], 0)
    given = np.isin(reason, GIVEN) & ~np.isin(life, omitted)
    arrivals = [
        (int(life_table.fork_row[life_index]), int(life_index), True) for life_index in forked
    ]
    arrivals += [
        (row, life_index, False)
        for row, life_index in zip(woken[given].tolist(), life[given].tolist(), strict=True)
    ]
    comings = tuple(
        Coming(row, int(time[row]), life_index, is_process)
        for row, life_index, is_process in sorted(arrivals)
    )
    asleep = reason == BlockReason.SLEEP
    return Outside(comings, _by(comings, time, life[asleep], block[asleep], woken[asleep]))


def adopted(life_table: Lives, of: Outside) -> Lives:
    """Returns the table of processes, with arrivals as children of the process that creates the arrivals."""
    parent = life_table.parent.copy()
    parent[list(of.processes)] = of.by
    return replace(life_table, parent=parent)


def set_at_arrival(life_table: Lives, of: Outside, life: Integers, row: Integers) -> Flags:
    """Marks records that set the initial attributes of processes when they arrived."""
    inherited = np.isin(life, list(of.processes))
    matches: Flags = (
        inherited
        & (row > life_table.fork_row[life])
        & (row - life_table.fork_row[life] <= len(ATTRIBUTES))
    )
    return matches


def _blocks(trace: Trace, life_table: Lives, woken: Integers, life: Integers) -> Integers:
    """Returns the row where each process blocked before its wake-up at row `woken`; −1 if unknown."""
    blocks = trace.rows(Kind.BLOCK)
    if len(blocks) == 0:
        return np.full(len(woken), -1)
    blocked = life_of(life_table, trace.column("process")[blocks].astype(np.int64), blocks)
    order = np.lexsort((blocks, blocked))
    key = (blocked[order] << ROW_BITS) | blocks[order]
    at = order[np.maximum(np.searchsorted(key, (life << ROW_BITS) | woken) - 1, 0)]
    is_blocked = (blocked[at] == life) & (life >= 0) & (blocks[at] < woken)
    return np.where(is_blocked, blocks[at], -1)


def _by(
    comings: tuple[Coming, ...], time: Integers, life: Integers, block: Integers, woken: Integers
) -> int:
    """Returns the number of the process that creates the arrivals; −1 if unknown.

    This process sleeps until an arrival and wakes up immediately after the arrival. Other processes
    may do so by chance, so the process with the most arrivals at the end of its sleeps is chosen.
    """
    rows = np.array([coming.row for coming in comings])
    last = np.searchsorted(rows, woken) - 1
    within: Counter[int] = Counter()
    by = set()
    for life_index, begin, end, at in zip(
        *(x.tolist() for x in (life, block, woken, last)), strict=True
    ):
        if at < 0 or rows[at] < begin:
            continue
        within[life_index] += at + 1 - int(np.searchsorted(rows, begin))
        if comings[at].time_ns == time[end] and end - rows[at] <= _NEAR:
            by.add(life_index)
    return max(by, key=lambda life_index: (within[life_index], -life_index), default=-1)


_NEAR = 4
"""The most records between an arrival and the wake-up of the process that created it."""
