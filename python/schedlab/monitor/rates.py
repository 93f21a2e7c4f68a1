# SPDX-License-Identifier: MIT
"""Measures how fast a system's time advances compared with the host's."""

from __future__ import annotations

from collections import deque


class Rate:
    """The growth rate of a counter over the last second of the host's time."""

    def __init__(self) -> None:
        self._values: deque[tuple[float, float]] = deque()

    def note_value(self, now_s: float, value: float) -> None:
        """Records the number's current value."""
        self._values.append((now_s, value))
        while len(self._values) > 2 and self._values[1][0] <= now_s - 1.0:
            self._values.popleft()

    @property
    def per_second(self) -> float:
        """Returns the growth per second; 0 if fewer than two values are known."""
        if len(self._values) < 2:
            return 0.0
        (first_s, first), (last_s, last) = self._values[0], self._values[-1]
        return max(last - first, 0.0) / (last_s - first_s) if last_s > first_s else 0.0


class HostClock:
    """Estimates a system's current time between its records, if its clock runs at the host's speed.

    The record with the least delay gives the offset between the two clocks. Offsets older than
    `_SPAN_S` are dropped: a system stopped from outside has lost time.
    """

    _SPAN_S = 3.0

    def __init__(self) -> None:
        self._earlier_run_s = 0.0
        self._started_s: float | None = None
        self._offsets: deque[tuple[float, float]] = deque()
        """Pairs of running time (s) and clock offset (ns)."""

    def start(self, now_s: float) -> None:
        """Notes that the system's clock begins to run, at the host's time `now_s`."""
        if self._started_s is None:
            self._started_s = now_s

    def stop(self, now_s: float) -> None:
        """Notes that the system's clock is stopped from `now_s` on."""
        self._earlier_run_s = self._run_time_s(now_s)
        self._started_s = None

    def note_record(self, now_s: float, time_ns: int) -> None:
        """Notes that a record with the system's time `time_ns` arrived at the host's time `now_s`."""
        run_s = self._run_time_s(now_s)
        offset_ns = time_ns - run_s * 1e9
        while self._offsets and self._offsets[-1][1] <= offset_ns:
            self._offsets.pop()
        self._offsets.append((run_s, offset_ns))
        while self._offsets[0][0] < run_s - self._SPAN_S:
            self._offsets.popleft()

    def time_ns(self, now_s: float) -> int:
        """Returns the estimated time (ns) of the system's clock, or 0 if unknown."""
        return int(self._run_time_s(now_s) * 1e9 + self._offsets[0][1]) if self._offsets else 0

    def _run_time_s(self, now_s: float) -> float:
        """Returns for how long the system has run, without pauses."""
        return self._earlier_run_s + (
            now_s - self._started_s if self._started_s is not None else 0.0
        )
