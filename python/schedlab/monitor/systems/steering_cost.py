# SPDX-License-Identifier: MIT
"""What steering takes of a machine's time, by its trace; and how often its status may be asked for."""

from __future__ import annotations

import time

import numpy as np

from schedlab.monitor.system import Records
from schedlab.trace.format import Kind

SHARE_MAX = 0.02
"""Of one CPU, for who steers."""
PERIOD_S = (1.0, 60.0)
"""Of ours, from asking to asking."""


class SteeringCost:
    """How long the process that steers has run. It is on one CPU at a time."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._left_ns = 0
        """Times at which it left a CPU, less those at which it came to one, all added up."""
        self._running = False
        self._now_ns = 0
        self._asked: tuple[float, int, int] | None = None
        """When the status was asked for: our time, the machine's, and how long it had run."""
        self.period_s = PERIOD_S[0]

    def feed(self, records: Records) -> None:
        """More of the trace."""
        if len(records) == 0:
            return
        self._now_ns = max(self._now_ns, int(records["time"][-1]))
        switches = records[records["kind"] == Kind.SWITCH]
        comes = switches["process"] == self._pid
        leaves = switches["first"] == self._pid
        times = switches["time"].astype(np.int64)
        self._left_ns += int(times[leaves].sum()) - int(times[comes].sum())
        own = np.flatnonzero(comes | leaves)
        if len(own):
            self._running = bool(comes[own[-1]])

    @property
    def ran_ns(self) -> int:
        return self._left_ns + (self._now_ns if self._running else 0)

    def asked(self) -> None:
        """The status is asked for: so the cost of the last time is known.

        What an answer takes of the machine is the same however often it is asked for: to have it
        take half the share, ask half as often.
        """
        now = (time.monotonic(), self._now_ns, self.ran_ns)
        if self._asked:
            ours_s, theirs_ns, ran_ns = (
                new - old for new, old in zip(now, self._asked, strict=True)
            )
            if theirs_ns > 0:
                wanted = ours_s * ran_ns / theirs_ns / SHARE_MAX
                self.period_s = min(max(wanted, self.period_s / 2, PERIOD_S[0]), PERIOD_S[1])
        self._asked = now
