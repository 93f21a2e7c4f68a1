# SPDX-License-Identifier: MIT
"""Two voices: results on standard output, everything about the work itself on standard error."""

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
"""Of calls of the Python API that are under way; the last one collects."""
_wording: list[Callable[[str], str]] = []
"""What changes messages before they are printed."""
_heard_s = [time.monotonic()]
"""When the user last heard of this process."""


def note_words(ago_s: float = 0) -> None:
    """Notes that the user hears something now, or did so some seconds ago."""
    _heard_s[0] = time.monotonic() - ago_s


def silence_s() -> float:
    """Returns the seconds since the user last heard of this process."""
    return time.monotonic() - _heard_s[0]


@contextmanager
def collected_notes(shows_progress: bool) -> Iterator[list[str]]:
    """Collects what `say` is told in the block, instead of printing it. `shows_progress`: progress is shown."""
    notes = _Notes(shows_progress)
    _collecting.append(notes)
    try:
        yield notes.texts
    finally:
        _collecting.remove(notes)


def word_messages(wording: Callable[[str], str]) -> None:
    """From now on, `say` prints its messages as this function words them."""
    _wording[:] = [wording]


def be_quiet() -> None:
    """From now on, shows no progress."""
    _quiet.set()


def shows_progress() -> bool:
    """True if progress is to be shown: always, unless the user or a call of the Python API does not want it."""
    return _collecting[-1].shows_progress if _collecting else not _quiet.is_set()


def is_live() -> bool:
    """True if the console for messages can change what it has shown: a terminal or a notebook."""
    return shows_progress() and (messages().is_terminal or messages().is_jupyter)


@cache
def messages() -> Console:
    """The console for progress and messages."""
    return _console(stderr=True)


@cache
def results() -> Console:
    """The console for tables. One that is no terminal is wide enough for a whole table."""
    console = _console()
    return console if console.is_terminal else _console(width=200)


def _console(**options: Any) -> Console:
    """Shows any text as it is: brackets and colons are no markup, and nothing that is in a text is
    obeyed by the terminal."""
    from rich.console import Console
    from rich.segment import Segment

    class Plain(Console):
        def render_str(self, text: str, **keywords: Any) -> Text:
            return super().render_str(visible(text), **keywords)  # the library leaves out some

        def render(self, *arguments: Any, **keywords: Any) -> Iterable[Segment]:
            for segment in super().render(*arguments, **keywords):
                shown = segment.text if segment.control else visible(segment.text)
                yield Segment(shown, segment.style, segment.control)

    return Plain(highlight=False, markup=False, emoji=False, **options)


def say(text: str) -> None:
    """Prints one message, of any text; a call of the Python API collects it."""
    if _collecting:
        _collecting[-1].texts.append(text)
        return
    note_words()
    for wording in _wording:
        text = wording(text)
    messages().print(text, soft_wrap=True)


def say_progress(text: str) -> None:
    """Prints one message on how far work is. A call of the Python API shows bars instead."""
    if not _collecting and shows_progress():
        say(text)


def tell(text: str) -> None:
    """Prints one line of a result, of any text."""
    note_words()
    results().print(text, soft_wrap=True)


def whole_width(table: Table) -> int:
    """Returns how many columns of a terminal a table takes if nothing in it is cut off."""
    from rich.measure import Measurement

    console = results()
    endless = console.options.update(max_width=_ENDLESS)
    return Measurement.get(console, endless, table).maximum


def print_whole(table: Table) -> None:
    """Prints a table. Where the output is no terminal, it is as wide as it is, and nothing in it is cut off."""
    note_words()
    if results().is_terminal:
        results().print(table)
    else:
        _console(width=_ENDLESS).print(table, width=whole_width(table))


def new_table(title: str | Text = "", *headings: str, fold: bool = False) -> Table:
    """Without rows, as all our tables begin. A heading that begins with ">" has its column at the
    right, as figures have. `fold`: a long word goes on in the next line, instead of being cut."""
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
