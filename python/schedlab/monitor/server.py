# SPDX-License-Identifier: MIT
"""Serves traces to pages, and passes their commands to the session.

By default, only this machine can connect. The server rejects every socket without the session's
token. It uses Tornado, because Dask requires Tornado anyway.
"""

import asyncio
import hmac
import ipaddress
import secrets
import socket
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tornado.netutil import bind_sockets
from tornado.web import Application

from schedlab.errors import WrongUsage, format_parameter
from schedlab.monitor.files import (
    MODEL_MODULE,
    PAGE_FOLDER,
    VEGA_SCRIPT,
    GeneratedFile,
    PageFile,
    PublishedFile,
)
from schedlab.monitor.limits import MESSAGE_BYTES_MAX, BoundedServer
from schedlab.monitor.page_socket import PageSocket, encode_message
from schedlab.monitor.session import Session
from schedlab.monitor.watched_system import WatchedSystem
from schedlab.report.html import SHARED_FILES, TEMPLATES

SHARED_FILES_PATTERN = f"/({'|'.join(SHARED_FILES)})"
"""Address pattern of files that reports use, too."""
LOCALHOST = "127.0.0.1"
STATE_PERIOD_S = 0.1
"""Seconds between state messages."""
_PING_PERIOD_S = 20
"""Seconds between pings; a page that misses one is disconnected."""


class Server:
    """Serves one session to any number of pages."""

    def __init__(self, session: Session, address: str = LOCALHOST, port: int = 0) -> None:
        """Starts to listen; port 0 means any free port. Raises WrongUsage if listening fails."""
        self.session = session
        self.token = secrets.token_urlsafe(24)
        self._published: dict[str, Path] = {}
        """Published paths by unguessable names; a page in a published folder may link to other files there."""
        self.clients: set[PageSocket] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        """Tasks of pages' requests; they continue if the page disconnects."""
        try:
            self._sockets = bind_sockets(port, address, family=socket.AF_UNSPEC)
        except OSError as error:
            raise WrongUsage(
                str(error.strerror or error),
                what=f"{format_parameter('listen', address)} {format_parameter('port', port)}",
                fix="choose another address or port, or leave out `port=` to use any free port",
            ) from None
        self.port: int = self._sockets[0].getsockname()[1]
        self._names = self._host_names(address)
        self._states_sent_s = 0.0
        self.page_has_connected = asyncio.Event()
        """Set when the first page has connected."""
        self._http = BoundedServer(self._application())
        self._http.add_sockets(self._sockets)
        self._stop_listening = session.listen(self)
        session.publish = self.publish

    @property
    def url(self) -> str:
        """The address with the token."""
        return f"http://{self._host}:{self.port}/?token={self.token}"

    @property
    def is_local(self) -> bool:
        """True if only this machine can reach the server."""
        names = [listener.getsockname()[0] for listener in self._sockets]
        return all(ipaddress.ip_address(name.partition("%")[0]).is_loopback for name in names)

    @property
    def _host(self) -> str:
        """The host name as written in URLs; IPv6 addresses get brackets."""
        name = self._sockets[0].getsockname()[0]
        if ipaddress.ip_address(name.partition("%")[0]).is_unspecified:
            name = socket.gethostname()
        return f"[{name}]" if ":" in name else str(name)

    async def close(self) -> None:
        """Disconnects all pages and stops listening."""
        self._stop_listening()
        self._http.stop()
        disconnections = [client.disconnect("the monitor has ended") for client in self.clients]
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*disconnections, *self.tasks, return_exceptions=True)
        await self._http.close_all_connections()

    def _application(self) -> Application:
        page = {"path": str(PAGE_FOLDER), "default_filename": "index.html"}
        return Application(
            [
                (r"/socket", PageSocket),
                (r"/vega\.js", GeneratedFile, VEGA_SCRIPT),
                (r"/machine\.wasm", GeneratedFile, MODEL_MODULE),
                (r"/(?:report|perfetto)/([\w-]+)/(.+)", PublishedFile, {"path": "/"}),
                (SHARED_FILES_PATTERN, PageFile, {"path": str(TEMPLATES)}),
                (r"/(.*)", PageFile, page),
            ],
            websocket_ping_interval=_PING_PERIOD_S,
            websocket_max_message_size=MESSAGE_BYTES_MAX,
            server=self,
            log_function=lambda handler: None,
        )

    # --- checks of requests

    def is_token(self, given: str) -> bool:
        """Returns whether the text is the session's token.

        Compares in constant time, so that timing does not reveal a partial match.
        """
        return hmac.compare_digest(given.encode(), self.token.encode())

    def knows_host(self, host: str) -> bool:
        """Returns whether the Host header names this server, which prevents DNS rebinding."""
        try:
            url = urlsplit(f"//{host}")
            name, port = url.hostname or "", url.port
        except ValueError:
            return False
        return (port or 80) == self.port and name in self._names

    def _host_names(self, address: str) -> frozenset[str]:
        """Returns the host names of this server that browsers may use."""
        names = {str(listener.getsockname()[0]) for listener in self._sockets} | {
            address,
            "localhost",
        }
        if not self.is_local:
            names |= {LOCALHOST, socket.gethostname(), socket.getfqdn()}
            names |= {info[4][0] for name in list(names) for info in _resolve_addresses(name)}
        return frozenset(name.lower() for name in names)

    def knows_origin(self, origin: str | None, host: str) -> bool:
        """Returns whether a WebSocket's origin is this server; programs other than browsers send no origin."""
        if origin is None:
            return True
        try:
            url = urlsplit(origin)
        except ValueError:
            return False
        return url.scheme in ("http", "https") and url.netloc.lower() == host.lower()

    # --- output

    async def send_updates(self) -> None:
        """Sends new records and, every STATE_S, new states to the pages."""
        now = time.monotonic()
        states_are_due = now >= self._states_sent_s + STATE_PERIOD_S
        if states_are_due:
            self._states_sent_s = max(self._states_sent_s + STATE_PERIOD_S, now - STATE_PERIOD_S)
        for client in list(self.clients):
            client.wake_sender(states_are_due)

    def unsent_records(self, system: WatchedSystem) -> int:
        """Returns the number of a system's records that are not yet sent to the page that is furthest ahead."""
        return min((client.unsent_records(system) for client in self.clients), default=0)

    def on_hello_change(self) -> None:
        data = encode_message(self.session.hello())
        for client in list(self.clients):
            client.send_hello(data)

    def register(self, client: PageSocket) -> None:
        """Registers a page that sent the token."""
        self.clients.add(client)
        if client.ws_connection:
            self._http.exempt(client.ws_connection.stream)
        self.page_has_connected.set()

    def publish(self, path: Path) -> str:
        """Makes a file available to pages; for an HTML file, its whole folder. Returns its address."""
        secret = secrets.token_urlsafe(18)
        kind = "report" if path.suffix == ".html" else "perfetto"
        self._published[secret] = path.parent if kind == "report" else path
        return f"/{kind}/{secret}/{path.name}"

    def published(self, secret: str, name: str) -> Path | None:
        """Returns the published file with this address, or None if there is none."""
        root = self._published.get(secret)
        if root is None:
            return None
        if not root.is_dir():
            return root if name == root.name else None
        path = (root / name).resolve()
        return path if path.is_relative_to(root.resolve()) and path.is_file() else None


def _resolve_addresses(name: str) -> list[Any]:
    try:
        return socket.getaddrinfo(name, None)
    except OSError:
        return []
