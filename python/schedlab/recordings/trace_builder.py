# SPDX-License-Identifier: MIT
"""Converts the events of Linux's scheduler to a consistent trace.

A recording begins while threads are running. The first event about a thread shows its earlier
state: a thread that is woken was blocked, a thread that leaves a CPU ran, and a thread that gets a
CPU waited.

If an event contradicts the known state, events are missing. The thread and the CPU are then "out of
sight" from the last event that showed their state until the contradiction: the trace says that
their activity is unknown. `mended` counts contradictions.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from schedlab.recordings.coverage import Coverage
from schedlab.recordings.events import (
    Event,
    Events,
    Fork,
    Loss,
    Move,
    Seen,
    Start,
    Switch,
    Wakeup,
    WakeupEnd,
)
from schedlab.trace.format import (
    AttributeKind,
    BlockReason,
    Kind,
    LossKind,
    MarkKind,
    PreemptReason,
    ProcessState,
)
from schedlab.trace.timeline import OUT_OF_SIGHT
from schedlab.trace.writer import TraceWriter

_PRIORITY_OF_NICE_0 = 120
_FAIR_PRIORITIES = range(100, 140)
_DEAD = frozenset("XZx")
_UNSIGNED = 2**64 - 1
_NANOSECONDS_PER_SECOND = 1_000_000_000

RUNNABLE, RUNNING = ProcessState.RUNNABLE, ProcessState.RUNNING
BLOCKED, ZOMBIE = ProcessState.BLOCKED, ProcessState.ZOMBIE


def nice_of(priority: int) -> int:
    """Returns the nice value of a priority in the fair class; for a real-time priority, the best one."""
    fair = min(max(priority, _FAIR_PRIORITIES.start), _FAIR_PRIORITIES.stop - 1)
    return fair - _PRIORITY_OF_NICE_0


class TraceBuilder:
    """Processes events in order, tracks the state of each thread and CPU, and writes the trace."""

    def __init__(
        self,
        events: Events,
        cpus: int,
        tick_ns: int,
        policy: str,
        root: str | None = None,
        coverage: Coverage | None = None,
    ) -> None:
        """`root`: name or PID of the process whose descendants are the workload; None: all
        processes are.

        `coverage`: what was recorded; None: all CPUs.
        """
        self.events = events
        self.coverage = coverage or Coverage()
        self.root = root
        self.root_pid = 0
        """0: it has not run yet."""
        self.policy, self.tick_ns = policy, tick_ns
        self.writer = TraceWriter(cpus, tick_ns, _NANOSECONDS_PER_SECOND)
        self.begin_ns = next(
            event.time_ns for event in events.events if not isinstance(event, Loss)
        )
        """The recorded machine's time that becomes 0 in the trace. Otherwise a replay would wait
        for the machine's uptime.
        """
        self.end_ns = events.events[-1].time_ns
        self.mended = 0
        self.lost = 0
        self.current: list[int] = [0] * cpus
        self.dark = set(range(cpus)) if self.coverage.by_thread else set(self.coverage.unrecorded)
        """CPUs whose current activity is unknown."""
        self.evidence: list[tuple[int, int]] = []
        """For each CPU, place in the trace and time of the last event that shows its activity."""
        self.state: dict[int, int] = {}
        """ProcessState or OUT_OF_SIGHT."""
        self.state_place: dict[int, tuple[int, int, int]] = {}
        """Where each state began, except RUNNING: place in the trace, time and CPU."""
        self.queue_of: dict[int, int] = {}
        """The CPU where each thread became runnable."""
        self.moved: dict[int, tuple[int, int]] = {}
        """Threads moved to a CPU with unknown activity, by the thread that moved them: thread and CPU."""
        self.arrived: dict[int, tuple[int, int, int]] = {}
        """For CPUs with unknown activity: the thread moved there, and the place and time when its mover finished."""
        self.cpu_of: dict[int, int] = {}
        """The CPU of each running thread."""
        self.name: dict[int, str] = {}
        self.priority: dict[int, int] = {}
        self.parent: dict[int, int] = {}
        """The parents of threads that were forked but have not started."""
        self.ready_since: dict[int, int] = {}
        self.running_since: dict[int, int] = {}
        self.woken_early: dict[int, tuple[int, int]] = {}
        """Waker and target CPU of a wake-up that came while the thread was running."""
        self.place_of_wakeup: dict[int, tuple[int, tuple[int, int, int, int]]] = {}
        """Where each thread's last wake-up was, in case it belongs to the next wait: place in the
        trace; then time, CPU, waker, target.
        """
        self.woken_fully: set[int] = set()
        """Running threads whose last wake-up has finished."""
        self.has_starts = "sched_wakeup_new" in events.seen

    def write(self, path: Path) -> int:
        """Writes the whole trace. Returns the number of records."""
        self.begin()
        tellers: dict[type[Any], Callable[[Any], None]] = {
            Switch: self.switch,
            Wakeup: self.wakeup,
            WakeupEnd: self.woken,
            Seen: self.seen,
            Start: self.start,
            Fork: self.fork,
            Move: self.move,
            Loss: self.loss,
        }
        for event in self.events.events:
            tellers[type(event)](event)
            if not isinstance(event, Loss):
                self.note_evidence(event.time_ns, event.cpu)
        self.end()
        return self.writer.write(path, self.begin_ns, self.end_ns, origin_ns=self.begin_ns)

    # --- state at the beginning

    def begin(self) -> None:
        """Writes what exists when the trace begins: the policy and the threads."""
        initial = _present_at_start(self.events, self.coverage)
        first = {
            event.cpu: event.previous
            for event in self.events.events[::-1]
            if isinstance(event, Switch)
        }
        shown = {thread.cpu for thread in initial if thread.state == RUNNING}
        busy = {event.cpu for event in self.events.events if first.get(event.cpu, -1) != 0}
        self.dark |= busy - shown
        # The running thread must be the first thread written for its CPU.
        for thread in sorted(initial, key=lambda thread: thread.state != RUNNING):
            self.find(
                self.begin_ns, thread.cpu, thread.pid, thread.name, thread.state, thread.priority
            )
        self.evidence = [(self.writer.hold(), self.begin_ns) for _ in self.current]
        for cpu in sorted(self.dark):
            self.writer.add(self.begin_ns, cpu, Kind.LOST, 0, LossKind.UNSEEN)
        self.writer.add_text(self.begin_ns, 0, Kind.POLICY, self.policy, AttributeKind.NICE)
        if not self.events.has_wakeups:
            self.writer.add(self.begin_ns, 0, Kind.LOST, 0, LossKind.OF_WAKEUPS)

    def find(
        self,
        time: int,
        cpu: int,
        pid: int,
        name: str,
        state: ProcessState,
        priority: int | None = None,
    ) -> None:
        """Writes a FOUND record: a thread that is new to the trace, or was out of sight."""
        leader = self.events.leader.get(pid, 0)
        self.writer.add_text(
            time, cpu, Kind.FOUND, self.display_name(pid, name), pid, state, leader
        )
        self.name[pid] = name
        self.begin_state(time, cpu, pid, state)
        if state == RUNNING:
            self.current[cpu] = pid
            self.running_since[pid] = time
            self.cpu_of[pid] = cpu
            self.measure_from(time, cpu, pid)
        self.note_priority(time, cpu, pid, priority)

    # --- events

    def switch(self, event: Switch) -> None:
        time, cpu, previous, next_ = event.time_ns, event.cpu, event.previous, event.next
        if previous < 0:  # unknown: this is the first event of this CPU in the recording
            self.note_running(time, cpu, next_, event.next_name)
            previous = next_
        else:
            self.note_running(time, cpu, previous, event.previous_name)
            self.note_thread(time, cpu, previous, event.previous_name, event.previous_priority)
            self.measure_from(time, cpu, previous)
        if previous == next_:
            return
        self.make_ready(time, cpu, next_, event.next_name)
        self.note_thread(time, cpu, next_, event.next_name, None)
        left = self.leave(event) if previous else RUNNABLE
        self.enter(time, cpu, previous, next_, left)
        if next_:  # recorded by this thread itself, and not by the thread that leaves
            self.note_priority(time, cpu, next_, event.next_priority)
        self.measure_from(time, cpu, next_)

    def wakeup(self, event: Wakeup) -> None:
        time, cpu, pid = event.time_ns, event.cpu, event.process
        if not pid:
            return
        waker = 0 if event.in_interrupt else self.current[cpu]
        state = self.state.get(pid)
        if state is None or state == OUT_OF_SIGHT:
            self.find(time, cpu, pid, event.name, BLOCKED)
            state = BLOCKED
        if state == BLOCKED:
            self.place_of_wakeup.pop(pid, None)
            self.wake(time, cpu, pid, waker, event.target_cpu)
        elif state == RUNNING:
            self.woken_early[pid] = (waker, event.target_cpu)
            self.woken_fully.discard(pid)

    def woken(self, event: WakeupEnd) -> None:
        """Handles that a wake-up has finished.

        If the thread was still blocked, the wake-up began on a CPU that was not recorded.
        """
        pid = event.process
        if self.state.get(pid) == RUNNING:
            self.woken_fully.add(pid)
        elif self.state.get(pid) == BLOCKED and pid not in self.place_of_wakeup:
            self.wake(event.time_ns, event.cpu, pid, 0, event.cpu)

    def seen(self, event: Seen) -> None:
        """Handles an event's header: the thread ran on the CPU, even if no switch was recorded."""
        self.note_running(event.time_ns, event.cpu, event.process, self.name.get(event.process, ""))

    def start(self, event: Start) -> None:
        self.write_fork(event.time_ns, event.cpu, event.process, event.name)
        self.queue_of[event.process] = event.target_cpu

    def fork(self, event: Fork) -> None:
        self.parent[event.child] = event.parent
        if not self.has_starts:
            self.write_fork(event.time_ns, event.cpu, event.child, self.name.get(event.parent, ""))

    def move(self, event: Move) -> None:
        pid, to_cpu = event.process, event.to_cpu
        if pid not in self.state:
            return
        self.writer.add(event.time_ns, event.cpu, Kind.MIGRATE, pid, event.from_cpu, to_cpu)
        self.queue_of[pid] = to_cpu
        mover = self.current[event.cpu]
        if mover and to_cpu in self.dark and self.state[pid] == RUNNABLE:
            self.moved[mover] = (pid, to_cpu)

    def loss(self, event: Loss) -> None:
        self.lost += event.events
        # The time of a loss is 0 if the tool does not know it.
        time = max(event.time_ns, self.begin_ns)
        self.writer.add(time, event.cpu, Kind.LOST, 0, LossKind.MENDED, event.events)

    def measure_from(self, time: int, cpu: int, pid: int) -> None:
        """Begins the measured window when the root process is first seen running."""
        if self.root and pid and not self.root_pid and self.root in (str(pid), self.name[pid]):
            self.root_pid = pid
            self.writer.add(time, cpu, Kind.MARK, pid, MarkKind.BEGIN)

    # --- states of threads

    def write_fork(self, time: int, cpu: int, child: int, name: str) -> None:
        """Writes a FORK by the running thread, or by process 0 if another thread is the parent."""
        parent = self.parent.pop(child, self.current[cpu])
        if self.state.get(child) == OUT_OF_SIGHT:
            self.find(time, cpu, child, name, RUNNABLE)
        if self.state.get(child, ZOMBIE) != ZOMBIE:
            return  # the end of an older thread was lost, or the fork was recorded twice
        forker = parent if parent == self.current[cpu] else 0
        self.writer.add(time, cpu, Kind.FORK, forker, child, self.events.leader.get(child, 0))
        self.name[child] = self.name.get(forker, "")
        self.priority.pop(child, None)
        self.begin_state(time, cpu, child, RUNNABLE)
        self.note_thread(time, cpu, child, name, None)

    def wake(self, time: int, cpu: int, pid: int, waker: int, target: int) -> None:
        self.writer.add(time, cpu, Kind.WAKEUP, pid, waker, target)
        self.begin_state(time, cpu, pid, RUNNABLE)
        self.queue_of[pid] = target

    def begin_state(self, time: int, cpu: int, pid: int, state: int) -> None:
        """Notes when a thread's state began: since that time, the thread may have been out of sight."""
        self.state[pid] = state
        self.ready_since[pid] = time
        self.queue_of[pid] = cpu
        if state != RUNNING:
            self.state_place[pid] = (self.writer.hold(), time, cpu)

    def enter(self, time: int, cpu: int, previous: int, next_: int, left: ProcessState) -> None:
        """Writes a SWITCH, and updates the states of both threads."""
        self.writer.add(time, cpu, Kind.SWITCH, next_, previous, left)
        if left == BLOCKED and previous in self.woken_early:
            waker, target = self.woken_early[previous]
            place = self.writer.hold()
            self.place_of_wakeup[previous] = (place, (time, cpu, waker, target))
        if previous:
            self.begin_state(time, cpu, previous, left)
            self.cpu_of.pop(previous, None)
            self.woken_early.pop(previous, None)
            self.woken_fully.discard(previous)
        self.run(time, cpu, next_)
        if previous in self.moved:
            pid, to_cpu = self.moved.pop(previous)
            self.arrived[to_cpu] = (pid, self.writer.hold(), time)

    def run(self, time: int, cpu: int, pid: int) -> None:
        """Notes that a thread (0: none) has the CPU."""
        self.current[cpu] = pid
        self.dark.discard(cpu)
        if pid:
            self.state[pid] = RUNNING
            self.running_since[pid] = time
            self.cpu_of[pid] = cpu
        self.note_evidence(time, cpu)

    def note_evidence(self, time: int, cpu: int) -> None:
        """Notes that an event has confirmed which thread has the CPU."""
        if cpu not in self.dark:
            self.evidence[cpu] = (self.writer.hold(), time)

    def leave(self, event: Switch) -> ProcessState:
        """Writes why a thread leaves its CPU (BLOCK etc.), and returns its state."""
        time, cpu, pid, state = event.time_ns, event.cpu, event.previous, event.state
        # Linux 5.8 to 5.17 reads the state twice, while another CPU may wake the thread in between.
        was_blocked = state == "R" and pid in self.woken_early and pid not in self.woken_fully
        if state.startswith("R") and not was_blocked:
            is_ready = self.ready_since.get(event.next, 0) >= self.running_since.get(pid, 0)
            why = PreemptReason.WAKEUP if event.next and is_ready else PreemptReason.SLICE
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

    # --- properties of threads

    def display_name(self, pid: int, name: str) -> str:
        """Returns a thread's name; kernel threads are in brackets, as in `ps`."""
        return f"[{name}]" if pid in self.events.of_kernel else name

    def note_thread(self, time: int, cpu: int, pid: int, name: str, priority: int | None) -> None:
        """Notes the name and priority of a thread, and writes changes of them."""
        if not pid:
            return
        if name != self.name.get(pid):
            self.name[pid] = name
            self.writer.add_text(time, cpu, Kind.EXEC, self.display_name(pid, name), pid)
        self.note_priority(time, cpu, pid, priority)

    def note_priority(self, time: int, cpu: int, pid: int, priority: int | None) -> None:
        """Writes the nice value that a thread's priority means, if it changed."""
        if priority is None or priority == self.priority.get(pid):
            return
        self.priority[pid] = priority
        nice = nice_of(priority) & _UNSIGNED
        self.writer.add(time, cpu, Kind.ATTRIBUTE, pid, AttributeKind.NICE, nice)

    # --- missing events

    def note_running(self, time: int, cpu: int, pid: int, name: str) -> None:
        """Handles evidence that a thread (0: none) runs on the CPU."""
        if self.current[cpu] == pid and cpu not in self.dark:
            return
        if cpu not in self.dark:
            self.mended += 1
            self.lose_cpu(cpu)
        arrived, place, since = self.arrived.pop(cpu, (0, 0, 0))
        if not pid:
            self.writer.add(time, cpu, Kind.LOST, 0, LossKind.SEEN)
            self.run(time, cpu, 0)
        elif pid == arrived and self.state[pid] == RUNNABLE and self.queue_of[pid] == cpu:
            # No other thread is known to have run on the CPU, so this one did since it arrived.
            self.writer.fill(place, (since, pid, Kind.SWITCH, cpu, 0, 0))
            self.run(since, cpu, pid)
            self.note_evidence(time, cpu)
        else:
            self.make_ready(time, cpu, pid, name)
            self.enter(time, cpu, 0, pid, RUNNABLE)

    def lose_cpu(self, cpu: int) -> None:
        """Writes that the activity of the CPU and its thread is unknown since the last evidence."""
        place, time = self.evidence[cpu]
        pid = self.current[cpu]
        if pid:
            self.writer.fill(
                place,
                (time, 0, Kind.SWITCH, cpu, pid, BLOCKED),
                (time, pid, Kind.LOST, cpu, LossKind.UNSEEN, 0),
            )
            self.state[pid] = OUT_OF_SIGHT
            del self.cpu_of[pid]
            self.woken_early.pop(pid, None)
        self.writer.fill(place, (time, 0, Kind.LOST, cpu, LossKind.UNSEEN, 0))
        self.current[cpu] = 0
        self.dark.add(cpu)

    def lose_thread(self, pid: int) -> None:
        """Writes that a thread has been out of sight since its present state began."""
        place, time, cpu = self.state_place[pid]
        self.writer.fill(place, (time, pid, Kind.LOST, cpu, LossKind.UNSEEN, 0))
        self.state[pid] = OUT_OF_SIGHT

    def end(self) -> None:
        """Ends the trace.

        If the recording is incomplete, a state that lasts until the end may have changed unseen.
        """
        if self.coverage.by_thread:
            for cpu in set(range(len(self.current))) - self.dark:
                self.lose_cpu(cpu)
        if not self.coverage.is_complete:
            for pid in [pid for pid, state in self.state.items() if state in (RUNNABLE, BLOCKED)]:
                self.lose_thread(pid)

    def make_ready(self, time: int, cpu: int, pid: int, name: str) -> None:
        """Makes sure that a thread that gets a CPU was ready before; writes the records that are missing."""
        if not pid:
            return
        state = self.state.get(pid)
        if state == BLOCKED and pid in self.place_of_wakeup:
            place, (when, waker_cpu, waker, target) = self.place_of_wakeup.pop(pid)
            self.writer.fill(place, (when, pid, Kind.WAKEUP, waker_cpu, waker, target))
            self.state[pid] = RUNNABLE
        elif state == BLOCKED and not self.events.has_wakeups:
            self.wake(time, cpu, pid, 0, cpu)
        elif state == RUNNABLE and self.queue_of.get(pid) in self.coverage.unrecorded:
            self.lose_thread(pid)
        elif state == BLOCKED:
            self.mended += 1
            self.lose_thread(pid)
        elif state == RUNNING:
            self.mended += 1
            self.lose_cpu(self.cpu_of[pid])
        elif state == ZOMBIE:
            self.mended += 1
            self.write_fork(time, cpu, pid, name)
        elif state is None:
            self.mended += int(self.events.has_forks)
        if self.state.get(pid) in (None, OUT_OF_SIGHT):
            self.find(time, cpu, pid, name, RUNNABLE)


class _InitialThread(NamedTuple):
    """A thread that existed when the recording began, and its state then."""

    pid: int
    name: str
    state: ProcessState
    priority: int | None
    """None: not yet known."""
    cpu: int = 0
    """The CPU where it was running, if it was."""


def _present_at_start(events: Events, coverage: Coverage) -> list[_InitialThread]:
    """Returns the threads that existed at the beginning, as their first events show.

    After a loss, an unknown thread may be new, so it is added later. A thread that gets a CPU was
    ready before; without recorded wake-ups, it may have slept until just before.
    """
    waited = RUNNABLE if events.has_wakeups else BLOCKED
    seen: set[int] = {0}
    switched: set[int] = set()
    present: list[_InitialThread] = []
    for event in events.events:
        if isinstance(event, Loss):
            break
        if isinstance(event, Switch):
            pid, name, priority = event.previous, event.previous_name, event.previous_priority
            starts = event.cpu not in switched and not coverage.by_thread
            if starts and pid > 0 and pid not in seen:
                present.append(_InitialThread(pid, name, RUNNING, priority, event.cpu))
            switched.add(event.cpu)
            if event.next not in seen and events.has_forks:
                priority = event.next_priority
                present.append(_InitialThread(event.next, event.next_name, waited, priority))
            seen |= {pid, event.next}
        elif isinstance(event, Wakeup) and event.process not in seen:
            present.append(_InitialThread(event.process, event.name, BLOCKED, None))
        seen.add(_subject_pid(event))
    return present


def _subject_pid(event: Event) -> int:
    """Returns the PID of the thread that an event is about; 0 for switches."""
    if isinstance(event, Fork):
        return event.child
    return event.process if isinstance(event, (Wakeup, Start)) else 0
