# SPDX-License-Identifier: MIT
"""Whether the earliest deadline first meets all deadlines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from schedlab.analysis.schedulability.task_set import Reserved

_STEPS_MAX = 1_000_000


@dataclass(frozen=True)
class Overload:
    """Jobs that are released and due within `interval` ns need `demand` ns of a CPU, which is more."""

    interval: int
    demand: int


class TooLong(Exception):
    """It would take more than a million steps to tell."""


def demand(tasks: Sequence[Reserved], interval: int) -> int:
    """Returns the time that jobs need which are released and due within an interval, if all tasks release
    their first ones at its begin (Baruah, Rosier and Howell 1990)."""
    return sum(
        ((interval - task.deadline) // task.period + 1) * task.runtime
        for task in tasks
        if interval >= task.deadline
    )


def overload(tasks: Sequence[Reserved]) -> Overload | None:
    """Returns an interval in which one CPU has too little time, or None if there is none: then the earliest
    deadline first meets all deadlines, whenever jobs are released a period apart or more; else not
    all.

    The utilisation must be at most 1. Goes from the end of the busy period back, over the few
    intervals that matter (Zhang and Burns 2009). Raises TooLong.
    """
    end = busy_period(tasks)
    earliest = min(task.deadline for task in tasks)
    interval = _deadline_before(tasks, end + 1)
    for _ in range(_STEPS_MAX):
        needed = demand(tasks, interval)
        if needed > interval:
            return Overload(interval, needed)
        if needed <= earliest:
            return None
        interval = needed if needed < interval else _deadline_before(tasks, interval)
    raise TooLong


def busy_period(tasks: Sequence[Reserved]) -> int:
    """Returns how long a CPU is busy at most without a break, if all release jobs at its begin. Raises
    TooLong."""
    length = sum(task.runtime for task in tasks)
    for _ in range(_STEPS_MAX):
        longer = sum(-(-length // task.period) * task.runtime for task in tasks)
        if longer == length:
            return length
        length = longer
    raise TooLong


def fits_several(tasks: Sequence[Reserved], cpus: int) -> bool:
    """Returns true if the sum of densities is at most what several CPUs that take the earliest deadlines of one
    queue can always serve (Goossens, Funk and Baruah 2003); if it is more, deadlines may be met
    all the same."""
    densities = [task.density for task in tasks]
    return sum(densities, Fraction(0)) <= cpus - (cpus - 1) * max(densities)


def _deadline_before(tasks: Sequence[Reserved], time: int) -> int:
    """The last deadline before a time, or 0."""
    return max(
        (time - 1 - task.deadline) // task.period * task.period + task.deadline
        if time > task.deadline
        else 0
        for task in tasks
    )
