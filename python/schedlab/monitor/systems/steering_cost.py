# SPDX-License-Identifier: MIT
"""Measures how much CPU time `steer` uses, and limits how often the status is read."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from schedlab.monitor.system import Records
from schedlab.trace.format import Kind

SHARE_MAX = 0.02
"""Fraction of one CPU that `steer` may use."""
BUSY_MAX = 0.25
"""Fraction of the host's time that may be spent on status requests, which block other commands."""
PERIOD_S = (1.0, 60.0)
"""Minimum and maximum interval (host seconds) between status requests."""


class SteeringCost:
    """Sums the running time of the process `steer`, which is on one CPU at a time."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._left_ns = 0
        """Sum of its leaving times minus the sum of its entering times on CPUs (ns)."""
        self._running = False
        self._now_ns = 0
        self._last_request: _Moment | None = None
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
    def ran_ns(self) -> int:
        return self._left_ns + (self._now_ns if self._running else 0)

    @property
    def period_s(self) -> float:
        """Interval (host seconds) between status requests that satisfies SHARE_MAX and BUSY_MAX."""
        needed_s = max(self._period_s, self._answer_s / BUSY_MAX)
        return min(max(needed_s, PERIOD_S[0]), PERIOD_S[1])

    def note_request(self) -> None:
        """Notes a status request, and computes the interval from the cost of the previous one.

        An answer costs the same at any rate, so half the requests use half the share.
        """
        now = _Moment(time.monotonic(), self._now_ns, self.ran_ns)
        last, self._last_request = self._last_request, now
        if last and now.theirs_ns > last.theirs_ns:
            share = (now.ran_ns - last.ran_ns) / (now.theirs_ns - last.theirs_ns)
            needed_s = (now.ours_s - last.ours_s) * share / SHARE_MAX
            self._period_s = min(max(needed_s, self._period_s / 2), PERIOD_S[1])

    def answered(self) -> None:
        """Notes the arrival of the answer."""
        if self._last_request:
            self._answer_s = time.monotonic() - self._last_request.ours_s


@dataclass(frozen=True)
class _Moment:
    """The moment of a status request."""

    ours_s: float
    theirs_ns: int
    ran_ns: int
    """Running time (ns) of the process."""
