# SPDX-License-Identifier: MIT
"""Shows what a command is doing, so that no command is silent for more than SILENCE_SECONDS."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from schedlab.base.display.numbers import host_time
from schedlab.base.display.terminal import (
    is_live,
    message_console,
    note_message,
    say_progress,
    shows_progress,
    silence_s,
)

SILENCE_SECONDS = 2.0

Update = Callable[[str], None]
"""Sets the text that describes the current work."""


class _Work:
    """The work in progress, which may be nested and in several threads.

    The part that began last is shown.
    """

    def __init__(self, show: Update) -> None:
        self.show = show
        self.texts: list[list[str]] = []
        self.lock = threading.Lock()

    @contextmanager
    def part(self, title: str) -> Iterator[Update]:
        """Shows a text within the block; yields a function that changes the text."""
        shown_text = [title]
        with self.lock:
            self.texts.append(shown_text)
            self.show(title)

        def update(text: str) -> None:
            with self.lock:
                shown_text[0] = text
                if self.texts[-1] is shown_text:
                    self.show(text)

        try:
            yield update
        finally:
            with self.lock:
                self.texts = [text for text in self.texts if text is not shown_text]
                if self.texts:
                    self.show(self.texts[-1][0])


_display_began = threading.Event()
"""Set once `startup_messages` must no longer print, because something else uses the terminal."""


@contextmanager
def startup_messages(command: str) -> Iterator[None]:
    """Shows that a command is starting, while nothing else is shown, until `begin_display` or its
    own end.

    The silence counts from the start of the process, which is estimated from its CPU time.
    """
    note_message(time.process_time())
    voice = (
        _display_began.wait,
        lambda: f"{command}: {'working' if _work_has_ended.is_set() else 'starting'}",
        lambda: not _shown_work,
    )
    threading.Thread(target=repeat_message, args=voice, daemon=True).start()
    try:
        yield
    finally:
        begin_display()


def begin_display() -> None:
    """Ends the messages of `startup_messages`, because another part of the command now uses the terminal."""
    _display_began.set()


_work_has_ended = threading.Event()
"""Set once any work has ended."""
_shown_work: list[_Work] = []
"""The outermost work, if any is shown. Inner work shares its line of the terminal."""


@contextmanager
def working(title: str) -> Iterator[Update]:
    """Shows the text `title` on standard error until the block ends.

    On a terminal, a single line is updated; otherwise a line is printed every SILENCE_SECONDS.
    After inner work, the outer text is shown again. Yields a function that changes the text.
    """
    if _shown_work:
        with _shown_work[-1].part(title) as update:
            yield update
    elif not shows_progress():
        yield from _show_work(title, lambda _: None)
    elif is_live():
        with message_console().status(title) as status:
            yield from _show_work(title, status.update)
        note_message()
    else:
        now = [title]
        done = threading.Event()
        voice = threading.Thread(
            target=repeat_message, args=(done.wait, lambda: now[0]), daemon=True
        )
        voice.start()
        try:
            yield from _show_work(title, lambda text: now.__setitem__(0, text))
        finally:
            done.set()
            voice.join()


def _show_work(text: str, show: Update) -> Iterator[Update]:
    work = _Work(show)
    _shown_work.append(work)
    try:
        with work.part(text) as update:
            yield update
    finally:
        _work_has_ended.set()
        _shown_work.remove(work)


@contextmanager
def hide_activity() -> Iterator[None]:
    """Suppresses messages about work within the block, because the caller draws on the terminal."""
    try:
        with contextmanager(_show_work)("", lambda _: None):
            yield
    finally:
        note_message()


def repeat_message(
    wait: Callable[[float], bool],
    describe_work: Callable[[], str],
    speaks: Callable[[], bool] = lambda: True,
) -> None:
    """Calls `wait` until it returns True, and meanwhile prints what is being done and for how long.

    A message appears whenever the user has seen none for SILENCE_SECONDS. While `speaks` returns
    False, nothing is printed, because something else shows the work.
    """
    began = time.monotonic()
    pause = SILENCE_SECONDS - silence_s()
    while not wait(max(pause, 0)):
        pause = SILENCE_SECONDS - silence_s()
        if pause > 0:
            continue
        if speaks():
            say_progress(f"{describe_work()}  {host_time(time.monotonic() - began)}")
            note_message()
            pause = SILENCE_SECONDS
        else:
            pause = SILENCE_SECONDS / 10
