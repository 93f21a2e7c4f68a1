# SPDX-License-Identifier: MIT
"""Checks that no process gets a CPU on which it may not run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from schedlab.trace.breach import Breach
from schedlab.trace.format import Kind, is_kind
from schedlab.trace.model import Columns, Integers

WORD_CPUS = 64
"""The CPUs of which one AFFINITY tells."""


class AffinityChecks:
    """Follows the sets of CPUs through a trace whose parts come one after the other.

    A process whose set the trace does not tell, and whose parent's it did not tell, may run on all
    CPUs.
    """

    def __init__(self, cpus: int, has_affinity: bool) -> None:
        """`has_affinity`: the trace has an AFFINITY somewhere; without one, nothing is to be done."""
        self._told = has_affinity
        self._cpus = cpus
        self._sets: dict[int, int] = {}
        """Now, by PID: bit n is CPU n. Those that are not here may run on all CPUs."""

    def take(self, columns: Columns, begin: int, certain: Callable[[], int]) -> Iterator[Breach]:
        """Judges the next part, whose first row is `begin`. `certain`: see `queued_checks`."""
        if not self._told:
            return
        changes = {pid: [(0, cpus)] for pid, cpus in self._sets.items()}
        for row in np.flatnonzero(is_kind(columns.kind, Kind.FORK, Kind.AFFINITY)).tolist():
            pid = self._change(columns, row)
            if pid in changes or pid in self._sets:
                changes.setdefault(pid, []).append((row, self._set_of(pid)))
        breaches = [
            breach
            for pid, rows in _switches(columns, changes)
            for breach in self._wrong(columns, pid, rows, changes[pid])
        ]
        if breaches:
            row, problem = min(breaches)
            if row + begin < certain():
                yield Breach(row + begin, problem)

    def _set_of(self, pid: int) -> int:
        return self._sets.get(pid, (1 << self._cpus) - 1)

    def _change(self, columns: Columns, row: int) -> int:
        """Takes a FORK or AFFINITY into account; returns the PID of the process that it concerns."""
        process, first = int(columns.process[row]), int(columns.first[row])
        if columns.kind[row] == Kind.FORK:
            self._sets.pop(first, None)
            if process in self._sets:
                self._sets[first] = self._sets[process]
            return first
        shift = first * WORD_CPUS
        others = self._set_of(process) & ~((1 << WORD_CPUS) - 1 << shift)
        self._sets[process] = others | int(columns.second[row]) << shift
        return process

    def _wrong(
        self, columns: Columns, pid: int, rows: Integers, changes: list[tuple[int, int]]
    ) -> Iterator[Breach]:
        """The first switch to the process, of those in `rows`, after each change of its set."""
        bounds = [*(row for row, _ in changes), len(columns.kind)]
        for (since, allowed), until in zip(changes, bounds[1:], strict=True):
            of_set = rows[(rows >= since) & (rows < until)]
            may = np.array([allowed >> cpu & 1 for cpu in range(self._cpus)], bool)
            bad = of_set[~may[columns.cpu[of_set]]]
            if len(bad):
                yield Breach(int(bad[0]), f"process {pid} may not run on this CPU")


def _switches(
    columns: Columns, changes: dict[int, list[tuple[int, int]]]
) -> Iterator[tuple[int, Integers]]:
    """The rows in which each of these processes gets a CPU."""
    pids = np.array(list(changes), np.int64)
    rows = np.flatnonzero(is_kind(columns.kind, Kind.SWITCH) & np.isin(columns.process, pids))
    order = rows[np.argsort(columns.process[rows], kind="stable")]
    who, first = np.unique(columns.process[order], return_index=True)
    bounds = [*first.tolist(), len(order)]
    for pid, begin, end in zip(who.tolist(), bounds[:-1], bounds[1:], strict=True):
        yield pid, order[begin:end]
