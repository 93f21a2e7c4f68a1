# SPDX-License-Identifier: MIT
"""A simulated machine or a recording: its clock is ours.

In the terminal it goes by this host's clock (`play_by_itself`). A page plays it by a copy of its own;
then this one stands, and is brought to where the page is when something is asked of its trace.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from schedlab.monitor.system import Life, Setup

_TURN_S = 0.02
"""The time from one look at the clock to the next."""
_PATIENCE_S = 0.05
"""What a turn may take if it cannot go as fast as the clock."""
_FAR_NS = 60_000_000_000
"""How far a turn goes if there is no clock: as far as it comes."""


class PlayedSystem:
    """See Played, in system.py."""

    repeatable = True
    no_branches = (
        "a simulated machine is its own future: step back, change it there, and let it go on"
    )
    record_cost_ns = 0.0
    end_ns: int | None = None

    def __init__(self, setup: Setup, folder: Path) -> None:
        self.setup = setup
        self.folder = folder
        self.life = Life.STARTING
        self.message = ""
        self.speed = 1.0
        self._stands_ns = 0
        """The system's own time."""
        self._taken_ns: int | None = None
        """How far the trace was taken, while there is more of it up to now; None: all of it was."""
        self._playing: asyncio.Task[None] | None = None
        self._goes_on = False

    @property
    def now_ns(self) -> int:
        """How far it has come: not farther than the trace was taken, if that comes in pieces."""
        return self._stands_ns if self._taken_ns is None else self._taken_ns

    async def play_by_itself(self) -> None:
        """Starts the workloads of its setup, and lets time go on."""
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
            # What it could not do in time is not caught up: others would have to wait for that.
            since_s = min(now_s - before_s, _TURN_S + _PATIENCE_S)
            far_ns = int(since_s * self.speed * 1e9) if self.speed else _FAR_NS
            before_s = now_s
            try:
                await self.advance(self._stands_ns + far_ns, _PATIENCE_S)
            except OSError as error:  # of the disk that its trace is on
                self.life, self.message = Life.FAILED, str(error)

    async def advance(self, until_ns: int, patience_s: float) -> None:
        """Goes on to a time, or as far as it comes in that much of ours."""
        raise NotImplementedError

    def is_past(self, acts: Sequence[str]) -> bool:
        """Has nothing been done to it but these acts, as far as their times have come?"""
        return not acts

    def expect(self, acts: Sequence[str]) -> None:
        """Acts that are to be done when their times come."""
