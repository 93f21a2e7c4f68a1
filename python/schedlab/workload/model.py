# SPDX-License-Identifier: MIT
"""Defines what a workload file contains: tasks, and what their processes do."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from schedlab.workload.changes import Change
from schedlab.workload.distributions import Distribution, IntegerDistribution, Uniform
from schedlab.workload.times import RandomTime, Time

ROOT_PROGRAM = "root"
"""Name of the program of the first process, which starts the tasks."""
PROCESS_SLOTS = (4096, 65536, 2**24)
"""Number of process slots in the simulator: minimum, default if the demand is unknown, and maximum."""

# --- attributes


@dataclass(frozen=True)
class Attribute:
    """The range of an attribute that tasks can set, as in policies/support/attributes.h."""

    least: int
    most: int
    standard: int
    """The default value."""
    best: int | None = None
    """The value that is best for a task; None if no value is better than another."""
    key: str = ""
    """Key in workload files; "" if it equals the name."""
    is_time: bool = False
    """True if the value is in nanoseconds."""

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
"""Attributes by their names in traces and in the scheduler's files."""
ALL_WORK = -_TIME_MAX
"""Value of `runtime` that means all of the process's computing time."""


@dataclass(frozen=True)
class CpuSet(Attribute):
    """The set of CPUs that a process may use, as a number: bit n is CPU n."""

    def line(self, name: str, value: int) -> str:
        """Returns the line of the text format that sets the attribute: "cpus 0-3,8"."""
        return f"{name} {cpu_list(value)}"


CPUS_MAX = 1024
_HOTPLUG = ("online", "offline")
"""First words of the steps that change which CPUs are online."""
ALL_CPUS = 2**CPUS_MAX - 1
FILE_ATTRIBUTES: dict[str, Attribute] = {**ATTRIBUTES, "cpus": CpuSet(1, ALL_CPUS, ALL_CPUS)}
"""Attributes in workload files, by their names in the simulator's text format."""
ATTRIBUTE_KEYS = tuple(attribute.key or name for name, attribute in FILE_ATTRIBUTES.items())


def cpu_list(cpus: int) -> str:
    """Returns a set of CPUs in Linux's notation: "0-3,8"."""
    bits = f"{cpus:b}"[::-1]
    runs = [(match.start(), match.end() - 1) for match in re.finditer("1+", bits)]
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)


# --- behaviour of processes


@dataclass(frozen=True)
class Step:
    """A line of a program in the simulator's text format: words, a time, and more words."""

    words: str
    time: Time | RandomTime | Distribution | None = None
    after: str = ""


@dataclass(frozen=True)
class Fork:
    """Forks a process of the named task."""

    task: str


@dataclass(frozen=True)
class MeetAtBarrier:
    """Waits at a barrier until all processes that use the barrier have arrived."""

    channel: str


@dataclass(frozen=True)
class AwaitAllChildren:
    """Waits for all forked children that the process has not waited for yet."""


@dataclass(frozen=True)
class Loop:
    rounds: float
    """May be infinite."""
    body: tuple[Item, ...]


Item = Step | Fork | MeetAtBarrier | AwaitAllChildren | Loop


def mean_ns(time: Time | RandomTime | Distribution, tick_ns: int) -> float:
    """Returns the mean of a fixed or random time in ns."""
    if isinstance(time, Time):
        return time.nanoseconds(tick_ns)
    return time.mean_ns(tick_ns) if isinstance(time, RandomTime) else time.moments_ns(tick_ns)[0]


def make_loop(rounds: float, body: tuple[Item, ...]) -> tuple[Item, ...]:
    """Returns a loop with this body: just the body for one round, nothing for none."""
    if rounds == 1:
        return body
    return (Loop(rounds, body),) if rounds and body else ()


def all_items(items: Iterable[Item]) -> Iterator[Item]:
    """Yields all items, including those inside loops."""
    for item in items:
        yield item
        if isinstance(item, Loop):
            yield from all_items(item.body)


def count_forks(items: Iterable[Item], times: float = 1) -> dict[str, float]:
    """Returns how many processes of each task the items fork; may be infinite.

    `times`: how often the items are executed.
    """
    counts: dict[str, float] = {}
    for item in items:
        inner = {}
        if isinstance(item, Fork):
            inner = {item.task: times}
        elif isinstance(item, Loop):
            inner = count_forks(item.body, times * item.rounds)
        for task, count in inner.items():
            counts[task] = counts.get(task, 0) + count
    return counts


def has_random_times(items: Iterable[Item]) -> bool:
    """Returns whether any time in the items is random."""
    return any(
        isinstance(item, Step) and isinstance(item.time, RandomTime | Distribution)
        for item in all_items(items)
    )


def replace_await_all(items: Iterable[Item], pending: float = 0) -> tuple[tuple[Item, ...], float]:
    """Replaces each AwaitAll by as many `wait` steps as needed; also returns the children left
    over.

    `pending`: number of children before the items. The schedlab kernel's programs wait until no
    child remains, so there is one more `wait` than children. If the rounds of a loop have different
    numbers of children, the largest counts: waiting for a missing child takes no time.
    """
    replaced: list[Item] = []
    for item in items:
        if isinstance(item, AwaitAllChildren):
            replaced += make_loop(pending + 1, (Step("wait"),))
            pending = 0
        elif isinstance(item, Loop):
            loop, pending = _replace_in_loop(item, pending)
            replaced.append(loop)
        else:
            pending += isinstance(item, Fork)
            replaced.append(item)
    return tuple(replaced), pending


def _replace_in_loop(loop: Loop, pending: float) -> tuple[Loop, float]:
    """Returns the loop with counted waits for children, and how many are left to wait for."""
    if not any(isinstance(item, AwaitAllChildren) for item in all_items(loop.body)):
        return loop, pending + sum(count_forks(loop.body).values()) * loop.rounds
    _, left_over = replace_await_all(loop.body, pending)
    body, left_over = replace_await_all(
        loop.body, max(pending, left_over) if loop.rounds > 1 else pending
    )
    return Loop(loop.rounds, body), left_over


# --- groups of tasks


@dataclass(frozen=True)
class TaskGroup:
    """A task group of the policy (struct share_group)."""

    number: int
    parent: int
    weight: int | None = None
    quota_ns: int | None = None
    """CPU time (ns) per period; None means unlimited."""
    period_ns: int | None = None
    """Length of a period (ns); None means the default."""

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
    """When the instances of a task arrive: after random gaps, or at given times."""

    gaps: Distribution | None
    times: tuple[Time, ...] = ()
    """Arrival times; used if there are no gaps."""
    batch: IntegerDistribution = field(default_factory=IntegerDistribution)
    """Number of instances that arrive at the same time."""

    def starts(self, uniform: Uniform, tick_ns: int, scale: float) -> Iterator[int]:
        """Yields the arrival times (ns), relative to the first one.

        Endless if there are gaps. `scale`: factor for gaps.
        """
        time = 0
        for given in self.times:
            yield from [given.nanoseconds(tick_ns)] * self.batch.draw(uniform)
        while self.gaps:
            time += max(round(scale * self.gaps.drawn_ns(uniform, tick_ns)), 0)
            yield from [time] * self.batch.draw(uniform)


@dataclass(frozen=True)
class Task:
    """One entry of `tasks` in a workload file."""

    name: str
    group: str
    instances: int
    delay: Time
    arrivals: Arrivals | None
    attributes: Mapping[str, int]
    body: tuple[Item, ...]
    """What each instance does."""
    drawn: Mapping[str, IntegerDistribution] = field(default_factory=dict)
    """Attributes whose values are drawn for each instance."""

    @property
    def arrives(self) -> bool:
        """Returns whether instances arrive at certain times, independent of other processes."""
        return bool(self.arrivals or self.delay.number)

    @property
    def is_reserved(self) -> bool:
        """Returns whether the task has a guaranteed runtime in each period from its start on."""
        return all(self.attributes.get(name) for name in ("runtime", "period"))

    def starts(self, seed: int, tick_ns: int, scale: float) -> Iterator[int]:
        """Yields the start time (ns since the machine's start) of each instance.

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
    """A device whose interrupts put items into a channel at certain times."""

    name: str
    channel: str
    instances: int
    delay: Time
    arrivals: Arrivals

    def starts(self, seed: int, tick_ns: int) -> Iterator[int]:
        """Yields the times (ns since the machine's start) of the interrupts."""
        begin = self.delay.nanoseconds(tick_ns)
        generator = random.Random(f"{seed}/{self.name}")
        times = self.arrivals.starts(generator.random, tick_ns, 1)
        return (begin + time for time in itertools.islice(times, self.instances))


@dataclass(frozen=True)
class Starter:
    """What the first process does, if the file defines it."""

    delay: Time
    attributes: Mapping[str, int]
    body: tuple[Item, ...]

    @property
    def ends_itself(self) -> bool:
        last = self.body[-1]
        return isinstance(last, Step) and last.words.startswith("exit")


DEFAULT_LIMIT_NS = 60_000_000_000
"""Default limit of a run in ns of the machine's time."""
_STARTUP_AND_EXIT_NS = 30_000_000_000
"""Additional ns for starting and ending processes."""


def default_limit_ns(file: WorkloadFile | None) -> int:
    """Returns the default time limit of a run (ns). `file`: None for a program."""
    duration = file.duration_ns if file else None
    return max(DEFAULT_LIMIT_NS, duration + _STARTUP_AND_EXIT_NS) if duration else DEFAULT_LIMIT_NS


@dataclass(frozen=True)
class WorkloadFile:
    """The content of a valid workload file."""

    sha256: str
    """The hash of the file on disk."""
    changes: tuple[Change, ...]
    """Changes that were applied to the file."""
    duration_ns: int | None
    tasks: tuple[Task, ...]
    starter: Starter | None
    channels: Mapping[str, int]
    groups: tuple[TaskGroup, ...]
    notes: tuple[str, ...]
    """Warnings about parts of the file that have no effect."""
    devices: tuple[Device, ...] = ()
    load: float | None = None
    """Fraction of all CPUs for arriving work; None: it follows from the gaps."""
    source: str = field(default="", compare=False, repr=False)
    """The text of the file, without the changes."""

    @property
    def bodies(self) -> tuple[tuple[Item, ...], ...]:
        """What each task does, and what the starter does."""
        starter_bodies = (self.starter.body,) if self.starter else ()
        return (*starter_bodies, *(task.body for task in self.tasks))

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of the attributes that any process sets."""
        return tuple(
            name
            for name in FILE_ATTRIBUTES
            if any(
                name in task.attributes or name in task.drawn or _sets_attribute(task, name)
                for task in self.tasks
            )
        )

    @property
    def forked(self) -> dict[str, float]:
        """Tasks that other tasks fork, and how many of their processes there are in total."""
        by_tasks = {fork for task in self.tasks for fork in count_forks(task.body)}
        return {
            name: count for name, count in self._processes_per_task().items() if name in by_tasks
        }

    def work_ns(self, task: Task, tick_ns: int) -> float:
        """Returns the mean computing time (ns) of an instance, including its children.

        May be infinite; nan if it depends on the run.
        """
        return self._work_of(task.body, tick_ns, len(self.tasks))

    def _work_of(self, items: Iterable[Item], tick_ns: int, depth: int) -> float:
        """Returns the mean CPU time (ns) of items and of forked children, infinite below `depth`."""
        total = 0.0
        tasks_by_name = {task.name: task for task in self.tasks}
        for item in items:
            if isinstance(item, Loop):
                total += item.rounds * self._work_of(item.body, tick_ns, depth)
            elif isinstance(item, Fork):
                inner = (
                    self._work_of(tasks_by_name[item.task].body, tick_ns, depth - 1)
                    if depth
                    else math.inf
                )
                total += inner
            elif isinstance(item, Step) and item.words == "run until":
                return math.nan
            elif isinstance(item, Step) and item.words == "run" and item.time:
                total += mean_ns(item.time, tick_ns)
        return total

    def offered(self, tick_ns: int) -> float:
        """Returns how many CPUs arriving work keeps busy on average, ignoring `load`.

        nan if it depends on the run. Considers only arrivals after gaps.
        """
        return sum(
            task.arrivals.batch.mean * self.work_ns(task, tick_ns) / gap
            for task in self.tasks
            if task.arrivals and task.arrivals.gaps
            if (gap := task.arrivals.gaps.moments_ns(tick_ns)[0])
        )

    def gap_scale(self, tick_ns: int, cpus: int) -> float:
        """Returns the factor for gaps that produces the requested load."""
        return self.offered(tick_ns) / (self.load * cpus) if self.load else 1

    @property
    def has_hotplug(self) -> bool:
        """Whether CPUs go offline or online."""
        return any(
            isinstance(item, Step) and item.words.startswith(_HOTPLUG)
            for body in self.bodies
            for item in all_items(body)
        )

    def cpus_missing(self, cpus: int) -> str:
        """Returns a CPU set in the file that has no CPU of a machine with `cpus` CPUs, or ""."""
        attribute_sets = [task.attributes for task in self.tasks]
        if self.starter:
            attribute_sets.insert(0, self.starter.attributes)
        cpu_lists = [
            cpu_list(attributes["cpus"]) for attributes in attribute_sets if "cpus" in attributes
        ]
        for body in self.bodies:
            words = (item.words.split() for item in all_items(body) if isinstance(item, Step))
            cpu_lists += [
                step_words[1] for step_words in words if step_words[0] in ("cpus", *_HOTPLUG)
            ]
        lowest = ((int(re.split("[-,]", text)[0]), text) for text in cpu_lists)
        return next((text for first, text in lowest if first >= cpus), "")

    def drawing(self) -> frozenset[str]:
        """Tasks whose processes differ at random: they draw times, or start processes that do."""
        names = {task.name for task in self.tasks if task.drawn or has_random_times(task.body)}
        for _ in self.tasks:
            names |= {task.name for task in self.tasks if names & count_forks(task.body).keys()}
        return frozenset(names)

    def processes(self) -> int:
        """Number of process slots that the simulator needs."""
        least, unknown, most = PROCESS_SLOTS
        total = self._total
        return unknown if math.isinf(total) else min(max(least, int(total) + 2), most)

    def total(self) -> float:
        """Number of processes in the whole run; may be infinite."""
        return self._total

    @cached_property
    def _total(self) -> float:
        return sum(self._processes_per_task().values())

    def parties(self) -> dict[str, int]:
        """Returns how many processes meet at each barrier. (Processes forked by tasks cannot.)"""
        counts: dict[str, int] = {}
        started = self._started_per_task()
        bodies = ((self.starter.body, 1),) if self.starter else ()
        for body, count in (
            *bodies,
            *((task.body, int(started[task.name])) for task in self.tasks),
        ):
            for item in all_items(body):
                if isinstance(item, MeetAtBarrier):
                    counts[item.channel] = counts.get(item.channel, 0) + count
        return counts

    def _started_per_task(self) -> dict[str, float]:
        """How many processes of each task the first process starts."""
        if self.starter:
            started = count_forks(self.starter.body)
            return {task.name: started.get(task.name, 0) for task in self.tasks}
        return {task.name: task.instances for task in self.tasks}

    def _processes_per_task(self) -> dict[str, float]:
        """How many processes of each task there are; infinite if a task forks itself."""
        counts = self._started_per_task()
        for _ in self.tasks:
            counts = self._with_children(counts)
        next_counts = self._with_children(counts)
        return {
            name: count if next_counts[name] == count else math.inf
            for name, count in counts.items()
        }

    def _with_children(self, counts: Mapping[str, float]) -> dict[str, float]:
        """Adds one more generation of children to the numbers of processes."""
        next_counts = self._started_per_task()
        for task in self.tasks:
            for child, count in count_forks(task.body).items():
                if counts[task.name]:
                    next_counts[child] += counts[task.name] * count
        return next_counts


def _sets_attribute(task: Task, attribute: str) -> bool:
    return any(
        isinstance(item, Step) and item.words.startswith(f"{attribute} ")
        for item in all_items(task.body)
    )
