# SPDX-License-Identifier: MIT
"""Serves page/schedlab.html and opens it in a browser.

Imports only the standard library, because it runs before anything is installed.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import signal
import sys
import webbrowser
from collections.abc import Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from schedlab.monitor.demo.installation import Installation
from schedlab.paths import ROOT

PAGE = ROOT / "page" / "schedlab.html"
BEHIND = Path(__file__).parent / "behind.html"
"""Shows the page in a frame below the installation's progress."""
LOCAL = "127.0.0.1"
TOUR = "#lesson=tour"
_WRONG_USAGE = 2
_HTML = {"Content-Type": "text/html; charset=utf-8"}
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class _Page(BaseHTTPRequestHandler):
    """Serves the page; during an installation, serves it in a frame with the progress."""

    def __init__(self, page: bytes, installation: Installation | None, *given: object) -> None:
        self.page = page
        self.installation = installation
        super().__init__(*given)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        resource = self.resource(self.path.partition("?")[0])
        content, headers = resource or (b"", {})
        self.send_response(200 if resource else 404)
        for name, value in {**_HTML, **_HEADERS, **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def resource(self, path: str) -> tuple[bytes, dict[str, str]] | None:
        """Returns the content and extra headers for a path, or None if the path is unknown."""
        if not self.installation:
            return (self.page, {}) if path == "/" else None
        if path == "/page":
            return self.page, {}
        if path == "/progress":
            content = json.dumps(self.installation.progress()).encode()
            return content, {"Content-Type": "application/json"}
        return _behind() if path == "/" else None

    def log_message(self, *given: object) -> None:
        """Suppresses the request log, which would clutter the terminal."""


def _behind() -> tuple[bytes, dict[str, str]]:
    content = BEHIND.read_bytes()
    script, style = (
        base64.b64encode(hashlib.sha256(matches[1]).digest()).decode()
        for tag in (b"script", b"style")
        if (matches := re.search(rb"<%s>(.*?)</%s>" % (tag, tag), content, re.DOTALL))
    )
    allowed = (
        f"default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}';"
        " connect-src 'self'; frame-src 'self'; img-src data:"
    )
    return content, {"Content-Security-Policy": allowed}


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="schedlab demo",
        usage="%(prog)s [OPTIONS]",
        description="Open the standalone page with a guided tour: policies side by side, simulated in the"
        " browser. Nothing is installed.",
        epilog="Example: ./schedlab demo --install, which also fetches the tools of the other commands.",
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.add_argument("--port", type=int, default=0, help="port; 0, the default: any free port")
    parser.add_argument(
        "--install", action="store_true", help="also fetch the tools of the other commands"
    )
    return parser.parse_args(words)


def _page() -> bytes:
    """Returns the standalone page. Exits with status 2 if it cannot be read."""
    try:
        return PAGE.read_bytes()
    except OSError as error:
        sys.exit(_refused(f"{PAGE}: cannot be read ({error.strerror}); use a complete checkout"))


def _server(port: int) -> ThreadingHTTPServer:
    """Returns a server on a local port. Exits with status 2 if the port is not available."""
    try:
        return ThreadingHTTPServer((LOCAL, port), BaseHTTPRequestHandler)
    except (OSError, OverflowError) as error:
        sys.exit(_refused(f"--port {port}: {error}; choose another port, or leave it out"))


def _refused(words: str) -> int:
    print(f"schedlab: {words}", file=sys.stderr)
    return _WRONG_USAGE


def main(words: Sequence[str]) -> None:
    """Serves the page until Ctrl-C."""
    options = _arguments(words)
    page, server = _page(), _server(options.port)
    installation = Installation(ROOT / "schedlab") if options.install else None
    server.RequestHandlerClass = partial(_Page, page, installation)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    tour = "" if installation else TOUR
    address = f"http://{LOCAL}:{server.server_address[1]}/{tour}"
    try:
        print(f"{address}\nPress Ctrl-C to end it.", flush=True)
        if not options.no_browser:
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
        if installation:
            installation.end()


if __name__ == "__main__":
    main(sys.argv[1:])
