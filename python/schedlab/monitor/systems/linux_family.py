# SPDX-License-Identifier: MIT
"""Which of a Linux guest's processes were started from the monitor, by the trace alone."""

from __future__ import annotations

from schedlab.monitor.system import Records
from schedlab.trace.format import Kind


class Family:
    """All processes except the descendants of what the program `steer` has started are there for the
    monitor's sake: the kernel's threads, init, the server of policies, `steer` itself.

    A process that has ended stays known until its PID is used again: what is said of it comes later.
    """

    def __init__(self) -> None:
        self.founder = 0
        """PID of `steer`; 0: it does not start any process yet."""
        self._started: set[int] = set()
        self._own: set[int] = set()
        self._own_now: frozenset[int] | None = frozenset()

    @property
    def own(self) -> frozenset[int]:
        if self._own_now is None:
            self._own_now = frozenset(self._own)
        return self._own_now

    def feed(self, records: Records) -> None:
        """Takes the next records, in the order of their sequence."""
        kinds = records["kind"]
        comers = records[(kinds == Kind.FORK) | (kinds == Kind.FOUND)]
        rows = zip(*(comers[name].tolist() for name in _FIELDS), strict=True)
        for kind, process, first, second in rows:
            if kind == Kind.FOUND:
                self._add(process, started=False)
            else:
                self._add(first, self._is_start(process, second) or process in self._started)

    def _is_start(self, parent: int, thread_of: int) -> bool:
        """Has `steer` forked, other than a thread of its own?"""
        return self.founder != 0 and parent == self.founder and thread_of != self.founder

    def _add(self, pid: int, started: bool) -> None:
        current, other = (self._started, self._own) if started else (self._own, self._started)
        current.add(pid)
        other.discard(pid)
        self._own_now = None


_FIELDS = ("kind", "process", "first", "second")
