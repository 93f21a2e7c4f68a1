# SPDX-License-Identifier: MIT
"""Two voices: results on standard output, everything about the work itself on standard error."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


@cache
def messages() -> Console:
    """For progress and messages."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


@cache
def results() -> Console:
    """For tables. What is not a terminal is wide enough for all of a table."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=200)


def say(text: str) -> None:
    """One message, of any text."""
    messages().print(text, markup=False, soft_wrap=True)


def new_table(title: str = "") -> Table:
    """Without columns and rows, as all our tables begin."""
    from rich import box
    from rich.table import Table

    return Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD)
