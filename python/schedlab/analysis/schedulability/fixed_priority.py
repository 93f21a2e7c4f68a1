# SPDX-License-Identifier: MIT
"""How long jobs take at most where the highest priority runs, on one CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from schedlab.analysis.schedulability.task_set import Reserved


def utilisation_bound(count: int) -> float:
    """Returns the utilisation up to which tasks, whose deadlines are their periods, meet all deadlines if those
    of shorter periods have higher priorities (Liu and Layland 1973)."""
    return float(count * (2 ** (1 / count) - 1)) if count else 1.0


def deadline_monotonic(tasks: Sequence[Reserved]) -> tuple[Reserved, ...]:
    """Returns the tasks with a priority each: the shorter the deadline, the higher. No other order of fixed priorities
    meets all deadlines where this one does not (Leung and Whitehead 1982)."""
    order = sorted(range(len(tasks)), key=lambda place: tasks[place].deadline)
    return tuple(replace(task, priority=order.index(place)) for place, task in enumerate(tasks))


def response_times(tasks: Sequence[Reserved]) -> tuple[int | None, ...]:
    """Returns the longest time from the release of a job of each task to its end, or None if that is longer than
    the deadline (Joseph and Pandya 1986). A task waits also for those of its own priority."""
    return tuple(_response(tasks, place) for place in range(len(tasks)))


def _response(tasks: Sequence[Reserved], place: int) -> int | None:
    own = tasks[place]
    others = [
        each for at, each in enumerate(tasks) if at != place and each.priority <= own.priority
    ]
    length = own.runtime
    while length <= own.deadline:
        longer = own.runtime + sum(-(-length // each.period) * each.runtime for each in others)
        if longer == length:
            return length
        length = longer
    return None
