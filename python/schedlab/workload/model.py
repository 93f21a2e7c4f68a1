# SPDX-License-Identifier: MIT
"""What a workload file says: its tasks, and what each process of them does."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from schedlab.workload.changes import Change
from schedlab.workload.distributions import Distribution, Uniform, Whole
from schedlab.workload.times import Drawn, Time

ROOT = "root"
"""The program that starts the tasks."""
PROCESSES = (4096, 65536, 2**24)
"""Room in the simulator: at least, if it is unknown how many there will be, and at most."""

# --- attributes


@dataclass(frozen=True)
class Attribute:
    """What policies/support/attributes.h says of an attribute."""

    least: int
    most: int
    standard: int
    """What a process has that is given none."""
    best: int | None = None
    """None: no value is better than another."""
    key: str = ""
    """In files; "": its name."""
    is_time: bool = False
    """Nanoseconds."""

    def line(self, name: str, value: int) -> str:
        """Returns the line of the simulator's text form (docs/simulator.md) that sets it."""
        return f"{name} {value}ns" if self.is_time else f"{name} {value}"


_TIME_MAX = 10**12
TASKGROUP = "taskgroup"
GROUPS_MAX = 32
"""Groups of tasks for the policy, with the root; policies/policy.h."""

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
"""By their names, as in files of the scheduler and in traces."""
ALL_WORK = -_TIME_MAX
"""In place of a runtime: as long as the process computes in all."""


@dataclass(frozen=True)
class CpuSet(Attribute):
    """The CPUs on which a process may run: bit n of the number is CPU n."""

    def line(self, name: str, value: int) -> str:
        return f"{name} {cpu_list(value)}"


CPUS_MAX = 1024
ALL_CPUS = 2**CPUS_MAX - 1
GIVEN: dict[str, Attribute] = {**ATTRIBUTES, "cpus": CpuSet(1, ALL_CPUS, ALL_CPUS)}
"""What workload files give to processes, by the names of lines in the simulator's text form."""
GIVEN_KEYS = tuple(attribute.key or name for name, attribute in GIVEN.items())


def cpu_list(cpus: int) -> str:
    """Returns a set of CPUs as Linux writes it: "0-3,8"."""
    bits = f"{cpus:b}"[::-1]
    runs = [(match.start(), match.end() - 1) for match in re.finditer("1+", bits)]
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)


# --- what a process does


@dataclass(frozen=True)
class Step:
    """A line of the simulator's text form (docs/simulator.md): words, a time, words."""

    words: str
    time: Time | Drawn | Distribution | None = None
    after: str = ""


@dataclass(frozen=True)
class Fork:
    """Starts a process of this task."""

    task: str


@dataclass(frozen=True)
class Meet:
    """Waits at a barrier until all processes have come whose tasks have it."""

    channel: str


@dataclass(frozen=True)
class AwaitAll:
    """Waits for all children that it has forked, and not waited for."""


@dataclass(frozen=True)
class Loop:
    rounds: float
    """May be without end."""
    body: tuple[Item, ...]


Item = Step | Fork | Meet | AwaitAll | Loop


def mean_ns(time: Time | Drawn | Distribution, tick_ns: int) -> float:
    """The mean of a time, in nanoseconds."""
    if isinstance(time, Time):
        return time.nanoseconds(tick_ns)
    return time.mean_ns(tick_ns) if isinstance(time, Drawn) else time.moments_ns(tick_ns)[0]


def looped(rounds: float, body: tuple[Item, ...]) -> tuple[Item, ...]:
    """The body itself if it is done once; nothing if never."""
    if rounds == 1:
        return body
    return (Loop(rounds, body),) if rounds and body else ()


def everything(items: Iterable[Item]) -> Iterator[Item]:
    """What is in loops, too."""
    for item in items:
        yield item
        if isinstance(item, Loop):
            yield from everything(item.body)


def forks(items: Iterable[Item], times: float = 1) -> dict[str, float]:
    """How many processes are forked there, by their task; may be without end."""
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
    """Is there a time drawn at random?"""
    return any(
        isinstance(item, Step) and isinstance(item.time, Drawn | Distribution)
        for item in everything(items)
    )


def awaiting(items: Iterable[Item], pending: float = 0) -> tuple[tuple[Item, ...], float]:
    """With the number of children in place of each AwaitAll; and how many are left at the end.

    `pending`: how many there are before. It is one `wait` more than there are children, the last
    of which finds none, as our kernel's programs do it. Within a loop whose rounds have different
    numbers of children the largest counts: to wait for one that is not there takes no time.
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
    """A group for the policy (struct share_group), which is known to it by a number."""

    number: int
    parent: int
    weight: int | None = None
    quota_ns: int | None = None
    """None: no limit."""
    period_ns: int | None = None
    """None: as it is at first."""

    def lines(self) -> Iterator[str]:
        """The lines of the simulator's text form that make it."""
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
    """When instances come: after gaps, which are drawn at random, or at given times."""

    gaps: Distribution | None
    times: tuple[Time, ...] = ()
    """Without gaps."""
    batch: Whole = field(default_factory=Whole)
    """How many come at a time."""

    def starts(self, uniform: Uniform, tick_ns: int, scale: float) -> Iterator[int]:
        """Their times in nanoseconds, from when they begin, without end if there are gaps: these are
        `scale` times as long."""
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
    drawn: Mapping[str, Whole] = field(default_factory=dict)
    """Attributes that are drawn for each instance."""

    @property
    def arrives(self) -> bool:
        """Do its instances come at given times, whatever runs then?"""
        return bool(self.arrivals or self.delay.number)

    @property
    def is_reserved(self) -> bool:
        """True if the task needs a runtime in each period, from its beginning on."""
        return all(self.attributes.get(name) for name in ("runtime", "period"))

    def starts(self, seed: int, tick_ns: int, scale: float) -> Iterator[int]:
        """The time at which each instance begins, in nanoseconds since the machine's begin. `scale`: of
        the gaps between arrivals."""
        begin = self.delay.nanoseconds(tick_ns)
        generator = random.Random(f"{seed}/{self.name}")
        if not self.arrivals:
            return itertools.repeat(begin, self.instances)
        times = self.arrivals.starts(generator.random, tick_ns, scale)
        return (begin + time for time in itertools.islice(times, self.instances))


@dataclass(frozen=True)
class Device:
    """What puts things into a channel at given times, by its interrupts."""

    name: str
    channel: str
    instances: int
    delay: Time
    arrivals: Arrivals

    def starts(self, seed: int, tick_ns: int) -> Iterator[int]:
        """When each comes, in nanoseconds since the machine's begin."""
        begin = self.delay.nanoseconds(tick_ns)
        generator = random.Random(f"{seed}/{self.name}")
        times = self.arrivals.starts(generator.random, tick_ns, 1)
        return (begin + time for time in itertools.islice(times, self.instances))


@dataclass(frozen=True)
class Starter:
    """The first process, where the file says what it does."""

    delay: Time
    attributes: Mapping[str, int]
    body: tuple[Item, ...]

    @property
    def ends_itself(self) -> bool:
        last = self.body[-1]
        return isinstance(last, Step) and last.words.startswith("exit")


STANDARD_LIMIT_NS = 60_000_000_000
"""Time of a machine after which a run is ended, if nothing is said of it."""
_BEYOND_NS = 30_000_000_000
"""What a run may need beyond its duration: to start its processes, and to see them end."""


def limit_of(file: WorkloadFile | None) -> int:
    """The limit, in nanoseconds, of a run of a workload file, or (None) of a program, if nothing is said of it."""
    duration = file.duration_ns if file else None
    return max(STANDARD_LIMIT_NS, duration + _BEYOND_NS) if duration else STANDARD_LIMIT_NS


@dataclass(frozen=True)
class WorkloadFile:
    """A file that was read and found good."""

    sha256: str
    """The hash of the file as it is on the disk."""
    changes: tuple[Change, ...]
    """Values that it was given besides those of the file."""
    duration_ns: int | None
    tasks: tuple[Task, ...]
    starter: Starter | None
    channels: Mapping[str, int]
    groups: tuple[TaskGroup, ...]
    notes: tuple[str, ...]
    """What in it has no effect."""
    devices: tuple[Device, ...] = ()
    load: float | None = None
    """The part of all CPUs that the work of what arrives is to take; None: as its gaps say."""
    source: str = field(default="", compare=False, repr=False)
    """The whole file as it is on the disk."""

    @property
    def bodies(self) -> tuple[tuple[Item, ...], ...]:
        """The bodies of all tasks, and the starter's."""
        starter_bodies = (self.starter.body,) if self.starter else ()
        return (*starter_bodies, *(task.body for task in self.tasks))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that some process is given."""
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
        """The tasks of which tasks start processes, and how many processes they have in all."""
        by_tasks = {fork for task in self.tasks for fork in forks(task.body)}
        return {name: count for name, count in self._played().items() if name in by_tasks}

    def work_ns(self, task: Task, tick_ns: int) -> float:
        """How long an instance computes on the mean, with all that it forks; may be infinite, or nan
        where that depends on the run."""
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
        """How many CPUs the work of what arrives after gaps keeps busy on the mean, as the file says
        it without `load`; nan where that depends on the run."""
        return sum(
            task.arrivals.batch.mean * self.work_ns(task, tick_ns) / gap
            for task in self.tasks
            if task.arrivals and task.arrivals.gaps
            if (gap := task.arrivals.gaps.moments_ns(tick_ns)[0])
        )

    def gap_scale(self, tick_ns: int, cpus: int) -> float:
        """How many times as long gaps are as the file has them, so that the load is as wanted."""
        return self.offered(tick_ns) / (self.load * cpus) if self.load else 1

    def cpus_missing(self, cpus: int) -> str:
        """Returns the first set of CPUs of which a machine with so many has none, or "" if there is
        no such set."""
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
        """The tasks whose processes do not all do the same: they draw times at random, or start
        processes that do."""
        names = {task.name for task in self.tasks if task.drawn or draws_itself(task.body)}
        for _ in self.tasks:
            names |= {task.name for task in self.tasks if names & forks(task.body).keys()}
        return frozenset(names)

    def processes(self) -> int:
        """The number of processes for which the simulator must have room."""
        least, unknown, most = PROCESSES
        total = self.total()
        return unknown if math.isinf(total) else min(max(least, int(total) + 2), most)

    def total(self) -> float:
        """How many processes there are in all, if nothing ends the run; may be infinite."""
        return sum(self._played().values())

    def parties(self) -> dict[str, int]:
        """How many processes meet at each barrier: tasks fork none of them."""
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
        """How many processes of each task the first process starts."""
        if self.starter:
            started = forks(self.starter.body)
            return {task.name: started.get(task.name, 0) for task in self.tasks}
        return {task.name: task.instances for task in self.tasks}

    def _played(self) -> dict[str, float]:
        """How many processes there are of each task; infinite if a task forks itself."""
        played = self._started()
        for _ in self.tasks:
            played = self._with_children(played)
        grown = self._with_children(played)
        return {name: count if grown[name] == count else math.inf for name, count in played.items()}

    def _with_children(self, played: Mapping[str, float]) -> dict[str, float]:
        """One generation more."""
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
