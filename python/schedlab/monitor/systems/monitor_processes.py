# SPDX-License-Identifier: MIT
"""Determines, by the trace alone, which processes of a Linux guest the monitor started."""

from __future__ import annotations

from schedlab.monitor.system import Records
from schedlab.trace.format import Kind


class Family:
    """Separates the descendants of processes started by `steer` from all other processes.

    The others belong to the monitor: kernel threads, init, the policy server, `steer` itself. An
    ended process stays known until its PID is reused, because later records may refer to it.
    """

    def __init__(self) -> None:
        self.founder = 0
        """PID of `steer`; 0 before it can start processes."""
        self._started: set[int] = set()
        self._monitor_pids: set[int] = set()
        self._monitor_pids_snapshot: frozenset[int] | None = frozenset()

    @property
    def monitor_pids(self) -> frozenset[int]:
        if self._monitor_pids_snapshot is None:
            self._monitor_pids_snapshot = frozenset(self._monitor_pids)
        return self._monitor_pids_snapshot

    def feed(self, records: Records) -> None:
        """Processes the next records in sequence order."""
        kinds = records["kind"]
        comers = records[(kinds == Kind.FORK) | (kinds == Kind.FOUND)]
        rows = zip(*(comers[name].tolist() for name in _FIELDS), strict=True)
        for kind, process, first, second in rows:
            if kind == Kind.FOUND:
                self._add(process, started=False)
            else:
                self._add(first, self._is_start(process, second) or process in self._started)

    def _is_start(self, parent: int, thread_of: int) -> bool:
        """Returns whether `steer` forked a process, not a thread."""
        return self.founder != 0 and parent == self.founder and thread_of != self.founder

    def _add(self, pid: int, started: bool) -> None:
        current, other = (
            (self._started, self._monitor_pids) if started else (self._monitor_pids, self._started)
        )
        current.add(pid)
        other.discard(pid)
        self._monitor_pids_snapshot = None


_FIELDS = ("kind", "process", "first", "second")
