# SPDX-License-Identifier: MIT
"""Makes a trace of what Linux's tracepoints said: one story without contradictions.

A recording begins in the midst of everything. Who its first event about a thread is tells what the
thread did before: one that is woken was blocked, one that is left ran, one that is switched to
waited. Where events were lost, what must have been among them is put in, at the latest time at
which it can have happened; `mended` counts it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from schedlab.perf_traces.events import (
    Event,
    Events,
    Fork,
    Loss,
    Move,
    Start,
    Switch,
    Wakeup,
)
from schedlab.trace.format import (
    MENDED,
    WAKEUPS_UNTOLD,
    AttributeKind,
    BlockReason,
    Kind,
    MarkKind,
    PreemptReason,
    ProcessState,
)
from schedlab.trace.writer import TraceWriter

_PRIORITY_OF_NICE_0 = 120
_FAIR_PRIORITIES = range(100, 140)
_DEAD = frozenset("XZx")
_UNSIGNED = 2**64 - 1
_NANOSECONDS_PER_SECOND = 1_000_000_000

RUNNABLE, RUNNING = ProcessState.RUNNABLE, ProcessState.RUNNING
BLOCKED, ZOMBIE = ProcessState.BLOCKED, ProcessState.ZOMBIE


def nice_of(priority: int) -> int:
    """The nice value by which the fair class shares CPUs out; real-time threads, above it, get its highest rank."""
    fair = min(max(priority, _FAIR_PRIORITIES.start), _FAIR_PRIORITIES.stop - 1)
    return fair - _PRIORITY_OF_NICE_0


class Story:
    """Goes through the events in order, and knows what each thread and each CPU does."""

    def __init__(
        self, events: Events, cpus: int, tick_ns: int, policy: str, root: str | None = None
    ) -> None:
        """`root`: name or PID of the process whose descendants are the workload; None: all are."""
        self.events = events
        self.root = root
        self.root_pid = 0
        """0: it has not run yet."""
        self.policy, self.tick_ns = policy, tick_ns
        self.writer = TraceWriter(cpus, tick_ns, _NANOSECONDS_PER_SECOND)
        self.begin_ns = next(
            event.time_ns for event in events.events if not isinstance(event, Loss)
        )
        """The time since the recorded machine's boot from which the trace counts: a replay would
        otherwise wait for as long as the machine had been up."""
        self.end_ns = events.events[-1].time_ns
        self.mended = 0
        self.lost = 0
        self.current: list[int] = [0] * cpus
        self.state: dict[int, ProcessState] = {}
        self.cpu_of: dict[int, int] = {}
        """The CPU of each running thread."""
        self.name: dict[int, str] = {}
        self.priority: dict[int, int] = {}
        self.parent: dict[int, int] = {}
        """The parents of threads that were forked, and have not started."""
        self.ready_since: dict[int, int] = {}
        self.running_since: dict[int, int] = {}
        self.woken_early: dict[int, tuple[int, int]] = {}
        """Waker and target of a wake-up that came while the thread ran."""
        self.place_of_wakeup: dict[int, tuple[int, tuple[int, int, int, int]]] = {}
        """The place of each last wake-up, should it prove to be for the wait that followed: time,
        CPU, waker, target."""
        self.has_starts = "sched_wakeup_new" in events.seen

    def write(self, path: Path) -> int:
        """Writes the whole trace. Returns the number of records."""
        self.begin()
        tellers: dict[type[Any], Callable[[Any], None]] = {
            Switch: self.switch,
            Wakeup: self.wakeup,
            Start: self.start,
            Fork: self.fork,
            Move: self.move,
            Loss: self.loss,
        }
        for event in self.events.events:
            tellers[type(event)](event)
        return self.writer.write(path, self.begin_ns, self.end_ns, origin_ns=self.begin_ns)

    # --- what was there before

    def begin(self) -> None:
        """Writes the policy, and the threads that are there when the trace begins, each with its place."""
        there = _there_at_first(self.events)
        # The thread that runs comes first on its CPU.
        for each in sorted(there, key=lambda each: each.state != RUNNING):
            self.find(self.begin_ns, each.cpu, each.pid, each.name, each.state, each.priority)
        self.writer.add_text(self.begin_ns, 0, Kind.POLICY, self.policy, AttributeKind.NICE)
        if not self.events.has_wakeups:
            self.writer.add(self.begin_ns, 0, Kind.LOST, 0, WAKEUPS_UNTOLD)

    def find(
        self,
        time: int,
        cpu: int,
        pid: int,
        name: str,
        state: ProcessState,
        priority: int | None = None,
    ) -> None:
        """Introduces a thread of which the trace has said nothing."""
        leader = self.events.leader.get(pid, 0)
        self.writer.add_text(time, cpu, Kind.FOUND, self.called(pid, name), pid, state, leader)
        self.name[pid] = name
        self.state[pid] = state
        self.ready_since[pid] = time
        if state == RUNNING:
            self.current[cpu] = pid
            self.running_since[pid] = time
            self.cpu_of[pid] = cpu
            self.measure_from(time, cpu, pid)
        self.know_priority(time, cpu, pid, priority)

    # --- events

    def switch(self, event: Switch) -> None:
        time, cpu, previous, next_ = event.time_ns, event.cpu, event.previous, event.next
        if self.current[cpu] != previous:
            self.mend_current(event)
        if previous == next_:
            return
        self.know(time, cpu, previous, event.previous_name, event.previous_priority)
        self.measure_from(time, cpu, previous)
        self.make_runnable(event)
        self.know(time, cpu, next_, event.next_name, None)
        left = self.leave(event) if previous else RUNNABLE
        self.enter(time, cpu, previous, next_, left)
        if next_:  # by itself: else it would be by the one that leaves, or by none
            self.know_priority(time, cpu, next_, event.next_priority)
        self.measure_from(time, cpu, next_)

    def wakeup(self, event: Wakeup) -> None:
        time, cpu, pid = event.time_ns, event.cpu, event.process
        if not pid:
            return
        waker = 0 if event.in_interrupt else self.current[cpu]
        state = self.state.get(pid)
        if state is None:
            self.find(time, cpu, pid, event.name, BLOCKED)
            state = BLOCKED
        if state == BLOCKED:
            self.place_of_wakeup.pop(pid, None)
            self.wake(time, cpu, pid, waker, event.target_cpu)
        elif state == RUNNING:
            self.woken_early[pid] = (waker, event.target_cpu)

    def start(self, event: Start) -> None:
        self.bear(event.time_ns, event.cpu, event.process, event.name)

    def fork(self, event: Fork) -> None:
        self.parent[event.child] = event.parent
        if not self.has_starts:
            self.bear(event.time_ns, event.cpu, event.child, self.name.get(event.parent, ""))

    def move(self, event: Move) -> None:
        if event.process in self.state:
            self.writer.add(
                event.time_ns, event.cpu, Kind.MIGRATE, event.process, event.from_cpu, event.to_cpu
            )

    def loss(self, event: Loss) -> None:
        self.lost += event.events
        # A tool may have no better time for it than 0.
        time = max(event.time_ns, self.begin_ns)
        self.writer.add(time, event.cpu, Kind.LOST, 0, MENDED, event.events)

    def measure_from(self, time: int, cpu: int, pid: int) -> None:
        """The measured window begins when its root is seen to run; with another name it is not it."""
        if self.root and pid and not self.root_pid and self.root in (str(pid), self.name[pid]):
            self.root_pid = pid
            self.writer.add(time, cpu, Kind.MARK, pid, MarkKind.BEGIN)

    # --- what a thread does

    def bear(self, time: int, cpu: int, child: int, name: str) -> None:
        """FORK, by the thread that runs: no other could do it here."""
        parent = self.parent.pop(child, self.current[cpu])
        if self.state.get(child, ZOMBIE) != ZOMBIE:
            return  # its end was lost, or its birth has been told in two ways
        forker = parent if parent == self.current[cpu] else 0
        self.writer.add(time, cpu, Kind.FORK, forker, child, self.events.leader.get(child, 0))
        self.name[child] = self.name.get(forker, "")
        self.priority.pop(child, None)
        self.state[child] = RUNNABLE
        self.ready_since[child] = time
        self.know(time, cpu, child, name, None)

    def wake(self, time: int, cpu: int, pid: int, waker: int, target: int) -> None:
        self.writer.add(time, cpu, Kind.WAKEUP, pid, waker, target)
        self.state[pid] = RUNNABLE
        self.ready_since[pid] = time

    def enter(self, time: int, cpu: int, previous: int, next_: int, left: ProcessState) -> None:
        """SWITCH, and what it makes of both."""
        self.writer.add(time, cpu, Kind.SWITCH, next_, previous, left)
        self.current[cpu] = next_
        if previous:
            self.state[previous] = left
            self.ready_since[previous] = time
            self.cpu_of.pop(previous, None)
        if next_:
            self.state[next_] = RUNNING
            self.running_since[next_] = time
            self.cpu_of[next_] = cpu
        if left == BLOCKED and previous in self.woken_early:
            waker, target = self.woken_early[previous]
            place = self.writer.hold()
            self.place_of_wakeup[previous] = (place, (time, cpu, waker, target))
        self.woken_early.pop(previous, None)

    def leave(self, event: Switch) -> ProcessState:
        """Says why the previous one leaves its CPU."""
        time, cpu, pid, state = event.time_ns, event.cpu, event.previous, event.state
        if state.startswith("R"):
            wanted = self.ready_since.get(event.next, 0) >= self.running_since.get(pid, 0)
            why = PreemptReason.WAKEUP if event.next and wanted else PreemptReason.SLICE
            self.writer.add(time, cpu, Kind.PREEMPT, pid, why)
            return RUNNABLE
        if not _DEAD.isdisjoint(state):
            if pid == self.root_pid:
                self.writer.add(time, cpu, Kind.MARK, pid, MarkKind.END)
            self.writer.add(time, cpu, Kind.EXIT, pid)
            return ZOMBIE
        why_blocked = BlockReason.DISK if "D" in state else BlockReason.OTHER
        self.writer.add(time, cpu, Kind.BLOCK, pid, why_blocked)
        return BLOCKED

    # --- what a thread is

    def called(self, pid: int, name: str) -> str:
        """The kernel's own threads have their names in brackets, as `ps` shows them."""
        return f"[{name}]" if pid in self.events.of_kernel else name

    def know(self, time: int, cpu: int, pid: int, name: str, priority: int | None) -> None:
        """Says so if a thread is called or ranked otherwise than before."""
        if not pid:
            return
        if name != self.name.get(pid):
            self.name[pid] = name
            self.writer.add_text(time, cpu, Kind.EXEC, self.called(pid, name), pid)
        self.know_priority(time, cpu, pid, priority)

    def know_priority(self, time: int, cpu: int, pid: int, priority: int | None) -> None:
        if priority is None or priority == self.priority.get(pid):
            return
        self.priority[pid] = priority
        nice = nice_of(priority) & _UNSIGNED
        self.writer.add(time, cpu, Kind.ATTRIBUTE, pid, AttributeKind.NICE, nice)

    # --- what must have been

    def mend_current(self, event: Switch) -> None:
        """Another one ran here than the trace says: it has been switched to meanwhile."""
        self.mended += 1
        time, cpu, previous = event.time_ns, event.cpu, event.previous
        self.make_ready(time, cpu, previous, event.previous_name)
        self.enter(time, cpu, self.current[cpu], previous, RUNNABLE)

    def make_runnable(self, event: Switch) -> None:
        if event.next:
            self.make_ready(event.time_ns, event.cpu, event.next, event.next_name)

    def make_ready(self, time: int, cpu: int, pid: int, name: str) -> None:
        """A thread that is switched to was runnable, whatever the trace says."""
        if not pid:
            return
        state = self.state.get(pid)
        if state == BLOCKED and pid in self.place_of_wakeup:
            place, (when, where, waker, target) = self.place_of_wakeup.pop(pid)
            self.writer.fill(place, when, where, Kind.WAKEUP, pid, waker, target)
            self.state[pid] = RUNNABLE
        elif state == BLOCKED:
            self.mended += int(self.events.has_wakeups)
            self.wake(time, cpu, pid, 0, cpu)
        elif state == RUNNING:
            self.mended += 1
            self.enter(time, self.cpu_of[pid], pid, 0, RUNNABLE)
        elif state == ZOMBIE:
            self.mended += 1
            self.bear(time, cpu, pid, name)
        elif state is None:
            self.mended += int(self.events.has_forks)
            self.find(time, cpu, pid, name, RUNNABLE)


class _Present(NamedTuple):
    """A thread that was there when recording began, and what it did."""

    pid: int
    name: str
    state: ProcessState
    priority: int | None
    """None: it is not known yet."""
    cpu: int = 0
    """The CPU that it ran on, if it ran."""


def _there_at_first(events: Events) -> list[_Present]:
    """All threads that were there, as far as their first events tell.

    What comes first after a loss may be new: it is found when it is met. One that is switched to was runnable, unless
    wake-ups are not told: then it may have slept until just before.
    """
    waited = RUNNABLE if events.has_wakeups else BLOCKED
    seen: set[int] = {0}
    switched: set[int] = set()
    found: list[_Present] = []
    for event in events.events:
        if isinstance(event, Loss):
            break
        if isinstance(event, Switch):
            pid, name, priority = event.previous, event.previous_name, event.previous_priority
            if pid not in seen and event.cpu not in switched:
                found.append(_Present(pid, name, RUNNING, priority, event.cpu))
            switched.add(event.cpu)
            if event.next not in seen and events.has_forks:
                priority = event.next_priority
                found.append(_Present(event.next, event.next_name, waited, priority))
            seen |= {pid, event.next}
        elif isinstance(event, Wakeup) and event.process not in seen:
            found.append(_Present(event.process, event.name, BLOCKED, None))
        seen.add(_whom(event))
    return found


def _whom(event: Event) -> int:
    """The thread that an event tells of, other than a switch."""
    if isinstance(event, Fork):
        return event.child
    return event.process if isinstance(event, (Wakeup, Start)) else 0
