# SPDX-License-Identifier: MIT
"""Checks that processes get only CPUs that their affinity allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from schedlab.trace.breach import Breach
from schedlab.trace.format import Kind, is_kind
from schedlab.trace.model import Columns, Integers

WORD_CPUS = 64
"""The number of CPUs that one AFFINITY record covers."""


class AffinityChecks:
    """Follows CPU affinity through a trace whose parts arrive in order.

    A process may run on all CPUs if neither its own affinity nor its parent's is recorded.
    """

    def __init__(self, cpus: int, has_affinity: bool) -> None:
        """`has_affinity`: the trace contains an AFFINITY record; otherwise there is nothing to check."""
        self._has_affinity = has_affinity
        self._cpus = cpus
        self._sets: dict[int, int] = {}
        """Current affinity by PID: bit n is CPU n. Other processes may run on all CPUs."""

    def take(self, columns: Columns, begin: int, certain: Callable[[], int]) -> Iterator[Breach]:
        """Checks the next part, whose first row is `begin`. `certain`: see `queued_checks`."""
        if not self._has_affinity:
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
        """Applies a FORK or AFFINITY record; returns the PID of the process concerned."""
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
        """Yields the first forbidden switch to the process after each change of its affinity, among `rows`."""
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
    """Yields the rows where each of these processes gets a CPU."""
    pids = np.array(list(changes), np.int64)
    rows = np.flatnonzero(is_kind(columns.kind, Kind.SWITCH) & np.isin(columns.process, pids))
    order = rows[np.argsort(columns.process[rows], kind="stable")]
    who, first = np.unique(columns.process[order], return_index=True)
    bounds = [*first.tolist(), len(order)]
    for pid, begin, end in zip(who.tolist(), bounds[:-1], bounds[1:], strict=True):
        yield pid, order[begin:end]
