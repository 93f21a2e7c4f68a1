# SPDX-License-Identifier: MIT
"""Prints results on standard output, and progress and messages on standard error."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Event
from typing import TYPE_CHECKING, Any

from schedlab.base.display.names import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


_ENDLESS = 100_000
"""Columns."""


class _Notes:
    """Messages that a call of the Python API collects instead of printing them."""

    def __init__(self, shows_progress: bool) -> None:
        self.texts: list[str] = []
        self.shows_progress = shows_progress


_quiet = Event()
_collecting: list[_Notes] = []
"""Calls of the Python API in progress; the last one collects."""
_wording: list[Callable[[str], str]] = []
"""Functions that change messages before they are printed."""
_heard_s = [time.monotonic()]
"""When the last message was printed."""


def note_words(ago_s: float = 0) -> None:
    """Notes that the user sees a message now, or saw one `ago_s` seconds ago."""
    _heard_s[0] = time.monotonic() - ago_s


def silence_s() -> float:
    """Returns the seconds since the last message."""
    return time.monotonic() - _heard_s[0]


@contextmanager
def collected_notes(shows_progress: bool) -> Iterator[list[str]]:
    """Collects messages of `say` in a block instead of printing them.

    `shows_progress` enables progress bars.
    """
    notes = _Notes(shows_progress)
    _collecting.append(notes)
    try:
        yield notes.texts
    finally:
        _collecting.remove(notes)


def word_messages(wording: Callable[[str], str]) -> None:
    """Makes `say` print its messages with this function's wording."""
    _wording[:] = [wording]


def be_quiet() -> None:
    """Disables progress messages."""
    _quiet.set()


def shows_progress() -> bool:
    """True unless the user or a call of the Python API has disabled progress."""
    return _collecting[-1].shows_progress if _collecting else not _quiet.is_set()


def is_live() -> bool:
    """True if output can be redrawn, as on a terminal or in a notebook."""
    return shows_progress() and (messages().is_terminal or messages().is_jupyter)


@cache
def messages() -> Console:
    """The console for progress and messages."""
    return _console(stderr=True)


@cache
def results() -> Console:
    """The console for tables. If the output is not a terminal, it is wide enough for any table."""
    console = _console()
    return console if console.is_terminal else _console(width=200)


def _console(**options: Any) -> Console:
    """Returns a console that prints any text literally, without markup, and escapes control characters."""
    from rich.console import Console
    from rich.segment import Segment

    class Plain(Console):
        def render_str(self, text: str, **keywords: Any) -> Text:
            # rich escapes only some of these characters
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
    note_words()
    for wording in _wording:
        text = wording(text)
    messages().print(text, soft_wrap=True)


def say_progress(text: str) -> None:
    """Prints a progress message. A call of the Python API shows bars instead."""
    if not _collecting and shows_progress():
        say(text)


def print_result(text: str) -> None:
    """Prints one line of a result."""
    note_words()
    results().print(text, soft_wrap=True)


def full_width(table: Table) -> int:
    """Returns the width of a table in columns without truncation."""
    from rich.measure import Measurement

    console = results()
    endless = console.options.update(max_width=_ENDLESS)
    return Measurement.get(console, endless, table).maximum


def print_full_width(table: Table) -> None:
    """Prints a table; if the output is not a terminal, without truncation."""
    note_words()
    if results().is_terminal:
        results().print(table)
    else:
        _console(width=_ENDLESS).print(table, width=full_width(table))


def new_table(title: str | Text = "", *headings: str, fold: bool = False) -> Table:
    """Returns an empty table in the common layout.

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
