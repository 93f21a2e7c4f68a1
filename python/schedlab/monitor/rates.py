# SPDX-License-Identifier: MIT
"""Measures how fast a system's time advances compared with the host's."""

from __future__ import annotations

from collections import deque


class Rate:
    """The growth rate of a number over the last second of the host's time."""

    def __init__(self, span_s: float = 1.0) -> None:
        self._span_s = span_s
        self._seen: deque[tuple[float, float]] = deque()

    def note(self, now_s: float, value: float) -> None:
        """Records the number's current value."""
        self._seen.append((now_s, value))
        while len(self._seen) > 2 and self._seen[1][0] <= now_s - self._span_s:
            self._seen.popleft()

    @property
    def per_second(self) -> float:
        """Returns the growth per second; 0 if fewer than two values are known."""
        if len(self._seen) < 2:
            return 0.0
        (first_s, first), (last_s, last) = self._seen[0], self._seen[-1]
        return max(last - first, 0.0) / (last_s - first_s) if last_s > first_s else 0.0


class HostClock:
    """Estimates the time of a system whose clock runs at the host's speed, even without records.

    The record with the least delay gives the offset between the two clocks. Offsets older than
    `_SPAN_S` are dropped, because a system stopped from outside has lost time.
    """

    _SPAN_S = 3.0

    def __init__(self) -> None:
        self._ran_s = 0.0
        self._since: float | None = None
        self._heard: deque[tuple[float, float]] = deque()
        """Pairs of running time (s) and clock offset (ns)."""

    def start(self, now_s: float) -> None:
        """Starts the clock."""
        if self._since is None:
            self._since = now_s

    def stop(self, now_s: float) -> None:
        """Stops the clock."""
        self._ran_s = self._ran(now_s)
        self._since = None

    def heard(self, now_s: float, time_ns: int) -> None:
        """Records the arrival of a record with this time (ns)."""
        ran = self._ran(now_s)
        beyond = time_ns - ran * 1e9
        while self._heard and self._heard[-1][1] <= beyond:
            self._heard.pop()
        self._heard.append((ran, beyond))
        while self._heard[0][0] < ran - self._SPAN_S:
            self._heard.popleft()

    def time_ns(self, now_s: float) -> int:
        """Returns the estimated time (ns) of the system's clock, or 0 if unknown."""
        return int(self._ran(now_s) * 1e9 + self._heard[0][1]) if self._heard else 0

    def _ran(self, now_s: float) -> float:
        return self._ran_s + (now_s - self._since if self._since is not None else 0.0)
