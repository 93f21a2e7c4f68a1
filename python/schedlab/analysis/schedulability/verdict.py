# SPDX-License-Identifier: MIT
"""What the tests say of a set of tasks on some CPUs, in words and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from schedlab.analysis.schedulability.earliest_deadline import (
    Overload,
    TooLong,
    fits_several,
    overload,
)
from schedlab.analysis.schedulability.fixed_priority import (
    deadline_monotonic,
    response_times,
    utilisation_bound,
)
from schedlab.analysis.schedulability.task_set import Reserved, utilisation
from schedlab.units import format_time


@dataclass(frozen=True)
class Verdict:
    """What is known before a run."""

    tasks: tuple[Reserved, ...]
    cpus: int
    overload: Overload | None
    """On one CPU, an interval in which jobs need more than it has."""
    meets: bool | None
    """True if the earliest deadline first meets all deadlines, false if it does not; None: it is not known."""
    given_priorities: bool
    """False: those of deadline-monotonic order are assumed."""
    responses: tuple[int | None, ...]
    """Of fixed priorities, on one CPU: see response_times(); else None for each."""

    def lines(self) -> Iterator[str]:
        """A sentence for each test."""
        share = float(utilisation(self.tasks))
        cpus = "1 CPU" if self.cpus == 1 else f"{self.cpus} CPUs"
        yield f"{len(self.tasks)} tasks need {share:.3f} of {cpus}."
        yield self._of_deadlines()
        if self.cpus == 1:
            yield self._of_priorities()

    def _of_deadlines(self) -> str:
        first = "Earliest deadline first"
        if utilisation(self.tasks) > self.cpus:
            return "That is more than there is: in whatever order tasks are served, deadlines are missed."
        if self.overload:
            within, needed = (
                format_time(each) for each in (self.overload.interval, self.overload.demand)
            )
            return f"{first} misses deadlines: jobs within {within} need {needed}."
        if self.meets and self.cpus == 1:
            return f"{first} meets all deadlines: jobs never need more than there is until they are due."
        if self.meets:
            return f"{first}, from one queue, meets all deadlines: no task is too dense for the others."
        return f"{first}: it is not known whether it meets all deadlines."

    def _of_priorities(self) -> str:
        how = "as given" if self.given_priorities else "the shorter the deadline, the higher"
        late = [
            task.name for task, each in zip(self.tasks, self.responses, strict=True) if each is None
        ]
        bound = utilisation_bound(len(self.tasks))
        simple = all(task.deadline == task.period for task in self.tasks)
        quick = f" Up to {bound:.3f}, no test would be needed." if simple else ""
        if late:
            names = ", ".join(dict.fromkeys(late))
            return f"Fixed priorities, {how}: deadlines of {names} may be missed.{quick}"
        return f"Fixed priorities, {how}: all deadlines are met.{quick}"


def judge(tasks: Sequence[Reserved], cpus: int) -> Verdict:
    """Returns what the tests say of some tasks; there must be one at least."""
    given = len({task.priority for task in tasks}) > 1
    alone = cpus == 1
    responses = response_times(tasks if given else deadline_monotonic(tasks))
    found: Overload | None = None
    meets: bool | None = False
    if utilisation(tasks) <= cpus:
        try:
            found = overload(tasks) if alone else None
            meets = not found if alone else fits_several(tasks, cpus) or None
        except TooLong:
            meets = None
    return Verdict(
        tuple(tasks), cpus, found, meets, given, responses if alone else (None,) * len(tasks)
    )
