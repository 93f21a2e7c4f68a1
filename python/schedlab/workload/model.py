# SPDX-License-Identifier: MIT
"""Defines the content of workload files: tasks, and what their processes do."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from schedlab.workload.changes import Change
from schedlab.workload.distributions import Distribution, IntegerDistribution, Uniform
from schedlab.workload.times import Drawn, Time

ROOT = "root"
"""The program that starts the tasks."""
PROCESSES = (4096, 65536, 2**24)
"""Process slots in the simulator: the minimum, the number if the demand is unknown, and the maximum."""

# --- attributes


@dataclass(frozen=True)
class Attribute:
    """An attribute as declared in policies/support/attributes.h."""

    least: int
    most: int
    standard: int
    """The default value."""
    best: int | None = None
    """None: no value is better than another."""
    key: str = ""
    """The key in workload files; "": the name."""
    is_time: bool = False
    """True for nanoseconds."""

    def line(self, name: str, value: int) -> str:
        """Returns the line that sets the attribute in the simulator's text format (docs/simulator.md)."""
        return f"{name} {value}ns" if self.is_time else f"{name} {value}"


_TIME_MAX = 10**12
TASKGROUP = "taskgroup"
GROUPS_MAX = 32
"""Maximum number of task groups, including the root; as in policies/policy.h."""

ATTRIBUTES = {
    "priority": Attribute(0, 10, 5, 0),
    "tickets": Attribute(1, 10**6, 1, 10**6),
    "weight": Attribute(1, 10, 5, 10),
    "nice": Attribute(-20, 19, 0, -20),
    "slice": Attribute(0, _TIME_MAX, 0, is_time=True),
    "runtime": Attribute(0, _TIME_MAX, 0, key="dl-runtime", is_time=True),
    "deadline": Attribute(0, _TIME_MAX, 0, key="dl-deadline", is_time=True),
    "period": Attribute(0, _TIME_MAX, 0, key="dl-period", is_time=True),
    TASKGROUP: Attribute(0, GROUPS_MAX - 1, 0),
}
"""By name, as in the scheduler's files and in traces."""
ALL_WORK = -_TIME_MAX
"""A runtime equal to the total computing time of the process."""


@dataclass(frozen=True)
class CpuSet(Attribute):
    """The CPU affinity of a process: bit n of the number is CPU n."""

    def line(self, name: str, value: int) -> str:
        return f"{name} {cpu_list(value)}"


CPUS_MAX = 1024
ALL_CPUS = 2**CPUS_MAX - 1
GIVEN: dict[str, Attribute] = {**ATTRIBUTES, "cpus": CpuSet(1, ALL_CPUS, ALL_CPUS)}
"""Attributes in workload files, by their names in the simulator's text format."""
GIVEN_KEYS = tuple(attribute.key or name for name, attribute in GIVEN.items())


def cpu_list(cpus: int) -> str:
    """Returns a set of CPUs in Linux's notation: "0-3,8"."""
    bits = f"{cpus:b}"[::-1]
    runs = [(match.start(), match.end() - 1) for match in re.finditer("1+", bits)]
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)


# --- behaviour of processes


@dataclass(frozen=True)
class Step:
    """A line of the simulator's text format (docs/simulator.md): words, a time, words."""

    words: str
    time: Time | Drawn | Distribution | None = None
    after: str = ""


@dataclass(frozen=True)
class Fork:
    """Starts a process of this task."""

    task: str


@dataclass(frozen=True)
class Meet:
    """Waits at a barrier until the processes of all its tasks have arrived."""

    channel: str


@dataclass(frozen=True)
class AwaitAll:
    """Waits for all forked children that were not yet waited for."""


@dataclass(frozen=True)
class Loop:
    rounds: float
    """May be infinite."""
    body: tuple[Item, ...]


Item = Step | Fork | Meet | AwaitAll | Loop


def mean_ns(time: Time | Drawn | Distribution, tick_ns: int) -> float:
    """Returns the mean of a time, in nanoseconds."""
    if isinstance(time, Time):
        return time.nanoseconds(tick_ns)
    return time.mean_ns(tick_ns) if isinstance(time, Drawn) else time.moments_ns(tick_ns)[0]


def looped(rounds: float, body: tuple[Item, ...]) -> tuple[Item, ...]:
    """Returns the body without a loop if it runs once, and nothing if it never runs."""
    if rounds == 1:
        return body
    return (Loop(rounds, body),) if rounds and body else ()


def everything(items: Iterable[Item]) -> Iterator[Item]:
    """Yields all items, including those within loops."""
    for item in items:
        yield item
        if isinstance(item, Loop):
            yield from everything(item.body)


def forks(items: Iterable[Item], times: float = 1) -> dict[str, float]:
    """Returns how many processes the items fork, by task; may be infinite."""
    counts: dict[str, float] = {}
    for item in items:
        inner = {}
        if isinstance(item, Fork):
            inner = {item.task: times}
        elif isinstance(item, Loop):
            inner = forks(item.body, times * item.rounds)
        for task, count in inner.items():
            counts[task] = counts.get(task, 0) + count
    return counts


def draws_itself(items: Iterable[Item]) -> bool:
    """True if any time is drawn at random."""
    return any(
        isinstance(item, Step) and isinstance(item.time, Drawn | Distribution)
        for item in everything(items)
    )


def awaiting(items: Iterable[Item], pending: float = 0) -> tuple[tuple[Item, ...], float]:
    """Replaces each AwaitAll by a number of waits; also returns the number of children not waited for.

    `pending`: the number of children before. There is one `wait` more than children, and the last
    one finds none, as in the schedlab kernel's programs. If the rounds of a loop have different
    numbers of children, the largest counts: waiting for a missing child takes no time.
    """
    done: list[Item] = []
    for item in items:
        if isinstance(item, AwaitAll):
            done += looped(pending + 1, (Step("wait"),))
            pending = 0
        elif isinstance(item, Loop):
            loop, pending = _awaiting_loop(item, pending)
            done.append(loop)
        else:
            pending += isinstance(item, Fork)
            done.append(item)
    return tuple(done), pending


def _awaiting_loop(loop: Loop, pending: float) -> tuple[Loop, float]:
    if not any(isinstance(item, AwaitAll) for item in everything(loop.body)):
        return loop, pending + sum(forks(loop.body).values()) * loop.rounds
    _, left = awaiting(loop.body, pending)
    body, left = awaiting(loop.body, max(pending, left) if loop.rounds > 1 else pending)
    return Loop(loop.rounds, body), left


# --- groups of tasks


@dataclass(frozen=True)
class TaskGroup:
    """A task group for the policy (struct share_group), identified by a number."""

    number: int
    parent: int
    weight: int | None = None
    quota_ns: int | None = None
    """None: no limit."""
    period_ns: int | None = None
    """None: the default."""

    def lines(self) -> Iterator[str]:
        """Yields the lines of the simulator's text format that create the group."""
        if self.number:
            yield f"setgroup {self.number} parent {self.parent}"
        if self.weight is not None:
            yield f"setgroup {self.number} weight {self.weight}"
        if self.period_ns is not None:
            yield f"setgroup {self.number} period {self.period_ns}ns"
        if self.quota_ns is not None:
            yield f"setgroup {self.number} quota {self.quota_ns}ns"


# --- tasks


@dataclass(frozen=True)
class Arrivals:
    """When instances arrive: after random gaps, or at given times."""

    gaps: Distribution | None
    times: tuple[Time, ...] = ()
    """Used if there are no gaps."""
    batch: IntegerDistribution = field(default_factory=IntegerDistribution)
    """The number of simultaneous arrivals."""

    def starts(self, uniform: Uniform, tick_ns: int, scale: float) -> Iterator[int]:
        """Yields the arrival times in nanoseconds, relative to the first; endless if there are
        gaps, which are multiplied by `scale`.
        """
        time = 0
        for given in self.times:
            yield from [given.nanoseconds(tick_ns)] * self.batch.draw(uniform)
        while self.gaps:
            time += max(round(scale * self.gaps.drawn_ns(uniform, tick_ns)), 0)
            yield from [time] * self.batch.draw(uniform)


@dataclass(frozen=True)
class Task:
    """One member of `tasks`."""

    name: str
    group: str
    instances: int
    delay: Time
    arrivals: Arrivals | None
    attributes: Mapping[str, int]
    body: tuple[Item, ...]
    """What each instance does."""
    drawn: Mapping[str, IntegerDistribution] = field(default_factory=dict)
    """Attributes that are drawn for each instance."""

    @property
    def arrives(self) -> bool:
        """True if instances arrive at given times, independently of other processes."""
        return bool(self.arrivals or self.delay.number)

    @property
    def is_reserved(self) -> bool:
        """True if the task has a runtime in each period from its start."""
        return all(self.attributes.get(name) for name in ("runtime", "period"))

    def starts(self, seed: int, tick_ns: int, scale: float) -> Iterator[int]:
        """Returns the start time of each instance, in nanoseconds since the machine's start.
        `scale`: factor for gaps.
        """
        begin = self.delay.nanoseconds(tick_ns)
        generator = random.Random(f"{seed}/{self.name}")
        if not self.arrivals:
            return itertools.repeat(begin, self.instances)
        times = self.arrivals.starts(generator.random, tick_ns, scale)
        return (begin + time for time in itertools.islice(times, self.instances))


@dataclass(frozen=True)
class Device:
    """A device whose interrupts add items to a channel at given times."""

    name: str
    channel: str
    instances: int
    delay: Time
    arrivals: Arrivals

    def starts(self, seed: int, tick_ns: int) -> Iterator[int]:
        """Returns the time of each interrupt, in nanoseconds since the machine's start."""
        begin = self.delay.nanoseconds(tick_ns)
        generator = random.Random(f"{seed}/{self.name}")
        times = self.arrivals.starts(generator.random, tick_ns, 1)
        return (begin + time for time in itertools.islice(times, self.instances))


@dataclass(frozen=True)
class Starter:
    """The first process, if the file defines its behaviour."""

    delay: Time
    attributes: Mapping[str, int]
    body: tuple[Item, ...]

    @property
    def ends_itself(self) -> bool:
        last = self.body[-1]
        return isinstance(last, Step) and last.words.startswith("exit")


STANDARD_LIMIT_NS = 60_000_000_000
"""The default limit of a run, in nanoseconds of the machine's time."""
_BEYOND_NS = 30_000_000_000
"""Additional time for starting and ending processes."""


def limit_of(file: WorkloadFile | None) -> int:
    """Returns the default time limit of a run, in nanoseconds. `file`: None for a program."""
    duration = file.duration_ns if file else None
    return max(STANDARD_LIMIT_NS, duration + _BEYOND_NS) if duration else STANDARD_LIMIT_NS


@dataclass(frozen=True)
class WorkloadFile:
    """A valid workload file."""

    sha256: str
    """The hash of the file on disk."""
    changes: tuple[Change, ...]
    """Values that override or extend those of the file."""
    duration_ns: int | None
    tasks: tuple[Task, ...]
    starter: Starter | None
    channels: Mapping[str, int]
    groups: tuple[TaskGroup, ...]
    notes: tuple[str, ...]
    """Warnings about parts without effect."""
    devices: tuple[Device, ...] = ()
    load: float | None = None
    """The fraction of all CPUs that arriving work uses; None: as determined by the gaps."""
    source: str = field(default="", compare=False, repr=False)
    """The whole file on disk."""

    @property
    def bodies(self) -> tuple[tuple[Item, ...], ...]:
        """The bodies of all tasks and of the starter."""
        starter_bodies = (self.starter.body,) if self.starter else ()
        return (*starter_bodies, *(task.body for task in self.tasks))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that any process is given."""
        return tuple(
            name
            for name in GIVEN
            if any(
                name in task.attributes or name in task.drawn or _sets(task, name)
                for task in self.tasks
            )
        )

    @property
    def forked(self) -> dict[str, float]:
        """The tasks that are forked by tasks, with their total number of processes."""
        by_tasks = {fork for task in self.tasks for fork in forks(task.body)}
        return {name: count for name, count in self._played().items() if name in by_tasks}

    def work_ns(self, task: Task, tick_ns: int) -> float:
        """Returns an instance's mean computing time in nanoseconds, including its children.

        It may be infinite; it is nan if it depends on the run.
        """
        return self._work_of(task.body, tick_ns, len(self.tasks))

    def _work_of(self, items: Iterable[Item], tick_ns: int, depth: int) -> float:
        total = 0.0
        named = {task.name: task for task in self.tasks}
        for item in items:
            if isinstance(item, Loop):
                total += item.rounds * self._work_of(item.body, tick_ns, depth)
            elif isinstance(item, Fork):
                inner = (
                    self._work_of(named[item.task].body, tick_ns, depth - 1) if depth else math.inf
                )
                total += inner
            elif isinstance(item, Step) and item.words == "run until":
                return math.nan
            elif isinstance(item, Step) and item.words == "run" and item.time:
                total += mean_ns(item.time, tick_ns)
        return total

    def offered(self, tick_ns: int) -> float:
        """Returns how many CPUs arriving work keeps busy on average, without `load`; nan if it depends on the run.

        Only arrivals after gaps count.
        """
        return sum(
            task.arrivals.batch.mean * self.work_ns(task, tick_ns) / gap
            for task in self.tasks
            if task.arrivals and task.arrivals.gaps
            if (gap := task.arrivals.gaps.moments_ns(tick_ns)[0])
        )

    def gap_scale(self, tick_ns: int, cpus: int) -> float:
        """Returns the factor for gaps that gives the requested load."""
        return self.offered(tick_ns) / (self.load * cpus) if self.load else 1

    def cpus_missing(self, cpus: int) -> str:
        """Returns the first CPU set without any CPU of a machine with `cpus` CPUs, or ""."""
        given = [task.attributes for task in self.tasks]
        if self.starter:
            given.insert(0, self.starter.attributes)
        named = [cpu_list(attributes["cpus"]) for attributes in given if "cpus" in attributes]
        for body in self.bodies:
            words = (item.words.split() for item in everything(body) if isinstance(item, Step))
            named += [step_words[1] for step_words in words if step_words[0] == "cpus"]
        lowest = ((int(re.split("[-,]", text)[0]), text) for text in named)
        return next((text for first, text in lowest if first >= cpus), "")

    def drawing(self) -> frozenset[str]:
        """Returns the tasks whose processes differ: they draw random times, or start processes that do."""
        names = {task.name for task in self.tasks if task.drawn or draws_itself(task.body)}
        for _ in self.tasks:
            names |= {task.name for task in self.tasks if names & forks(task.body).keys()}
        return frozenset(names)

    def processes(self) -> int:
        """Returns the number of processes that the simulator must reserve."""
        least, unknown, most = PROCESSES
        total = self.total()
        return unknown if math.isinf(total) else min(max(least, int(total) + 2), most)

    def total(self) -> float:
        """Returns the total number of processes if the run does not end early; may be infinite."""
        return sum(self._played().values())

    def parties(self) -> dict[str, int]:
        """Returns how many processes meet at each barrier. Processes forked by tasks cannot."""
        counts: dict[str, int] = {}
        started = self._started()
        bodies = ((self.starter.body, 1),) if self.starter else ()
        for body, count in (
            *bodies,
            *((task.body, int(started[task.name])) for task in self.tasks),
        ):
            for item in everything(body):
                if isinstance(item, Meet):
                    counts[item.channel] = counts.get(item.channel, 0) + count
        return counts

    def _started(self) -> dict[str, float]:
        """Returns how many processes of each task the first process starts."""
        if self.starter:
            started = forks(self.starter.body)
            return {task.name: started.get(task.name, 0) for task in self.tasks}
        return {task.name: task.instances for task in self.tasks}

    def _played(self) -> dict[str, float]:
        """Returns the number of processes of each task; infinite if a task forks itself."""
        played = self._started()
        for _ in self.tasks:
            played = self._with_children(played)
        grown = self._with_children(played)
        return {name: count if grown[name] == count else math.inf for name, count in played.items()}

    def _with_children(self, played: Mapping[str, float]) -> dict[str, float]:
        """Returns the numbers including one more generation of children."""
        grown = self._started()
        for task in self.tasks:
            for child, count in forks(task.body).items():
                if played[task.name]:
                    grown[child] += played[task.name] * count
        return grown


def _sets(task: Task, attribute: str) -> bool:
    return any(
        isinstance(item, Step) and item.words.startswith(f"{attribute} ")
        for item in everything(task.body)
    )
