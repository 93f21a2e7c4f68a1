# SPDX-License-Identifier: MIT
"""What the monitor's server takes from strangers, and from pages that ask for more than they read."""

from __future__ import annotations

import socket
from typing import Any

import orjson
from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream

from schedlab.errors import WrongUsage

MESSAGE_BYTES_MAX = 192 * 1024
QUESTIONS_MAX = 64
"""Questions of one page that have no answer yet."""
CLIENTS_MAX = 32
"""Pages at once."""
UNREAD_BYTES_MAX = 16 << 20
"""Answers that a page has not read: until it does, it is heard no further."""
PIECE_BYTES = 64 * 1024
"""The part of a file that is sent at once."""
_CONNECTIONS_MAX = 128
"""Connections besides those of pages."""
_HEADER_BYTES_MAX = 16 * 1024
_READ_BYTES_MAX = 256 * 1024
_SENT_BYTES_MAX = 64 << 20
"""The most that may wait in one connection to be sent."""
_KERNEL_BYTES = 128 * 1024
"""What the host's kernel may keep of a connection for the other side to read, which would otherwise be up to 4 MB."""
_PATIENCE_S = 20
"""The time to wait for a request, or for the next one."""
_WORDS_MAX = 1000
_ID_MAX = 64


class BoundedServer(HTTPServer):
    """Requests without a body, from a number of connections at a time: a newer one takes the place of the
    oldest that is no page's."""

    def initialize(self, application: Any, **_: Any) -> None:  # type: ignore[override]
        """Tornado's own way to be made."""
        super().initialize(
            application,
            max_body_size=0,
            max_header_size=_HEADER_BYTES_MAX,
            max_buffer_size=_READ_BYTES_MAX,
            idle_connection_timeout=_PATIENCE_S,
            body_timeout=_PATIENCE_S,
        )
        self._streams: list[IOStream] = []

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        """Each new connection."""
        stream.max_write_buffer_size = _SENT_BYTES_MAX
        stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KERNEL_BYTES)
        self._streams = [stream for stream in self._streams if not stream.closed()]
        while len(self._streams) >= _CONNECTIONS_MAX:
            self._streams.pop(0).close()
        self._streams.append(stream)
        super().handle_stream(stream, address)

    def keep(self, stream: IOStream | None) -> None:
        """It is a page's: from now on it gives way to none."""
        self._streams = [other for other in self._streams if other is not stream]


def read_message(data: str | bytes) -> dict[str, Any]:
    """Reads a question: a JSON object of numbers, texts of some length and lists of them.

    WrongUsage: it is something else.
    """
    try:
        message = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise WrongUsage(f"a JSON object is expected: {error}") from None
    if not isinstance(message, dict):
        raise WrongUsage("a JSON object is expected")
    number = message.get("id")
    if isinstance(number, float | list | dict) or len(str(number)) > _ID_MAX:
        raise WrongUsage("id: a whole number or a short text is expected")
    for key, value in message.items():
        values = value if isinstance(value, list) else [value]
        if len(key) > _ID_MAX or any(isinstance(value, list | dict) for value in values):
            raise WrongUsage("each value is a number, a text or a list of them")
        if any(isinstance(value, str) and len(value) > _WORDS_MAX for value in values):
            raise WrongUsage(f"a text of at most {_WORDS_MAX} characters is expected")
    return message
