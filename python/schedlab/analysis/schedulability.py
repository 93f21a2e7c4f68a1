# SPDX-License-Identifier: MIT
"""Tests whether periodic tasks with deadlines can be scheduled; all times are in nanoseconds."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from schedlab.units import format_time
from schedlab.workload.model import ATTRIBUTES, WorkloadFile


@dataclass(frozen=True)
class PeriodicTask:
    """A periodic or sporadic task (Liu and Layland 1973); times in ns."""

    name: str
    runtime: int
    deadline: int
    """Relative to the release of a job; at most the period."""
    period: int
    priority: int = ATTRIBUTES["priority"].standard
    """0 is the highest."""
    group: str = ""
    """The task's group in metrics."""

    @property
    def utilisation(self) -> Fraction:
        """The fraction of a CPU that the task needs."""
        return Fraction(self.runtime, self.period)

    @property
    def density(self) -> Fraction:
        """The fraction of a CPU that the task needs between a job's release and its deadline."""
        return Fraction(self.runtime, self.deadline)


def periodic_tasks(file: WorkloadFile) -> tuple[PeriodicTask, ...]:
    """Returns the tasks of a workload file that start with a runtime and a period."""
    reservations: list[PeriodicTask] = []
    for task in file.tasks:
        runtime, deadline, period, priority = (
            task.attributes.get(name, ATTRIBUTES[name].standard)
            for name in ("runtime", "deadline", "period", "priority")
        )
        if runtime and period:
            relative_deadline = min(deadline or period, period)
            reservation = PeriodicTask(
                task.name, runtime, relative_deadline, period, priority, task.group
            )
            reservations += [reservation] * task.instances
    return tuple(reservations)


def utilisation(tasks: Sequence[PeriodicTask]) -> Fraction:
    """Returns the total utilisation: the number of CPUs that the tasks need together."""
    return sum((task.utilisation for task in tasks), Fraction(0))


def draw_utilisations(source: random.Random, count: int, total: float) -> Iterator[float]:
    """Draws utilisations with sum `total`, uniformly among all such sets (Bini and Buttazzo, 2005)."""
    remaining = total
    for others in range(count - 1, 0, -1):
        after = remaining * source.random() ** (1 / others)
        yield remaining - after
        remaining = after
    yield remaining


_STEPS_MAX = 1_000_000


@dataclass(frozen=True)
class Overload:
    """An interval that is too short: its jobs need `demand` ns of CPU time within `interval` ns."""

    interval: int
    demand: int


class TestTooLong(Exception):
    """The test would take more than a million steps."""


def interval_demand(tasks: Sequence[PeriodicTask], interval: int) -> int:
    """Returns the CPU time needed by all jobs that are released and due within an interval.

    All tasks release their first job at its begin (Baruah, Rosier and Howell, 1990).
    """
    return sum(
        ((interval - task.deadline) // task.period + 1) * task.runtime
        for task in tasks
        if interval >= task.deadline
    )


def find_overload(tasks: Sequence[PeriodicTask]) -> Overload | None:
    """Returns an interval with more demand than one CPU provides, or None if there is none.

    With None, earliest deadline first meets all deadlines, for any releases at least a period
    apart. Otherwise some deadline can be missed.

    The utilisation must be at most 1. Checks only the few relevant intervals, backwards from the
    end of the busy period (Zhang and Burns, 2009). Raises TooLong.
    """
    end = busy_period(tasks)
    earliest = min(task.deadline for task in tasks)
    interval = _deadline_before(tasks, end + 1)
    for _ in range(_STEPS_MAX):
        needed = interval_demand(tasks, interval)
        if needed > interval:
            return Overload(interval, needed)
        if needed <= earliest:
            return None
        interval = needed if needed < interval else _deadline_before(tasks, interval)
    raise TestTooLong


def busy_period(tasks: Sequence[PeriodicTask]) -> int:
    """Returns the longest busy period of one CPU, if all tasks release jobs at its begin. Raises TooLong."""
    length = sum(task.runtime for task in tasks)
    for _ in range(_STEPS_MAX):
        longer = sum(-(-length // task.period) * task.runtime for task in tasks)
        if longer == length:
            return length
        length = longer
    raise TestTooLong


def fits_several(tasks: Sequence[PeriodicTask], cpus: int) -> bool:
    """True if the sum of densities guarantees that global EDF meets all deadlines (Goossens, Funk and Baruah, 2003).

    The test is sufficient, not necessary.
    """
    densities = [task.density for task in tasks]
    return sum(densities, Fraction(0)) <= cpus - (cpus - 1) * max(densities)


def _deadline_before(tasks: Sequence[PeriodicTask], time: int) -> int:
    """Returns the last deadline before a time, or 0."""
    return max(
        (time - 1 - task.deadline) // task.period * task.period + task.deadline
        if time > task.deadline
        else 0
        for task in tasks
    )


def utilisation_bound(count: int) -> float:
    """Returns the utilisation up to which rate-monotonic priorities meet all deadlines (Liu and Layland, 1973).

    Deadlines equal periods.
    """
    return float(count * (2 ** (1 / count) - 1)) if count else 1.0


def with_deadline_monotonic(tasks: Sequence[PeriodicTask]) -> tuple[PeriodicTask, ...]:
    """Returns the tasks with deadline-monotonic priorities: the shorter the deadline, the higher.

    They are optimal among fixed priorities (Leung and Whitehead, 1982).
    """
    order = sorted(range(len(tasks)), key=lambda place: tasks[place].deadline)
    return tuple(
        replace(task, priority=order.index(position)) for position, task in enumerate(tasks)
    )


def response_times(tasks: Sequence[PeriodicTask]) -> tuple[int | None, ...]:
    """Returns each task's worst-case response time, or None if it exceeds the deadline (Joseph and Pandya, 1986).

    A task also waits for other tasks of equal priority.
    """
    return tuple(_response_time(tasks, index) for index in range(len(tasks)))


def _response_time(tasks: Sequence[PeriodicTask], index: int) -> int | None:
    """Returns the worst-case response time of the task at this index; None if it exceeds the
    deadline.
    """
    task = tasks[index]
    others = [
        other
        for position, other in enumerate(tasks)
        if position != index and other.priority <= task.priority
    ]
    length = task.runtime
    while length <= task.deadline:
        longer = task.runtime + sum(-(-length // other.period) * other.runtime for other in others)
        if longer == length:
            return length
        length = longer
    return None


@dataclass(frozen=True)
class SchedulabilityVerdict:
    """The results of all tests before a run."""

    tasks: tuple[PeriodicTask, ...]
    cpus: int
    overload: Overload | None
    """On one CPU: an interval with more demand than the CPU provides."""
    meets: bool | None
    """True if earliest deadline first meets all deadlines, false if it does not, None if unknown."""
    given_priorities: bool
    """False if the order is assumed to be deadline-monotonic."""
    responses: tuple[int | None, ...]
    """Worst-case response times under fixed priorities on one CPU (see response_times()); otherwise
    None for each task.
    """

    def sentences(self) -> Iterator[str]:
        """Yields a sentence for each test."""
        share = float(utilisation(self.tasks))
        cpus = "1 CPU" if self.cpus == 1 else f"{self.cpus} CPUs"
        yield f"{len(self.tasks)} tasks need {share:.3f} of {cpus}."
        yield self._deadline_text()
        if self.cpus == 1:
            yield self._priority_text()

    def _deadline_text(self) -> str:
        """Returns the sentence on earliest deadline first."""
        first = "Earliest deadline first"
        if utilisation(self.tasks) > self.cpus:
            return "This exceeds the capacity: deadlines are missed under any policy."
        if self.overload:
            within, needed = (
                format_time(value) for value in (self.overload.interval, self.overload.demand)
            )
            return f"{first} misses deadlines: within {within}, jobs need {needed}."
        if self.meets and self.cpus == 1:
            return f"{first} meets all deadlines: the demand never exceeds the time until the deadlines."
        if self.meets:
            return f"{first} with one queue meets all deadlines, by the density of the tasks."
        return f"{first}: it is not known whether it meets all deadlines."

    def _priority_text(self) -> str:
        """Returns the sentence on fixed priorities."""
        how = "as given" if self.given_priorities else "deadline-monotonic"
        late_tasks = [
            task.name
            for task, response in zip(self.tasks, self.responses, strict=True)
            if response is None
        ]
        bound = utilisation_bound(len(self.tasks))
        has_implicit_deadlines = all(task.deadline == task.period for task in self.tasks)
        bound_text = (
            f" Utilisation up to {bound:.3f} is always schedulable."
            if has_implicit_deadlines
            else ""
        )
        if late_tasks:
            names = ", ".join(dict.fromkeys(late_tasks))
            return f"Fixed priorities, {how}: deadlines of {names} may be missed.{bound_text}"
        return f"Fixed priorities, {how}: all deadlines are met.{bound_text}"


def judge_tasks(tasks: Sequence[PeriodicTask], cpus: int) -> SchedulabilityVerdict:
    """Returns the results of all tests. There must be at least one task."""
    has_priorities = len({task.priority for task in tasks}) > 1
    on_one_cpu = cpus == 1
    responses = response_times(tasks if has_priorities else with_deadline_monotonic(tasks))
    first_overload: Overload | None = None
    meets: bool | None = False
    if utilisation(tasks) <= cpus:
        try:
            first_overload = find_overload(tasks) if on_one_cpu else None
            meets = not first_overload if on_one_cpu else fits_several(tasks, cpus) or None
        except TestTooLong:
            meets = None
    return SchedulabilityVerdict(
        tuple(tasks),
        cpus,
        first_overload,
        meets,
        has_priorities,
        responses if on_one_cpu else (None,) * len(tasks),
    )
