# SPDX-License-Identifier: MIT
"""Waits for states of a page, with limits for a busy host; a wait ends as soon as the state
is reached.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from playwright.sync_api import Page

PATIENCE_S = 120
_LOOK_MS = 25
T = TypeVar("T")


def until(page: Page, what: str | Callable[[], T | None], failed: Callable[[], object] = str) -> T:
    """Waits until a script of the page, or a function, returns a true value, and returns it. (The
    page's rules forbid `wait_for_function`, which compiles texts.)

    Raises AssertionError after the limit; `failed` describes the state reached instead.
    """
    limit = time.monotonic() + PATIENCE_S
    while True:
        result: T | None = page.evaluate(what) if isinstance(what, str) else what()
        if result:
            return result
        assert time.monotonic() < limit, f"never came to be: {what} {failed()}"
        page.wait_for_timeout(_LOOK_MS)
