# SPDX-License-Identifier: MIT
"""What has been said one after the other, of which each listener knows how much it has heard."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")


class Said(Generic[T]):
    """The last `most` of them."""

    def __init__(self, most: int) -> None:
        self.end = 0
        """How many there ever were."""
        self._kept: deque[T] = deque(maxlen=most)

    def add(self, items: Iterable[T]) -> None:
        """Adds what comes next."""
        for item in items:
            self._kept.append(item)
            self.end += 1

    def since(self, number: int) -> list[T]:
        """Returns what is kept of those that came after so many."""
        return list(islice(self._kept, max(number - (self.end - len(self._kept)), 0), None))
