# SPDX-License-Identifier: MIT
"""Serves page/schedlab.html and opens it. It uses Python's standard library alone, since it runs
before anything is installed."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import webbrowser
from collections.abc import Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "page" / "schedlab.html"
LOCAL = "127.0.0.1"
TOUR = "#lesson=tour"
_GRACE_S = 5
_WRONG_USAGE = 2
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class _Page(BaseHTTPRequestHandler):
    """Answers with the page, whatever is asked: there is nothing else."""

    def __init__(self, page: bytes, *given: object) -> None:
        self.page = page
        super().__init__(*given)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        found = self.path.partition("?")[0] == "/"
        self.send_response(200 if found else 404)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(self.page) if found else 0))
        self.end_headers()
        if found:
            self.wfile.write(self.page)

    def log_message(self, *given: object) -> None:
        """What browsers ask is none of the terminal's business."""


class _Installation:
    """The tools, fetched behind the page by the launcher itself."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [str(ROOT / "schedlab"), "policies"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._reader = Thread(target=self._tell, daemon=True)
        self._reader.start()

    def _tell(self) -> None:
        assert self._process.stderr
        lines = self._process.stderr.readlines()
        if self._process.wait() == 0:
            print("schedlab: the tools are installed: ./schedlab monitor", flush=True)
        elif self._process.returncode > 0:
            print(
                f"schedlab: the tools could not be installed:\n{''.join(lines)}", end="", flush=True
            )

    def end(self) -> None:
        """Ends it with all that it has started."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)
            try:
                self._process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
        self._reader.join(_GRACE_S)


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="schedlab demo",
        usage="%(prog)s [OPTIONS]",
        description="Open the page that stands alone, with a guided tour: policies side by side,"
        " simulated in the browser. Nothing is installed for it.",
        epilog="Example: ./schedlab demo --install, which fetches the tools of the other commands meanwhile.",
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address only")
    parser.add_argument("--port", type=int, default=0, help="0, the default: any that is free")
    parser.add_argument(
        "--install", action="store_true", help="fetch the tools of the other commands meanwhile"
    )
    return parser.parse_args(words)


def _server(port: int) -> ThreadingHTTPServer:
    """SystemExit: there is no page, or no such port."""
    try:
        page = PAGE.read_bytes()
    except OSError as error:
        sys.exit(_refused(f"{PAGE} cannot be read ({error.strerror}): is it a whole checkout?"))
    try:
        return ThreadingHTTPServer((LOCAL, port), partial(_Page, page))
    except (OSError, OverflowError) as error:
        sys.exit(_refused(f"--port {port}: {error}; choose another, or leave it out"))


def _refused(words: str) -> int:
    print(f"schedlab: {words}", file=sys.stderr)
    return _WRONG_USAGE


def main(words: Sequence[str]) -> None:
    """Serves the page until Ctrl-C."""
    asked = _arguments(words)
    server = _server(asked.port)
    installation = _Installation() if asked.install else None
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    address = f"http://{LOCAL}:{server.server_address[1]}/{TOUR}"
    try:
        print(f"{address}\nCtrl-C ends it.", flush=True)
        if not asked.no_browser:
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
