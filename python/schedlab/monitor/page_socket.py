# SPDX-License-Identifier: MIT
"""The WebSocket of one page: sends traces and state at the page's speed, and answers questions."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, Protocol

import orjson
from tornado.iostream import StreamBufferFullError
from tornado.web import HTTPError
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from schedlab.errors import SchedlabError, WrongUsage
from schedlab.monitor.commands import perform
from schedlab.monitor.feed import Feed, Message
from schedlab.monitor.files import Guard, Quiet
from schedlab.monitor.limits import (
    CLIENTS_MAX,
    QUESTIONS_MAX,
    UNREAD_BYTES_MAX,
    read_message,
)
from schedlab.monitor.session import Session
from schedlab.monitor.watched_system import Watched

_REASON_MAX = 100
"""Characters of a close reason; WebSockets allow 123 bytes."""
_GOODBYE_S = 1
"""Seconds that a page has to close its socket."""
_UNTAKEN_MAX = 262_144
"""Records sent but not acknowledged by the page; beyond this, sending waits."""


def encode(message: Mapping[str, Any]) -> bytes:
    """Returns a message as JSON in a bytes object of exact size.

    orjson's own result keeps its 4 KB buffer; many queued short answers once used 400 MB.
    """
    return bytes(memoryview(orjson.dumps(message)))


class Pages(Guard, Protocol):
    """All pages of a session."""

    session: Session
    clients: set[Any]
    work: set[asyncio.Task[None]]

    def knows_origin(self, origin: str | None, host: str) -> bool:
        """Returns whether a page of this origin may open a socket."""

    def is_token(self, given: str) -> bool:
        """Returns whether the text is the session's token."""

    def enter(self, client: Any) -> None:
        """Registers a page that sent the token."""


class Socket(WebSocketHandler, Quiet):
    """One page's socket; a slow page does not delay other pages."""

    def initialize(self) -> None:
        self.server: Pages = self.settings["server"]
        self._feeds: dict[str, Feed] = {}
        self._untaken = 0
        """Records sent but not acknowledged."""
        self._hello: bytes | None = None
        self._others: deque[bytes] = deque()
        """Answers; none of them may be dropped."""
        self._unread = 0
        """Bytes of the queued answers."""
        self._work = asyncio.Event()
        self._read = asyncio.Event()
        """Set when the page has read an answer."""
        self._questions = 0
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
            raise HTTPError(503, "too many pages")

    def check_origin(self, origin: str) -> bool:
        return self.server.knows_origin(origin, self.request.host)

    def write_error(self, status_code: int, **_: Any) -> None:
        self.finish(f"{status_code} {self._reason}\n")

    def open(self, *_: str, **__: str) -> None:
        self.server.enter(self)
        self._sending = asyncio.ensure_future(self._send())
        self.greet(encode(self.server.session.hello()))

    def on_close(self) -> None:
        self.server.clients.discard(self)
        self._closed_by_page = True
        self._work.set()
        self._read.set()

    async def leave(self, reason: str) -> None:
        """Closes the socket, by force if the page does not respond."""
        stream = self.ws_connection.stream if self.ws_connection else None
        self.close(1001, reason)
        if stream and self._sending:
            await asyncio.wait([self._sending], timeout=_GOODBYE_S)
            stream.close()
            await self._sending

    # --- sending

    def greet(self, data: bytes) -> None:
        """Sends a hello message; a newer hello replaces a queued one."""
        self._hello = data
        self._work.set()

    def put(self, data: bytes) -> None:
        """Sends a message that must not be dropped."""
        self._others.append(data)
        self._unread += len(data)
        self._work.set()

    def go_on(self, states: bool) -> None:
        """Sends new records of all systems, if the page can take them. `states`: also sends the systems' states."""
        for letter, watched in self.server.session.systems.items():
            feed = self._feeds.get(letter)
            if feed is None or feed.watched is not watched:
                feed = self._feeds[letter] = Feed(watched)
            feed.state_is_due |= states
        self._work.set()

    def behind(self, watched: Watched) -> int:
        """Returns the number of a system's records not yet sent."""
        feed = self._feeds.get(watched.letter)
        return feed.behind if feed and feed.watched is watched else 0

    async def _send(self) -> None:
        """Writes one message at a time and waits until each is sent."""
        try:
            while True:
                await self._work.wait()
                self._work.clear()
                if self._closed_by_page:
                    return
                while message := self._next():
                    await self.write_message(message.data, binary=message.is_binary)
                    self._read.set()
        except WebSocketClosedError:
            pass
        except StreamBufferFullError:
            self.close(1013, "it does not read")

    def _next(self) -> Message | None:
        if self._hello:
            hello, self._hello = self._hello, None
            return Message(hello)
        if self._others:
            data = self._others.popleft()
            self._unread -= len(data)
            return Message(data)
        if self._untaken > _UNTAKEN_MAX:
            return None
        for letter, watched in self.server.session.systems.items():
            feed = self._feeds.get(letter)
            message = (
                feed.next(self.server.session.pace) if feed and feed.watched is watched else None
            )
            if message:
                self._untaken += message.records
                return message
        return None

    # --- questions

    async def on_message(self, message: str | bytes) -> None:
        """Answers a question. Tornado delivers the next one only after this coroutine has finished."""
        while self._unread > UNREAD_BYTES_MAX and not self._closed_by_page:
            self._read.clear()
            await self._read.wait()
        try:
            content = read_message(message)
        except WrongUsage as error:
            self.close(1007, str(error)[:_REASON_MAX])
            return
        if content.get("do") == "took":
            self._took(content.get("records"))
        elif self._questions >= QUESTIONS_MAX:
            self._answer(content.get("id"), error="too many questions at once")
        else:
            self._questions += 1
            task = asyncio.ensure_future(self._perform(content))
            self.server.work.add(task)
            task.add_done_callback(self.server.work.discard)

    def _took(self, records: Any) -> None:
        """Handles the page's acknowledgement of records."""
        if isinstance(records, int):
            self._untaken -= min(max(records, 0), self._untaken)
            self._work.set()

    async def _perform(self, message: dict[str, Any]) -> None:
        number = message.get("id")

        def show(text: str) -> None:
            self.put(encode({"type": "progress", "id": number, "text": text}))

        try:
            result = await perform(self.server.session, message, show)
        except (SchedlabError, OSError) as error:
            self._answer(number, error=str(error))
        except Exception as error:  # an internal error fails this question only
            self._answer(number, error=f"{type(error).__name__}: {error}")
        else:
            self._answer(number, result=result)
        finally:
            self._questions -= 1

    def _answer(self, number: Any, result: Any = None, error: str | None = None) -> None:
        content = {"result": result} if error is None else {"error": error}
        self.put(encode({"type": "answer", "id": number, "ok": error is None, **content}))
