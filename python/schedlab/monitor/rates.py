# SPDX-License-Identifier: MIT
"""How fast a system's time goes, compared with ours."""

from __future__ import annotations

from collections import deque


class Rate:
    """How fast a number grows, over the last second or so of ours."""

    def __init__(self, span_s: float = 1.0) -> None:
        self._span_s = span_s
        self._seen: deque[tuple[float, float]] = deque()

    def note(self, now_s: float, value: float) -> None:
        """Notes what the number is now."""
        self._seen.append((now_s, value))
        while len(self._seen) > 2 and self._seen[1][0] <= now_s - self._span_s:
            self._seen.popleft()

    @property
    def per_second(self) -> float:
        """0 until there is enough to tell."""
        if len(self._seen) < 2:
            return 0.0
        (first_s, first), (last_s, last) = self._seen[0], self._seen[-1]
        return max(last - first, 0.0) / (last_s - first_s) if last_s > first_s else 0.0


class HostClock:
    """The time of a system that has a clock as fast as ours while it runs, even if it is silent.

    Of what its trace has told, the record that came with the least delay says how the two clocks
    lie to each other. What is older than some seconds no longer counts: a system that was stopped
    from outside has lost time.
    """

    _SPAN_S = 3.0

    def __init__(self) -> None:
        self._ran_s = 0.0
        self._since: float | None = None
        self._heard: deque[tuple[float, float]] = deque()
        """Pairs: a time that it had run, and how far its clock was beyond that."""

    def runs(self, now_s: float) -> None:
        """Has the clock run from now on."""
        if self._since is None:
            self._since = now_s

    def stands(self, now_s: float) -> None:
        """Has the clock stand from now on."""
        self._ran_s = self._ran(now_s)
        self._since = None

    def heard(self, now_s: float, time_ns: int) -> None:
        """Notes that a record has come."""
        ran = self._ran(now_s)
        beyond = time_ns - ran * 1e9
        while self._heard and self._heard[-1][1] <= beyond:
            self._heard.pop()
        self._heard.append((ran, beyond))
        while self._heard[0][0] < ran - self._SPAN_S:
            self._heard.popleft()

    def time_ns(self, now_s: float) -> int:
        """Returns what its clock should show, or 0 if that is unknown."""
        return int(self._ran(now_s) * 1e9 + self._heard[0][1]) if self._heard else 0

    def _ran(self, now_s: float) -> float:
        return self._ran_s + (now_s - self._since if self._since is not None else 0.0)
