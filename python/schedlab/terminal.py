# SPDX-License-Identifier: MIT
"""Two voices: results on standard output, everything about the work itself on standard error."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


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
