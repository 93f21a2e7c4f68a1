# SPDX-License-Identifier: MIT
"""What a workload file says, and its text in the simulator's form (docs/simulator.md)."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from schedlab.workload_changes import Change

ROOT = "root"
"""The program that starts the tasks."""
PROCESSES = (4096, 65536, 2**24)
"""Room in the simulator: at least, if nobody can say how many there will be, and at most."""
ATTRIBUTES = {"priority": (0, 10, 5, 0), "tickets": (1, 10**6, 1, 10**6), "weight": (1, 10, 5, 10)}
"""Least, most, what a process has that is given none, and the best; policies/policy.h."""


@dataclass(frozen=True)
class Time:
    """So many nanoseconds, or so many ticks."""

    number: int
    in_ticks: bool = False

    def __str__(self) -> str:
        """As the simulator reads it."""
        return f"{self.number}{'ticks' if self.in_ticks else 'ns'}"

    def nanoseconds(self, tick_ns: int) -> int:
        return self.number * tick_ns if self.in_ticks else self.number


@dataclass(frozen=True)
class Arrivals:
    """The gaps before each instance, drawn at random."""

    distribution: str
    mean: Time

    def draw(self, generator: random.Random, tick_ns: int) -> int:
        """The next gap, in nanoseconds."""
        mean = self.mean.nanoseconds(tick_ns)
        number = generator.random()
        if self.distribution == "uniform":
            return round(2 * mean * number)
        return round(-mean * math.log(1 - number))


@dataclass(frozen=True)
class Task:
    """One member of `tasks`."""

    name: str
    group: str
    instances: int
    delay: Time
    arrivals: Arrivals | None
    attributes: Mapping[str, int]
    lines: tuple[str, ...]
    """What each instance does, in the simulator's form."""
    forks: Mapping[str, float]
    """How many processes each instance forks, by their task; may be without end."""

    def starts(self, seed: int, tick_ns: int) -> Iterator[int]:
        """When each instance begins, in nanoseconds since the machine's begin."""
        time = self.delay.nanoseconds(tick_ns)
        generator = random.Random(f"{seed}/{self.name}")
        for _ in range(self.instances):
            if self.arrivals:
                time += self.arrivals.draw(generator, tick_ns)
            yield time


@dataclass(frozen=True)
class WorkloadFile:
    """A file that was read and found good."""

    sha256: str
    """Of the file as it lies there."""
    changes: tuple[Change, ...]
    """Values that it was given beside those of the file."""
    duration_ns: int | None
    tasks: tuple[Task, ...]
    channels: Mapping[str, int]
    notes: tuple[str, ...]
    """What in it has no effect."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """Those that some process is given."""
        return tuple(
            name
            for name in ATTRIBUTES
            if any(name in task.attributes or _sets(task, name) for task in self.tasks)
        )

    def processes(self) -> int:
        """For how many the simulator must have room."""
        least, unknown, most = PROCESSES
        total = self.total()
        return unknown if math.isinf(total) else min(max(least, int(total) + 2), most)

    def total(self) -> float:
        """How many processes there are in all, if nothing ends the run; may be infinite."""
        return sum(self._played().values())

    def text(self, seed: int, tick_ns: int) -> str:
        """In the simulator's form. Whatever is random in it is drawn from the seed."""
        lines = [f"channel {name} {count}" for name, count in self.channels.items()]
        lines += ["", f"program {ROOT}", *(f"  {line}" for line in self._root(seed, tick_ns))]
        for task in self.tasks:
            lines += ["", f"program {task.name}", *(f"  {line}" for line in self._program(task))]
        return "\n".join(lines) + "\n"

    def _root(self, seed: int, tick_ns: int) -> Iterator[str]:
        """Starts all, and waits. It has the best of what tasks are given: they do not delay it."""
        yield f"group {ROOT}"
        yield from (f"{name} {ATTRIBUTES[name][3]}" for name in self.attributes)
        yield "mark begin"
        for when, name, count in self._starts(seed, tick_ns):
            if when:
                yield f"sleep until {when}ns"
            yield from repeated(count, self._started(name))
        if self.duration_ns is not None:
            yield f"sleep until {self.duration_ns}ns"
        else:
            yield from repeated(sum(task.instances for task in self.tasks), ["wait"])
            yield from repeated(self._forked(), ["take finished"])
        yield "mark end"

    def _starts(self, seed: int, tick_ns: int) -> Iterator[tuple[int, str, int]]:
        """Time, task, and how many of it; in order of time, then of the file."""
        starts = [
            (when, place)
            for place, task in enumerate(self.tasks)
            for when in task.starts(seed, tick_ns)
        ]
        together: dict[tuple[int, int], int] = {}
        for start in sorted(starts):
            together[start] = together.get(start, 0) + 1
        for (when, place), count in together.items():
            yield when, self.tasks[place].name, count

    def _started(self, name: str) -> list[str]:
        """The root gives a new process what it shall have; else it would inherit the root's."""
        task = next(task for task in self.tasks if task.name == name)
        return [f"fork {name}", *(f"{line} {name}" for line in self._attributes_of(task))]

    def _attributes_of(self, task: Task) -> list[str]:
        values = {key: task.attributes.get(key, ATTRIBUTES[key][2]) for key in self.attributes}
        return [f"{key} {value}" for key, value in values.items()]

    def _program(self, task: Task) -> Iterator[str]:
        """One that tasks fork sees to its attributes itself: several may fork it at once, and none
        could say which process it means."""
        forked = any(task.name in other.forks for other in self.tasks)
        yield f"group {task.group}"
        if forked:
            yield from self._attributes_of(task)
        yield from task.lines
        if forked and self.duration_ns is None:
            yield "give finished"

    def _played(self) -> dict[str, float]:
        """How many processes there are of each task; infinite if a task forks itself."""
        played = {task.name: float(task.instances) for task in self.tasks}
        for _ in self.tasks:
            played = self._with_children(played)
        grown = self._with_children(played)
        return {name: count if grown[name] == count else math.inf for name, count in played.items()}

    def _with_children(self, played: Mapping[str, float]) -> dict[str, float]:
        """One generation more."""
        return {
            task.name: task.instances
            + sum(
                played[other.name] * other.forks[task.name]
                for other in self.tasks
                if task.name in other.forks and played[other.name]
            )
            for task in self.tasks
        }

    def _forked(self) -> float:
        return self.total() - sum(task.instances for task in self.tasks)


def _sets(task: Task, attribute: str) -> bool:
    return any(line.strip().startswith(f"{attribute} ") for line in task.lines)


def repeated(count: float, lines: list[str]) -> Iterator[str]:
    if count == 1:
        yield from lines
    elif math.isinf(count) or count:
        yield "loop" if math.isinf(count) else f"loop {int(count)}"
        yield from (f"  {line}" for line in lines)
        yield "end"
