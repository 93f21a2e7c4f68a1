# SPDX-License-Identifier: MIT
"""Defines the events of Linux's scheduler tracepoints, independent of the recording format."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias


class Switch(NamedTuple):
    """sched_switch: a CPU switches from one thread to another; 0 is idle."""

    time_ns: int
    cpu: int
    previous: int
    """−1: unknown."""
    previous_name: str
    previous_priority: int
    state: str
    """The state of the previous thread, in Linux's letters: R, S, D, X, … A + means preempted.

    While a recording is being read, it may be a number: see `states`.
    """
    next: int
    next_name: str
    next_priority: int


class Wakeup(NamedTuple):
    """sched_waking (the wake-up starts) or sched_wakeup (it has finished)."""

    time_ns: int
    cpu: int
    process: int
    name: str
    target_cpu: int
    in_interrupt: bool
    """True if the wake-up came from an interrupt, if the tool records this."""


class Woken(NamedTuple):
    """sched_wakeup of a recording that also has sched_waking: the wake-up has finished."""

    time_ns: int
    cpu: int
    process: int


class Seen(NamedTuple):
    """The header of an event: this thread ran on the CPU, possibly without a recorded switch."""

    time_ns: int
    cpu: int
    process: int


class Start(NamedTuple):
    """sched_wakeup_new: a new thread becomes runnable."""

    time_ns: int
    cpu: int
    process: int
    name: str
    target_cpu: int


class Fork(NamedTuple):
    """sched_process_fork: a thread created another one."""

    time_ns: int
    cpu: int
    parent: int
    child: int
    by_recorder: bool = False
    """True if the event is a record of perf, not of a tracepoint."""


class Move(NamedTuple):
    """sched_migrate_task."""

    time_ns: int
    cpu: int
    process: int
    from_cpu: int
    to_cpu: int


class Loss(NamedTuple):
    """Events of a CPU that the kernel lost. `events`: their number, at least 1."""

    time_ns: int
    cpu: int
    events: int


Event: TypeAlias = Switch | Wakeup | Woken | Seen | Start | Fork | Move | Loss


@dataclass
class Events:
    """The contents of a recording."""

    events: list[Event] = field(default_factory=list)
    """The events, in chronological order."""
    leader: dict[int, int] = field(default_factory=dict)
    """For threads other than the first of their process, the PID of that process."""
    of_kernel: set[int] = field(default_factory=set)
    """Threads known to be kernel threads."""
    seen: dict[str, int] = field(default_factory=dict)
    """Number of events by tracepoint."""
    unreadable: list[str] = field(default_factory=list)
    """Lines of tracepoints in an unknown form."""
    headers: set[bool] = field(default_factory=set)
    """Whether headers of switches named the previous thread: true, false, or both."""
    _running: dict[int, int] = field(default_factory=dict)
    """The thread that ran last on each CPU, according to the events so far."""

    def see(self, time_ns: int, cpu: int, thread: int) -> None:
        """Records the thread in an event's header."""
        if self._running.get(cpu) != thread:
            self._running[cpu] = thread
            self.events.append(Seen(time_ns, cpu, thread))

    def add_switch(self, switch: Switch, header: int) -> None:
        """Adds a switch. `header`: the thread in its header; −1: none."""
        if header > 0:
            self.headers.add(header == switch.previous)
        self._running[switch.cpu] = switch.next
        self.events.append(switch)

    def forget_false_headers(self) -> None:
        """Removes what headers show, unless headers of switches are right. In a container, perf has different PIDs."""
        if self.headers != {True}:
            self.events = [event for event in self.events if not isinstance(event, Seen)]

    def mark_kernel_thread(self, thread: int, parent: int) -> None:
        """Records a thread as a kernel thread if it is kthreadd or its child."""
        if _KTHREADD in (thread, parent):
            self.of_kernel.add(thread)

    @property
    def has_wakeups(self) -> bool:
        """True if the recording has wake-ups."""
        return any(name in self.seen for name in WAKEUPS)

    @property
    def has_forks(self) -> bool:
        """True if the recording has forks. If not, any unknown thread may be new."""
        return any(name in self.seen for name in (*_FORKS, "sched_wakeup_new"))


WAKEUPS = ("sched_waking", "sched_wakeup")
"""Either shows when a thread becomes runnable; the first is more precise."""
_FORKS = ("sched_process_fork", "PERF_RECORD_FORK", "task_newtask")
_KTHREADD = 2
"""PID of the parent of all kernel threads."""
