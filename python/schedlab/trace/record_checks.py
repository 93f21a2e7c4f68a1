# SPDX-License-Identifier: MIT
"""Checks each record individually: its kind, its CPU, its numbers, and the CPU sets of processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from schedlab.trace.bounds import (
    CYCLES_MAX,
    PROCESS_MAX,
    TIME_MAX,
    has_impossible_counter,
    has_impossible_pid,
    is_too_late,
)
from schedlab.trace.cpu_records import CpuRecords, Mask
from schedlab.trace.errors import state_name
from schedlab.trace.format import (
    SHARE_ATTRIBUTES,
    AttributeKind,
    BlockReason,
    DispatchCallback,
    GroupField,
    KickFlag,
    Kind,
    LossKind,
    MarkKind,
    PreemptReason,
    ProcessState,
    is_kind,
)
from schedlab.trace.model import Columns, Integers

_INITIAL_STATES = (ProcessState.RUNNABLE, ProcessState.RUNNING, ProcessState.BLOCKED)


def record_checks(columns: Columns, begin: int, cpus: int) -> Iterator[Breach]:
    """Yields records with invalid contents, for a machine with `cpus` CPUs.

    `begin`: the row of the first record.
    """
    time, cpu, kind, process, first, second = columns
    yield from first_breach(
        begin,
        (kind < int(Kind.START)) | (kind > int(max(Kind))),
        lambda at: f"there is no kind {kind[at]}",
    )
    yield from first_breach(
        begin, cpu >= cpus, lambda at: f"there is no CPU {cpu[at]}: the header says {cpus} CPUs"
    )
    yield from first_breach(
        begin, is_too_late(time), lambda at: f"a time of more than {TIME_MAX} ns, which is 73 years"
    )
    yield from first_breach(
        begin,
        has_impossible_pid(kind, process, first, second),
        lambda at: f"no process has such a number: there are 1 to {PROCESS_MAX}",
    )
    yield from first_breach(
        begin,
        has_impossible_counter(kind, second),
        lambda at: f"a cycle counter above {CYCLES_MAX}",
    )
    for of_kind, enumeration, description in (
        (Kind.BLOCK, BlockReason, "reason to block"),
        (Kind.PREEMPT, PreemptReason, "reason to preempt"),
        (Kind.ATTRIBUTE, AttributeKind, "attribute"),
        (Kind.MARK, MarkKind, "kind of mark"),
        (Kind.TASK_GROUP, GroupField, "field of a group of tasks"),
        (Kind.DISPATCH, DispatchCallback, "callback"),
        (Kind.KICK, DispatchCallback, "callback"),
    ):
        yield from _number_check(columns, begin, of_kind, enumeration, description)
    for of_policy in (Kind.POLICY, Kind.TUNABLE):
        yield from _shares_check(columns, begin, of_policy)
    yield from _initial_state_check(columns, begin)
    yield from _queue_check(columns, begin, cpus)
    yield from _kick_check(columns, begin, cpus)
    yield from _affinity_check(columns, begin, cpus)


def _number_check(
    columns: Columns, begin: int, kind: Kind, enumeration: type[IntEnum], description: str
) -> Iterator[Breach]:
    """Yields the first record of a kind whose number is not in the enumeration."""
    of_kind = is_kind(columns.kind, kind)
    if not of_kind.any():
        return
    allowed = [int(number) for number in enumeration if number]
    number = columns.first
    of_kind &= (number < min(allowed)) | (number > max(allowed))
    yield from first_breach(begin, of_kind, lambda at: f"there is no {description} {number[at]}")


def _shares_check(columns: Columns, begin: int, kind: Kind) -> Iterator[Breach]:
    rows = np.flatnonzero(is_kind(columns.kind, kind))
    by = columns.process[rows]
    yield from first_breach_of(
        rows + begin,
        ~is_kind(by, *SHARE_ATTRIBUTES),
        lambda at: f"there are no shares by attribute {by[at]}",
    )


def _initial_state_check(columns: Columns, begin: int) -> Iterator[Breach]:
    rows = np.flatnonzero(is_kind(columns.kind, Kind.FOUND))
    state = columns.first[rows]
    yield from first_breach_of(
        rows + begin,
        ~is_kind(state, *_INITIAL_STATES),
        lambda at: f"no process can be found as {state_name(int(state[at]))}",
    )


def _queue_check(columns: Columns, begin: int, cpus: int) -> Iterator[Breach]:
    cpu = columns.first
    yield from first_breach(
        begin,
        (cpu >= cpus) & is_kind(columns.kind, Kind.QUEUED),
        lambda at: f"there is no queue of CPU {cpu[at]}: the header says {cpus} CPUs",
    )


def _kick_check(columns: Columns, begin: int, cpus: int) -> Iterator[Breach]:
    """Yields the first KICK of an impossible CPU, and the first with impossible flags."""
    rows = np.flatnonzero(is_kind(columns.kind, Kind.KICK))
    second = columns.second[rows].astype(np.uint64)
    cpu, flags = second & np.uint64(0xFFFFFFFF), second >> np.uint64(32)
    yield from first_breach_of(
        rows + begin,
        cpu >= cpus,
        lambda at: f"there is no CPU {cpu[at]}: the header says {cpus} CPUs",
    )
    yield from first_breach_of(
        rows + begin,
        flags >= 1 << len(KickFlag),
        lambda at: f"there are no flags {flags[at]} of a kick",
    )


def _affinity_check(columns: Columns, begin: int, cpus: int) -> Iterator[Breach]:
    rows = np.flatnonzero(is_kind(columns.kind, Kind.AFFINITY))
    word, allowed = columns.first[rows], columns.second[rows].astype(np.uint64)
    remaining_cpus = np.clip(cpus - word.astype(np.int64) * CPUS_PER_RECORD, 0, CPUS_PER_RECORD)
    is_full_word = remaining_cpus == CPUS_PER_RECORD
    bits_beyond = np.where(
        is_full_word, 0, allowed >> np.where(is_full_word, 0, remaining_cpus).astype(np.uint64)
    )
    yield from first_breach_of(
        rows + begin,
        (remaining_cpus == 0) | (bits_beyond > 0),
        lambda at: f"it names CPUs that do not exist: the header says {cpus} CPUs",
    )


def loss_check(columns: Columns, begin: int) -> Iterator[Breach]:
    """Checks that no records were lost, except losses that the trace's writer has repaired."""
    rows = np.flatnonzero(is_kind(columns.kind, Kind.LOST))
    rows = rows[columns.first[rows] != LossKind.MENDED]
    lost = columns.second[rows]
    yield from first_breach_of(
        rows + begin, lost > 0, lambda at: f"this CPU could not keep {lost[at]} records"
    )


CPUS_PER_RECORD = 64
"""The number of CPUs that one AFFINITY record covers."""


class AffinityChecks:
    """Checks affinity, part by part of a trace.

    A process may run on all CPUs if no AFFINITY record exists for it or an ancestor.
    """

    def __init__(self, cpus: int, has_affinity: bool) -> None:
        """`has_affinity`: whether the trace contains an AFFINITY record; without one, all is allowed."""
        self._has_affinity = has_affinity
        self._cpus = cpus
        self._sets: dict[int, int] = {}
        """Current affinity by PID: bit n is CPU n. Other processes may run on all CPUs."""

    def take(self, columns: Columns, begin: int, certain: Callable[[], int]) -> Iterator[Breach]:
        """Yields the violations in the next part, whose first row is `begin`.

        `certain`: see `process_checks`.
        """
        if not self._has_affinity:
            return
        changes = {pid: [(0, cpus)] for pid, cpus in self._sets.items()}
        for row in np.flatnonzero(is_kind(columns.kind, Kind.FORK, Kind.AFFINITY)).tolist():
            pid = self._apply_record(columns, row)
            if pid in changes or pid in self._sets:
                changes.setdefault(pid, []).append((row, self._allowed_cpus(pid)))
        breaches = [
            breach
            for pid, rows in _switches(columns, changes)
            for breach in self._find_forbidden_switches(columns, pid, rows, changes[pid])
        ]
        if breaches:
            row, problem = min(breaches)
            if row + begin < certain():
                yield Breach(row + begin, problem)

    def _allowed_cpus(self, pid: int) -> int:
        return self._sets.get(pid, (1 << self._cpus) - 1)

    def _apply_record(self, columns: Columns, row: int) -> int:
        """Applies a FORK or AFFINITY record; returns the PID of the process concerned."""
        process, first = int(columns.process[row]), int(columns.first[row])
        if columns.kind[row] == Kind.FORK:
            self._sets.pop(first, None)
            if process in self._sets:
                self._sets[first] = self._sets[process]
            return first
        shift = first * CPUS_PER_RECORD
        others = self._allowed_cpus(process) & ~((1 << CPUS_PER_RECORD) - 1 << shift)
        self._sets[process] = others | int(columns.second[row]) << shift
        return process

    def _find_forbidden_switches(
        self, columns: Columns, pid: int, rows: Integers, changes: list[tuple[int, int]]
    ) -> Iterator[Breach]:
        """Yields the process's first switch to a forbidden CPU after each change of its affinity."""
        interval_ends = [*(row for row, _ in changes), len(columns.kind)]
        for (since, allowed), until in zip(changes, interval_ends[1:], strict=True):
            switches_in_period = rows[(rows >= since) & (rows < until)]
            is_allowed = np.array([allowed >> cpu & 1 for cpu in range(self._cpus)], bool)
            forbidden = switches_in_period[~is_allowed[columns.cpu[switches_in_period]]]
            if len(forbidden):
                yield Breach(int(forbidden[0]), f"process {pid} may not run on this CPU")


def _switches(
    columns: Columns, changes: dict[int, list[tuple[int, int]]]
) -> Iterator[tuple[int, Integers]]:
    """Yields, for each process whose affinity changes, the rows where it gets a CPU."""
    pids = np.array(list(changes), np.int64)
    rows = np.flatnonzero(is_kind(columns.kind, Kind.SWITCH) & np.isin(columns.process, pids))
    order = rows[np.argsort(columns.process[rows], kind="stable")]
    who, first = np.unique(columns.process[order], return_index=True)
    bounds = [*first.tolist(), len(order)]
    for pid, begin, end in zip(who.tolist(), bounds[:-1], bounds[1:], strict=True):
        yield pid, order[begin:end]


class Breach(NamedTuple):
    """An invalid record: its row, and what is wrong."""

    row: int
    problem: str


def first_breach_of(
    rows: Integers, is_invalid: Mask, problem: Callable[[int], str]
) -> Iterator[Breach]:
    """Yields a breach for the first of `rows` where `is_invalid` is true; `problem` describes it by index."""
    if is_invalid.any():
        index = int(is_invalid.argmax())
        yield Breach(int(rows[index]), problem(index))


def first_breach(begin: int, is_invalid: Mask, problem: Callable[[int], str]) -> Iterator[Breach]:
    """Yields a breach for the first row where `is_invalid` is true; row `begin` has index 0."""
    if is_invalid.any():
        index = int(is_invalid.argmax())
        yield Breach(begin + index, problem(index))


def earliest_breach(
    cpu_records: CpuRecords, invalid: Integers, problem: Callable[[int], str]
) -> Iterator[Breach]:
    """Yields a breach for the first of the records with the indices `invalid` in `cpu_records`.

    Records of earlier parts were checked with their part, and are skipped. `problem` describes a
    record by its index.
    """
    invalid = invalid[cpu_records.row[invalid] >= cpu_records.begin]
    if len(invalid):
        place = int(invalid[cpu_records.row[invalid].argmin()])
        yield Breach(int(cpu_records.row[place]), problem(place))


def constant_text(problem: str) -> Callable[[int], str]:
    """Returns a function that returns the same description for every index."""
    return lambda _: problem
