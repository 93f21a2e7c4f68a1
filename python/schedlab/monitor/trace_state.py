# SPDX-License-Identifier: MIT
"""The state at a point of a trace: live processes, policy, tunables, queues.

A trace that begins in the middle of a run begins with records of this state (docs/trace-format.md).
Frequent records are processed by numpy operations, rare ones by a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schedlab.monitor.system import Records
from schedlab.trace.follow import TextAssembler
from schedlab.trace.format import (
    RECORD,
    TEXT_OWNERS,
    AttributeKind,
    Kind,
    MarkKind,
    ProcessState,
    is_kind,
    signed,
)
from schedlab.trace.timeline import EXITING
from schedlab.trace.writer import text_records

Integers = npt.NDArray[np.int64]

_RARE_KINDS = (Kind.FORK, Kind.EXIT, Kind.ATTRIBUTE, Kind.TASK_GROUP, Kind.TEXT, *TEXT_OWNERS)
"""Rare kinds of records. Switches from ended processes and group marks are rare, too."""


@dataclass
class ProcessFacts:
    """A live process."""

    name: str = ""
    thread_of: int = 0
    group: int = 0
    """Group label of its MARK record; 0 if it has none."""
    attributes: dict[int, int] = field(default_factory=dict)
    """Values by AttributeKind."""
    status: int = 0
    """Exit status, between its EXIT record and its end."""

    def child(self, thread_of: int) -> ProcessFacts:
        """Returns the state that a child inherits at a fork."""
        return replace(self, thread_of=thread_of, attributes=dict(self.attributes), status=0)


class Queued(NamedTuple):
    """A process's place in a run queue, from its latest record."""

    order: int
    cpu: int
    level: int


class Opening(NamedTuple):
    """The first records of a trace that begins in the middle of a run."""

    records: Records
    """Sequence numbers are not set yet."""
    time_ns: int
    """No later record has an earlier time."""
    groups: dict[int, int]
    """Labels of processes that are not running; only running processes can record their own label."""


class TraceState:
    """Tracks the state of a run while it reads the trace from the beginning."""

    def __init__(self, cpus: int) -> None:
        self.policy = ""
        """name or name:preset; empty before the trace's POLICY record."""
        self.shares_by = 0
        self.tunables: dict[str, int] = {}
        """Tunables set since the current policy was activated."""
        self.task_groups: dict[tuple[int, int], int] = {}
        """Values of task groups by group number and GroupField."""
        self.processes: dict[int, ProcessFacts] = {}
        self.state: dict[int, int] = {}
        """State of each live process: ProcessState or EXITING."""
        self.queued: dict[int, Queued] = {}
        self.count = 0
        """Records so far."""
        self.cpus = cpus
        self.running = np.zeros(cpus, np.int64)
        self.switched = np.full(cpus, -1)
        """Number of records before each CPU's last switch."""
        self.deciding = np.zeros(cpus, bool)
        """True while the CPU is in its scheduler."""
        self.cycles = np.zeros(cpus, np.uint64)
        """Each CPU's cycle counter in its latest record."""
        self.latest = np.zeros(cpus, np.int64)
        """Time of each CPU's last record."""

    @property
    def time_ns(self) -> int:
        """The latest time of all CPUs (ns)."""
        return int(self.latest.max())

    # --- input

    def apply(self, records: Records) -> None:
        """Applies the next records. They must be in order and complete, and no text may be split."""
        if len(records) == 0:
            return
        kinds = np.ascontiguousarray(records["kind"])
        self._times(records)
        self._apply_rare(records, kinds)
        self._cpus(records, kinds)
        self._queues(records, kinds)
        self._states(records, kinds)
        self.count += len(records)

    def _times(self, records: Records) -> None:
        # If one CPU occurs several times, numpy keeps the last value; the assignments below rely
        # on it.
        self.latest[records["cpu"]] = records["time"]

    def _cpus(self, records: Records, kinds: npt.NDArray[np.uint16]) -> None:
        rows = np.flatnonzero(kinds == Kind.SWITCH)
        switches = records[rows]
        self.running[switches["cpu"]] = switches["process"]
        self.switched[switches["cpu"]] = rows + self.count
        passes = records[is_kind(kinds, Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT, Kind.START)]
        self.deciding[passes["cpu"]] = passes["kind"] == Kind.SCHEDULER_ENTER
        self.cycles[passes["cpu"]] = passes["second"]

    def _queues(self, records: Records, kinds: npt.NDArray[np.uint16]) -> None:
        rows = np.flatnonzero(kinds == Kind.QUEUED)
        queue_records = records[rows]
        queued = map(
            Queued,
            (rows + self.count).tolist(),
            queue_records["first"].tolist(),
            queue_records["second"].astype(np.int64).tolist(),
        )
        self.queued.update(zip(queue_records["process"].tolist(), queued, strict=True))

    def _states(self, records: Records, kinds: npt.NDArray[np.uint16]) -> None:
        rows, pids, after = [], [], []
        for of_kind, pid, state in (
            (Kind.FORK, "first", ProcessState.RUNNABLE),
            (Kind.SWITCH, "first", "second"),
            (Kind.SWITCH, "process", ProcessState.RUNNING),
            (Kind.WAKEUP, "process", ProcessState.RUNNABLE),
            (Kind.EXIT, "process", EXITING),
            (Kind.FOUND, "process", "first"),
        ):
            row = np.flatnonzero(kinds == of_kind)
            state_records = records[row]
            rows.append(row)
            pids.append(state_records[pid].astype(np.int64))
            after.append(
                state_records[state].astype(np.int64)
                if isinstance(state, str)
                else np.full(len(row), int(state))
            )
        order = np.argsort(np.concatenate(rows), kind="stable")
        pid_column = np.concatenate(pids)[order]
        self.state.update(
            zip(pid_column.tolist(), np.concatenate(after)[order].tolist(), strict=True)
        )
        for pid in {0, *pid_column.tolist()}:
            if pid not in self.processes:
                self.state.pop(pid, None)
                self.queued.pop(pid, None)

    # --- rare records

    def _apply_rare(self, records: Records, kinds: npt.NDArray[np.uint16]) -> None:
        ended = (kinds == Kind.SWITCH) & (records["second"] == ProcessState.ZOMBIE)
        groups = (kinds == Kind.MARK) & (records["first"] == MarkKind.GROUP)
        seldom_records = records[is_kind(kinds, *_RARE_KINDS) | ended | groups]
        names = ("kind", "cpu", "process", "first", "second")
        rows = list(zip(*(seldom_records[name].tolist() for name in names), strict=True))
        texts = _texts(rows)
        acts: dict[int, Callable[[int, int, int], None]] = {
            Kind.FORK: self._fork,
            Kind.EXIT: self._exit,
            Kind.SWITCH: self._end,
            Kind.ATTRIBUTE: self._attribute,
            Kind.TASK_GROUP: self._task_group,
            Kind.MARK: self._group,
        }
        for at, (kind, cpu, process, first, second) in enumerate(rows):
            if kind in acts:
                acts[kind](process, first, second)
            elif kind == Kind.FOUND:
                self._found(cpu, process, first, second, texts[at])
            elif kind == Kind.EXEC:
                self._facts_of(process).name = texts[at]
            elif kind == Kind.POLICY:
                self.policy, self.shares_by, self.tunables = texts[at], process, {}
            elif kind == Kind.TUNABLE:
                self.shares_by = process
                self.tunables[texts[at]] = signed(second)

    def _fork(self, parent: int, child: int, thread_of: int) -> None:
        self.processes[child] = self.processes.get(parent, _NOBODY).child(thread_of)

    def _exit(self, process: int, status: int, _: int) -> None:
        self._facts_of(process).status = status

    def _end(self, _: int, ended: int, __: int) -> None:
        self.processes.pop(ended, None)

    def _attribute(self, process: int, kind: int, value: int) -> None:
        self._facts_of(process).attributes[kind] = value

    def _task_group(self, number: int, field: int, value: int) -> None:
        self.task_groups[number, field] = value

    def _group(self, process: int, _: int, label: int) -> None:
        self._facts_of(process).group = label

    def _found(self, cpu: int, process: int, state: int, thread_of: int, name: str) -> None:
        self.processes[process] = ProcessFacts(name, thread_of)
        if state == ProcessState.RUNNING:
            self.running[cpu] = process

    def _facts_of(self, pid: int) -> ProcessFacts:
        """Returns the facts about a process.

        If the trace has not introduced the process, returns defaults that are not stored.
        """
        return self.processes.get(pid) or ProcessFacts()

    # --- openings

    def opening(self, excluded_pids: Iterable[int] = ()) -> Opening:
        """Returns the first records of a trace that begins at this point.

        The names of `excluded_pids`, which do not belong to any workload, get brackets like kernel
        threads. schedlab.metrics recognises both kinds by the brackets.
        """
        return _OpeningWriter(self, frozenset(excluded_pids)).write()


_NOBODY = ProcessFacts()


def _texts(rows: Iterable[tuple[int, int, int, int, int]]) -> dict[int, str]:
    """Returns texts by the row of their first record; rows are kind, CPU, process, first, second."""
    texts = TextAssembler()
    text_by_row: dict[int, str] = {}
    owner_on: dict[int, int] = {}
    for at, (kind, cpu, _, first, second) in enumerate(rows):
        if kind in TEXT_OWNERS:
            owner_on[cpu] = at
            text_by_row[at] = texts.begin(cpu, kind, first, second)
        elif kind == Kind.TEXT and cpu in owner_on:
            text_by_row[owner_on[cpu]] = texts.go_on(cpu, first, second)
    return text_by_row


class _OpeningWriter:
    """Writes START, the running process and its pending events for each CPU; all other state goes to CPU 0."""

    def __init__(self, state: TraceState, excluded_pids: frozenset[int]) -> None:
        self.state = state
        self.excluded_pids = excluded_pids
        self.time = state.time_ns
        self.rows: list[tuple[int, ...]] = []
        self.running = [int(pid) for pid in state.running]

    def write(self) -> Opening:
        for cpu in range(self.state.cpus):
            self._begin(cpu)
        self._in_force()
        for pid in sorted(set(self.state.processes) - set(self.running)):
            self._found(0, pid)
        self._attributes()
        self._queued()
        for cpu in range(self.state.cpus):
            self._middle(cpu)
        groups = {
            pid: person.group
            for pid, person in self.state.processes.items()
            if person.group and pid not in self.running
        }
        return Opening(np.array(self.rows, RECORD), self.time, groups)

    def _add(self, cpu: int, kind: int, process: int = 0, first: int = 0, second: int = 0) -> None:
        self.rows.append((self.time, 0, process, kind, cpu, first, second))

    def _add_text(
        self, kind: Kind, text: str, cpu: int, process: int, first: int = 0, second: int = 0
    ) -> None:
        for text_record, low, high in text_records(kind, text, first, second):
            self._add(cpu, text_record, process, low, high)

    def _begin(self, cpu: int) -> None:
        self._add(cpu, Kind.START, second=int(self.state.cycles[cpu]))
        pid = self.running[cpu]
        if pid in self.state.processes:
            self._found(cpu, pid)

    def _found(self, cpu: int, pid: int) -> None:
        person = self.state.processes[pid]
        state = self.state.state.get(pid, ProcessState.BLOCKED)
        state = ProcessState.RUNNING if state == EXITING else state
        name = person.name
        if pid in self.excluded_pids and not name.startswith("["):
            name = f"[{name}]"
        self._add_text(Kind.FOUND, name, cpu, pid, state, person.thread_of)

    def _in_force(self) -> None:
        state = self.state
        if state.policy:
            self._add_text(Kind.POLICY, state.policy, 0, state.shares_by)
        for name, value in state.tunables.items():
            unsigned = value & 0xFFFF_FFFF_FFFF_FFFF
            self._add_text(Kind.TUNABLE, name, 0, state.shares_by, second=unsigned)

    def _attributes(self) -> None:
        for (number, group_field), value in sorted(self.state.task_groups.items()):
            self._add(0, Kind.TASK_GROUP, number, group_field, value)
        for pid, person in sorted(self.state.processes.items()):
            for kind, value in sorted(person.attributes.items()):
                self._add(0, Kind.ATTRIBUTE, pid, AttributeKind(kind), value)

    def _queued(self) -> None:
        state = self.state
        # A process that is about to leave its CPU is queued before the switch.
        runs = dict(zip(state.running.tolist(), state.switched.tolist(), strict=True))
        waiting = [
            (place, pid)
            for pid, place in state.queued.items()
            if state.state.get(pid) == ProcessState.RUNNABLE
            or place.order > runs.get(pid, place.order)
        ]
        for place, pid in sorted(waiting):
            unsigned = place.level & 0xFFFF_FFFF_FFFF_FFFF
            self._add(0, Kind.QUEUED, pid, place.cpu, unsigned)

    def _middle(self, cpu: int) -> None:
        """Adds the unfinished events of a CPU: its process's exit, or its scheduler's decision."""
        pid = self.running[cpu]
        person = self.state.processes.get(pid)
        if person and person.group:
            self._add(cpu, Kind.MARK, pid, MarkKind.GROUP, person.group)
        if person and self.state.state.get(pid) == EXITING:
            self._add(cpu, Kind.EXIT, pid, person.status)
        if self.state.deciding[cpu]:
            self._add(cpu, Kind.SCHEDULER_ENTER, pid, second=int(self.state.cycles[cpu]))
