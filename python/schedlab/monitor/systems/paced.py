# SPDX-License-Identifier: MIT
"""What a simulated machine and a recording have in common: their clock is ours."""

from __future__ import annotations

from pathlib import Path

from schedlab.monitor.system import Life, Setup


class PacedSystem:
    """See Paced, in system.py."""

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
        self._stands_ns = 0
        """The system's own time."""
        self._taken_ns: int | None = None
        """How far the trace was taken, while there is more of it up to now; None: all of it was."""

    @property
    def now_ns(self) -> int:
        """How far it has come: not farther than the trace was taken, if that comes in pieces."""
        return self._stands_ns if self._taken_ns is None else self._taken_ns

    async def pause(self) -> None:
        """Has its time stand still unless advance() is called."""

    async def resume(self) -> None:
        """See pause()."""
