# SPDX-License-Identifier: MIT
"""Hands frames to pages, and what pages ask to the session. On this machine only, unless told
otherwise; a request without the token hears nothing and changes nothing.

Tornado, because it is in the house already (Dask stands on it), runs on asyncio, and has WebSockets.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import secrets
import socket
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
from tornado.iostream import StreamBufferFullError, StreamClosedError
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler, StaticFileHandler
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from schedlab.display.terminal import say
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.monitor.commands import perform
from schedlab.monitor.frames import Frame
from schedlab.monitor.limits import (
    CLIENTS_MAX,
    MESSAGE_BYTES_MAX,
    PIECE_BYTES,
    QUESTIONS_MAX,
    UNREAD_BYTES_MAX,
    BoundedServer,
    read_message,
)
from schedlab.monitor.session import Session
from schedlab.monitor.vega import vega_script
from schedlab.report.html import TEMPLATES, THEME

PAGE = Path(__file__).parent / "page"
THEME_FILES = f"/({'|'.join(THEME)})"
"""Style sheets that the reports have, too."""
LOCAL = "127.0.0.1"
_REASON_MAX = 100
"""Characters of what a socket's end says: WebSockets have room for 123 bytes."""
_GOODBYE_S = 1
"""How long the monitor's end waits for a page to take notice."""
_PING_S = 20
"""A page that has not answered by the next one is gone."""
_OURS = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
POLICY = (
    f"{_OURS}; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:;"
    " font-src 'self'; connect-src 'self'"
)
"""What a page of ours may load and run: what comes from here, and no script that stands in it.
Vega sets styles on what it draws."""
REPORT_POLICY = (
    f"{_OURS}; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data:; font-src 'self' data:; connect-src 'self'"
)
"""The charts of a report, which is made to stand alone, compile their expressions."""

_HEADERS = {
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def encode(message: Mapping[str, Any]) -> bytes:
    """Returns JSON; columns may be numpy arrays, which orjson reads without making lists of them."""
    return orjson.dumps(message, option=orjson.OPT_SERIALIZE_NUMPY)


class Server:
    """One session for any number of pages."""

    def __init__(self, session: Session, address: str = LOCAL, port: int = 0) -> None:
        """`port` 0: any that is free. WrongUsage: it cannot listen there."""
        self.session = session
        self.token = secrets.token_urlsafe(24)
        self._published: dict[str, Path] = {}
        """Folders that may be read, by names that cannot be guessed: pages in them lead to others."""
        self.clients: set[Socket] = set()
        self.work: set[asyncio.Task[None]] = set()
        """What pages have asked for: it is done though a page goes away meanwhile."""
        try:
            self._sockets = bind_sockets(port, address, family=socket.AF_UNSPEC)
        except OSError as error:
            raise WrongUsage(
                f"--listen {address} --port {port}: {error.strerror or error}; choose another, or leave"
                " --port out for any that is free"
            ) from None
        self.port: int = self._sockets[0].getsockname()[1]
        self._names = self._own_names(address)
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
        names = [each.getsockname()[0] for each in self._sockets]
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
                (r"/vega\.js", Vega),
                (r"/(?:report|perfetto)/([\w-]+)/(.+)", Published, {"path": "/"}),
                (THEME_FILES, PageFile, {"path": str(TEMPLATES)}),
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
        names = {str(each.getsockname()[0]) for each in self._sockets} | {address, "localhost"}
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

    def show(self, frames: Sequence[Frame]) -> None:
        """Each is encoded once, for all."""
        if not self.clients:
            return
        for frame in frames:
            data = encode({"type": "frame", **frame})
            for client in list(self.clients):
                client.offer(frame["system"], data)

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


class _Quiet(RequestHandler):
    """What strangers send is none of the terminal's business."""

    def log_exception(self, typ: Any, value: BaseException | None, tb: Any) -> None:
        if isinstance(value, Exception) and not isinstance(value, HTTPError):
            say(f"schedlab: the page's server: {typ.__name__}: {value}")


class _Guarded(_Quiet):
    """What all answers have, and what all requests must have."""

    policy = POLICY

    @property
    def server(self) -> Server:
        found: Server = self.settings["server"]
        return found

    def prepare(self) -> None:
        if not self.server.knows_host(self.request.host):
            raise HTTPError(403, "no host of this name")
        if any("\0" in each for each in self.path_args):
            raise HTTPError(404)

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        for name, value in _HEADERS.items():
            self.set_header(name, value)
        self.set_header("Content-Security-Policy", self.policy)

    def write_error(self, status_code: int, **_: Any) -> None:
        """Answers in words, and without a trace of Python."""
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{status_code} {self._reason}\n")


class _File(_Guarded, StaticFileHandler):
    """Read anew each time: it may be another one by then."""

    def compute_etag(self) -> None:
        return None


class PageFile(_File):
    """The page, which tells nothing: it asks for everything by its socket."""


class Vega(_Guarded):
    """The library of charts."""

    async def get(self) -> None:
        self.set_header("Content-Type", "text/javascript; charset=utf-8")
        self.set_header("Cache-Control", "private, max-age=3600")
        script = memoryview(await asyncio.to_thread(vega_script))
        with suppress(StreamClosedError):
            for at in range(0, len(script), PIECE_BYTES):
                self.write(bytes(script[at : at + PIECE_BYTES]))
                await self.flush()  # of a page that does not read, one piece is in memory


class Published(_File):
    """Files that were made while the system was watched."""

    policy = REPORT_POLICY

    async def get(self, secret: str, name: str, include_body: bool = True) -> None:  # type: ignore[override]
        path = self.server.published(secret, name)
        if path is None:
            raise HTTPError(403)
        if path.suffix == ".perfetto-trace":
            self.set_header("Content-Disposition", f'attachment; filename="{path.name}"')
        await super().get(str(path).lstrip("/"), include_body)


class Socket(WebSocketHandler, _Quiet):
    """One page. What it has not read yet of a system's frames gives way to a newer one."""

    def initialize(self) -> None:
        self.server: Server = self.settings["server"]
        self._frames: dict[str, bytes] = {}
        """Each system's newest frame that was not sent."""
        self._missed: dict[str, int] = {}
        self._hello: bytes | None = None
        self._others: deque[bytes] = deque()
        """Answers, of which none is left out."""
        self._unread = 0
        """Bytes of them."""
        self._work = asyncio.Event()
        self._read = asyncio.Event()
        """It has read something."""
        self._questions = 0
        """How many questions have no answer yet."""
        self._sending: asyncio.Task[None] | None = None
        self._gone = False
        """Whether the page has left. The task that sends ends by itself then: to cancel what it writes would show a
        traceback on the terminal."""

    def prepare(self) -> None:
        request = self.request
        origin = request.headers.get("Origin")
        allowed = (
            self.server.knows_host(request.host)
            and self.server.knows_origin(origin, request.host)
            and self.server.is_token(self.get_argument("token", ""))
        )
        if not allowed:
            raise HTTPError(403)
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
        self._gone = True
        self._work.set()
        self._read.set()

    async def leave(self, reason: str) -> None:
        """Ends the socket, by force if the page does not take notice."""
        stream = self.ws_connection.stream if self.ws_connection else None
        self.close(1001, reason)
        if stream and self._sending:
            await asyncio.wait([self._sending], timeout=_GOODBYE_S)
            stream.close()
            await self._sending

    # --- what it is told

    def greet(self, data: bytes) -> None:
        """Sends a hello: a newer one says all."""
        self._hello = data
        self._work.set()

    def put(self, data: bytes) -> None:
        """Sends a message that must come."""
        self._others.append(data)
        self._unread += len(data)
        self._work.set()

    def offer(self, system: str, data: bytes) -> None:
        """Sends a frame, which may give way to the next one."""
        if system in self._frames:
            self._missed[system] = self._missed.get(system, 0) + 1
        self._frames[system] = data
        self._work.set()

    async def _send(self) -> None:
        """One message after the other, each once the one before has gone."""
        try:
            while True:
                await self._work.wait()
                self._work.clear()
                if self._gone:
                    return
                while self._hello or self._others or self._frames:
                    for data in self._next():
                        await self.write_message(data)
                    self._read.set()
        except WebSocketClosedError:
            pass
        except StreamBufferFullError:
            self.close(1013, "it does not read")

    def _next(self) -> list[bytes]:
        if self._hello:
            hello, self._hello = self._hello, None
            return [hello]
        if self._others:
            data = self._others.popleft()
            self._unread -= len(data)
            return [data]
        system, frame = next(iter(self._frames.items()))
        del self._frames[system]
        missed = self._missed.pop(system, 0)
        if not missed:
            return [frame]
        return [encode({"type": "missed", "system": system, "frames": missed}), frame]

    # --- what it asks

    async def on_message(self, message: str | bytes) -> None:
        """The next one is not heard before this has ended."""
        while self._unread > UNREAD_BYTES_MAX and not self._gone:
            self._read.clear()
            await self._read.wait()
        try:
            content = read_message(message)
        except WrongUsage as error:
            self.close(1007, str(error)[:_REASON_MAX])
            return
        if self._questions >= QUESTIONS_MAX:
            self._answer(content.get("id"), error="too many questions at once")
        else:
            self._questions += 1
            task = asyncio.ensure_future(self._perform(content))
            self.server.work.add(task)
            task.add_done_callback(self.server.work.discard)

    async def _perform(self, message: dict[str, Any]) -> None:
        number = message.get("id")

        def tell(text: str) -> None:
            self.put(encode({"type": "progress", "id": number, "text": text}))

        try:
            result = await perform(self.server.session, message, tell)
        except (SchedlabError, OSError) as error:
            self._answer(number, error=str(error))
        except Exception as error:  # a mistake of ours: the asking page is told, the others go on
            self._answer(number, error=f"{type(error).__name__}: {error}")
        else:
            self._answer(number, result=result)
        finally:
            self._questions -= 1

    def _answer(self, number: Any, result: Any = None, error: str | None = None) -> None:
        said = {"result": result} if error is None else {"error": error}
        self.put(encode({"type": "answer", "id": number, "ok": error is None, **said}))
