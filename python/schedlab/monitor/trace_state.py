# SPDX-License-Identifier: MIT
"""Tracks the state of a system while its trace is read: processes, policy, tunables, queues.

A trace that begins in the middle of a run starts with records that describe this state (docs/trace-
format.md). Frequent records are processed by numpy operations, rare ones by a loop.
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
"""Kinds of records that a loop processes.

Switches away from ended processes, and group marks, are also processed by the loop.
"""


@dataclass
class ProcessRecord:
    """What is known about a live process."""

    name: str = ""
    thread_of: int = 0  # PID of the process; 0: not a thread
    group: int = 0
    """Label of the process's group, from its MARK record; 0 without a label."""
    attributes: dict[int, int] = field(default_factory=dict)
    """Values by AttributeKind."""
    status: int = 0
    """Exit status; valid after the process's EXIT record."""

    def child(self, thread_of: int) -> ProcessRecord:
        """Returns the facts about a child of this process just after its fork."""
        return replace(self, thread_of=thread_of, attributes=dict(self.attributes), status=0)


class QueuePlace(NamedTuple):
    """A process's place in a run queue, according to its latest record."""

    order: int
    """Number of records with a place before this one; sorts the processes of a queue."""
    cpu: int
    level: int


class Opening(NamedTuple):
    """Records that describe the state at some point, placed at the beginning of a later trace."""

    records: Records
    """The records, whose sequence numbers are not set yet."""
    time_ns: int
    """Time of the records; later records are not earlier."""
    group_by_pid: dict[int, int]
    """Group labels by PID of processes that do not run; only a running process can record its label."""


class TraceState:
    """The state of a system at the current end of its trace."""

    def __init__(self, cpus: int) -> None:
        self.policy = ""
        """name or name:preset; empty before the trace's POLICY record."""
        self.shares_by = 0
        self.tunables: dict[str, int] = {}
        """Tunables set since the current policy was activated."""
        self.task_groups: dict[tuple[int, int], int] = {}
        """Values of task groups by group number and GroupField."""
        self.processes: dict[int, ProcessRecord] = {}
        self.process_states: dict[int, int] = {}
        """State of each live process: ProcessState or EXITING."""
        self.queued: dict[int, QueuePlace] = {}
        self.count = 0
        """Records so far."""
        self.cpus = cpus
        self.running = np.zeros(cpus, np.int64)
        self.switch_counts = np.full(cpus, -1)
        """Number of records before each CPU's last switch."""
        self.is_deciding = np.zeros(cpus, bool)
        """True while the CPU is in its scheduler."""
        self.cycles = np.zeros(cpus, np.uint64)
        """Each CPU's cycle counter in its latest record."""
        self.latest_ns = np.zeros(cpus, np.int64)
        """Time of each CPU's last record."""

    @property
    def time_ns(self) -> int:
        """The latest time of all CPUs (ns)."""
        return int(self.latest_ns.max())

    # --- input

    def apply(self, records: Records) -> None:
        """Applies the next records. They must be in order and complete, and no text may be split."""
        if len(records) == 0:
            return
        kinds = np.ascontiguousarray(records["kind"])
        self._apply_times(records)
        self._apply_rare(records, kinds)
        self._apply_cpus(records, kinds)
        self._apply_queues(records, kinds)
        self._apply_states(records, kinds)
        self.count += len(records)

    def _apply_times(self, records: Records) -> None:
        # If a CPU has several records, numpy keeps the value of the last one, as intended.
        self.latest_ns[records["cpu"]] = records["time"]

    def _apply_cpus(self, records: Records, kinds: npt.NDArray[np.uint16]) -> None:
        rows = np.flatnonzero(kinds == Kind.SWITCH)
        switches = records[rows]
        self.running[switches["cpu"]] = switches["process"]
        self.switch_counts[switches["cpu"]] = rows + self.count
        passes = records[is_kind(kinds, Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT, Kind.START)]
        self.is_deciding[passes["cpu"]] = passes["kind"] == Kind.SCHEDULER_ENTER
        self.cycles[passes["cpu"]] = passes["second"]

    def _apply_queues(self, records: Records, kinds: npt.NDArray[np.uint16]) -> None:
        rows = np.flatnonzero(kinds == Kind.QUEUED)
        queue_records = records[rows]
        queued = map(
            QueuePlace,
            (rows + self.count).tolist(),
            queue_records["first"].tolist(),
            queue_records["second"].astype(np.int64).tolist(),
        )
        self.queued.update(zip(queue_records["process"].tolist(), queued, strict=True))

    def _apply_states(self, records: Records, kinds: npt.NDArray[np.uint16]) -> None:
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
        self.process_states.update(
            zip(pid_column.tolist(), np.concatenate(after)[order].tolist(), strict=True)
        )
        for pid in {0, *pid_column.tolist()}:
            if pid not in self.processes:
                self.process_states.pop(pid, None)
                self.queued.pop(pid, None)

    # --- rare records

    def _apply_rare(self, records: Records, kinds: npt.NDArray[np.uint16]) -> None:
        """Applies the records of other kinds, one by one, because they are few."""
        ended = (kinds == Kind.SWITCH) & (records["second"] == ProcessState.ZOMBIE)
        groups = (kinds == Kind.MARK) & (records["first"] == MarkKind.GROUP)
        rare_records = records[is_kind(kinds, *_RARE_KINDS) | ended | groups]
        names = ("kind", "cpu", "process", "first", "second")
        rows = list(zip(*(rare_records[name].tolist() for name in names), strict=True))
        texts = _assemble_texts(rows)
        handlers: dict[int, Callable[[int, int, int], None]] = {
            Kind.FORK: self._apply_fork,
            Kind.EXIT: self._apply_exit,
            Kind.SWITCH: self._apply_end,
            Kind.ATTRIBUTE: self._apply_attribute,
            Kind.TASK_GROUP: self._apply_task_group,
            Kind.MARK: self._apply_group,
        }
        for index, (kind, cpu, process, first, second) in enumerate(rows):
            if kind in handlers:
                handlers[kind](process, first, second)
            elif kind == Kind.FOUND:
                self._apply_found(cpu, process, first, second, texts[index])
            elif kind == Kind.EXEC:
                self._facts_of(process).name = texts[index]
            elif kind == Kind.POLICY:
                self.policy, self.shares_by, self.tunables = texts[index], process, {}
            elif kind == Kind.TUNABLE:
                self.shares_by = process
                self.tunables[texts[index]] = signed(second)

    def _apply_fork(self, parent: int, child: int, thread_of: int) -> None:
        self.processes[child] = self.processes.get(parent, _UNKNOWN_PROCESS).child(thread_of)

    def _apply_exit(self, process: int, status: int, _: int) -> None:
        self._facts_of(process).status = status

    def _apply_end(self, _: int, ended: int, __: int) -> None:
        self.processes.pop(ended, None)

    def _apply_attribute(self, process: int, kind: int, value: int) -> None:
        self._facts_of(process).attributes[kind] = value

    def _apply_task_group(self, number: int, field: int, value: int) -> None:
        self.task_groups[number, field] = value

    def _apply_group(self, process: int, _: int, label: int) -> None:
        self._facts_of(process).group = label

    def _apply_found(self, cpu: int, process: int, state: int, thread_of: int, name: str) -> None:
        self.processes[process] = ProcessRecord(name, thread_of)
        if state == ProcessState.RUNNING:
            self.running[cpu] = process

    def _facts_of(self, pid: int) -> ProcessRecord:
        """Returns the facts about a process; unsaved defaults if the trace has not introduced it."""
        return self.processes.get(pid) or ProcessRecord()

    # --- openings

    def opening(self, excluded_pids: Iterable[int] = ()) -> Opening:
        """Returns records that describe the current state, to begin a trace here.

        The names of `excluded_pids`, which belong to no workload, are put in brackets, like those
        of kernel threads. Metrics treat such processes as not part of the workload.
        """
        return _OpeningWriter(self, frozenset(excluded_pids)).write()


_UNKNOWN_PROCESS = ProcessRecord()


def _assemble_texts(rows: Iterable[tuple[int, int, int, int, int]]) -> dict[int, str]:
    """Returns the assembled texts by the index of their first row.

    Rows are (kind, CPU, process, first, second).
    """
    texts = TextAssembler()
    text_by_row: dict[int, str] = {}
    first_row_by_cpu: dict[int, int] = {}
    for index, (kind, cpu, _, first, second) in enumerate(rows):
        if kind in TEXT_OWNERS:
            first_row_by_cpu[cpu] = index
            text_by_row[index] = texts.begin(cpu, kind, first, second)
        elif kind == Kind.TEXT and cpu in first_row_by_cpu:
            text_by_row[first_row_by_cpu[cpu]] = texts.go_on(cpu, first, second)
    return text_by_row


class _OpeningWriter:
    """Converts a state to records.

    CPU n gets START, its running process and the unfinished events of this process. CPU 0 gets all
    other state.
    """

    def __init__(self, state: TraceState, excluded_pids: frozenset[int]) -> None:
        self.state = state
        self.excluded_pids = excluded_pids
        self.time = state.time_ns
        self.rows: list[tuple[int, ...]] = []
        self.running = [int(pid) for pid in state.running]

    def write(self) -> Opening:
        for cpu in range(self.state.cpus):
            self._write_begin(cpu)
        self._write_policy_and_tunables()
        for pid in sorted(set(self.state.processes) - set(self.running)):
            self._write_found(0, pid)
        self._write_attributes()
        self._write_queues()
        for cpu in range(self.state.cpus):
            self._write_unfinished_events(cpu)
        group_by_pid = {
            pid: process.group
            for pid, process in self.state.processes.items()
            if process.group and pid not in self.running
        }
        return Opening(np.array(self.rows, RECORD), self.time, group_by_pid)

    def _add(self, cpu: int, kind: int, process: int = 0, first: int = 0, second: int = 0) -> None:
        self.rows.append((self.time, 0, process, kind, cpu, first, second))

    def _add_text(
        self, kind: Kind, text: str, cpu: int, process: int, first: int = 0, second: int = 0
    ) -> None:
        for text_record, low, high in text_records(kind, text, first, second):
            self._add(cpu, text_record, process, low, high)

    def _write_begin(self, cpu: int) -> None:
        self._add(cpu, Kind.START, second=int(self.state.cycles[cpu]))
        pid = self.running[cpu]
        if pid in self.state.processes:
            self._write_found(cpu, pid)

    def _write_found(self, cpu: int, pid: int) -> None:
        process = self.state.processes[pid]
        state = self.state.process_states.get(pid, ProcessState.BLOCKED)
        state = ProcessState.RUNNING if state == EXITING else state
        name = process.name
        if pid in self.excluded_pids and not name.startswith("["):
            name = f"[{name}]"
        self._add_text(Kind.FOUND, name, cpu, pid, state, process.thread_of)

    def _write_policy_and_tunables(self) -> None:
        state = self.state
        if state.policy:
            self._add_text(Kind.POLICY, state.policy, 0, state.shares_by)
        for name, value in state.tunables.items():
            unsigned = value & 0xFFFF_FFFF_FFFF_FFFF
            self._add_text(Kind.TUNABLE, name, 0, state.shares_by, second=unsigned)

    def _write_attributes(self) -> None:
        for (number, group_field), value in sorted(self.state.task_groups.items()):
            self._add(0, Kind.TASK_GROUP, number, group_field, value)
        for pid, process in sorted(self.state.processes.items()):
            for kind, value in sorted(process.attributes.items()):
                self._add(0, Kind.ATTRIBUTE, pid, AttributeKind(kind), value)

    def _write_queues(self) -> None:
        state = self.state
        # A process that is about to leave its CPU may already be queued.
        runs = dict(zip(state.running.tolist(), state.switch_counts.tolist(), strict=True))
        waiting = [
            (place, pid)
            for pid, place in state.queued.items()
            if state.process_states.get(pid) == ProcessState.RUNNABLE
            or place.order > runs.get(pid, place.order)
        ]
        for place, pid in sorted(waiting):
            unsigned = place.level & 0xFFFF_FFFF_FFFF_FFFF
            self._add(0, Kind.QUEUED, pid, place.cpu, unsigned)

    def _write_unfinished_events(self, cpu: int) -> None:
        """Adds the unfinished events of a CPU: an exit of its process, or a decision of its scheduler."""
        pid = self.running[cpu]
        process = self.state.processes.get(pid)
        if process and process.group:
            self._add(cpu, Kind.MARK, pid, MarkKind.GROUP, process.group)
        if process and self.state.process_states.get(pid) == EXITING:
            self._add(cpu, Kind.EXIT, pid, process.status)
        if self.state.is_deciding[cpu]:
            self._add(cpu, Kind.SCHEDULER_ENTER, pid, second=int(self.state.cycles[cpu]))
