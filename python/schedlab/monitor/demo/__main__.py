# SPDX-License-Identifier: MIT
"""Serves page/schedlab.html and opens it in a browser.

Imports only the standard library, because it runs before anything is installed.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import webbrowser
from collections.abc import Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from schedlab.paths import ROOT

PAGE_FILE = ROOT / "page" / "schedlab.html"
EDIT_TEMPLATE = Path(__file__).parent / "edit.html"
"""HTML template: asks for the playground, shows the progress, and opens the playground."""
INSTALLATION_TEMPLATE = Path(__file__).parent / "behind.html"
"""HTML template: shows the progress of the installation, and the page in a frame below."""
LOCALHOST = "127.0.0.1"
TOUR_FRAGMENT = "#lesson=tour"
_PLAYGROUND_COMMAND = ("page", "--serve", "--no-browser")
"""The command that builds the playground, and prints its address."""
_WRONG_USAGE_STATUS = 2
_HTML_HEADERS = {"Content-Type": "text/html; charset=utf-8"}
_SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class _Demo:
    """What the demo serves, and the command that it runs."""

    def __init__(self, page: bytes, launcher: Path, installs: bool = False) -> None:
        self.launcher = launcher
        self.installs = installs
        self.command: BackgroundCommand | None = Installation(launcher) if installs else None
        can_edit = not installs and launcher.is_file()
        self.page = page.replace(b"<html ", b'<html data-editor="/edit" ', 1) if can_edit else page

    def start_playground(self) -> None:
        """Starts to build and serve the playground, unless that is in progress."""
        if self.command is None or self.command.progress()["status"] is not None:
            self.command = BackgroundCommand(self.launcher, _PLAYGROUND_COMMAND, "the playground")

    def resource(self, path: str) -> tuple[bytes, dict[str, str]] | None:
        """Returns the content and extra headers for a path, or None if the path is unknown."""
        if path == "/progress" and self.command:
            return json.dumps(self.command.progress()).encode(), {
                "Content-Type": "application/json"
            }
        if self.installs:
            return {"/": _read_template(INSTALLATION_TEMPLATE), "/page": (self.page, {})}.get(path)
        return {"/": (self.page, {}), "/edit": _read_template(EDIT_TEMPLATE)}.get(path)

    def end(self) -> None:
        if self.command:
            self.command.end()


class _PageHandler(BaseHTTPRequestHandler):
    """Serves the page; during an installation, serves it in a frame with the progress."""

    def __init__(self, demo: _Demo, *arguments: object) -> None:
        self.demo = demo
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self._send(self.demo.resource(self.path.partition("?")[0]))

    def do_POST(self) -> None:
        """Starts the playground if this server's own page asks for it."""
        port = self.connection.getsockname()[1]  # another name of this machine is not trusted
        is_own = self.headers["Origin"] == f"http://{LOCALHOST}:{port}"
        if is_own and self.path == "/edit" and not self.demo.installs:
            self.demo.start_playground()
            self._send((b"", {}))
        else:
            self._send(None)

    def _send(self, resource: tuple[bytes, dict[str, str]] | None) -> None:
        content, headers = resource or (b"", {})
        self.send_response(200 if resource else 404)
        for name, value in {**_HTML_HEADERS, **_SECURITY_HEADERS, **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: object) -> None:
        """Suppresses the request log, which would clutter the terminal."""


def _read_template(file: Path) -> tuple[bytes, dict[str, str]]:
    """Returns an HTML template, and the header that allows its own script and style only."""
    content = file.read_bytes()
    script, style = (
        base64.b64encode(hashlib.sha256(matches[1]).digest()).decode()
        for tag in (b"script", b"style")
        if (matches := re.search(rb"<%s>(.*?)</%s>" % (tag, tag), content, re.DOTALL))
    )
    security_policy = (
        f"default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}';"
        " connect-src 'self'; frame-src 'self'; img-src data:"
    )
    return content, {"Content-Security-Policy": security_policy}


def _parse_arguments(words: Sequence[str]) -> argparse.Namespace:
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


def _read_page() -> bytes:
    """Returns the standalone page. Exits with status 2 if it cannot be read."""
    try:
        return PAGE_FILE.read_bytes()
    except OSError as error:
        sys.exit(
            _print_refusal(
                f"{PAGE_FILE}: cannot be read ({error.strerror}); use a complete checkout"
            )
        )


def _open_server(port: int) -> ThreadingHTTPServer:
    """Returns a server on a local port. Exits with status 2 if the port is not available."""
    try:
        return ThreadingHTTPServer((LOCALHOST, port), BaseHTTPRequestHandler)
    except (OSError, OverflowError) as error:
        sys.exit(_print_refusal(f"--port {port}: {error}; choose another port, or leave it out"))


def _print_refusal(words: str) -> int:
    print(f"schedlab: {words}", file=sys.stderr)
    return _WRONG_USAGE_STATUS


def main(words: Sequence[str]) -> None:
    """Serves the page until Ctrl-C."""
    options = _parse_arguments(words)
    page, server = _read_page(), _open_server(options.port)
    demo = _Demo(page, ROOT / "schedlab", options.install)
    server.RequestHandlerClass = partial(_PageHandler, demo)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    tour = "" if options.install else TOUR_FRAGMENT
    address = f"http://{LOCALHOST}:{server.server_address[1]}/{tour}"
    try:
        print(f"{address}\nPress Ctrl-C to end it.", flush=True)
        if not options.no_browser:
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
        demo.end()


if __name__ == "__main__":
    main(sys.argv[1:])


_END_PATIENCE_S = 5
_FAILURE_LINES_MAX = 40
"""Lines shown of a failed installation."""
_FIRST_RUN = ("run", "--cpus", "1", "--workload", "cpu-bound -n 1")


class BackgroundCommand:
    """A command of schedlab that runs until it or the demo ends.

    `what` is installed by it. `success` is printed when it has succeeded.
    """

    def __init__(
        self, launcher: Path, arguments: Sequence[str], what: str, success: str = ""
    ) -> None:
        self.what = what
        self.success = success
        self.lines = ["schedlab: checking installed tools"]
        self.output = ""
        """The command's first line of results."""
        self._process = subprocess.Popen(
            [str(launcher), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        readers = (self._read_progress, self._read_results)
        self._readers = [Thread(target=reader, daemon=True) for reader in readers]
        for thread in self._readers:
            thread.start()

    def _read_progress(self) -> None:
        assert self._process.stderr
        for line in self._process.stderr:
            self.lines.append(line.rstrip())
        status = self._process.wait()
        if status == 0 and self.success:
            print(f"schedlab: {self.success}", flush=True)
        elif status > 0:
            lines = "\n".join(self.lines[1:][-_FAILURE_LINES_MAX:])
            print(f"schedlab: {self.what} could not be installed:\n{lines}", flush=True)

    def _read_results(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self.output = self.output or line.strip()

    def progress(self) -> dict[str, object]:
        """Returns the last output line, the exit status, which is None while the command runs, and its
        first result.
        """
        return {
            "line": self.lines[-1],
            "status": self._process.poll(),
            "result": self.output,
        }

    def end(self) -> None:
        """Ends the command with all its child processes, by SIGKILL after `_END_PATIENCE_S` seconds."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGINT)
            try:
                self._process.wait(_END_PATIENCE_S)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
        for thread in self._readers:
            thread.join(_END_PATIENCE_S)


class Installation(BackgroundCommand):
    """Installs and builds the tools by making a first run, which also proves that they work."""

    def __init__(self, launcher: Path) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="schedlab-")
        arguments = (*_FIRST_RUN, "--out", str(Path(self.folder.name) / "run"))
        success = "the tools are installed: ./schedlab run"
        super().__init__(launcher, arguments, "the tools", success)

    def end(self) -> None:
        """Ends the run, and removes its folder."""
        super().end()
        self.folder.cleanup()
