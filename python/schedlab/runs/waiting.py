# SPDX-License-Identifier: MIT
"""Work that waits until enough CPUs of the host are free."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Waiting(Generic[Item]):
    """A line in which those that need fewer CPUs may overtake. What it costs to go on does not grow with
    its length."""

    def __init__(self, items: Iterable[tuple[Item, int]], free: int) -> None:
        """`items`: each with the CPUs that it needs, none with more than are `free` at first."""
        self._free = free
        self._lines: dict[int, deque[tuple[int, Item]]] = {}
        """By the CPUs that are needed: the items, with their places."""
        for place, (item, wanted) in enumerate(items):
            self._lines.setdefault(wanted, deque()).append((place, item))

    def __bool__(self) -> bool:
        return any(self._lines.values())

    def begin(self) -> Iterator[tuple[Item, int]]:
        """Takes out, in their order, those for which there are CPUs, with the CPUs that they take."""
        while True:
            fitting = {line[0][0]: n for n, line in self._lines.items() if line and n <= self._free}
            if not fitting:
                return
            wanted = fitting[min(fitting)]
            _, item = self._lines[wanted].popleft()
            self._free -= wanted
            yield item, wanted

    def give_back(self, cpus: int) -> None:
        """This many CPUs are free again."""
        self._free += cpus
