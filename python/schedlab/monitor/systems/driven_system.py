# SPDX-License-Identifier: MIT
"""Base class of systems whose clock the monitor drives: the simulator and recordings.

In the terminal, the host's clock drives them (`play_by_itself`). A page runs its own copy in the
browser. The server's copy then waits, and advances to the page's time when a command needs its
trace.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from schedlab.monitor.system import Life, Setup

_TURN_S = 0.02
"""Seconds between clock updates."""
_PATIENCE_S = 0.05
"""Maximum duration (s) of an update, for systems slower than the clock."""
_FAR_NS = 60_000_000_000
"""Target (ns) of an update at unlimited speed; `_PATIENCE_S` ends it earlier."""


class PlayedSystem:
    """See Played, in system.py."""

    repeatable = True
    no_branches = "a simulated machine needs no branches: step back, change it there, and continue"
    record_cost_ns = 0.0
    end_ns: int | None = None

    def __init__(self, setup: Setup, folder: Path) -> None:
        self.setup = setup
        self.folder = folder
        self.life = Life.STARTING
        self.message = ""
        self.speed = 1.0
        self._position_ns = 0
        """The system's time (ns)."""
        self._taken_ns: int | None = None
        """Time (ns) of the trace read so far, if more is available; None if all was read."""
        self._playing: asyncio.Task[None] | None = None
        self._goes_on = False

    @property
    def now_ns(self) -> int:
        """The time (ns) reached, limited to the trace read so far."""
        return self._position_ns if self._taken_ns is None else self._taken_ns

    async def play_by_itself(self) -> None:
        """Starts the setup's workloads and the clock."""
        await self.resume()

    async def pause(self) -> None:
        self._goes_on = False
        if self._playing:
            await self._playing

    async def resume(self) -> None:
        if not self._goes_on:
            self._goes_on = True
            self._playing = asyncio.create_task(self._play())

    async def _play(self) -> None:
        before_s = time.monotonic()
        while self._goes_on and self.life is Life.RUNNING:
            await asyncio.sleep(_TURN_S)
            now_s = time.monotonic()
            # A delay is not made up for, because other systems would have to wait.
            since_s = min(now_s - before_s, _TURN_S + _PATIENCE_S)
            far_ns = int(since_s * self.speed * 1e9) if self.speed else _FAR_NS
            before_s = now_s
            try:
                await self.advance(self._position_ns + far_ns, _PATIENCE_S)
            except OSError as error:  # the disk of the trace failed
                self.life, self.message = Life.FAILED, str(error)

    async def advance(self, until_ns: int, timeout_s: float) -> None:
        """Advances to a time (ns), for at most `timeout_s` seconds."""
        raise NotImplementedError

    def is_past(self, acts: Sequence[str]) -> bool:
        """Returns whether exactly these actions were performed, up to the current time."""
        return not acts

    def expect(self, acts: Sequence[str]) -> None:
        """Queues actions for their times."""
