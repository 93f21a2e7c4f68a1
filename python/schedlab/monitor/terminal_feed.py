# SPDX-License-Identifier: MIT
"""Feeds a terminal: computes frames of a session's systems several times a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from schedlab.monitor.frames import Frame
from schedlab.monitor.session import Session
from schedlab.monitor.terminal_frames import Picture
from schedlab.monitor.watched_system import Watched

FRAME_S = 0.2
"""Seconds between frames."""
_FEED_S = 0.1
"""Seconds per turn for feeding models; remaining records wait for the next turn."""
_SKIPPED_MAX = 4
"""Maximum number of consecutive frames dropped for a system whose model is behind."""


class Screen:
    """A session's listener that shows frames."""

    def __init__(
        self,
        session: Session,
        show: Callable[[Sequence[Frame]], None],
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """Calls `show` with one frame per drawn system, and `changed` after a change of Session.hello."""
        self.session = session
        self.show = show
        self.changed = changed
        self.pictures: dict[str, Picture] = {}
        self._skipped: dict[str, int] = {}
        """Consecutive frames dropped."""
        self._shown_s = 0.0
        self.close = session.listen(self)

    def picture(self, letter: str) -> Picture:
        """Returns the picture of a system."""
        watched = self.session.systems[letter]
        existing = self.pictures.get(letter)
        if existing is None or existing.watched is not watched:
            existing = self.pictures[letter] = Picture(watched, self.session.choices)
        return existing

    # --- the interface of a session's listener

    def behind(self, system: Watched) -> int:
        return self.picture(system.letter).behind

    async def turn(self) -> None:
        """Feeds new records to the models in small pieces, and yields to other tasks between them."""
        end_s = time.monotonic() + _FEED_S
        left = [self.picture(letter) for letter in self.session.systems]
        while left and time.monotonic() < end_s:
            left = [letter for letter in left if self._fed(letter)]
            await asyncio.sleep(0)
        now = time.monotonic()
        if now >= self._shown_s + FRAME_S:
            self._shown_s = max(self._shown_s + FRAME_S, now - FRAME_S)
            due = filter(self._is_due, map(self.picture, self.session.systems))
            self.show([self.frame(picture) for picture in due])

    def _fed(self, picture: Picture) -> bool:
        try:
            return not picture.watched.failure and picture.feed(self.session.window_ns)
        except Exception as error:  # a broken model fails this system only
            picture.watched.fail(error)
            return False

    def _is_due(self, picture: Picture) -> bool:
        """Returns whether to draw the system. If the system's model is behind, drops the frame and returns False."""
        letter, watched = picture.watched.letter, picture.watched
        if picture.behind and not watched.is_played and self._skipped.get(letter, 0) < _SKIPPED_MAX:
            self._skipped[letter] = self._skipped.get(letter, 0) + 1
            picture.skipped += 1
            return False
        self._skipped[letter] = 0
        return True

    def frame(self, picture: Picture) -> Frame:
        """Returns a system's frame; if its model fails, the frame shows the failure."""
        try:
            return picture.frame(self.session.pace, self.session.window_ns)
        except Exception as error:  # a broken model fails this system only
            picture.watched.fail(error)
            return picture.frame(self.session.pace, self.session.window_ns)
