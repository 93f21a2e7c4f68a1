# SPDX-License-Identifier: MIT
"""Hands traces to pages, and what pages ask to the session. On this machine only, unless told
otherwise; a request without the token hears nothing and changes nothing.

Tornado, because it is in the house already (Dask stands on it), runs on asyncio, and has WebSockets.
"""

from __future__ import annotations

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

from schedlab.errors import WrongUsage, parameter
from schedlab.monitor.files import MODULE, PAGE, VEGA, Made, PageFile, Published
from schedlab.monitor.limits import MESSAGE_BYTES_MAX, BoundedServer
from schedlab.monitor.page_socket import Socket, encode
from schedlab.monitor.session import Session
from schedlab.monitor.watched import Watched
from schedlab.report.html import SHARED, TEMPLATES

SHARED_FILES = f"/({'|'.join(SHARED)})"
"""Files that the reports have, too."""
LOCAL = "127.0.0.1"
STATE_S = 0.1
"""The time from one word on how systems are to the next."""
_PING_S = 20
"""A page that has not answered by the next one is gone."""


class Server:
    """One session for any number of pages."""

    def __init__(self, session: Session, address: str = LOCAL, port: int = 0) -> None:
        """`port` 0: any that is free. WrongUsage: it cannot listen there."""
        self.session = session
        self.token = secrets.token_urlsafe(24)
        self._published: dict[str, Path] = {}
        """Folders that may be read, by names that cannot be guessed: pages in them lead to others."""
        self.clients: set[Any] = set()
        self.work: set[asyncio.Task[None]] = set()
        """What pages have asked for: it is done though a page goes away meanwhile."""
        try:
            self._sockets = bind_sockets(port, address, family=socket.AF_UNSPEC)
        except OSError as error:
            raise WrongUsage(
                str(error.strerror or error),
                what=f"{parameter('listen', address)} {parameter('port', port)}",
                fix="choose another, or leave `port=` out for any that is free",
            ) from None
        self.port: int = self._sockets[0].getsockname()[1]
        self._names = self._own_names(address)
        self._told_s = 0.0
        self.entered = asyncio.Event()
        """A page has come."""
        self._http = BoundedServer(self._application())
        self._http.add_sockets(self._sockets)
        self._stop_listening = session.listen(self)
        session.publish = self.publish

    @property
    def url(self) -> str:
        """The address, with the token."""
        return f"http://{self._host}:{self.port}/?token={self.token}"

    @property
    def is_local(self) -> bool:
        """Can only this machine reach it?"""
        names = [listener.getsockname()[0] for listener in self._sockets]
        return all(ipaddress.ip_address(name.partition("%")[0]).is_loopback for name in names)

    @property
    def _host(self) -> str:
        """The host as it stands in an address."""
        name = self._sockets[0].getsockname()[0]
        if ipaddress.ip_address(name.partition("%")[0]).is_unspecified:
            name = socket.gethostname()
        return f"[{name}]" if ":" in name else str(name)

    async def close(self) -> None:
        """No page hears of anything after this."""
        self._stop_listening()
        self._http.stop()
        leaving = [client.leave("the monitor has ended") for client in self.clients]
        for task in self.work:
            task.cancel()
        await asyncio.gather(*leaving, *self.work, return_exceptions=True)
        await self._http.close_all_connections()

    def _application(self) -> Application:
        page = {"path": str(PAGE), "default_filename": "index.html"}
        return Application(
            [
                (r"/socket", Socket),
                (r"/vega\.js", Made, VEGA),
                (r"/machine\.wasm", Made, MODULE),
                (r"/(?:report|perfetto)/([\w-]+)/(.+)", Published, {"path": "/"}),
                (SHARED_FILES, PageFile, {"path": str(TEMPLATES)}),
                (r"/(.*)", PageFile, page),
            ],
            websocket_ping_interval=_PING_S,
            websocket_max_message_size=MESSAGE_BYTES_MAX,
            server=self,
            log_function=lambda handler: None,
        )

    # --- what may come in

    def is_token(self, given: str) -> bool:
        """Compares in a time that says nothing of how near it is."""
        return hmac.compare_digest(given.encode(), self.token.encode())

    def knows_host(self, host: str) -> bool:
        """Is this the name that it was called by? A page elsewhere that had its name lead here would
        say its own (DNS rebinding)."""
        try:
            parts = urlsplit(f"//{host}")
            name, port = parts.hostname or "", parts.port
        except ValueError:
            return False
        return (port or 80) == self.port and name in self._names

    def _own_names(self, address: str) -> frozenset[str]:
        """Returns the names that a browser may call it by."""
        names = {str(listener.getsockname()[0]) for listener in self._sockets} | {
            address,
            "localhost",
        }
        if not self.is_local:
            names |= {LOCAL, socket.gethostname(), socket.getfqdn()}
            names |= {info[4][0] for name in list(names) for info in _addresses(name)}
        return frozenset(name.lower() for name in names)

    def knows_origin(self, origin: str | None, host: str) -> bool:
        """Browsers say which page opens a socket; other programs need not."""
        if origin is None:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()

    # --- what is shown

    async def turn(self) -> None:
        """Has pages told what is new."""
        now = time.monotonic()
        due = now >= self._told_s + STATE_S
        if due:
            self._told_s = max(self._told_s + STATE_S, now - STATE_S)
        for client in list(self.clients):
            client.go_on(due)

    def behind(self, system: Watched) -> int:
        """Returns how many records the fastest page has not been sent."""
        return min((client.behind(system) for client in self.clients), default=0)

    def changed(self) -> None:
        data = encode(self.session.hello())
        for client in list(self.clients):
            client.greet(data)

    def enter(self, client: Socket) -> None:
        """Lets in a page that has the token."""
        self.clients.add(client)
        if client.ws_connection:
            self._http.keep(client.ws_connection.stream)
        self.entered.set()

    def publish(self, path: Path) -> str:
        """Returns the address of a file, and of those beside it if it is a page."""
        secret = secrets.token_urlsafe(18)
        kind = "report" if path.suffix == ".html" else "perfetto"
        self._published[secret] = path.parent if kind == "report" else path
        return f"/{kind}/{secret}/{path.name}"

    def published(self, secret: str, name: str) -> Path | None:
        """Returns the file that an address leads to, or None if there is none."""
        root = self._published.get(secret)
        if root is None:
            return None
        if not root.is_dir():
            return root if name == root.name else None
        path = (root / name).resolve()
        return path if path.is_relative_to(root.resolve()) and path.is_file() else None


def _addresses(name: str) -> list[Any]:
    try:
        return socket.getaddrinfo(name, None)
    except OSError:
        return []
