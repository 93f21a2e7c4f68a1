# SPDX-License-Identifier: MIT
"""Feeds a terminal with frames of a session's systems, several times a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import cast, get_type_hints

from schedlab.monitor.frames import (
    Explanation,
    Frame,
    Mark,
    Metrics,
    ModelFrame,
    ProcessColumns,
    Timeline,
)
from schedlab.monitor.model import Model
from schedlab.monitor.session import Session
from schedlab.monitor.system import Refused, Setup, Status
from schedlab.monitor.system_factory import SetupChoices
from schedlab.monitor.tape import History, Tape
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


_RECORDS_PER_CALL = 4096
"""Number of records per call of the model. A call takes less than 1 ms."""
_INSTRUCTION_CLOCK_MACHINE = "spike"
"""Machine whose time advances with executed instructions, not with the host's clock."""


class FrameMaker:
    """Computes the frames of one system, across its restarts."""

    def __init__(self, watched: WatchedSystem, choices: SetupChoices) -> None:
        self.watched = watched
        self._choices = choices
        self.number = 0
        self.skipped_frames = 0
        """Frames dropped because drawing was too slow."""
        self._begin_model(None, 0)
        self._log: History[str] = watched.log
        self._log_position = self._notes_position = 0
        """Log lines and notes already shown."""

    def _begin_model(self, tape: Tape | None, window_ns: int) -> None:
        self.tape = tape
        self._window_ns = window_ns
        self.model: Model | None = None
        self._tape_position = 0
        """Position in the tape."""
        self._status: Status | None = None
        self._last_frame: ModelFrame | None = None
        if tape:
            policy = self.watched.setup.policy
            shares_by = self._choices.share_attribute(policy)
            self.model = Model(tape.header, str(policy), shares_by, window_ns)
            self._tape_position = tape.recent.begin

    # --- input

    @property
    def unread_records(self) -> int:
        """Number of records that the model has not received yet."""
        tape = self.watched.tape
        if tape is None:
            return 0
        return tape.recent.end - (self._tape_position if tape is self.tape else tape.recent.begin)

    def feed(self, window_ns: int) -> bool:
        """Feeds the next records to the model. Returns False if there are none."""
        if self.watched.tape is not self.tape:
            self._begin_model(self.watched.tape, window_ns)
        if not self.tape or not self.model:
            return False
        self._set_up_model(self.model, window_ns)
        piece = self.tape.recent.since(self._tape_position, _RECORDS_PER_CALL)
        if len(piece):
            self.model.feed(piece)
            self._tape_position += len(piece)
        self._apply_status(self.model)
        if not self.unread_records and self.watched.is_ready and not self.watched.waits_for_others:
            self._advance_model(self.model)
        return bool(self.unread_records)

    def _set_up_model(self, model: Model, window_ns: int) -> None:
        """Passes values to the model that the trace does not contain."""
        if window_ns != self._window_ns:
            self._window_ns = window_ns
            model.set_window(window_ns)
        system = self.watched.system
        if system:
            model.monitor_pids = frozenset(system.monitor_pids)
            model.record_cost_ns = system.record_cost_ns

    def _apply_status(self, model: Model) -> None:
        status = self.watched.status
        if status is not None and status is not self._status:
            model.apply_status(status)
            self._status = status

    def _advance_model(self, model: Model) -> None:
        """Advances the model's time while no records arrive."""
        if self.watched.is_played or self.watched.setup.machine != _INSTRUCTION_CLOCK_MACHINE:
            model.reach(self.watched.known_ns)

    # --- output

    def frame(self, pace: float, window_ns: int) -> Frame:
        """Returns the current state, and the events since the last frame."""
        self.number += 1
        model_frame = self._last_frame = self._model_frame()
        frame_of_model = model_frame or _blank_frame(self.watched.setup, window_ns)
        log, marks = self._new_log_and_notes()
        return {
            **frame_of_model,
            **self.watched.state(pace),
            "marks": [*frame_of_model["marks"], *marks],
            "number": self.number,
            "log": log,
            "skipped_frames": self.skipped_frames,
        }

    def _new_log_and_notes(self) -> tuple[list[str], list[Mark]]:
        """Returns the log lines since the last frame, and marks for new notes."""
        log, notes = self.watched.log, self.watched.notes
        if log is not self._log:  # the system was restarted
            self._log, self._log_position, self._notes_position = log, 0, 0
        lines = log.since(self._log_position)
        marks = notes.since(self._notes_position)
        self._log_position, self._notes_position = log.end, notes.end
        return lines, marks

    def _model_frame(self) -> ModelFrame | None:
        if self.model and not self.watched.failure:
            return self.model.frame()
        return _without_events(self._last_frame) if self._last_frame else None

    def explain(self, pid: int) -> Explanation:
        """Explains the waits of a process. Raises Refused if there is no such process."""
        if self.model is None:
            raise Refused("no record has arrived yet; try again")
        try:
            return self.model.explain(pid)
        except KeyError:
            raise Refused(
                f"process {pid}: not alive in the displayed time; choose another process"
            ) from None


def _blank_frame(setup: Setup, window_ns: int) -> ModelFrame:
    """Returns a frame without processes, which is shown before the trace begins."""
    metrics = {
        name: 0 if hint in (int, float) else None for name, hint in get_type_hints(Metrics).items()
    }
    return {
        "now_ns": 0,
        "policy": str(setup.policy),
        "shares_by": "equal",
        "levels": False,
        "levels_rise": False,
        "shared_queue": False,
        "cpus": [],
        "processes": cast(ProcessColumns, {name: [] for name in get_type_hints(ProcessColumns)}),
        "metrics": cast(Metrics, {**metrics, "window_ns": window_ns}),
        "cost": {"steering": 0.0, "tracing": 0.0, "total": 0.0},
        "timeline": _empty_timeline(),
        "marks": [],
        "decisions": [],
        "events": 0,
        "lost": 0,
    }


def _empty_timeline() -> Timeline:
    return {"runs": [], "idle_while_queued": [], "thinned": 0}


def _without_events(frame: ModelFrame) -> ModelFrame:
    """Returns a copy of the last frame without its events, which were shown already."""
    return cast(ModelFrame, {**frame, "timeline": _empty_timeline(), "marks": [], "decisions": []})
