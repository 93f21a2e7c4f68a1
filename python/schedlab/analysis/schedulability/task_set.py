# SPDX-License-Identifier: MIT
"""Tasks that need a runtime in each period, within a deadline; all times are in nanoseconds."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from schedlab.workload.model import ATTRIBUTES, WorkloadFile


@dataclass(frozen=True)
class Reserved:
    """A periodic or sporadic task (Liu and Layland 1973)."""

    name: str
    runtime: int
    deadline: int
    """From the release of a job; at most the period."""
    period: int
    priority: int = ATTRIBUTES["priority"].standard
    """0 is the highest."""
    group: str = ""
    """By which metrics know it."""

    @property
    def utilisation(self) -> Fraction:
        """The part of a CPU that it needs."""
        return Fraction(self.runtime, self.period)

    @property
    def density(self) -> Fraction:
        """The part of a CPU that it needs between a job's release and its deadline."""
        return Fraction(self.runtime, self.deadline)


def task_set(file: WorkloadFile) -> tuple[Reserved, ...]:
    """Returns the processes of a workload file that have a runtime and a period from their beginnings on."""
    found: list[Reserved] = []
    for task in file.tasks:
        runtime, deadline, period, priority = (
            task.attributes.get(name, ATTRIBUTES[name].standard)
            for name in ("runtime", "deadline", "period", "priority")
        )
        if runtime and period:
            within = min(deadline or period, period)
            own = Reserved(task.name, runtime, within, period, priority, task.group)
            found += [own] * task.instances
    return tuple(found)


def utilisation(tasks: Sequence[Reserved]) -> Fraction:
    """Returns the number of CPUs that all need together."""
    return sum((task.utilisation for task in tasks), Fraction(0))


def uunifast(source: random.Random, count: int, total: float) -> Iterator[float]:
    """Draws utilisations whose sum is `total`, each such set as likely as another (Bini and Buttazzo
    2005)."""
    left = total
    for others in range(count - 1, 0, -1):
        after = left * source.random() ** (1 / others)
        yield left - after
        left = after
    yield left
