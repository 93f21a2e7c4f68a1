# SPDX-License-Identifier: MIT
"""Serves the page's files, and files produced while a system was watched."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from tornado.iostream import StreamClosedError
from tornado.web import HTTPError, RequestHandler, StaticFileHandler

from schedlab.base.display.terminal import say
from schedlab.base.toolchain.build import wasm_module
from schedlab.monitor.limits import FILE_PIECE_BYTES
from schedlab.report.html import vega_script

PAGE_FOLDER = Path(__file__).parent / "page"
_PAGE_CSP = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
PAGE_SECURITY_POLICY = (
    f"{_PAGE_CSP}; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data: blob:; font-src 'self'; connect-src 'self'"
)
"""Content security policy of the monitor's page: same-origin files, no inline scripts, no evaluated
code except WebAssembly. Inline styles are allowed, because Vega sets styles on its charts.
"""
REPORT_SECURITY_POLICY = (
    f"{_PAGE_CSP}; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data:; font-src 'self' data:; connect-src 'self'"
)
"""Content security policy of reports, whose standalone charts compile their expressions."""

_HEADERS = {
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class RequestGuard(Protocol):
    """The server's checks of a request's host and of published addresses."""

    def knows_host(self, host: str) -> bool:
        """Returns whether `host` is one of the server's names."""

    def published(self, secret: str, name: str) -> Path | None:
        """Returns the published file with this address, or None if there is none."""


class QuietHandler(RequestHandler):
    """Logs only unexpected exceptions; rejected requests do not appear in the terminal."""

    def log_exception(self, typ: Any, value: BaseException | None, tb: Any) -> None:
        if isinstance(value, Exception) and not isinstance(value, HTTPError):
            say(f"schedlab: the page's server: {typ.__name__}: {value}")


_OTHER_HOST_MESSAGE = (
    "Forbidden: use the address that the monitor printed (docs/monitor.md, Who can reach the page)"
)


class _GuardedHandler(QuietHandler):
    """Checks every request's host, and sets the security headers of every response."""

    policy = PAGE_SECURITY_POLICY

    @property
    def server(self) -> RequestGuard:
        guard: RequestGuard = self.settings["server"]
        return guard

    def prepare(self) -> None:
        if not self.server.knows_host(self.request.host):
            raise HTTPError(403, reason=_OTHER_HOST_MESSAGE)
        if any("\0" in argument for argument in self.path_args):
            raise HTTPError(404)

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        for name, value in _HEADERS.items():
            self.set_header(name, value)
        self.set_header("Content-Security-Policy", self.policy)

    def write_error(self, status_code: int, **_: Any) -> None:
        """Answers with a plain-text status line, without a Python traceback."""
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{status_code} {self._reason}\n")


class _UncachedFile(_GuardedHandler, StaticFileHandler):
    """A static file without an ETag: the file may have changed since the last request."""

    def compute_etag(self) -> None:
        return None


class PageFile(_UncachedFile):
    """A file of the page's program, which anyone may read: session data needs the socket's token."""


class GeneratedFile(_GuardedHandler):
    """Content that is computed at the first request, such as a script, and then cached."""

    def initialize(self, make: Callable[[], bytes], kind: str) -> None:
        """`kind`: the content's MIME type."""
        self._make = make
        self._kind = kind

    async def get(self) -> None:
        self.set_header("Content-Type", self._kind)
        self.set_header("Cache-Control", "private, max-age=3600")
        made = memoryview(await asyncio.to_thread(self._make))
        with suppress(StreamClosedError):
            for index in range(0, len(made), FILE_PIECE_BYTES):
                self.write(bytes(made[index : index + FILE_PIECE_BYTES]))
                await self.flush()  # only one chunk is in memory for a page that does not read


@cache
def _vega_bytes() -> bytes:
    """Returns the charting library's script, one copy for all connections.

    Separate copies for slow pages would use much memory.
    """
    return vega_script().encode()


VEGA_SCRIPT = {"make": _vega_bytes, "kind": "text/javascript; charset=utf-8"}
"""The charting library."""
MODEL_MODULE = {"make": wasm_module, "kind": "application/wasm"}
"""The model that computes what the page shows."""


class PublishedFile(_UncachedFile):
    """Files produced while the system was watched: reports and Perfetto traces."""

    policy = REPORT_SECURITY_POLICY

    async def get(self, secret: str, name: str, include_body: bool = True) -> None:  # type: ignore[override]
        path = self.server.published(secret, name)
        if path is None:
            raise HTTPError(403, reason="Forbidden: open the file from the monitor's page again")
        if path.suffix == ".perfetto-trace":
            self.set_header("Content-Disposition", f'attachment; filename="{path.name}"')
        await super().get(str(path).lstrip("/"), include_body)
