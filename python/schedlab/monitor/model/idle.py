# SPDX-License-Identifier: MIT
"""The times in which a CPU idled while a process waited at another one.

From two lists that the story keeps: how many queues were occupied, from when on (and if one, which);
and when each CPU idled. A CPU's idling counts where any queue but its own is occupied. Times are those of
the story's clock, which never goes back: where CPUs' clocks differ, so much may the sums be off.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from schedlab.trace.model import Integers


class IdleWhileQueued:
    """Finds them, stretch by stretch of time."""

    def __init__(self) -> None:
        self._until = 0
        """Found up to here."""
        self._occupied = 0
        self._only = -1

    def find(
        self,
        occupancy: array[int],
        idle_spells: array[int],
        idle_since: Sequence[int],
        until: int,
    ) -> Integers:
        """Rows of end, begin, CPU: what is beyond the last call and up to `until`.

        The arrays are the story's since the last call; `idle_since`: of CPUs that idle still, else -1.
        """
        changes = np.frombuffer(occupancy, np.int64).reshape(-1, 3)
        begins = np.concatenate(([self._until], changes[:, 0]))
        ends = np.concatenate((changes[:, 0], [until]))
        occupied = np.concatenate(([self._occupied], changes[:, 1]))
        only = np.concatenate(([self._only], changes[:, 2]))
        idle = self._idle(idle_spells, idle_since, until)
        found = [
            self._overlaps(
                cpu, idle[idle[:, 0] == cpu, 1:], begins, ends, (occupied > 0) & (only != cpu)
            )
            for cpu in np.unique(idle[:, 0]).tolist()
        ]
        self._until, self._occupied, self._only = until, int(occupied[-1]), int(only[-1])
        return np.concatenate(found) if found else np.empty((0, 3), np.int64)

    def _idle(self, spells: array[int], since: Sequence[int], until: int) -> Integers:
        """Rows of CPU, begin, end; what was looked at before is left out."""
        over = np.frombuffer(spells, np.int64).reshape(-1, 3)
        still = [(cpu, begin, until) for cpu, begin in enumerate(since) if begin >= 0]
        idle = np.concatenate((over, np.array(still, np.int64).reshape(-1, 3)))
        idle[:, 1] = np.maximum(idle[:, 1], self._until)
        lasting: Integers = idle[idle[:, 2] > idle[:, 1]]
        return lasting

    @staticmethod
    def _overlaps(
        cpu: int, idle: Integers, begins: Integers, ends: Integers, counts: npt.NDArray[np.bool_]
    ) -> Integers:
        """Where a CPU's idling (rows of begin, end) meets the stretches that count for it."""
        begins, ends = _joined(begins[counts], ends[counts])
        first = np.searchsorted(ends, idle[:, 0], side="right")
        beyond = np.searchsorted(begins, idle[:, 1], side="left")
        many = np.maximum(beyond - first, 0)
        spell = np.repeat(np.arange(len(idle)), many)
        within = np.arange(len(spell)) - np.repeat(np.cumsum(many) - many, many)
        stretch = np.repeat(first, many) + within
        begin = np.maximum(begins[stretch], idle[spell, 0])
        end = np.minimum(ends[stretch], idle[spell, 1])
        rows: Integers = np.column_stack((end, begin, np.full(len(end), cpu)))
        overlaps: Integers = rows[end > begin]
        return overlaps


def _joined(begins: Integers, ends: Integers) -> tuple[Integers, Integers]:
    """Stretches that touch, as one; those that last no time are left out."""
    lasting = ends > begins
    begins, ends = begins[lasting], ends[lasting]
    apart = begins[1:] > ends[:-1]
    return begins[np.append(True, apart)[: len(begins)]], ends[np.append(apart, True)[: len(ends)]]
