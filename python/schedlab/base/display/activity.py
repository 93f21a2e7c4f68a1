# SPDX-License-Identifier: MIT
"""Shows work in progress, so that no command is silent for more than SILENCE_SECONDS."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from schedlab.base.display.numbers import host_time
from schedlab.base.display.terminal import (
    is_live,
    messages,
    note_words,
    say_progress,
    shows_progress,
    silence_s,
)

SILENCE_SECONDS = 2.0

Update = Callable[[str], None]
"""Sets the text of the work in progress."""


class _Work:
    """Nested work in progress, possibly of several threads; the work begun last is shown."""

    def __init__(self, show: Update) -> None:
        self.show = show
        self.texts: list[list[str]] = []
        self.lock = threading.Lock()

    @contextmanager
    def part(self, what: str) -> Iterator[Update]:
        entry = [what]
        with self.lock:
            self.texts.append(entry)
            self.show(what)

        def update(text: str) -> None:
            with self.lock:
                entry[0] = text
                if self.texts[-1] is entry:
                    self.show(text)

        try:
            yield update
        finally:
            with self.lock:
                self.texts = [text for text in self.texts if text is not entry]
                if self.texts:
                    self.show(self.texts[-1][0])


_display_began = threading.Event()
"""Set once the command's voice is to end."""


@contextmanager
def going_on(command: str) -> Iterator[None]:
    """Shows the starting command while no work is shown, until `begin_display` or its end.

    The silence is counted from the process's start, estimated by its CPU time.
    """
    note_words(time.process_time())
    voice = (
        _display_began.wait,
        lambda: f"{command}: {'working' if _past.is_set() else 'starting'}",
        lambda: not _outer,
    )
    threading.Thread(target=repeat, args=voice, daemon=True).start()
    try:
        yield
    finally:
        begin_display()


def begin_display() -> None:
    """Notes that the command now has the terminal, waits for its user, or has a program show its work."""
    _display_began.set()


_past = threading.Event()
"""Set once a work has ended."""
_outer: list[_Work] = []
"""The work shown: a terminal has one line, also for nested work."""


@contextmanager
def working(what: str) -> Iterator[Update]:
    """Shows the work in progress on standard error until the block ends.

    On a terminal, a line changes; otherwise a new line is printed every SILENCE_SECONDS. After
    nested work, the outer work is shown again.
    """
    if _outer:
        with _outer[-1].part(what) as update:
            yield update
    elif not shows_progress():
        yield from _shown(what, lambda _: None)
    elif is_live():
        with messages().status(what) as status:
            yield from _shown(what, status.update)
    else:
        now = [what]
        done = threading.Event()
        voice = threading.Thread(target=repeat, args=(done.wait, lambda: now[0]), daemon=True)
        voice.start()
        try:
            yield from _shown(what, lambda text: now.__setitem__(0, text))
        finally:
            done.set()
            voice.join()


def _shown(what: str, show: Update) -> Iterator[Update]:
    work = _Work(show)
    _outer.append(work)
    try:
        with work.part(what) as update:
            yield update
    finally:
        note_words()
        _past.set()
        _outer.remove(work)


@contextmanager
def picture() -> Iterator[None]:
    """Notes that in the block a picture on the terminal shows the work."""
    with contextmanager(_shown)("", lambda _: None):
        yield


def repeat(
    wait: Callable[[float], bool],
    what: Callable[[], str],
    speaks: Callable[[], bool] = lambda: True,
) -> None:
    """Says what is done, and for how long it has been, whenever the user has heard nothing for SILENCE_SECONDS, until
    `wait` returns true: it is done. While it `speaks` not, something else shows the work."""
    began = time.monotonic()
    pause = SILENCE_SECONDS - silence_s()
    while not wait(max(pause, 0)):
        if speaks() and silence_s() >= SILENCE_SECONDS:
            say_progress(f"{what()}  {host_time(time.monotonic() - began)}")
            note_words()
        pause = SILENCE_SECONDS - (silence_s() if speaks() else 0)
