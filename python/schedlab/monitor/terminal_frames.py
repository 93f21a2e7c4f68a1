# SPDX-License-Identifier: MIT
"""Computes the frames of one system for a terminal, by feeding its tape to a model."""

from __future__ import annotations

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
from schedlab.monitor.history import History
from schedlab.monitor.model import Model
from schedlab.monitor.system import Refused, Setup, Status
from schedlab.monitor.system_factory import Choices
from schedlab.monitor.tape import Tape
from schedlab.monitor.watched_system import Watched

_PIECE = 4096
"""Number of records per call of the model. A call takes less than 1 ms."""
_SEPARATE_CLOCK = "spike"
"""The machine whose time advances with executed instructions, not with the host's clock."""


class Picture:
    """Follows a system across restarts."""

    def __init__(self, watched: Watched, choices: Choices) -> None:
        self.watched = watched
        self._choices = choices
        self.number = 0
        self.skipped = 0
        """Frames dropped because drawing was too slow."""
        self._begin(None, 0)
        self._log: History[str] = watched.log
        self._lines = self._marks = 0
        """Log lines and notes already shown."""

    def _begin(self, tape: Tape | None, window_ns: int) -> None:
        self.tape = tape
        self._window_ns = window_ns
        self.model: Model | None = None
        self._fed = 0
        """Position in the tape."""
        self._status: Status | None = None
        self._shown: ModelFrame | None = None
        if tape:
            policy = self.watched.setup.policy
            shares_by = self._choices.shares_by(policy)
            self.model = Model(tape.header, str(policy), shares_by, window_ns)
            self._fed = tape.recent.begin

    # --- input

    @property
    def behind(self) -> int:
        """Records that the model has not received."""
        tape = self.watched.tape
        if tape is None:
            return 0
        return tape.recent.end - (self._fed if tape is self.tape else tape.recent.begin)

    def feed(self, window_ns: int) -> bool:
        """Feeds the next records to the model. Returns False when the model is up to date."""
        if self.watched.tape is not self.tape:
            self._begin(self.watched.tape, window_ns)
        if not self.tape or not self.model:
            return False
        self._introduce(self.model, window_ns)
        piece = self.tape.recent.since(self._fed, _PIECE)
        if len(piece):
            self.model.feed(piece)
            self._fed += len(piece)
        self._hear(self.model)
        if not self.behind and self.watched.is_on and not self.watched.waits_for_others:
            self._reach(self.model)
        return bool(self.behind)

    def _introduce(self, model: Model, window_ns: int) -> None:
        """Sets the model's values that are not in the trace."""
        if window_ns != self._window_ns:
            self._window_ns = window_ns
            model.set_window(window_ns)
        system = self.watched.system
        if system:
            model.monitor_pids = frozenset(system.monitor_pids)
            model.record_cost_ns = system.record_cost_ns

    def _hear(self, model: Model) -> None:
        status = self.watched.status
        if status is not None and status is not self._status:
            model.apply_status(status)
            self._status = status

    def _reach(self, model: Model) -> None:
        """Advances the model's time when the trace is silent."""
        if self.watched.is_played or self.watched.setup.machine != _SEPARATE_CLOCK:
            model.reach(self.watched.known_ns)

    # --- output

    def frame(self, pace: float, window_ns: int) -> Frame:
        """Returns the current state, and the events since the last frame."""
        self.number += 1
        shown = self._shown = self._new_shown()
        parts = shown or _blank(self.watched.setup, window_ns)
        log, marks = self._new_words()
        return {
            **parts,
            **self.watched.state(pace),
            "marks": [*parts["marks"], *marks],
            "number": self.number,
            "log": log,
            "skipped_frames": self.skipped,
        }

    def _new_words(self) -> tuple[list[str], list[Mark]]:
        log, notes = self.watched.log, self.watched.notes
        if log is not self._log:  # the system was restarted
            self._log, self._lines, self._marks = log, 0, 0
        lines = log.since(self._lines)
        marks = notes.since(self._marks)
        self._lines, self._marks = log.end, notes.end
        return lines, marks

    def _new_shown(self) -> ModelFrame | None:
        if self.model and not self.watched.failure:
            return self.model.frame()
        return _still(self._shown) if self._shown else None

    def explain(self, pid: int) -> Explanation:
        """Explains the waits of a process. Raises Refused if there is no such process."""
        if self.model is None:
            raise Refused("no record has arrived yet; try again")
        try:
            return self.model.explain(pid)
        except KeyError:
            raise Refused(f"process {pid}: not alive in the window; choose another") from None


def _blank(setup: Setup, window_ns: int) -> ModelFrame:
    """Returns the frame shown before the trace begins."""
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
        "timeline": _nothing(),
        "marks": [],
        "decisions": [],
        "events": 0,
        "lost": 0,
    }


def _nothing() -> Timeline:
    """Returns an empty timeline."""
    return {"runs": [], "idle_while_queued": [], "thinned": 0}


def _still(shown: ModelFrame) -> ModelFrame:
    """Returns the last frame without new events."""
    return cast(ModelFrame, {**shown, "timeline": _nothing(), "marks": [], "decisions": []})
