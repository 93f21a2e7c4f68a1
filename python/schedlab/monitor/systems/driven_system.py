# SPDX-License-Identifier: MIT
"""Base class of systems whose clock the monitor drives: the simulator and recordings.

In the terminal, the host's clock drives them (`play_by_itself`). A page simulates in the browser.
The server then has a second copy of the simulation, which waits.
It advances to the page's time when a command needs the trace.
"""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from schedlab.monitor.system import Life, Setup, System

_TURN_PERIOD_S = 0.02
"""Host seconds between two calls of `advance`."""
_ADVANCE_MAX_S = 0.05
"""Maximum host seconds of one `advance`, for systems that are slower than the clock."""
_UNLIMITED_STEP_NS = 60_000_000_000
"""How far (ns) one `advance` may go at unlimited speed; `_ADVANCE_MAX_S` usually ends it earlier."""


class PlayedSystem(System):
    """A system whose clock the monitor drives: a simulated machine or a recording."""

    repeatable = True
    why_no_branches = (
        "a simulated machine needs no branches: step back, change it there, and continue"
    )
    end_ns: int | None = None
    """The end (ns) of a recording; None if unknown."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        super().__init__(setup, folder)
        self.speed = 1.0
        """System seconds per host second; 0 means as fast as possible."""
        self._position_ns = 0
        """The system's time (ns)."""
        self._read_ns: int | None = None
        """Time (ns) of the trace read so far, if more is available; None if all was read."""
        self._playing: asyncio.Task[None] | None = None
        self._keeps_playing = False

    @property
    def now_ns(self) -> int:
        """The time (ns) reached, limited to the trace read so far."""
        return self._position_ns if self._read_ns is None else self._read_ns

    async def play_by_itself(self) -> None:
        """Starts the setup's workloads, and advances the system by the host's clock (for terminals)."""
        await self.resume()

    async def pause(self) -> None:
        self._keeps_playing = False
        if self._playing:
            await self._playing

    async def resume(self) -> None:
        if not self._keeps_playing:
            self._keeps_playing = True
            self._playing = asyncio.create_task(self._play())

    async def _play(self) -> None:
        """Advances the system at its speed until it pauses or ends."""
        before_s = time.monotonic()
        while self._keeps_playing and self.life is Life.RUNNING:
            await asyncio.sleep(_TURN_PERIOD_S)
            now_s = time.monotonic()
            # Lost time is not made up for: a burst would hold up the other systems of the session.
            since_s = min(now_s - before_s, _TURN_PERIOD_S + _ADVANCE_MAX_S)
            far_ns = int(since_s * self.speed * 1e9) if self.speed else _UNLIMITED_STEP_NS
            before_s = now_s
            try:
                await self.advance(self._position_ns + far_ns, _ADVANCE_MAX_S)
            except OSError as error:  # the trace could not be written to disk
                self.life, self.message = Life.FAILED, str(error)

    async def advance(self, until_ns: int, timeout_s: float) -> None:
        """Advances to a time (ns), for at most `timeout_s` seconds."""
        raise NotImplementedError

    def has_performed(self, actions: Sequence[str]) -> bool:
        """Returns whether the system performed exactly these actions so far.

        An action is a line such as "120000000 tickets 5 77" (systems/simulator.py).
        """
        return not actions

    def schedule(self, actions: Sequence[str]) -> None:
        """Schedules actions, which the system performs when it reaches their times."""
