# SPDX-License-Identifier: MIT
"""A scheduler's actions, event by event, from the trace of a simulator.

A trace records which processes changed state. Invariants concern the waiting processes at each pick
of a CPU: where, since when and why they wait. This module follows all queues through a trace. A
regime is a period with one policy and fixed tunables; invariants are checked within each regime.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import NamedTuple

from schedlab.base.toolchain.policies import Catalogue
from schedlab.trace import AttributeKind, Kind, PreemptReason, Trace
from trace_story import Record


class Why(Enum):
    """Why a process was queued, or left its CPU."""

    NEW = auto()
    WOKEN = auto()
    MOVED = auto()
    """Came from another CPU, or returned after an attribute changed."""
    ADOPTED = auto()
    """The policy has just become active and sees the process for the first time."""
    SLICE = auto()
    """Its turn ended."""
    WANTED = auto()
    """It was preempted by another process, or because an attribute or the policy changed."""
    YIELDED = auto()
    AGAIN = auto()
    """It was picked again at once: SLICE or WANTED, the trace does not say which."""
    BLOCKED = auto()
    ENDED = auto()


@dataclass(frozen=True)
class Attributes:
    """A process's attributes, as set by users."""

    priority: int = 5
    tickets: int = 1
    weight: int = 5
    nice: int = 0
    slice: int = 0
    runtime: int = 0
    deadline: int = 0
    period: int = 0
    taskgroup: int = 0

    def changed(self, kind: int, value: int) -> Attributes:
        name = AttributeKind(kind).name.lower()
        signed = value - (1 << 64) if value >> 63 else value
        return Attributes(**{**self.__dict__, name: signed})


@dataclass(frozen=True)
class Queued:
    """A process starts waiting."""

    time: int
    pid: int
    cpu: int | None
    """None: the trace does not say which."""
    why: Why
    number: int
    """Counts arrivals; processes adopted by a policy share one number."""
    attributes: Attributes
    parent: int = 0
    """The parent of a new process."""


@dataclass(frozen=True)
class Picked:
    """A CPU has picked."""

    time: int
    cpu: int
    chosen: Queued | None
    """None: the CPU idles."""
    waiting: tuple[Queued, ...]
    """The processes in its queue at the pick, including the chosen one."""
    certain: bool
    """True if the place of every waiting process is known."""
    remark: int

    @property
    def pid(self) -> int:
        return self.chosen.pid if self.chosen else 0


@dataclass(frozen=True)
class Stopped:
    """A process leaves its CPU."""

    time: int
    cpu: int
    pid: int
    why: Why


class AttributeSet(NamedTuple):
    """A process's attribute changed; if it waits, a new Queued follows."""

    time: int
    pid: int


class Run(NamedTuple):
    """A process on a CPU from one pick to the next. `why` is None if it runs at the end."""

    cpu: int
    pid: int
    begin: int
    end: int
    why: Why | None


Event = Queued | Picked | Stopped | AttributeSet


@dataclass
class Regime:
    """A period with one policy and fixed tunables."""

    policy: str
    tunables: Mapping[str, int]
    cpus: int
    tick: int
    begin: int
    end: int = 0
    events: list[Event] = field(default_factory=list)
    running: dict[int, int] = field(default_factory=dict)
    """CPU to PID at the start of the regime: processes that another policy had picked."""
    most: int = 0
    """Maximum number of processes alive at once."""

    @property
    def shared(self) -> bool:
        """True if all CPUs share one queue."""
        return bool(self.tunables.get("table_scan"))

    @property
    def name(self) -> str:
        return self.policy.partition(":")[0]

    def picks(self) -> list[Picked]:
        """Returns the policy's picks, without init's: init is urgent, so no policy orders it."""
        return [
            replace(event, waiting=tuple(other for other in event.waiting if other.pid != INIT))
            for event in self.events
            if isinstance(event, Picked) and event.pid != INIT
        ]

    def runs(self) -> Iterator[Run]:
        """Returns the runs from each pick in the regime to the next pick of the same CPU."""
        current: dict[int, tuple[int, int]] = {}
        for event in self.events:
            if isinstance(event, Picked) and event.pid:
                current[event.cpu] = (event.pid, event.time)
            elif isinstance(event, Stopped) and event.cpu in current:
                pid, begin = current.pop(event.cpu)
                yield Run(event.cpu, pid, begin, event.time, event.why)
        for cpu, (pid, begin) in current.items():
            yield Run(cpu, pid, begin, self.end, None)


INIT = 1
_LEAVES = {Kind.BLOCK: Why.BLOCKED, Kind.YIELD: Why.YIELDED, Kind.EXIT: Why.ENDED}


class History:
    """All regimes of a trace. `places`: the CPUs of the processes that wait when it ends."""

    def __init__(self, trace: Trace, catalogue: Catalogue, places: Mapping[int, int]) -> None:
        self.catalogue = catalogue
        self.places = places
        self.cpus, self.tick = trace.header.cpus, trace.header.tick_ns
        columns = (trace.column(name).tolist() for name in Record._fields)
        self.records = [Record(*row) for row in zip(*columns, strict=True)]
        texts = trace.texts
        self.texts = dict(zip(texts["row"].to_list(), texts["text"].to_list(), strict=True))
        self.traces: dict[int, list[int]] = {}
        for row, record in enumerate(self.records):
            if record.kind in (Kind.MIGRATE, Kind.SCHEDULER_EXIT):
                self.traces.setdefault(record.process, []).append(row)
        self.regimes: list[Regime] = []
        self.waiting: dict[int, Queued] = {}
        self.attributes: dict[int, Attributes] = {}
        self.known: set[int] = set()
        self.alive: set[int] = set()
        self.number = 0
        self.leaving: dict[int, Why] = {}
        self.remarks: dict[int, int] = {}
        self.running: dict[int, int] = {}
        self.entered: dict[int, int] = {}
        for row, record in enumerate(self.records):
            self.follow(row, record)
        self.end = max((record.time_ns for record in self.records), default=0)
        if self.regimes:
            self.regimes[-1].end = self.end

    @property
    def regime(self) -> Regime:
        return self.regimes[-1]

    def runs(self) -> Iterator[Run]:
        """Returns a regime's runs."""
        for regime in self.regimes:
            yield from regime.runs()

    def follow(self, row: int, record: Record) -> None:
        """Processes the next record."""
        if record.kind in (Kind.POLICY, Kind.TUNABLE):
            self.change_policy(row, record)
        elif record.kind == Kind.FORK:
            self.fork(row, record)
        elif record.kind == Kind.WAKEUP:
            self.queue(record.time_ns, record.process, record.second, Why.WOKEN)
        elif record.kind == Kind.MIGRATE:
            self.migrate(record)
        elif record.kind == Kind.ATTRIBUTE:
            self.set_attribute(record)
        else:
            self.follow_cpu(row, record)

    def follow_cpu(self, row: int, record: Record) -> None:
        if record.kind in _LEAVES:
            self.leaving[record.cpu] = _LEAVES[Kind(record.kind)]
            if record.kind == Kind.EXIT:
                self.alive.discard(record.process)
        elif record.kind == Kind.SCHEDULER_ENTER:
            self.leave(row, record)
        elif record.kind == Kind.DECISION:
            self.remarks[record.cpu] = record.second
        elif record.kind == Kind.SCHEDULER_EXIT:
            self.pick(record)

    # ---- queues

    def queue(self, time: int, pid: int, cpu: int | None, why: Why, parent: int = 0) -> None:
        if pid not in self.known and why is not Why.NEW:
            why = Why.ADOPTED
        self.known.add(pid)
        self.number += 1
        attributes = self.attributes.get(pid, Attributes())
        self.waiting[pid] = Queued(time, pid, cpu, why, self.number, attributes, parent)
        self.regime.events.append(self.waiting[pid])

    def fork(self, row: int, record: Record) -> None:
        child = record.first
        self.attributes[child] = self.attributes.get(record.process, Attributes())
        self.alive.add(child)
        self.regime.most = max(self.regime.most, len(self.alive))
        parent = record.process if record.process in self.known else 0
        self.queue(record.time_ns, child, self.next_cpu(row, child), Why.NEW, parent)

    def next_cpu(self, row: int, pid: int) -> int | None:
        """Returns the queue's CPU: the next CPU that it is moved from or picked on."""
        rows = self.traces.get(pid, [])
        index = bisect_right(rows, row)
        if index == len(rows):
            return self.places.get(pid)
        if self.regimes and self.regime.shared:
            return None
        between = self.records[row + 1 : rows[index]]
        if any(record.kind in (Kind.POLICY, Kind.TUNABLE) for record in between):
            return None
        queue_record = self.records[rows[index]]
        return queue_record.first if queue_record.kind == Kind.MIGRATE else queue_record.cpu

    def migrate(self, record: Record) -> None:
        waiter = self.waiting.get(record.process)
        if waiter and waiter.cpu != record.second:
            self.queue(record.time_ns, record.process, record.second, Why.MOVED)

    def set_attribute(self, record: Record) -> None:
        old = self.attributes.get(record.process, Attributes())
        self.attributes[record.process] = old.changed(record.first, record.second)
        self.regime.events.append(AttributeSet(record.time_ns, record.process))
        waiter = self.waiting.get(record.process)
        if waiter:
            self.queue(record.time_ns, record.process, waiter.cpu, Why.MOVED)

    # ---- CPUs

    def leave(self, row: int, record: Record) -> None:
        cpu, pid = record.cpu, record.process
        self.remarks[cpu] = 0
        self.entered[cpu] = record.time_ns
        if not pid:
            return
        why = self.leaving.pop(cpu, None) or self.why_preempted(row, cpu)
        self.running.pop(cpu, None)
        self.regime.events.append(Stopped(record.time_ns, cpu, pid, why))
        if why not in (Why.BLOCKED, Why.ENDED):
            self.queue(record.time_ns, pid, cpu, why)

    def why_preempted(self, row: int, cpu: int) -> Why:
        for record in self.records[row + 1 :]:
            if record.cpu == cpu and record.kind == Kind.SCHEDULER_EXIT:
                break
            if record.cpu == cpu and record.kind == Kind.PREEMPT:
                return Why.SLICE if record.first == PreemptReason.SLICE else Why.WANTED
        return Why.AGAIN

    def pick(self, record: Record) -> None:
        regime = self.regime
        candidates = tuple(
            waiter
            for waiter in self.waiting.values()
            if regime.shared or waiter.cpu in (None, record.cpu)
        )
        certain = regime.shared or all(waiter.cpu is not None for waiter in candidates)
        known = candidates if certain else tuple(w for w in candidates if w.cpu is not None)
        chosen = self.waiting.pop(record.process, None) if record.process else None
        if chosen and chosen not in known:
            known = (*known, chosen)
        remark = self.remarks.get(record.cpu, 0)
        regime.events.append(
            Picked(self.entered[record.cpu], record.cpu, chosen, known, certain, remark)
        )
        if record.process:
            self.running[record.cpu] = record.process

    # ---- regimes

    def change_policy(self, row: int, record: Record) -> None:
        text = self.texts[row] if row in self.texts else self.texts[row + 1]
        if record.kind == Kind.POLICY:
            policy, tunables = text, self.tunables_of(text)
        else:
            policy = self.regime.policy
            tunables = {**self.regime.tunables, text: as_signed(record.second)}
        was_shared = bool(self.regimes) and self.regime.shared
        if self.regimes:
            self.regime.end = record.time_ns
        self.regimes.append(
            Regime(
                policy, tunables, self.cpus, self.tick, record.time_ns,
                running=dict(self.running), most=len(self.alive),
            )
        )  # fmt: skip
        self.known = set(self.waiting)
        self.number += 1
        for pid, waiter in list(self.waiting.items()):
            cpu = self.next_cpu(row, pid) if was_shared or waiter.cpu is None else waiter.cpu
            adopted = Queued(record.time_ns, pid, cpu, Why.ADOPTED, self.number, waiter.attributes)
            self.waiting[pid] = adopted
            self.regime.events.append(adopted)

    def tunables_of(self, text: str) -> dict[str, int]:
        name, _, preset = text.partition(":")
        policy = self.catalogue[name]
        values = {tunable.name: tunable.default for tunable in policy.tunables_of(preset).values()}
        return values | (policy.presets[preset].values if preset else {})


def as_signed(value: int) -> int:
    """Returns a trace's 64-bit number as a signed one."""
    return value - 2**64 if value >= 2**63 else value
