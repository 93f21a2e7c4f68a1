# SPDX-License-Identifier: MIT
"""Determines, by the trace alone, which processes of a Linux guest the monitor started."""

from __future__ import annotations

from schedlab.monitor.system import Records
from schedlab.trace.format import Kind


class MonitorProcesses:
    """Separates workload processes from the monitor's, by the forks in a guest's trace.

    Workload processes are the descendants of processes that `steer` started. All others belong to
    the monitor: kernel threads, init, the policy server, `steer` itself. An ended process stays
    known until its PID is reused, because later records may refer to it.
    """

    def __init__(self) -> None:
        self.steer_pid = 0
        """PID of `steer`; 0 before it can start processes."""
        self._workload_pids: set[int] = set()
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
        new_processes = records[(kinds == Kind.FORK) | (kinds == Kind.FOUND)]
        rows = zip(*(new_processes[name].tolist() for name in _FIELDS), strict=True)
        for kind, process, first, second in rows:
            if kind == Kind.FOUND:
                self._set_owner(process, is_workload=False)
            else:
                self._set_owner(
                    first,
                    self._is_workload_start(process, second) or process in self._workload_pids,
                )

    def _is_workload_start(self, parent: int, thread_of: int) -> bool:
        """Returns whether a fork is the start of a workload: `steer` forked a process, not a thread."""
        return self.steer_pid != 0 and parent == self.steer_pid and thread_of != self.steer_pid

    def _set_owner(self, pid: int, is_workload: bool) -> None:
        joined_set, left_set = (
            (self._workload_pids, self._monitor_pids)
            if is_workload
            else (self._monitor_pids, self._workload_pids)
        )
        joined_set.add(pid)
        left_set.discard(pid)
        self._monitor_pids_snapshot = None


_FIELDS = ("kind", "process", "first", "second")
