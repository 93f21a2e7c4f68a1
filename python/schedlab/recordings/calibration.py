# SPDX-License-Identifier: MIT
"""Estimates the costs of a machine's scheduler from a recording, with intervals.

A recording shows when threads get and leave CPUs, but not what they compute. So it bounds some
costs, and says nothing about others.
"""

from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import comb, floor

from schedlab.recordings.events import Event, Events, Loss, Switch, TimerTick, Wakeup

STATISTIC = (
    "the median of the medians of 20 to 39 successive batches, and the 95 % interval of their"
    " median from order statistics"
)
"""How values become an estimate. Batches make the interval valid for values that depend on the
values before them."""
SHORTEST_FRACTION = 0.01
"""The part of a batch's stays whose longest counts as the batch's shortest stay."""
_BATCHES = 20
_STAYS_MIN = 10
"""Least stays of a batch: the shortest of few stays bounds a switch badly."""
_CONFIDENCE = 0.95
_NOT_BLOCKED = "RXZ"
"""First letters of the states of threads that were preempted, or have ended."""


@dataclass(frozen=True)
class Estimate:
    """A cost of the recorded machine in nanoseconds."""

    ns: float
    low_ns: float
    high_ns: float
    spread_ns: float
    """Interquartile range of the values."""
    events: int

    @property
    def is_positive(self) -> bool:
        """Returns whether the interval lies above 0."""
        return self.low_ns > 0


@dataclass(frozen=True)
class Finding:
    """What a recording says about one cost of the simulator."""

    cost: str
    estimate: Estimate | None
    """None: the recording does not give this cost."""
    source: str
    """How the cost was estimated or, without an estimate, why it is unknown."""
    is_bound: bool = False
    """True if the cost is at most the estimate."""


@dataclass
class Values:
    """The observed durations (ns), in chronological order."""

    remote: list[int] = field(default_factory=list)
    """From a wake-up by another CPU until the idle CPU enters the thread."""
    local: list[int] = field(default_factory=list)
    """From a wake-up by an interrupt of the idle CPU until it enters the thread."""
    stays: list[int] = field(default_factory=list)
    """From the switch to a thread until the switch to the next thread."""
    moved: list[int] = field(default_factory=list)
    """Of each computation after a migration: its length, less the length of the nearest
    computation of the same thread without a migration."""


def calibrate(events: Events) -> list[Finding]:
    """Returns what a recording says about the simulator's costs."""
    values = observe(events.events)
    return [
        _finding_or_too_few(
            "interrupt", values.remote, "an idle CPU: from another CPU's wake-up to the switch"
        ),
        _finding_or_too_few(
            "wakeup", values.local, "an idle CPU: from its own interrupt's wake-up to the switch"
        ),
        _switch_finding(values.stays),
        _tick_finding(events.ticks),
        _migration_finding(values.moved),
        *(Finding(cost, None, why) for cost, why in _UNSEEN.items()),
    ]


_UNSEEN = {
    "scheduler": "included in `switch`: no event shows where a decision begins",
    "crowd": "no event shows where a decision begins",
    "call": "no event shows system calls",
    "sleep": "no event shows system calls",
    "pipe": "no event shows system calls",
    "fork": "the fork's event comes when the child exists already",
    "fork_look": "no event shows where interrupts are possible",
    "fork_new": "no event shows the kernel's memory",
    "fork_return": "no event shows where the parent continues",
    "first_run": "no event shows where the program begins",
    "exit": "no event shows where an exit begins",
    "reap": "no event shows system calls",
    "instructions": "no event shows the instructions of a scheduler",
    "arrival": "no event shows what a process was started for",
    "boot": "depends on the workload, not on the machine",
    "stagger": "a recording of switches does not show the phase of ticks",
}
"""Costs that no recording of the scheduler's events can give."""


def tick_length_ns(ticks: Sequence[TimerTick]) -> int:
    """Returns the usual time between two ticks of a CPU; 0 if unknown."""
    last_begin: dict[int, int] = {}
    gaps = []
    for tick in ticks:
        if tick.cpu in last_begin:
            gaps.append(tick.time_ns - last_begin[tick.cpu])
        last_begin[tick.cpu] = tick.time_ns
    # Idle CPUs leave ticks out, so many gaps are multiples of a tick.
    return round(sorted(gaps)[len(gaps) // 4]) if gaps else 0


# --- from values to an estimate


def estimate(
    values: Sequence[float],
    of_batch: Callable[[Sequence[float]], float] | None = None,
    batch_min: int = 1,
) -> Estimate | None:
    """Returns the estimate and its interval (STATISTIC), or None if there are too few values.

    `of_batch`: the figure of each batch instead of its median. `batch_min`: least values of a batch.
    """
    size = max(batch_min, len(values) // _BATCHES)
    full = len(values) - len(values) % size
    figures = sorted(
        (of_batch or _median)(values[start : start + size]) for start in range(0, full, size)
    )
    rank = _interval_rank(len(figures))
    if not rank:
        return None
    in_order = sorted(values)
    quarter = len(in_order) // 4
    spread = in_order[-1 - quarter] - in_order[quarter]
    return Estimate(_median(figures), figures[rank - 1], figures[-rank], spread, len(values))


def _interval_rank(count: int) -> int:
    """Returns k such that the median lies between the k-th lowest and the k-th highest of `count`
    values, with 95 % confidence; 0 if there are too few values (fewer than 6).
    """
    outside, rank = 0.0, 0
    while rank < count:
        outside += 2 * comb(count, rank) / 2**count
        if outside > 1 - _CONFIDENCE:
            break
        rank += 1
    return rank


def _median(values: Sequence[float]) -> float:
    in_order = sorted(values)
    middle = len(in_order) // 2
    return in_order[middle] if len(in_order) % 2 else (in_order[middle - 1] + in_order[middle]) / 2


def _shortest(values: Sequence[float]) -> float:
    """Returns a quantile of the values near their minimum: SHORTEST_FRACTION."""
    return sorted(values)[floor(len(values) * SHORTEST_FRACTION)]


# --- each cost


def _finding_or_too_few(cost: str, values: Sequence[int], source: str) -> Finding:
    result = estimate(values)
    if result:
        return Finding(cost, result, source)
    return Finding(cost, None, _too_few(len(values), 6, source))


def _too_few(count: int, needed: int, source: str) -> str:
    return f"{count} such events, at least {needed} are needed: {source}"


def _switch_finding(stays: Sequence[int]) -> Finding:
    result = estimate(stays, _shortest, _STAYS_MIN)
    source = "the shortest stays on a CPU, which include a decision and a thread's shortest work"
    if result:
        return Finding("switch", result, source, is_bound=True)
    return Finding("switch", None, _too_few(len(stays), 6 * _STAYS_MIN, source))


def _tick_finding(ticks: Sequence[TimerTick]) -> Finding:
    source = "the function of the tick's timer, without the entry and exit of the interrupt"
    if ticks:
        return _finding_or_too_few("tick", [tick.duration_ns for tick in ticks], source)
    return Finding(
        "tick",
        None,
        "no timer events: record timer:hrtimer_expire_entry and timer:hrtimer_expire_exit, too",
    )


def _migration_finding(extra_ns: Sequence[int]) -> Finding:
    """Returns the cost of a migration, if it is significantly above 0."""
    source = "a computation after a migration, less the thread's nearest computation without one"
    finding = _finding_or_too_few("migration", extra_ns, source)
    estimate = finding.estimate
    if estimate and not estimate.is_positive:
        return Finding(
            "migration",
            None,
            f"not significant (n = {estimate.events}, 95 % interval {estimate.low_ns:,.0f} to"
            f" {estimate.high_ns:,.0f} ns): {source}",
        )
    return finding


# --- what the events show


def observe(events: Sequence[Event]) -> Values:
    """Returns the durations that the events of a recording show."""
    observer = _Observer()
    # A loss has the time of the first event after it.
    for event in sorted(events, key=lambda event: (event[0], not isinstance(event, Loss))):
        if isinstance(event, Switch):
            observer.switch(event)
        elif isinstance(event, Wakeup):
            observer.wakeup(event)
        elif isinstance(event, Loss):
            observer.forget()
    moved = sorted(pair for bursts in observer.bursts.values() for pair in _extra_ns(bursts))
    observer.values.moved = [value for _, value in moved]
    return observer.values


@dataclass(frozen=True)
class _Burst:
    """A computation from a wake-up to the next block, without a preemption."""

    time_ns: int
    length_ns: int
    has_moved: bool


class _Observer:
    """Tracks which thread has each CPU since when."""

    def __init__(self) -> None:
        self.values = Values()
        self.bursts: dict[int, list[_Burst]] = {}
        self.current: dict[int, tuple[int, int]] = {}
        """By CPU: the thread (0: idle) and since when."""
        self.woken: dict[int, Wakeup] = {}
        self.last_wakeup: dict[int, Wakeup] = {}
        """By CPU of the waker."""
        self.last_cpu: dict[int, int] = {}
        """By thread: the CPU that it left last."""
        self.fresh: dict[int, bool] = {}
        """Threads in their first stay since a wake-up: whether they are on another CPU than before."""

    def forget(self) -> None:
        """Forgets all states, since events were lost."""
        for states in (self.current, self.woken, self.last_wakeup, self.last_cpu, self.fresh):
            states.clear()

    def wakeup(self, event: Wakeup) -> None:
        self.woken[event.process] = self.last_wakeup[event.cpu] = event

    def switch(self, event: Switch) -> None:
        """Notes the stay that ends, and the thread that gets the CPU."""
        thread, since = self.current.get(event.cpu, (-1, 0))
        if thread == event.previous and event.previous > 0:
            self.leave(event, event.time_ns - since)
        wakeup = self.woken.pop(event.next, None)
        if wakeup and event.previous == 0 == thread and since <= wakeup.time_ns:
            self.note_delay(wakeup, event)
        self.fresh.pop(event.next, None)
        if wakeup and event.next in self.last_cpu:
            self.fresh[event.next] = self.last_cpu[event.next] != event.cpu
        self.last_cpu[event.previous] = event.cpu
        self.current[event.cpu] = (event.next, event.time_ns)

    def leave(self, event: Switch, length_ns: int) -> None:
        """Notes a stay that ends."""
        self.values.stays.append(length_ns)
        has_moved = self.fresh.pop(event.previous, None)
        if has_moved is not None and event.state[0] not in _NOT_BLOCKED:
            burst = _Burst(event.time_ns, length_ns, has_moved)
            self.bursts.setdefault(event.previous, []).append(burst)

    def note_delay(self, wakeup: Wakeup, event: Switch) -> None:
        """Notes how long an idle CPU needed to enter a thread that was woken."""
        delay = event.time_ns - wakeup.time_ns
        if wakeup.cpu != event.cpu:
            self.values.remote.append(delay)
        elif self.last_wakeup[event.cpu] is wakeup:
            self.values.local.append(delay)


def _extra_ns(bursts: Sequence[_Burst]) -> Iterator[tuple[int, int]]:
    """Yields time and additional length of each burst after a migration.

    The comparison with one burst instead of a mean has the median 0 if both have one distribution.
    """
    unmoved = [burst for burst in bursts if not burst.has_moved]
    times = [burst.time_ns for burst in unmoved]
    for burst in bursts:
        if burst.has_moved and unmoved:
            place = bisect(times, burst.time_ns)
            neighbours = unmoved[max(place - 1, 0) : place + 1]
            nearest = min(neighbours, key=lambda other: abs(other.time_ns - burst.time_ns))
            yield burst.time_ns, burst.length_ns - nearest.length_ns
