# SPDX-License-Identifier: MIT
"""Feeds a terminal with frames of a session's systems, several times a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from schedlab.monitor.frames import Frame
from schedlab.monitor.session import Session
from schedlab.monitor.terminal_frames import FrameMaker
from schedlab.monitor.watched_system import WatchedSystem

FRAME_PERIOD_S = 0.2
"""Seconds between frames."""
_FEED_MAX_S = 0.1
"""Host seconds per turn for feeding models; remaining records wait for the next turn."""
_SKIPPED_FRAMES_MAX = 4
"""Maximum number of consecutive frames that are skipped for a system whose model lags behind."""


class TerminalScreen:
    """A session's listener that shows frames."""

    def __init__(
        self,
        session: Session,
        show: Callable[[Sequence[Frame]], None],
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """`show` is called with one frame per drawn system; `on_hello_change`, after changes of the hello message."""
        self.session = session
        self.show = show
        self.on_hello_change = changed
        self.frame_makers: dict[str, FrameMaker] = {}
        self._skipped_frames: dict[str, int] = {}
        """Consecutive frames dropped."""
        self._shown_s = 0.0
        self.close = session.listen(self)

    def frame_maker(self, letter: str) -> FrameMaker:
        """Returns the object that computes a system's frames."""
        watched = self.session.systems[letter]
        existing = self.frame_makers.get(letter)
        if existing is None or existing.watched is not watched:
            existing = self.frame_makers[letter] = FrameMaker(watched, self.session.choices)
        return existing

    # --- the interface of a session's listener

    def unsent_records(self, system: WatchedSystem) -> int:
        return self.frame_maker(system.letter).unread_records

    async def send_updates(self) -> None:
        """Feeds new records to the models in small pieces, and yields to other tasks between them."""
        end_s = time.monotonic() + _FEED_MAX_S
        unfinished = [self.frame_maker(letter) for letter in self.session.systems]
        while unfinished and time.monotonic() < end_s:
            unfinished = [letter for letter in unfinished if self._feed_model(letter)]
            await asyncio.sleep(0)
        now = time.monotonic()
        if now >= self._shown_s + FRAME_PERIOD_S:
            self._shown_s = max(self._shown_s + FRAME_PERIOD_S, now - FRAME_PERIOD_S)
            due_frame_makers = filter(self._is_due, map(self.frame_maker, self.session.systems))
            self.show([self.frame(frame_maker) for frame_maker in due_frame_makers])

    def _feed_model(self, frame_maker: FrameMaker) -> bool:
        try:
            return not frame_maker.watched.failure and frame_maker.feed(self.session.window_ns)
        except Exception as error:  # a broken model fails this system only
            frame_maker.watched.abandon(error)
            return False

    def _is_due(self, frame_maker: FrameMaker) -> bool:
        """Returns whether to draw a system now.

        Counts a skipped frame, and returns False, if its model lags behind.
        """
        letter, watched = frame_maker.watched.letter, frame_maker.watched
        if (
            frame_maker.unread_records
            and not watched.is_played
            and self._skipped_frames.get(letter, 0) < _SKIPPED_FRAMES_MAX
        ):
            self._skipped_frames[letter] = self._skipped_frames.get(letter, 0) + 1
            frame_maker.skipped_frames += 1
            return False
        self._skipped_frames[letter] = 0
        return True

    def frame(self, frame_maker: FrameMaker) -> Frame:
        """Returns a system's frame; if its model fails, the frame shows the failure."""
        try:
            return frame_maker.frame(self.session.pace, self.session.window_ns)
        except Exception as error:  # a broken model fails this system only
            frame_maker.watched.abandon(error)
            return frame_maker.frame(self.session.pace, self.session.window_ns)
