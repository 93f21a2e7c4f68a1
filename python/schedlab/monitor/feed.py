# SPDX-License-Identifier: MIT
"""Sends a system's trace and state to one page."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import orjson

from schedlab.monitor.history import History
from schedlab.monitor.system import Records, Status
from schedlab.monitor.tape import Tape
from schedlab.monitor.watched_system import WatchedSystem
from schedlab.trace.format import RECORD, Kind, MarkKind
from schedlab.trace.writer import header_bytes

_RECORDS_PER_MESSAGE = 32_768
"""Maximum number of trace records per message; each has 32 bytes."""
_INSTRUCTION_CLOCK_MACHINE = "spike"
"""Machine whose time advances with executed instructions, not with the host's clock."""


@dataclass(frozen=True)
class FeedMessage:
    """A message to a page: JSON text, or bytes with trace records."""

    data: bytes
    is_binary: bool = False
    records: int = 0


class Feed:
    """Tracks what one page has received from one system.

    A page that connects late or falls behind first gets the state before the oldest kept record,
    then all records since.
    """

    def __init__(self, watched: WatchedSystem) -> None:
        """Begins to follow a system for a page that has received nothing yet."""
        self.watched = watched
        self.state_is_due = True
        self._tape: Tape | None = None
        self._sent_records = 0
        self._is_introduced = False
        """True once the page has the system's state, which precedes the trace."""
        self._log: History[str] | None = None
        self._log_position = self._notes_position = 0
        self._status: Status | None = None

    @property
    def unsent_records(self) -> int:
        """Number of records not yet sent."""
        tape = self._tape_to_send
        if tape is None:
            return 0
        return tape.recent.end - (self._sent_records if tape is self._tape else tape.recent.begin)

    @property
    def _tape_to_send(self) -> Tape | None:
        """The tape to send from, or None if the page runs the system itself and needs no trace."""
        return None if self.watched.is_played_by_page else self.watched.tape

    def next_message(self, pace: float) -> FeedMessage | None:
        """Returns the next message, or None if the page is up to date."""
        tape = self._tape_to_send
        if tape and (tape is not self._tape or self._sent_records < tape.recent.begin):
            return self._first_message(tape, pace)
        if self.unsent_records and tape:
            records = tape.recent.since(self._sent_records, _RECORDS_PER_MESSAGE)
            self._sent_records += len(records)
            return self._records_message(records)
        if not self.state_is_due:
            return None
        self.state_is_due = False
        return FeedMessage(orjson.dumps(self._state_message(pace)))

    def _first_message(self, tape: Tape, pace: float) -> FeedMessage:
        if not self._is_introduced:
            self._is_introduced = True
            return FeedMessage(orjson.dumps(self._state_message(pace)))
        self._is_introduced = False
        if tape is self._tape:  # the page fell behind, and kept records were dropped
            self._tape = None
            missed = {"type": "missed", "system": self.watched.letter, "frames": 1}
            return FeedMessage(orjson.dumps(missed))
        self._tape, self._sent_records = tape, tape.recent.begin
        self._status = None
        header = tape.header
        trace_header = header_bytes(
            header.cpus, header.tick_ns, header.cycles_per_second, header.seed
        )
        return self._records_message(_opening_records(tape), trace_header)

    def _records_message(self, records: Records, header: bytes = b"") -> FeedMessage:
        message_header = self.watched.letter.encode() + bytes([bool(header), *[0] * 6])
        return FeedMessage(message_header + header + records.tobytes(), True, len(records))

    def _state_message(self, pace: float) -> dict[str, object]:
        """Returns the message with the system's state, and new log lines and notes."""
        watched = self.watched
        if self._log is not watched.log:  # the system was restarted
            self._log, self._log_position, self._notes_position = watched.log, 0, 0
        log, marks = (
            watched.log.since(self._log_position),
            watched.notes.since(self._notes_position),
        )
        self._log_position, self._notes_position = watched.log.end, watched.notes.end
        system = watched.system
        return {
            "type": "state",
            **watched.state(pace),
            "starts": watched.starts,
            "origin_ns": watched.origin_ns,
            "reached_ns": self._reached_ns(),
            "own": sorted(system.monitor_pids) if system else [],
            "record_cost_ns": system.record_cost_ns if system else 0.0,
            "log": log,
            "marks": marks,
            "status": self._new_status(),
        }

    def _reached_ns(self) -> int | None:
        """Returns the time (ns) that the system has reached, if it is later than the last record.

        None if it is unknown, or if records remain to be sent.
        """
        watched = self.watched
        if (
            self.unsent_records
            or watched.tape is not self._tape
            or not watched.is_ready
            or watched.waits_for_others
        ):
            return None
        return watched.known_ns if watched.setup.machine != _INSTRUCTION_CLOCK_MACHINE else None

    def _new_status(self) -> list[dict[str, object]] | None:
        """Returns the rows of a status that was not sent yet, or None."""
        status = self.watched.status
        if status is None or status is self._status or self._tape is not self.watched.tape:
            return None
        self._status = status
        names = ("pid", "priority", "tickets", "slice_ns")
        return [{name: getattr(row, name) for name in names} for row in status.rows]


def _opening_records(tape: Tape) -> Records:
    """Returns records that describe the system's state before the oldest kept record."""
    opening = tape.recent.opening()
    if opening is None:
        return np.empty(0, RECORD)
    labels = np.zeros(len(opening.groups), RECORD)
    labels["time"], labels["kind"], labels["first"] = opening.time_ns, Kind.MARK, MarkKind.GROUP
    labels["process"] = list(opening.groups)
    labels["second"] = list(opening.groups.values())
    opening_records: Records = np.concatenate([opening.records, labels])
    return opening_records
