# SPDX-License-Identifier: MIT
"""What is kept of the last seconds: rows that leave when the window has gone beyond them."""

from __future__ import annotations

from array import array
from collections import deque

import numpy as np

from schedlab.trace.model import Integers


class Recent:
    """Rows of some numbers, the first of which is the time at which the row counts.

    They come roughly in the order of time, some thousand at once, and go when they are older than
    the window: so each call is a few operations on arrays.
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.count = 0
        self._blocks: deque[Integers] = deque()

    def add(self, rows: array[int]) -> None:
        """Rows as one flat array, which is taken over."""
        if len(rows):
            block = np.frombuffer(rows, np.int64).reshape(-1, self.columns)
            self._blocks.append(block)
            self.count += len(block)

    def expire(self, begin_ns: int) -> None:
        """Rows of before that time go."""
        kept: deque[Integers] = deque()
        for block in self._blocks:
            old = block[:, 0] < begin_ns
            if not old.any():
                kept.append(block)
            elif not old.all():
                kept.append(block[~old])
        self._blocks = kept
        self.count = sum(map(len, kept))

    def rows(self) -> Integers:
        """All, of shape (count, columns)."""
        if not self._blocks:
            return np.empty((0, self.columns), np.int64)
        if len(self._blocks) > 1:
            self._blocks = deque([np.concatenate(self._blocks)])
        return self._blocks[0]
