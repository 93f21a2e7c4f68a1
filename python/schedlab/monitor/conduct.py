# SPDX-License-Identifier: MIT
"""Runs a session together with its front end (page or terminal), and closes both in order."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from schedlab import paths
from schedlab.base.display.activity import begin_display
from schedlab.base.display.terminal import result_console, say
from schedlab.base.host.supervision import cancelled_by_signals
from schedlab.errors import SchedlabError
from schedlab.monitor.session import Session

if TYPE_CHECKING:
    from schedlab.monitor.server import Server

FrontEnd = Callable[[Session], Coroutine[Any, Any, None]]
"""Shows a session to the user; returns when the user leaves."""


@dataclass(frozen=True)
class PageOptions:
    """Where the page's server listens, and whether to open a browser."""

    address: str
    port: int
    browser: bool


def run_session(make_session: Callable[[], Session], front_end: FrontEnd) -> None:
    """Runs a session until the session or its front end finishes, or a signal arrives.

    Raises SchedlabError if the session cannot start. Raises SystemExit for a signal other than
    Ctrl-C; Ctrl-C ends a monitor normally.
    """
    ending_signal = asyncio.run(_run_session(make_session, front_end))
    if ending_signal and ending_signal != signal.SIGINT:
        raise SystemExit(128 + ending_signal)


async def _run_session(make_session: Callable[[], Session], front_end: FrontEnd) -> int:
    """Returns the signal that ended the session, or 0."""
    session = make_session()
    tasks = [asyncio.ensure_future(session.run()), asyncio.ensure_future(front_end(session))]
    waiting = asyncio.ensure_future(asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED))
    # Further signals are ignored while recordings are saved; `close` limits its own duration.
    with cancelled_by_signals(waiting) as caught_signal:
        await asyncio.wait([waiting])
        await _close_session(session, tasks)
    for folder in session.recorded_folders:
        result_console().print(f"Kept in {folder}", markup=False, soft_wrap=True)
    for task in tasks:
        if not task.cancelled() and task.exception():
            raise task.exception() or SchedlabError("ended")
    return caught_signal.number


async def _close_session(session: Session, tasks: Sequence[asyncio.Future[None]]) -> None:
    """Cancels the tasks, saves recordings and closes the session."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    if any(system.recording for system in session.systems.values()):
        with suppress(OSError):  # the terminal may be gone
            say("schedlab: saving the recording")
    await session.close()


def page_front_end(options: PageOptions) -> FrontEnd:
    """Returns a front end that serves the page and opens a browser."""

    async def show(session: Session) -> None:
        from schedlab.monitor.server import Server

        server = Server(session, options.address, options.port)
        try:
            _announce_address(server.url, server.is_local)
            if options.browser and has_screen():
                await _open_browser(server)
            await asyncio.Event().wait()
        finally:
            await server.close()

    return show


async def _open_browser(server: Server) -> None:
    """Opens a browser with a private file that holds the address, and waits for the page."""
    try:
        with redirect_file(server.url) as file:
            # `webbrowser.open` may block until the browser exits, so it runs in a daemon thread.
            Thread(target=webbrowser.open, args=[file], daemon=True).start()
            await server.page_has_connected.wait()
    except OSError as error:
        say(
            "schedlab: no browser was opened, because its private file could not be "
            f"written: {error}"
        )


def has_screen() -> bool:
    """Returns whether a graphical browser can start. (A text browser would take over this terminal.)"""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return sys.platform == "darwin" or any(os.environ.get(name) for name in names)


def _announce_address(url: str, is_local: bool) -> None:
    begin_display()
    result_console().print(url, markup=False, soft_wrap=True)
    say(
        "schedlab: the monitor is at this address; anyone who knows it can connect. Press Ctrl-C to end it."
    )
    if not is_local:
        say(
            "schedlab: warning: other machines can connect, without encryption: "
            "anyone who can read this network can read the token and control the "
            "monitor"
        )


_REDIRECT_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>schedlab</title>
<p><a href="{url}">The monitor</a></p>
</html>
"""


@contextmanager
def redirect_file(url: str) -> Iterator[str]:
    """Writes a private HTML file that redirects to `url`; yields the file's own address.

    Deletes the file afterwards. Raises OSError if no folder is suitable for the file.
    """
    with tempfile.TemporaryDirectory(
        prefix="schedlab-monitor-", dir=_browser_readable_folder()
    ) as folder:
        # tempfile makes the folder private, and the file is opened with mode 0600.
        file = Path(folder) / "monitor.html"
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as page:
            page.write(_REDIRECT_PAGE.format(url=escape(url)))
        yield file.as_uri()


def _browser_readable_folder() -> Path | None:
    """Returns a folder that browsers can read, or None.

    Snap and flatpak browsers have a separate /tmp, and cannot read hidden folders or folders
    outside of the home folder.
    """
    with suppress(RuntimeError, OSError):
        home = Path.home().resolve()
        for folder in (paths.BUILD_FOLDER, home):
            is_hidden = any(name.startswith(".") for name in folder.parts)
            if (
                not is_hidden
                and folder.is_relative_to(home)
                and os.access(folder, os.W_OK | os.X_OK)
            ):
                return folder
    return None
