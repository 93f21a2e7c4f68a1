# SPDX-License-Identifier: MIT
"""A bounded history that several listeners read, each from its own position."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Generic, TypeVar

Item = TypeVar("Item")


class History(Generic[Item]):
    """Keeps the last `most` items, each with its position since the beginning."""

    def __init__(self, length_max: int) -> None:
        self.end = 0
        """Number of items ever added."""
        self._items: deque[Item] = deque(maxlen=length_max)

    def add(self, items: Iterable[Item]) -> None:
        """Appends items."""
        for item in items:
            self._items.append(item)
            self.end += 1

    def since(self, number: int) -> list[Item]:
        """Returns the kept items whose position is at least `number`; the first item has position 0."""
        return list(islice(self._items, max(number - (self.end - len(self._items)), 0), None))
