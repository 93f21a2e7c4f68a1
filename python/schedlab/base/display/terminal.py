# SPDX-License-Identifier: MIT
"""Prints results on standard output, and progress and messages on standard error."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Event, RLock
from typing import TYPE_CHECKING, Any

from schedlab.base.display.names import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


_UNLIMITED_WIDTH = 100_000
"""Width (columns) that no table exceeds."""


class _Notes:
    """Messages that a call of the Python API collects instead of printing."""

    def __init__(self, shows_progress: bool) -> None:
        self.texts: list[str] = []
        self.shows_progress = shows_progress


_quiet = Event()
_collecting: list[_Notes] = []
"""Calls of the Python API in progress; messages go to the last one."""
_rephrasers: list[Callable[[str], str]] = []
"""Functions that rephrase messages before they are printed."""
stderr_lock = RLock()
"""Held while a message is printed, and while standard error is suppressed, so no message is lost."""
_last_message_s = [time.monotonic()]
"""When the user last saw a message, on the clock time.monotonic()."""


def note_message(ago_s: float = 0) -> None:
    """Notes that the user has seen a message, now or `ago_s` seconds ago."""
    _last_message_s[0] = time.monotonic() - ago_s


def silence_s() -> float:
    """Returns the seconds since the last message."""
    return time.monotonic() - _last_message_s[0]


@contextmanager
def collect_notes(shows_progress: bool) -> Iterator[list[str]]:
    """Collects the messages of `say` within the block, instead of printing them.

    `shows_progress`: shows progress bars.
    """
    notes = _Notes(shows_progress)
    _collecting.append(notes)
    try:
        yield notes.texts
    finally:
        _collecting.remove(notes)


def rephrase_messages(wording: Callable[[str], str]) -> None:
    """Makes `say` pass each message through `wording` before printing it."""
    _rephrasers[:] = [wording]


def disable_progress() -> None:
    """Disables progress messages."""
    _quiet.set()


def shows_progress() -> bool:
    """Returns whether progress is shown: unless the user or the Python API has disabled it."""
    return _collecting[-1].shows_progress if _collecting else not _quiet.is_set()


def is_live() -> bool:
    """Returns whether printed output can be redrawn, as on a terminal or in a notebook."""
    return shows_progress() and (message_console().is_terminal or message_console().is_jupyter)


@cache
def message_console() -> Console:
    """The console for progress and messages."""
    return _console(stderr=True)


@cache
def result_console() -> Console:
    """The console for tables.

    If the output is not a terminal, the console is wide enough for any table.
    """
    console = _console()
    return console if console.is_terminal else _console(width=200)


def _console(**options: Any) -> Console:
    """Returns a console that prints texts literally: no markup, and control characters are escaped."""
    from rich.console import Console
    from rich.segment import Segment

    class Plain(Console):
        def render_str(self, text: str, **keywords: Any) -> Text:
            # rich itself escapes only some control characters
            return super().render_str(visible(text), **keywords)

        def render(self, *arguments: Any, **keywords: Any) -> Iterable[Segment]:
            for segment in super().render(*arguments, **keywords):
                shown = segment.text if segment.control else visible(segment.text)
                yield Segment(shown, segment.style, segment.control)

    return Plain(highlight=False, markup=False, emoji=False, **options)


def say(text: str) -> None:
    """Prints a message; a call of the Python API collects it."""
    if _collecting:
        _collecting[-1].texts.append(text)
        return
    for rephrase in _rephrasers:
        text = rephrase(text)
    with stderr_lock:
        message_console().print(text, soft_wrap=True)
    note_message()


def say_progress(text: str) -> None:
    """Prints a progress message. A call of the Python API shows bars instead."""
    if not _collecting and shows_progress():
        say(text)


def print_result(text: str) -> None:
    """Prints one line of a result."""
    note_message()
    result_console().print(text, soft_wrap=True)


def full_width(table: Table) -> int:
    """Returns how wide a table must be (columns), so that nothing is truncated."""
    from rich.measure import Measurement

    console = result_console()
    unlimited = console.options.update(max_width=_UNLIMITED_WIDTH)
    return Measurement.get(console, unlimited, table).maximum


def print_full_width(table: Table) -> None:
    """Prints a table. If the output is not a terminal, nothing is truncated."""
    note_message()
    if result_console().is_terminal:
        result_console().print(table)
    else:
        _console(width=_UNLIMITED_WIDTH).print(table, width=full_width(table))


def new_table(title: str | Text = "", *headings: str, fold: bool = False) -> Table:
    """Returns an empty table in the usual layout.

    A heading that begins with ">" aligns its column to the right. `fold` wraps long words instead
    of truncating them.
    """
    from rich import box
    from rich.table import Table

    table = Table(
        title=title or None, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD
    )
    table.caption_justify = "left"
    for heading in headings:
        right = heading.startswith(">")
        table.add_column(
            heading.removeprefix(">"),
            justify="right" if right else "left",
            overflow="fold" if fold else "ellipsis",
        )
    return table
