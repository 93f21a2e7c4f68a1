# SPDX-License-Identifier: MIT
"""What the server answers requests with: the page's files, and what was made while a system was watched."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from tornado.iostream import StreamClosedError
from tornado.web import HTTPError, RequestHandler, StaticFileHandler

from schedlab.base.display.terminal import say
from schedlab.base.toolchain.build import machine_module
from schedlab.monitor.limits import PIECE_BYTES
from schedlab.report.html import vega_script

PAGE = Path(__file__).parent / "page"
_OURS = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
POLICY = (
    f"{_OURS}; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data: blob:; font-src 'self'; connect-src 'self'"
)
"""What a page of ours may load and run: what comes from here, no script that stands in it, and no text that is
compiled except WebAssembly. Vega sets styles on what it draws."""
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


class Guard(Protocol):
    """What the server says of a request."""

    def knows_host(self, host: str) -> bool:
        """Is it called by this name?"""

    def published(self, secret: str, name: str) -> Path | None:
        """Returns the file that an address leads to, or None if there is none."""


class Quiet(RequestHandler):
    """What strangers send is none of the terminal's business."""

    def log_exception(self, typ: Any, value: BaseException | None, tb: Any) -> None:
        if isinstance(value, Exception) and not isinstance(value, HTTPError):
            say(f"schedlab: the page's server: {typ.__name__}: {value}")


class _Guarded(Quiet):
    """What all answers have, and what all requests must have."""

    policy = POLICY

    @property
    def server(self) -> Guard:
        guard: Guard = self.settings["server"]
        return guard

    def prepare(self) -> None:
        if not self.server.knows_host(self.request.host):
            raise HTTPError(403, "no host of this name")
        if any("\0" in argument for argument in self.path_args):
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


class Made(_Guarded):
    """What is made for the page when it is asked for the first time, and stays."""

    def initialize(self, make: Callable[[], bytes], kind: str) -> None:
        self._make = make
        self._kind = kind

    async def get(self) -> None:
        self.set_header("Content-Type", self._kind)
        self.set_header("Cache-Control", "private, max-age=3600")
        made = memoryview(await asyncio.to_thread(self._make))
        with suppress(StreamClosedError):
            for at in range(0, len(made), PIECE_BYTES):
                self.write(bytes(made[at : at + PIECE_BYTES]))
                await self.flush()  # of a page that does not read, one piece is in memory


VEGA = {"make": lambda: vega_script().encode(), "kind": "text/javascript; charset=utf-8"}
"""The library of charts."""
MODULE = {"make": machine_module, "kind": "application/wasm"}
"""The model of what the page shows."""


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
