# SPDX-License-Identifier: MIT
"""What a terminal is shown of a session: pictures of its systems, some times a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from schedlab.monitor.frames import Frame
from schedlab.monitor.picture import Picture
from schedlab.monitor.session import Session
from schedlab.monitor.watched import Watched

FRAME_S = 0.2
"""The time from one frame to the next."""
_FEED_S = 0.1
"""What models may take of a turn; what is left over then waits for the next one."""
_SKIPPED_MAX = 4
"""Frames in a row that are not drawn of a system that has a model that is behind."""


class Screen:
    """Listens to a session (session.Listener), and shows frames."""

    def __init__(
        self,
        session: Session,
        show: Callable[[Sequence[Frame]], None],
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """`show` is given frames, one of each system that is drawn; `changed` is called when what
        Session.hello says is no longer so."""
        self.session = session
        self.show = show
        self.changed = changed
        self.pictures: dict[str, Picture] = {}
        self._skipped: dict[str, int] = {}
        """Frames in a row."""
        self._shown_s = 0.0
        self.close = session.listen(self)

    def picture(self, letter: str) -> Picture:
        """Returns that of a system."""
        watched = self.session.systems[letter]
        existing = self.pictures.get(letter)
        if existing is None or existing.watched is not watched:
            existing = self.pictures[letter] = Picture(watched, self.session.choices)
        return existing

    # --- what a session's listener does

    def behind(self, system: Watched) -> int:
        return self.picture(system.letter).behind

    async def turn(self) -> None:
        """Gives models what is new, in turns, while other tasks get their turns."""
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
        except Exception as error:  # of its model: the others go on
            picture.watched.fail(error)
            return False

    def _is_due(self, picture: Picture) -> bool:
        """Is there time to draw it?"""
        letter, watched = picture.watched.letter, picture.watched
        if picture.behind and not watched.is_played and self._skipped.get(letter, 0) < _SKIPPED_MAX:
            self._skipped[letter] = self._skipped.get(letter, 0) + 1
            picture.skipped += 1
            return False
        self._skipped[letter] = 0
        return True

    def frame(self, picture: Picture) -> Frame:
        """Returns how a system is; if its model fails, that it has failed."""
        try:
            return picture.frame(self.session.pace, self.session.window_ns)
        except Exception as error:  # of its model: the others go on
            picture.watched.fail(error)
            return picture.frame(self.session.pace, self.session.window_ns)
