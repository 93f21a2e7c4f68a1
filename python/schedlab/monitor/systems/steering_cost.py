# SPDX-License-Identifier: MIT
"""Measures how much CPU time `steer` uses, and limits how often the status is read."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from schedlab.monitor.system import Records
from schedlab.trace.format import Kind

CPU_SHARE_MAX = 0.02
"""Fraction of one CPU that `steer` may use."""
REQUEST_TIME_SHARE_MAX = 0.25
"""Fraction of the host's time that may be spent on status requests, because they delay commands."""
PERIOD_RANGE_S = (1.0, 60.0)
"""Minimum and maximum interval (host seconds) between status requests."""


class SteeringCost:
    """Sums the running time of the process `steer`, which is on one CPU at a time."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._left_ns = 0
        """Sum of its leaving times minus the sum of its entering times on CPUs (ns)."""
        self._running = False
        self._now_ns = 0
        self._last_request: _StatusRequest | None = None
        self._period_s = 0.0
        """The interval (s) that follows from SHARE_MAX alone."""
        self._answer_s = 0.0
        """Duration (s) of the last answer."""

    def feed(self, records: Records) -> None:
        """Adds records of the trace."""
        if len(records) == 0:
            return
        self._now_ns = max(self._now_ns, int(records["time"][-1]))
        switches = records[records["kind"] == Kind.SWITCH]
        enters = switches["process"] == self._pid
        leaves = switches["first"] == self._pid
        times = switches["time"].astype(np.int64)
        self._left_ns += int(times[leaves].sum()) - int(times[enters].sum())
        rows = np.flatnonzero(enters | leaves)
        if len(rows):
            self._running = bool(enters[rows[-1]])

    @property
    def run_time_ns(self) -> int:
        return self._left_ns + (self._now_ns if self._running else 0)

    @property
    def period_s(self) -> float:
        """Minimum interval (host seconds) between status requests, which observes SHARE_MAX and BUSY_MAX."""
        needed_s = max(self._period_s, self._answer_s / REQUEST_TIME_SHARE_MAX)
        return min(max(needed_s, PERIOD_RANGE_S[0]), PERIOD_RANGE_S[1])

    def note_request(self) -> None:
        """Notes a status request, and computes `period_s` from the cost of the previous request.

        The cost of an answer does not depend on the rate. So twice the interval costs half the
        share.
        """
        now = _StatusRequest(time.monotonic(), self._now_ns, self.run_time_ns)
        last, self._last_request = self._last_request, now
        if last and now.guest_ns > last.guest_ns:
            share = (now.run_time_ns - last.run_time_ns) / (now.guest_ns - last.guest_ns)
            needed_s = (now.host_s - last.host_s) * share / CPU_SHARE_MAX
            self._period_s = min(max(needed_s, self._period_s / 2), PERIOD_RANGE_S[1])

    def note_answer(self) -> None:
        """Notes the arrival of the answer."""
        if self._last_request:
            self._answer_s = time.monotonic() - self._last_request.host_s


@dataclass(frozen=True)
class _StatusRequest:
    """Host and guest times at a status request."""

    host_s: float
    guest_ns: int
    run_time_ns: int
    """CPU time (ns) that `steer` has used."""
