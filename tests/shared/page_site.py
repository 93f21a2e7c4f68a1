# SPDX-License-Identifier: MIT
"""Serves the files of the monitor's page, and files of a test, under the page's content
security policy.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from schedlab.monitor.files import PAGE_FOLDER, PAGE_SECURITY_POLICY
from schedlab.report.html import SHARED_FILES, TEMPLATES, vega_script

TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
}


class _Files(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, files: Mapping[str, bytes], *arguments: Any) -> None:
        self.files = files
        super().__init__(*arguments)

    def do_GET(self) -> None:
        name = urlsplit(self.path).path.removeprefix("/") or "index.html"
        body = self.files.get(name)
        if body is None:
            body = ((TEMPLATES if name in SHARED_FILES else PAGE_FOLDER) / name).read_bytes()
        self.send_response(200)
        self.send_header("Content-Security-Policy", PAGE_SECURITY_POLICY)
        self.send_header("Content-Type", TYPES.get(Path(name).suffix, "text/html"))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Logs nothing: a page reports missing files itself."""


@contextmanager
def served(files: Mapping[str, bytes]) -> Iterator[str]:
    """Serves these files by their names, and the page's others. Yields the address."""
    handler = partial(_Files, {"vega.js": vega_script().encode(), **files})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
