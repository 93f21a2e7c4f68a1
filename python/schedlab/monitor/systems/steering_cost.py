# SPDX-License-Identifier: MIT
"""What steering takes of a machine's time, by its trace; and how often its status may be asked for."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from schedlab.monitor.system import Records
from schedlab.trace.format import Kind

SHARE_MAX = 0.02
"""The part of one CPU that the program that steers may take."""
BUSY_MAX = 0.25
"""The part of our time that may pass in waiting for the status: commands wait for each other."""
PERIOD_S = (1.0, 60.0)
"""The least and the greatest time, in seconds of ours, from one question to the next."""


class SteeringCost:
    """How long the process that steers has run. It is on one CPU at a time."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._left_ns = 0
        """Times at which it left a CPU, less those at which it came to one, all added up."""
        self._running = False
        self._now_ns = 0
        self._asked: _Moment | None = None
        self._period_s = 0.0
        """The period that follows from the share alone."""
        self._answer_s = 0.0
        """How long the last answer took."""

    def feed(self, records: Records) -> None:
        """More of the trace."""
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
        """How often, in our time, the status may be asked for: so that it takes no more than
        SHARE_MAX, and so that most of the time no other command has to wait for it."""
        wanted = max(self._period_s, self._answer_s / BUSY_MAX)
        return min(max(wanted, PERIOD_S[0]), PERIOD_S[1])

    def asked(self) -> None:
        """Notes that the status is asked for: so the cost of the last time is known.

        What an answer takes of the machine is the same however often it is asked for: to have it
        take half the share, ask half as often.
        """
        now = _Moment(time.monotonic(), self._now_ns, self.ran_ns)
        last, self._asked = self._asked, now
        if last and now.theirs_ns > last.theirs_ns:
            share = (now.ran_ns - last.ran_ns) / (now.theirs_ns - last.theirs_ns)
            needed_s = (now.ours_s - last.ours_s) * share / SHARE_MAX
            self._period_s = min(max(needed_s, self._period_s / 2), PERIOD_S[1])

    def answered(self) -> None:
        """Notes that the answer is there."""
        if self._asked:
            self._answer_s = time.monotonic() - self._asked.ours_s


@dataclass(frozen=True)
class _Moment:
    """The moment when the status was asked for."""

    ours_s: float
    theirs_ns: int
    ran_ns: int
    """How long the process had run."""
