# SPDX-License-Identifier: MIT
"""The WebSocket of one page: sends traces and state at the page's speed, and answers questions."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import orjson
from tornado.iostream import StreamBufferFullError
from tornado.web import HTTPError
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from schedlab.errors import SchedlabError, WrongUsage
from schedlab.monitor.commands import perform_command
from schedlab.monitor.files import QuietHandler, RequestGuard
from schedlab.monitor.limits import (
    CLIENTS_MAX,
    QUESTIONS_MAX,
    UNREAD_ANSWER_BYTES_MAX,
    read_message,
)
from schedlab.monitor.session import Session
from schedlab.monitor.system import Records, Status
from schedlab.monitor.tape import History, Tape
from schedlab.monitor.watched_system import WatchedSystem
from schedlab.trace.format import RECORD, Kind, MarkKind
from schedlab.trace.writer import header_bytes

_REASON_MAX = 100
"""Characters of a close reason; WebSockets allow 123 bytes."""
_CLOSE_TIMEOUT_S = 1
"""Seconds that a page has to close its socket."""
_UNACKNOWLEDGED_MAX = 262_144
"""Maximum number of records sent but not yet acknowledged by the page; sending then pauses."""


def encode_message(message: Mapping[str, Any]) -> bytes:
    """Returns a message as JSON bytes, which occupy no more memory than their length.

    orjson's own result keeps its 4 KB buffer; many queued short answers once used 400 MB.
    """
    return bytes(memoryview(orjson.dumps(message)))


class PageServer(RequestGuard, Protocol):
    """What a socket needs of the server: the session, and the list of connected pages."""

    session: Session
    clients: set[PageSocket]
    tasks: set[asyncio.Task[None]]

    def knows_origin(self, origin: str | None, host: str) -> bool:
        """Returns whether web pages of this origin may open a socket."""

    def is_token(self, given: str) -> bool:
        """Returns whether the text is the session's token."""

    def register(self, client: PageSocket) -> None:
        """Registers a page that sent the token."""


class PageSocket(WebSocketHandler, QuietHandler):
    """One page's socket; a slow page does not delay other pages."""

    def initialize(self) -> None:
        self.server: PageServer = self.settings["server"]
        self._feeds: dict[str, Feed] = {}
        self._unacknowledged = 0
        """Records sent but not acknowledged."""
        self._queued_hello: bytes | None = None
        self._queued_answers: deque[bytes] = deque()
        """Answers; none of them may be dropped."""
        self._queued_answer_bytes = 0
        """Bytes of the queued answers."""
        self._has_work = asyncio.Event()
        self._answer_was_read = asyncio.Event()
        """Set when the page has read an answer."""
        self._unanswered_commands = 0
        """Number of unanswered questions."""
        self._sending: asyncio.Task[None] | None = None
        self._closed_by_page = False
        """True once the page has left.

        The sending task then ends by itself; cancelling its write would print a traceback.
        """

    def prepare(self) -> None:
        request = self.request
        origin = request.headers.get("Origin")
        allowed = (
            self.server.knows_host(request.host)
            and self.server.knows_origin(origin, request.host)
            and self.server.is_token(self.get_argument("token", ""))
        )
        if not allowed:
            raise HTTPError(403, reason="Forbidden: use the address that the monitor printed")
        if len(self.server.clients) >= CLIENTS_MAX:
            raise HTTPError(503, reason="Too many pages are open: close one, and reload this page")

    def check_origin(self, origin: str) -> bool:
        return self.server.knows_origin(origin, self.request.host)

    def write_error(self, status_code: int, **_: Any) -> None:
        self.finish(f"{status_code} {self._reason}\n")

    def open(self, *_: str, **__: str) -> None:
        self.server.register(self)
        self._sending = asyncio.ensure_future(self._send_messages())
        self.send_hello(encode_message(self.server.session.hello()))

    def on_close(self) -> None:
        self.server.clients.discard(self)
        self._closed_by_page = True
        self._has_work.set()
        self._answer_was_read.set()

    async def disconnect(self, reason: str) -> None:
        """Closes the socket, by force if the page does not respond."""
        stream = self.ws_connection.stream if self.ws_connection else None
        self.close(1001, reason)
        if stream and self._sending:
            await asyncio.wait([self._sending], timeout=_CLOSE_TIMEOUT_S)
            stream.close()
            await self._sending

    # --- sending

    def send_hello(self, data: bytes) -> None:
        """Queues a hello message; replaces an older hello that is still queued."""
        self._queued_hello = data
        self._has_work.set()

    def queue_message(self, data: bytes) -> None:
        """Queues a message that must not be dropped, such as an answer."""
        self._queued_answers.append(data)
        self._queued_answer_bytes += len(data)
        self._has_work.set()

    def wake_sender(self, with_states: bool) -> None:
        """Wakes the sending task, because new records may have arrived.

        `with_states`: also sends the systems' states.
        """
        for letter, watched in self.server.session.systems.items():
            feed = self._feeds.get(letter)
            if feed is None or feed.watched is not watched:
                feed = self._feeds[letter] = Feed(watched)
            feed.state_is_due |= with_states
        self._has_work.set()

    def unsent_records(self, watched: WatchedSystem) -> int:
        """Returns how many of a system's records this page has not been sent yet."""
        feed = self._feeds.get(watched.letter)
        return feed.unsent_records if feed and feed.watched is watched else 0

    async def _send_messages(self) -> None:
        """Writes one message at a time and waits until each is sent."""
        try:
            while True:
                await self._has_work.wait()
                self._has_work.clear()
                if self._closed_by_page:
                    return
                while message := self._next_message():
                    await self.write_message(message.data, binary=message.is_binary)
                    self._answer_was_read.set()
        except WebSocketClosedError:
            pass
        except StreamBufferFullError:
            self.close(1013, "it does not read")

    def _next_message(self) -> FeedMessage | None:
        if self._queued_hello:
            hello, self._queued_hello = self._queued_hello, None
            return FeedMessage(hello)
        if self._queued_answers:
            data = self._queued_answers.popleft()
            self._queued_answer_bytes -= len(data)
            return FeedMessage(data)
        if self._unacknowledged > _UNACKNOWLEDGED_MAX:
            return None
        for letter, watched in self.server.session.systems.items():
            feed = self._feeds.get(letter)
            message = (
                feed.next_message(self.server.session.pace)
                if feed and feed.watched is watched
                else None
            )
            if message:
                self._unacknowledged += message.records
                return message
        return None

    # --- questions

    async def on_message(self, message: str | bytes) -> None:
        """Performs the command in a message and answers it.

        Tornado delivers the next message only after this coroutine has finished.
        """
        while self._queued_answer_bytes > UNREAD_ANSWER_BYTES_MAX and not self._closed_by_page:
            self._answer_was_read.clear()
            await self._answer_was_read.wait()
        try:
            content = read_message(message)
        except WrongUsage as error:
            self.close(1007, str(error)[:_REASON_MAX])
            return
        if content.get("do") == "took":
            self._acknowledge(content.get("records"))
        elif self._unanswered_commands >= QUESTIONS_MAX:
            self._answer(content.get("id"), error="too many questions at once")
        else:
            self._unanswered_commands += 1
            task = asyncio.ensure_future(self._perform_command(content))
            self.server.tasks.add(task)
            task.add_done_callback(self.server.tasks.discard)

    def _acknowledge(self, records: Any) -> None:
        """Subtracts acknowledged records from those in transit."""
        if isinstance(records, int):
            self._unacknowledged -= min(max(records, 0), self._unacknowledged)
            self._has_work.set()

    async def _perform_command(self, message: dict[str, Any]) -> None:
        command_id = message.get("id")

        def show_progress(text: str) -> None:
            self.queue_message(encode_message({"type": "progress", "id": command_id, "text": text}))

        try:
            result = await perform_command(self.server.session, message, show_progress)
        except (SchedlabError, OSError) as error:
            self._answer(command_id, error=str(error))
        except Exception as error:  # an internal error fails this question only
            self._answer(command_id, error=f"{type(error).__name__}: {error}")
        else:
            self._answer(command_id, result=result)
        finally:
            self._unanswered_commands -= 1

    def _answer(self, command_id: Any, result: Any = None, error: str | None = None) -> None:
        content = {"result": result} if error is None else {"error": error}
        self.queue_message(
            encode_message({"type": "answer", "id": command_id, "ok": error is None, **content})
        )


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
    labels = np.zeros(len(opening.group_by_pid), RECORD)
    labels["time"], labels["kind"], labels["first"] = opening.time_ns, Kind.MARK, MarkKind.GROUP
    labels["process"] = list(opening.group_by_pid)
    labels["second"] = list(opening.group_by_pid.values())
    opening_records: Records = np.concatenate([opening.records, labels])
    return opening_records
