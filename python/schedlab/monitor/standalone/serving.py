# SPDX-License-Identifier: MIT
"""Serves a folder of static files to this machine's browser."""

from __future__ import annotations

import os
import webbrowser
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from schedlab.base.display.activity import begin_display
from schedlab.base.display.terminal import result_console, say
from schedlab.errors import WrongUsage, format_parameter

LOCALHOST = "127.0.0.1"
_TYPES = {".js": "text/javascript", ".wasm": "application/wasm"}


class _Files(SimpleHTTPRequestHandler):
    def guess_type(self, path: str | os.PathLike[str]) -> str:
        """Returns a file's media type from _TYPES first, because the host's own table may be wrong."""
        return _TYPES.get(Path(path).suffix) or super().guess_type(path)

    def end_headers(self) -> None:
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, *given: object) -> None:
        """Suppresses the request log, which would clutter the terminal."""


def server_of(folder: Path, port: int = 0) -> ThreadingHTTPServer:
    """Returns a server of a folder at a local port. Port 0 means any free port.

    Raises WrongUsage if the port is not available.

    """
    try:
        return ThreadingHTTPServer((LOCALHOST, port), partial(_Files, directory=str(folder)))
    except (OSError, OverflowError) as error:
        raise WrongUsage(
            str(error), what=format_parameter("port", port), fix="choose another port, or omit it"
        ) from None


def serve(folder: Path, port: int, browser: bool) -> None:
    """Serves a folder until Ctrl-C, and opens a browser on request."""
    with server_of(folder, port) as server:
        address = f"http://{LOCALHOST}:{server.server_address[1]}/"
        begin_display()
        result_console().print(address, markup=False, soft_wrap=True)
        say("schedlab: the playground is at this address. Press Ctrl-C to end it.")
        if browser:
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        with suppress(KeyboardInterrupt):
            server.serve_forever()
