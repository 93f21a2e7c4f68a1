# SPDX-License-Identifier: MIT
"""Checks that each process runs only on CPUs that its affinity allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from schedlab.trace.breach import Breach
from schedlab.trace.format import Kind, is_kind
from schedlab.trace.model import Columns, Integers

CPUS_PER_RECORD = 64
"""The number of CPUs that one AFFINITY record covers."""


class AffinityChecks:
    """Checks affinity, part by part of a trace.

    A process may run on all CPUs if no AFFINITY record exists for it or an ancestor.
    """

    def __init__(self, cpus: int, has_affinity: bool) -> None:
        """`has_affinity`: whether the trace contains an AFFINITY record; without one, all is allowed."""
        self._has_affinity = has_affinity
        self._cpus = cpus
        self._sets: dict[int, int] = {}
        """Current affinity by PID: bit n is CPU n. Other processes may run on all CPUs."""

    def take(self, columns: Columns, begin: int, certain: Callable[[], int]) -> Iterator[Breach]:
        """Yields the violations in the next part, whose first row is `begin`.

        `certain`: see `process_checks`.
        """
        if not self._has_affinity:
            return
        changes = {pid: [(0, cpus)] for pid, cpus in self._sets.items()}
        for row in np.flatnonzero(is_kind(columns.kind, Kind.FORK, Kind.AFFINITY)).tolist():
            pid = self._apply_record(columns, row)
            if pid in changes or pid in self._sets:
                changes.setdefault(pid, []).append((row, self._allowed_cpus(pid)))
        breaches = [
            breach
            for pid, rows in _switches(columns, changes)
            for breach in self._find_forbidden_switches(columns, pid, rows, changes[pid])
        ]
        if breaches:
            row, problem = min(breaches)
            if row + begin < certain():
                yield Breach(row + begin, problem)

    def _allowed_cpus(self, pid: int) -> int:
        return self._sets.get(pid, (1 << self._cpus) - 1)

    def _apply_record(self, columns: Columns, row: int) -> int:
        """Applies a FORK or AFFINITY record; returns the PID of the process concerned."""
        process, first = int(columns.process[row]), int(columns.first[row])
        if columns.kind[row] == Kind.FORK:
            self._sets.pop(first, None)
            if process in self._sets:
                self._sets[first] = self._sets[process]
            return first
        shift = first * CPUS_PER_RECORD
        others = self._allowed_cpus(process) & ~((1 << CPUS_PER_RECORD) - 1 << shift)
        self._sets[process] = others | int(columns.second[row]) << shift
        return process

    def _find_forbidden_switches(
        self, columns: Columns, pid: int, rows: Integers, changes: list[tuple[int, int]]
    ) -> Iterator[Breach]:
        """Yields the process's first switch to a forbidden CPU after each change of its affinity."""
        interval_ends = [*(row for row, _ in changes), len(columns.kind)]
        for (since, allowed), until in zip(changes, interval_ends[1:], strict=True):
            switches_in_period = rows[(rows >= since) & (rows < until)]
            is_allowed = np.array([allowed >> cpu & 1 for cpu in range(self._cpus)], bool)
            forbidden = switches_in_period[~is_allowed[columns.cpu[switches_in_period]]]
            if len(forbidden):
                yield Breach(int(forbidden[0]), f"process {pid} may not run on this CPU")


def _switches(
    columns: Columns, changes: dict[int, list[tuple[int, int]]]
) -> Iterator[tuple[int, Integers]]:
    """Yields, for each process whose affinity changes, the rows where it gets a CPU."""
    pids = np.array(list(changes), np.int64)
    rows = np.flatnonzero(is_kind(columns.kind, Kind.SWITCH) & np.isin(columns.process, pids))
    order = rows[np.argsort(columns.process[rows], kind="stable")]
    who, first = np.unique(columns.process[order], return_index=True)
    bounds = [*first.tolist(), len(order)]
    for pid, begin, end in zip(who.tolist(), bounds[:-1], bounds[1:], strict=True):
        yield pid, order[begin:end]
