# SPDX-License-Identifier: MIT
"""What is drawn on the time line: runs on CPUs, as many as can be drawn."""

from __future__ import annotations

import numpy as np

from schedlab.monitor.frames import Timeline
from schedlab.monitor.model.spells import RUN, Spells
from schedlab.trace.model import Integers

PAST_NS = 60_000_000_000
PAST_RUNS = 20_000
"""What `past` gives at most, but for runs that go on."""
_FRESH_RUNS = 40_000
"""More are not kept if no frames are asked for."""

CPU, PID, BEGIN, END, LEVEL, HOW = range(6)
"""Columns of a table of runs, as Timeline has them."""


class Drawing:
    """The runs that are new since the last frame, and those of the last minute."""

    def __init__(self) -> None:
        self._fresh = np.empty((0, 6), np.int64)
        self._fresh_idle = np.empty((0, 3), np.int64)
        self._past = np.empty((0, 6), np.int64)
        self._past_idle = np.empty((0, 3), np.int64)
        self._thinned = 0

    def add(self, spells: Spells, pid_of: Integers, idle: Integers) -> None:
        """Spells that are over (`pid_of`: of each slot), and rows of IdleWhileQueued."""
        runs = spells.where((spells.kind == RUN) & (spells.end > spells.begin))
        columns = (runs.cpu, pid_of[runs.slot], runs.begin, runs.end, runs.level, runs.detail)
        self._fresh = np.concatenate((self._fresh, np.column_stack(columns).astype(np.int64)))
        self._fresh_idle = np.concatenate((self._fresh_idle, idle[:, ::-1]))
        if len(self._fresh) > 2 * _FRESH_RUNS:
            self._fresh, gone = thin(self._fresh, _FRESH_RUNS)
            self._thinned += gone
        if len(self._fresh_idle) > 2 * _FRESH_RUNS:
            self._fresh_idle = thin_idle(self._fresh_idle, _FRESH_RUNS)

    def take(self, most: int, going_on: Integers, levels: bool) -> Timeline:
        """What is new, at most about so many runs. `going_on`: runs that are not over, by rows."""
        runs, gone = thin(self._fresh, most)
        idle = thin_idle(self._fresh_idle, most)
        gone += self._thinned
        self._fresh, self._fresh_idle = self._fresh[:0], self._fresh_idle[:0]
        self._thinned = 0
        self._keep(runs, idle)
        return _timeline(np.concatenate((runs, going_on)), idle, gone, levels)

    def past(self, going_on: Integers, levels: bool) -> Timeline:
        """What was drawn in the last minute. Older runs are drawn more coarsely if there are many."""
        return _timeline(np.concatenate((self._past, going_on)), self._past_idle, 0, levels)

    def _keep(self, runs: Integers, idle: Integers) -> None:
        self._past = np.concatenate((self._past, runs))
        self._past_idle = np.concatenate((self._past_idle, idle))
        if len(self._past):
            begin = int(self._past[:, END].max()) - PAST_NS
            self._past = self._past[self._past[:, END] >= begin]
            self._past_idle = self._past_idle[self._past_idle[:, 2] >= begin]
        # To half of it, so that this is not done at each frame.
        if len(self._past) > PAST_RUNS:
            self._past, _ = thin(self._past, PAST_RUNS // 2)
        if len(self._past_idle) > PAST_RUNS:
            self._past_idle = thin_idle(self._past_idle, PAST_RUNS // 2)


def thin(runs: Integers, most: int) -> tuple[Integers, int]:
    """Puts short runs together with their neighbours on the same CPU until at most about `most` are
    left; also how many were put together.

    Time is cut into as many stretches as can be drawn. Of the runs that begin in the same stretch
    one is left, as long as all of them, in the name of the longest.
    """
    if len(runs) <= most:
        return runs, 0
    order = np.lexsort((runs[:, BEGIN], runs[:, CPU]))
    runs = runs[order]
    first = _first_of_stretches(runs[:, CPU], runs[:, BEGIN], runs[:, END], most)
    part = np.cumsum(first) - 1
    begins = np.flatnonzero(first)
    longest = np.lexsort((runs[:, BEGIN] - runs[:, END], part))[begins]
    kept = runs[longest]
    kept[:, BEGIN] = runs[begins, BEGIN]
    lasts = np.append(begins[1:], len(runs)) - 1
    kept[:, END] = runs[lasts, END]
    kept[:, HOW] = runs[lasts, HOW]
    kept = kept[np.argsort(kept[:, END], kind="stable")]
    return kept, len(runs) - len(kept)


def thin_idle(rows: Integers, most: int) -> Integers:
    """The same of rows of CPU, begin, end."""
    if len(rows) <= most:
        return rows
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    first = np.flatnonzero(_first_of_stretches(rows[:, 0], rows[:, 1], rows[:, 2], most))
    kept = rows[first]
    kept[:, 2] = rows[np.append(first[1:], len(rows)) - 1, 2]
    return kept[np.argsort(kept[:, 2], kind="stable")]


def _first_of_stretches(
    cpu: Integers, begin: Integers, end: Integers, most: int
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which runs, sorted by CPU and begin, are the first that begin in their stretch of time."""
    cpus = len(np.unique(cpu))
    stretches = max(most // cpus, 1)
    origin = int(begin.min())
    width = max(-(-(int(end.max()) - origin) // stretches), 1)
    stretch = (begin - origin) // width
    return np.append(True, (stretch[1:] != stretch[:-1]) | (cpu[1:] != cpu[:-1]))


def _timeline(runs: Integers, idle: Integers, thinned: int, levels: bool) -> Timeline:
    if not levels:
        runs = runs.copy()
        runs[:, LEVEL] = -1
    return {
        "runs": list(map(tuple, runs.tolist())),
        "idle_while_queued": list(map(tuple, idle.tolist())),
        "thinned": thinned,
    }
