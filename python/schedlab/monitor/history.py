# SPDX-License-Identifier: MIT
"""A bounded history that several listeners read, each from its own position."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")


class History(Generic[T]):
    """Keeps the last `most` items, and their numbers since the beginning."""

    def __init__(self, most: int) -> None:
        self.end = 0
        """Number of items ever added."""
        self._items: deque[T] = deque(maxlen=most)

    def add(self, items: Iterable[T]) -> None:
        """Appends items."""
        for item in items:
            self._items.append(item)
            self.end += 1

    def since(self, number: int) -> list[T]:
        """Returns the kept items after the first `number` items."""
        return list(islice(self._items, max(number - (self.end - len(self._items)), 0), None))
