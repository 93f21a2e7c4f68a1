# SPDX-License-Identifier: MIT
"""What is known of a running system, by its trace alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from schedlab.monitor.frames import (
    Cost,
    CpuFrame,
    Decision,
    Explanation,
    Mark,
    Metrics,
    ProcessColumns,
    Timeline,
)
from schedlab.monitor.system import Records, Status
from schedlab.trace.format import AttributeKind, ProcessState
from schedlab.trace.model import Header

WINDOW_NS = 10_000_000_000


class Past(TypedDict):
    """What has happened."""

    timeline: Timeline
    marks: list[Mark]
    decisions: list[Decision]


class ModelFrame(Past):
    """Those parts of a Frame that the trace decides. timeline, marks and decisions: what is new
    since the frame before."""

    now_ns: int
    policy: str
    shares_by: str
    levels: bool
    shared_queue: bool
    cpus: list[CpuFrame]
    processes: ProcessColumns
    metrics: Metrics
    cost: Cost
    events: int
    """Records so far."""
    lost: int


@dataclass(frozen=True)
class Alive:
    """A living process, as a FOUND record and those after it tell of it."""

    pid: int
    parent: int
    """0: none that lives."""
    thread_of: int
    """The process of which it is a thread; 0: itself."""
    name: str
    group: str
    """The label that it gave itself or inherited; "": none."""
    state: ProcessState
    """RUNNABLE, RUNNING or BLOCKED."""
    reason: int
    """Why it is blocked: BlockReason; 0: it is not."""
    cpu: int
    """Where it runs, is queued, or ran last; -1: nowhere yet."""
    level: int
    attributes: Mapping[AttributeKind, int] = field(default_factory=dict)
    """Those that were set, for it or for who forked it."""


@dataclass(frozen=True)
class InForce:
    """All that holds now, so that a trace can begin here."""

    now_ns: int
    policy: str
    """name or name:preset."""
    shares_by: int
    """As `process` of POLICY: 2 tickets, 3 weight, 0 no attribute."""
    tunables: Mapping[str, int]
    """Those that were set since the policy came into force."""
    processes: tuple[Alive, ...]
    """In the order of PIDs; those that wait in a queue can be put into the order of their waiting by
    `queues`."""
    queues: tuple[tuple[int, ...], ...]
    """PIDs waiting at each CPU, in the order in which they came."""
    running: tuple[int, ...]
    """PID on each CPU; 0: idle."""


class Model:
    """Takes records in, and says at any time what is the case and what has happened.

    `policy` (name or name:preset) and `shares_by` (tickets, weight or equal) are as the system was
    started; the trace's POLICY and TUNABLE records rule afterwards. One loop owns a model: it is not
    for several threads.
    """

    def __init__(
        self, header: Header, policy: str, shares_by: str, window_ns: int = WINDOW_NS
    ) -> None:
        self.header = header
        self.own_pids: set[int] = set()
        """Processes that are there for the monitor's sake. Set it as it changes."""
        self.record_cost_ns = 0.0
        """What a record takes of a CPU's time."""

    @property
    def now_ns(self) -> int:
        """The latest time that is known."""
        return 0

    def feed(self, records: Records) -> None:
        """The next records, in the order of their sequence. Texts may go on in the next call."""

    def reach(self, time_ns: int) -> None:
        """It is at least so late, though nothing may have happened since."""

    def apply_status(self, status: Status) -> None:
        """What sched_status says of slices, priorities and tickets. What the trace says later holds."""

    def set_window(self, window_ns: int) -> None:
        """Over how much of the past metrics go. A longer one fills as time goes on."""

    def frame(self, max_runs: int = 2000) -> ModelFrame:
        """What is the case, and what is new since the last call."""
        raise NotImplementedError

    def history(self) -> Past:
        """All that is kept of the past: the last 60 s, and at most 20,000 runs, 1,000 marks, 500
        decisions."""
        raise NotImplementedError

    def explain(self, pid: int) -> Explanation:
        """Why a process had to wait, in the window. KeyError: no such process lives, or did in the
        window."""
        raise NotImplementedError

    def alive(self) -> InForce:
        """Who lives, and what holds, so that a recording can begin here."""
        raise NotImplementedError
