# SPDX-License-Identifier: MIT
"""Who lives, as the story of the records needs it at hand."""

from __future__ import annotations

from collections import deque

import numpy as np

from schedlab.metrics.shares import ATTRIBUTE_DEFAULTS
from schedlab.trace.format import AttributeKind

PRIORITY_DEFAULT = 5
"""PRIORITY_DEFAULT of policies/policy.h."""
TICKETS_DEFAULT = ATTRIBUTE_DEFAULTS[AttributeKind.TICKETS]
WEIGHT_DEFAULT = ATTRIBUTE_DEFAULTS[AttributeKind.WEIGHT]

RUNNABLE, RUNNING, BLOCKED = range(3)
"""States, as ProcessColumns has them."""

WHY = ("forked", "woken", "preempted", "slice over", "yielded", "moved", "found")
FORKED, WOKEN, PREEMPTED, EXPIRED, YIELDED, MOVED, FOUND = range(len(WHY))
"""Why a process waits."""

GOES_ON, STOPPED_BLOCKED, STOPPED_PREEMPTED, STOPPED_YIELDED, STOPPED_ENDED = range(5)
"""How a run ends, as Timeline has it."""

NEVER = np.iinfo(np.int64).max


class Process:
    """One that lives: from its FORK, or where it was found, until it leaves its CPU as a zombie."""

    __slots__ = (
        "attributes",
        "blocked_for",
        "cpu",
        "exited",
        "forked_at",
        "kin",
        "label",
        "level",
        "name",
        "named",
        "next_level",
        "outside",
        "parent",
        "picked_at",
        "picks",
        "pid",
        "priority",
        "queue",
        "ran",
        "run_ns",
        "selections",
        "since",
        "slice_ns",
        "slot",
        "state",
        "stops",
        "sure",
        "thread_of",
        "tickets",
        "told",
        "wait_since",
        "waiting_ns",
        "weight",
        "why",
        "woken_at",
    )

    def __init__(self, pid: int, slot: int, time: int, parent: Process | None) -> None:
        self.pid = pid
        self.slot = slot
        """Its place in the arrays of Slots."""
        self.parent = parent.pid if parent else 0
        self.thread_of = 0
        self.name: str = parent.name if parent and parent.named else f"process {pid}"
        self.named: bool = bool(parent and parent.named)
        """The trace has said the name."""
        self.label: str = parent.label if parent else ""
        """The name that it told of its group; "": it told none."""
        self.state = RUNNABLE
        self.blocked_for = 0
        """BlockReason, as it said last."""
        self.cpu = -1
        """The CPU that runs it, or ran it last."""
        self.queue = 0
        """The CPU in whose queue it waits."""
        self.sure = False
        """The trace has said so; else it is a guess."""
        self.told = False
        """A QUEUED has said so since it ran last. (An urgent process is in no queue of the policy's.)"""
        self.level = 0
        self.next_level = 0
        """The level at which it runs from its next turn on."""
        self.since = time
        """The time when its run, or its wait in this queue, began."""
        self.wait_since = time
        """The time when it began to wait, in whatever queue."""
        self.why = FORKED
        self.stops = 0
        """How it is about to stop: a GOES_ON …; 0: it has not said so."""
        self.woken_at = -1
        """-1: since then it has run."""
        self.forked_at = -1
        """-1: it was found."""
        self.ran = False
        self.exited = False
        self.run_ns = 0
        """The time of runs that are over."""
        self.waiting_ns = 0
        """The time of waits that are over."""
        self.selections = 0
        """Times the scheduler left towards it."""
        self.picks = 0
        """Times it was switched to."""
        self.picked_at = time
        self.slice_ns: int = parent.slice_ns if parent else -1
        self.priority: int = parent.priority if parent else PRIORITY_DEFAULT
        self.tickets: int = parent.tickets if parent else TICKETS_DEFAULT
        self.weight: int = parent.weight if parent else WEIGHT_DEFAULT
        self.attributes: dict[int, int] = (
            dict(parent.attributes) if parent and parent.attributes else {}
        )
        """Those that the trace says, by AttributeKind. What sched_status says may be more."""
        self.kin: bool = bool(parent and parent.kin)
        """It is the trace's first process, or descends from it."""
        self.outside = False
        """It began a measured window: by docs/metrics.md it is no part of the workload."""


class Slots:
    """Arrays of what figures over the window need of each process, whether it lives or has ended.

    A process keeps its slot until nothing of it is in the window any more; then the slot is another's.
    """

    def __init__(self) -> None:
        self.capacity = 256
        self.pid = np.zeros(self.capacity, np.int64)
        self.born_at = np.zeros(self.capacity, np.int64)
        self.exit_at = np.zeros(self.capacity, np.int64)
        """NEVER: it lives."""
        self.gone_at = np.zeros(self.capacity, np.int64)
        """The time when it left its CPU for the last time; NEVER: it has not."""
        self.tickets = np.zeros(self.capacity, np.int64)
        self.weight = np.zeros(self.capacity, np.int64)
        self.used = np.zeros(self.capacity, bool)
        self.outside = np.zeros(self.capacity, bool)
        """It is no part of the workload."""
        self.names: dict[int, str] = {}
        """Names of processes that have ended."""
        self._free = list(range(self.capacity - 1, -1, -1))
        self._ended: deque[tuple[int, int]] = deque()

    def take(self, pid: int, time: int) -> int:
        """A slot for a process that begins."""
        if not self._free:
            self._grow()
        slot = self._free.pop()
        self.pid[slot] = pid
        self.born_at[slot] = time
        self.exit_at[slot] = self.gone_at[slot] = NEVER
        self.tickets[slot] = TICKETS_DEFAULT
        self.weight[slot] = WEIGHT_DEFAULT
        self.used[slot] = True
        self.outside[slot] = False
        return slot

    def end(self, slot: int, time: int, name: str) -> None:
        """Its process is no more."""
        self.gone_at[slot] = time
        self.exit_at[slot] = min(int(self.exit_at[slot]), time)
        self.names[slot] = name
        self._ended.append((time, slot))

    def expire(self, begin_ns: int) -> None:
        """The window begins here: processes that were gone before are forgotten."""
        ended = self._ended
        while ended and ended[0][0] < begin_ns:
            slot = ended.popleft()[1]
            self.used[slot] = False
            self.names.pop(slot, None)
            self._free.append(slot)

    def _grow(self) -> None:
        self._free.extend(range(2 * self.capacity - 1, self.capacity - 1, -1))
        for name in (
            "pid",
            "born_at",
            "exit_at",
            "gone_at",
            "tickets",
            "weight",
            "used",
            "outside",
        ):
            old = getattr(self, name)
            setattr(self, name, np.concatenate((old, np.zeros_like(old))))
        self.capacity *= 2
