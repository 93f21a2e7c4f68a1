# SPDX-License-Identifier: MIT
"""When each of given jobs ends, exactly: recursions of queueing theory."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def first_come(arrivals: Sequence[int], work: Sequence[int], servers: int = 1) -> list[int]:
    """Returns when each job ends if jobs are served first come, first served, without interruption,
    by so many alike servers with one line. Times are in their order, and all in the same unit.

    Source: D. V. Lindley 1952 for one server; J. Kiefer and J. Wolfowitz 1955 for several.
    """
    free = [0] * servers
    ends = []
    for when, takes in zip(arrivals, work, strict=True):
        end = max(free[0], when) + takes
        heapq.heapreplace(free, end)
        ends.append(end)
    return ends
