# SPDX-License-Identifier: MIT
"""What Linux's scheduler said of itself: its tracepoints, whatever form they were kept in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias


class Switch(NamedTuple):
    """sched_switch: a CPU turns from one thread to another; 0: to or from idling."""

    time_ns: int
    cpu: int
    previous: int
    """-1: not told."""
    previous_name: str
    previous_priority: int
    state: str
    """The state in which the previous thread leaves, by Linux's letters: R, S, D, X, … A + marks
    preemption. (While a recording is read it may be a number: see `states`.)"""
    next: int
    next_name: str
    next_priority: int


class Wakeup(NamedTuple):
    """sched_waking, or sched_wakeup: it is asked for, or it has been done."""

    time_ns: int
    cpu: int
    process: int
    name: str
    target_cpu: int
    in_interrupt: bool
    """True if the thread that ran on the CPU had nothing to do with it, as far as the tool tells.
    """


class Woken(NamedTuple):
    """sched_wakeup, where sched_waking is there, too: the wake-up has ended."""

    time_ns: int
    cpu: int
    process: int


class Seen(NamedTuple):
    """The header of an event: this thread ran on the CPU, although no switch tells of it."""

    time_ns: int
    cpu: int
    process: int


class Start(NamedTuple):
    """sched_wakeup_new: a new thread may run from here on."""

    time_ns: int
    cpu: int
    process: int
    name: str
    target_cpu: int


class Fork(NamedTuple):
    """sched_process_fork: a thread made another one."""

    time_ns: int
    cpu: int
    parent: int
    child: int
    by_recorder: bool = False
    """True if perf itself tells of it, and no tracepoint."""


class Move(NamedTuple):
    """sched_migrate_task."""

    time_ns: int
    cpu: int
    process: int
    from_cpu: int
    to_cpu: int


class Loss(NamedTuple):
    """The kernel could not keep what happened on a CPU. `events`: how much of it, 1 at least."""

    time_ns: int
    cpu: int
    events: int


Event: TypeAlias = Switch | Wakeup | Woken | Seen | Start | Fork | Move | Loss


@dataclass
class Events:
    """What a recording has."""

    events: list[Event] = field(default_factory=list)
    """The events, in the order of their times."""
    leader: dict[int, int] = field(default_factory=dict)
    """For threads that are not the first of their process, the PID of that process."""
    of_kernel: set[int] = field(default_factory=set)
    """Threads that are known to be the kernel's own."""
    seen: dict[str, int] = field(default_factory=dict)
    """How many of each tracepoint there were."""
    unreadable: list[str] = field(default_factory=list)
    """Lines of a tracepoint that has a form of its own."""
    headers: set[bool] = field(default_factory=set)
    """Whether the headers of switches named the thread that was switched from."""
    _running: dict[int, int] = field(default_factory=dict)
    """The thread that ran on each CPU last, by the events so far."""

    def see(self, time_ns: int, cpu: int, thread: int) -> None:
        """Notes the thread in an event's header."""
        if self._running.get(cpu) != thread:
            self._running[cpu] = thread
            self.events.append(Seen(time_ns, cpu, thread))

    def add_switch(self, switch: Switch, header: int) -> None:
        """Adds a switch. `header`: the thread in its header; -1: none."""
        if header > 0:
            self.headers.add(header == switch.previous)
        self._running[switch.cpu] = switch.next
        self.events.append(switch)

    def forget_false_headers(self) -> None:
        """Removes what headers tell unless those of switches are right: in a container, perf has PIDs of its own."""
        if self.headers != {True}:
            self.events = [event for event in self.events if not isinstance(event, Seen)]

    def mark_kernel_thread(self, thread: int, parent: int) -> None:
        """Notes a thread as the kernel's own if it is kthreadd, or a child of that."""
        if _KTHREADD in (thread, parent):
            self.of_kernel.add(thread)

    @property
    def has_wakeups(self) -> bool:
        """Does it tell when threads become runnable?"""
        return any(name in self.seen for name in WAKEUPS)

    @property
    def has_forks(self) -> bool:
        """Does it tell of threads that begin? If not, one that is new to it may be new."""
        return any(name in self.seen for name in (*_FORKS, "sched_wakeup_new"))


WAKEUPS = ("sched_waking", "sched_wakeup")
"""Either tells when a thread becomes runnable, the first more exactly."""
_FORKS = ("sched_process_fork", "PERF_RECORD_FORK", "task_newtask")
_KTHREADD = 2
"""PID of the parent of all threads of the kernel."""
