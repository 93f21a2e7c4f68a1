# SPDX-License-Identifier: MIT
"""Finds events in a recording that came from outside of its processes.

These are arrivals of new processes, and interrupts that deliver input to waiting processes.
"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from schedlab.metrics.lives import Lives
from schedlab.runs.replay.progress import ROW_BITS, find_life
from schedlab.trace import BlockReason, Kind, Trace
from schedlab.trace.model import Integers
from schedlab.workload.model import ATTRIBUTES

Flags = npt.NDArray[np.bool_]

DATA_WAITS = (BlockReason.PIPE, BlockReason.CONSOLE)
"""Kinds of waits that end with data from another process.

If an interrupt ends such a wait, the data came from outside.
"""


@dataclass(frozen=True)
class Arrival:
    """A new process without a recorded parent, or input for a waiting process."""

    row: int
    time_ns: int
    life: int
    is_process: bool  # False: input for a waiting process


@dataclass(frozen=True)
class ExternalEvents:
    """All external events of a recording, in order."""

    arrivals: tuple[Arrival, ...] = ()
    creator: int = -1
    """Index of the process that creates the arrivals, as in traces of simulated arrivals; −1 if unknown."""

    @property
    def processes(self) -> frozenset[int]:
        """Indices of the processes that arrived."""
        return frozenset(arrival.life for arrival in self.arrivals if arrival.is_process)


NO_EXTERNAL_EVENTS = ExternalEvents()


def find_external_events(trace: Trace, life_table: Lives, omitted: Integers) -> ExternalEvents:
    """Returns the external events in a trace.

    These are forks without a parent, and waits for a pipe or the console that an interrupt ended.
    """
    time, pid = trace.column("time_ns"), trace.column("process").astype(np.int64)
    forked = np.flatnonzero(life_table.fork_row >= 0)
    forked = forked[(pid[life_table.fork_row[forked]] == 0) & ~np.isin(forked, omitted)]
    woken = trace.rows(Kind.WAKEUP)
    woken = woken[trace.column("first")[woken] == 0]
    life = find_life(life_table, pid[woken], woken)
    blocks = _preceding_blocks(trace, life_table, woken, life)
    reason = np.where(blocks >= 0, trace.column("first")[blocks], 0)
    is_input = np.isin(reason, DATA_WAITS) & ~np.isin(life, omitted)
    events = [
        (int(life_table.fork_row[life_index]), int(life_index), True) for life_index in forked
    ]
    events += [
        (row, life_index, False)
        for row, life_index in zip(woken[is_input].tolist(), life[is_input].tolist(), strict=True)
    ]
    arrivals = tuple(
        Arrival(row, int(time[row]), life_index, is_process)
        for row, life_index, is_process in sorted(events)
    )
    asleep = reason == BlockReason.SLEEP
    return ExternalEvents(
        arrivals, _creator_of(arrivals, time, life[asleep], blocks[asleep], woken[asleep])
    )


def adopt_arrivals(life_table: Lives, events: ExternalEvents) -> Lives:
    """Returns the table of processes, with arrived processes as children of the arrivals' creator."""
    parent = life_table.parent.copy()
    parent[list(events.processes)] = events.creator
    return replace(life_table, parent=parent)


def set_at_arrival(
    life_table: Lives, events: ExternalEvents, life: Integers, row: Integers
) -> Flags:
    """Returns which attribute records set the initial attributes of an arriving process."""
    inherited = np.isin(life, list(events.processes))
    matches: Flags = (
        inherited
        & (row > life_table.fork_row[life])
        & (row - life_table.fork_row[life] <= len(ATTRIBUTES))
    )
    return matches


def _preceding_blocks(trace: Trace, life_table: Lives, woken: Integers, life: Integers) -> Integers:
    """Returns the row where each process blocked before the wake-up at `woken`; −1 if unknown."""
    blocks = trace.rows(Kind.BLOCK)
    if len(blocks) == 0:
        return np.full(len(woken), -1)
    blocked_life = find_life(life_table, trace.column("process")[blocks].astype(np.int64), blocks)
    order = np.lexsort((blocks, blocked_life))
    sort_keys = (blocked_life[order] << ROW_BITS) | blocks[order]
    preceding = order[np.maximum(np.searchsorted(sort_keys, (life << ROW_BITS) | woken) - 1, 0)]
    is_blocked = (blocked_life[preceding] == life) & (life >= 0) & (blocks[preceding] < woken)
    return np.where(is_blocked, blocks[preceding], -1)


def _creator_of(
    arrivals: tuple[Arrival, ...], time: Integers, life: Integers, block: Integers, woken: Integers
) -> int:
    """Returns the index of the process that seems to create the arrivals; −1 if there is none.

    Such a process sleeps until an arrival, and wakes up right after it. Other processes may do so
    by chance, so the process with the most such arrivals is chosen.
    """
    rows = np.array([arrival.row for arrival in arrivals])
    last_arrivals = np.searchsorted(rows, woken) - 1
    within: Counter[int] = Counter()
    creator = set()
    for life_index, begin, end, at in zip(
        *(values.tolist() for values in (life, block, woken, last_arrivals)), strict=True
    ):
        if at < 0 or rows[at] < begin:
            continue
        within[life_index] += at + 1 - int(np.searchsorted(rows, begin))
        if arrivals[at].time_ns == time[end] and end - rows[at] <= _NEAR_RECORDS:
            creator.add(life_index)
    return max(creator, key=lambda life_index: (within[life_index], -life_index), default=-1)


_NEAR_RECORDS = 4
"""Maximum number of records between an arrival and the wake-up of its creator."""
