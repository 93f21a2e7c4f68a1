# SPDX-License-Identifier: MIT
"""The fewest turns of other than normal length under which a run still breaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")


def shrunk(whole: Sequence[T], breaks: Callable[[Sequence[T]], bool], tries: int) -> tuple[T, ...]:
    """Returns a part of what breaks in which none can be left out, or as small a part as so many tries find.

    It is delta debugging (Zeller and Hildebrandt 2002): parts are tried, then what is left without each of them, in
    ever smaller parts.
    """
    left = tries

    def does(some: Sequence[T]) -> bool:
        nonlocal left
        left -= 1
        return breaks(some)

    if does(()):
        return ()
    now, parts = tuple(whole), 2
    while len(now) > 1 and left > 0:
        smaller = _smaller(now, parts, does, lambda: left > 0)
        if smaller is not None:
            parts = 2 if len(smaller) * 2 <= len(now) else max(parts - 1, 2)
            now = smaller
        elif parts >= len(now):
            break
        else:
            parts = min(2 * parts, len(now))
    return now


def _smaller(
    now: tuple[T, ...], parts: int, breaks: Callable[[Sequence[T]], bool], may: Callable[[], bool]
) -> tuple[T, ...] | None:
    """The first part, or what is left without one, that still breaks."""
    borders = [len(now) * number // parts for number in range(parts + 1)]
    spans = list(pairwise(borders))
    for begin, end in reversed(spans):  # what breaks is more often late
        if may() and breaks(now[begin:end]):
            return now[begin:end]
    if parts > 2:
        for begin, end in spans:
            if may() and breaks(now[:begin] + now[end:]):
                return now[:begin] + now[end:]
    return None
