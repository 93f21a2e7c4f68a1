# SPDX-License-Identifier: MIT
"""Limits what the monitor's server accepts from clients, and what it buffers for slow pages."""

import socket
from typing import Any

import orjson
from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream

from schedlab.errors import WrongUsage

MESSAGE_BYTES_MAX = 192 * 1024
QUESTIONS_MAX = 64
"""Maximum number of unanswered commands of one page."""
CLIENTS_MAX = 32
"""Pages connected at once."""
UNREAD_ANSWER_BYTES_MAX = 16 << 20
"""Answers queued for a page that does not read; beyond this, no more of its commands are accepted."""
FILE_PIECE_BYTES = 64 * 1024
"""Bytes of a file sent at once."""
_CONNECTIONS_MAX = 128
"""Maximum number of HTTP connections, apart from pages' sockets."""
_HEADER_BYTES_MAX = 16 * 1024
_READ_BYTES_MAX = 256 * 1024
_SENT_BYTES_MAX = 64 << 20
"""Bytes that one connection may buffer for sending."""
_KERNEL_BUFFER_BYTES = 128 * 1024
"""The kernel's send buffer per connection, which could otherwise grow to 4 MB."""
_CLIENT_TIMEOUT_S = 20
"""Seconds that a client may take for a request, and may stay idle between requests."""
_TEXT_CHARACTERS_MAX = 1000
_ID_CHARACTERS_MAX = 64


class BoundedServer(HTTPServer):
    """HTTP server that rejects requests with a body, and limits the number of connections.

    A new connection beyond the limit closes the oldest connection that is not a page's socket.
    """

    def initialize(self, application: Any, **_: Any) -> None:  # type: ignore[override]
        """Tornado calls this instead of a constructor."""
        super().initialize(
            application,
            max_body_size=0,
            max_header_size=_HEADER_BYTES_MAX,
            max_buffer_size=_READ_BYTES_MAX,
            idle_connection_timeout=_CLIENT_TIMEOUT_S,
            body_timeout=_CLIENT_TIMEOUT_S,
        )
        self._streams: list[IOStream] = []

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        """Accepts a connection and closes the oldest ones beyond the limit."""
        stream.max_write_buffer_size = _SENT_BYTES_MAX
        stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KERNEL_BUFFER_BYTES)
        self._streams = [stream for stream in self._streams if not stream.closed()]
        while len(self._streams) >= _CONNECTIONS_MAX:
            self._streams.pop(0).close()
        self._streams.append(stream)
        super().handle_stream(stream, address)

    def exempt(self, stream: IOStream | None) -> None:
        """Exempts a page's socket from the closing of old connections."""
        self._streams = [other for other in self._streams if other is not stream]


def read_message(data: str | bytes) -> dict[str, Any]:
    """Parses a page's command: a JSON object of numbers, short texts and lists of them.

    Raises WrongUsage for anything else.
    """
    try:
        message = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise WrongUsage(f"message: expected a JSON object: {error}") from None
    if not isinstance(message, dict):
        raise WrongUsage("message: expected a JSON object; see docs/monitor-protocol.md")
    number = message.get("id")
    if isinstance(number, float | list | dict) or len(str(number)) > _ID_CHARACTERS_MAX:
        raise WrongUsage("id: expected a whole number or a short text")
    for key, value in message.items():
        values = value if isinstance(value, list) else [value]
        if len(key) > _ID_CHARACTERS_MAX or any(isinstance(value, list | dict) for value in values):
            raise WrongUsage(
                f"{key[:_ID_CHARACTERS_MAX]}: expected a number, a text or a list of these as its value,"
                f" and a name of at most {_ID_CHARACTERS_MAX} characters"
            )
        if any(isinstance(value, str) and len(value) > _TEXT_CHARACTERS_MAX for value in values):
            raise WrongUsage(f"{key}: expected a text of at most {_TEXT_CHARACTERS_MAX} characters")
    return message
