# SPDX-License-Identifier: MIT
"""Events of Linux's scheduler, independent of the tool that recorded them."""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias


class Switch(NamedTuple):
    """sched_switch: a CPU switches from one thread to another; PID 0 is the idle thread."""

    time_ns: int
    cpu: int
    previous: int
    """PID of the thread that leaves; −1 if unknown."""
    previous_name: str
    previous_priority: int
    state: str
    """State of the thread that leaves, in Linux's letters (R, S, D, X, …); + means preempted.

    While a recording is being read, it may be a number (see `states`).
    """
    next: int
    next_name: str
    next_priority: int


class Wakeup(NamedTuple):
    """sched_waking (a wake-up begins) or, if not recorded, sched_wakeup (a wake-up has finished)."""

    time_ns: int
    cpu: int
    process: int
    name: str
    target_cpu: int
    in_interrupt: bool
    """True if an interrupt caused the wake-up, if the tool records this."""


class WakeupEnd(NamedTuple):
    """sched_wakeup (a wake-up has finished), if sched_waking was recorded, too."""

    time_ns: int
    cpu: int
    process: int


class Seen(NamedTuple):
    """Any event shows in its header which thread ran on the CPU, even without a recorded switch."""

    time_ns: int
    cpu: int
    process: int


class Start(NamedTuple):
    """sched_wakeup_new: a new thread is ready to run."""

    time_ns: int
    cpu: int
    process: int
    name: str
    target_cpu: int


class Fork(NamedTuple):
    """sched_process_fork: a thread created another thread."""

    time_ns: int
    cpu: int  # of the parent
    parent: int
    child: int
    by_recorder: bool = False
    """True if perf itself recorded the fork, instead of a tracepoint."""


class Move(NamedTuple):
    """sched_migrate_task: a thread is moved to another CPU."""

    time_ns: int
    cpu: int
    process: int
    from_cpu: int
    to_cpu: int


class Loss(NamedTuple):
    """The kernel lost events of a CPU; `events`: how many, at least 1."""

    time_ns: int
    cpu: int
    events: int


class TimerTick(NamedTuple):
    """A run of the tick's timer: hrtimer_expire_entry and hrtimer_expire_exit."""

    time_ns: int
    cpu: int
    duration_ns: int


Event: TypeAlias = Switch | Wakeup | WakeupEnd | Seen | Start | Fork | Move | Loss


@dataclass
class Events:
    """The contents of a recording."""

    events: list[Event] = field(default_factory=list)
    """The events, in chronological order."""
    ticks: list[TimerTick] = field(default_factory=list)
    """The ticks, if the recording contains the events of timers."""
    leader: dict[int, int] = field(default_factory=dict)
    """PID of the process, for each thread except the first one of a process."""
    of_kernel: set[int] = field(default_factory=set)
    """PIDs of threads known to be kernel threads."""
    seen: dict[str, int] = field(default_factory=dict)
    """Number of events by tracepoint."""
    unreadable: list[str] = field(default_factory=list)
    """Lines that name a tracepoint but could not be parsed."""
    headers: set[bool] = field(default_factory=set)
    """Which values were seen of: the header of a switch names the thread that leaves."""
    _running: dict[int, int] = field(default_factory=dict)
    """By CPU: PID of the thread that the last event shows."""

    def see(self, time_ns: int, cpu: int, thread: int) -> None:
        """Notes the thread in the header of an event."""
        if self._running.get(cpu) != thread:
            self._running[cpu] = thread
            self.events.append(Seen(time_ns, cpu, thread))

    def add_switch(self, switch: Switch, header: int) -> None:
        """Adds a switch. `header`: PID in the event's header; −1 if it has none."""
        if header > 0:
            self.headers.add(header == switch.previous)
        self._running[switch.cpu] = switch.next
        self.events.append(switch)

    def forget_false_headers(self) -> None:
        """Discards what headers show if they are wrong for switches: in a container, perf has other PIDs."""
        if self.headers != {True}:
            self.events = [event for event in self.events if not isinstance(event, Seen)]

    def anonymize(self) -> None:
        """Replaces the names of programs by numbered ones; equal names stay equal.

        The names of kernel threads and of the idle thread stay, since they say nothing of users.
        """
        names: dict[str, str] = {}

        def replaced(thread: int, name: str) -> str:
            if thread == 0 or thread in self.of_kernel:
                return name
            return names.setdefault(name, f"program-{len(names) + 1}")

        for number, event in enumerate(self.events):
            if isinstance(event, Switch):
                self.events[number] = event._replace(
                    previous_name=replaced(event.previous, event.previous_name),
                    next_name=replaced(event.next, event.next_name),
                )
            elif isinstance(event, Wakeup | Start):
                self.events[number] = event._replace(name=replaced(event.process, event.name))
        self.unreadable = ["(not shown)" for _ in self.unreadable]

    def mark_kernel_thread(self, thread: int, parent: int) -> None:
        """Notes that a thread is a kernel thread if it is kthreadd or a child of it."""
        if _KTHREADD in (thread, parent):
            self.of_kernel.add(thread)

    @property
    def has_wakeups(self) -> bool:
        """Returns whether the recording contains wake-ups."""
        return any(name in self.seen for name in WAKEUPS)

    @property
    def has_forks(self) -> bool:
        """Returns whether the recording contains forks; without them, any unknown thread may be new."""
        return any(name in self.seen for name in (*_FORKS, "sched_wakeup_new"))


WAKEUPS = ("sched_waking", "sched_wakeup")
"""Tracepoints that show when a thread becomes ready; the first one is more precise."""
_FORKS = ("sched_process_fork", "PERF_RECORD_FORK", "task_newtask")
_KTHREADD = 2
"""PID of the parent of all kernel threads."""
