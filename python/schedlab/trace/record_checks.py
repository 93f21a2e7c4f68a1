# SPDX-License-Identifier: MIT
"""Checks each record individually: its kind, its CPU and its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

import numpy as np

from schedlab.trace.affinity_checks import WORD_CPUS
from schedlab.trace.bounds import (
    CYCLES_MAX,
    PROCESS_MAX,
    TIME_MAX,
    no_counter,
    no_process,
    too_late,
)
from schedlab.trace.breach import Breach, first_in, first_of
from schedlab.trace.errors import state_name
from schedlab.trace.format import (
    SHARE_ATTRIBUTES,
    AttributeKind,
    BlockReason,
    GroupField,
    Kind,
    LossKind,
    MarkKind,
    PreemptReason,
    ProcessState,
    is_kind,
)
from schedlab.trace.model import Columns

_INITIAL_STATES = (ProcessState.RUNNABLE, ProcessState.RUNNING, ProcessState.BLOCKED)


def record_checks(columns: Columns, begin: int, cpus: int) -> Iterator[Breach]:
    """Checks records of a machine with this many CPUs. `begin`: the row of the first record."""
    time, cpu, kind, process, first, second = columns
    yield from first_in(
        begin,
        (kind < int(Kind.START)) | (kind > int(max(Kind))),
        lambda at: f"there is no kind {kind[at]}",
    )
    yield from first_in(
        begin, cpu >= cpus, lambda at: f"there is no CPU {cpu[at]}: the header says {cpus} CPUs"
    )
    yield from first_in(
        begin, too_late(time), lambda at: f"a time of more than {TIME_MAX} ns, which is 73 years"
    )
    yield from first_in(
        begin,
        no_process(kind, process, first, second),
        lambda at: f"no process has such a number: there are 1 to {PROCESS_MAX}",
    )
    yield from first_in(
        begin, no_counter(kind, second), lambda at: f"a cycle counter above {CYCLES_MAX}"
    )
    for of_kind, enumeration, called in (
        (Kind.BLOCK, BlockReason, "reason to block"),
        (Kind.PREEMPT, PreemptReason, "reason to preempt"),
        (Kind.ATTRIBUTE, AttributeKind, "attribute"),
        (Kind.MARK, MarkKind, "kind of mark"),
        (Kind.TASK_GROUP, GroupField, "field of a group of tasks"),
    ):
        yield from _number_check(columns, begin, of_kind, enumeration, called)
    for of_policy in (Kind.POLICY, Kind.TUNABLE):
        yield from _shares_check(columns, begin, of_policy)
    yield from _found_check(columns, begin)
    yield from _queue_check(columns, begin, cpus)
    yield from _affinity_check(columns, begin, cpus)


def _number_check(
    columns: Columns, begin: int, kind: Kind, enumeration: type[IntEnum], called: str
) -> Iterator[Breach]:
    of_kind = is_kind(columns.kind, kind)
    if not of_kind.any():
        return
    allowed = [int(number) for number in enumeration if number]
    number = columns.first
    of_kind &= (number < min(allowed)) | (number > max(allowed))
    yield from first_in(begin, of_kind, lambda at: f"there is no {called} {number[at]}")


def _shares_check(columns: Columns, begin: int, kind: Kind) -> Iterator[Breach]:
    rows = np.flatnonzero(is_kind(columns.kind, kind))
    by = columns.process[rows]
    yield from first_of(
        rows + begin,
        ~is_kind(by, *SHARE_ATTRIBUTES),
        lambda at: f"there are no shares by attribute {by[at]}",
    )


def _found_check(columns: Columns, begin: int) -> Iterator[Breach]:
    rows = np.flatnonzero(is_kind(columns.kind, Kind.FOUND))
    state = columns.first[rows]
    yield from first_of(
        rows + begin,
        ~is_kind(state, *_INITIAL_STATES),
        lambda at: f"no process can be found as {state_name(int(state[at]))}",
    )


def _queue_check(columns: Columns, begin: int, cpus: int) -> Iterator[Breach]:
    cpu = columns.first
    yield from first_in(
        begin,
        (cpu >= cpus) & is_kind(columns.kind, Kind.QUEUED),
        lambda at: f"there is no queue of CPU {cpu[at]}: the header says {cpus} CPUs",
    )


def _affinity_check(columns: Columns, begin: int, cpus: int) -> Iterator[Breach]:
    rows = np.flatnonzero(is_kind(columns.kind, Kind.AFFINITY))
    word, allowed = columns.first[rows], columns.second[rows].astype(np.uint64)
    left = np.clip(cpus - word.astype(np.int64) * WORD_CPUS, 0, WORD_CPUS)
    full = left == WORD_CPUS
    beyond = np.where(full, 0, allowed >> np.where(full, 0, left).astype(np.uint64))
    yield from first_of(
        rows + begin,
        (left == 0) | (beyond > 0),
        lambda at: f"it names CPUs that do not exist: the header says {cpus} CPUs",
    )


def loss_check(columns: Columns, begin: int) -> Iterator[Breach]:
    """Checks that no records were lost, except where the trace's writer repaired the loss."""
    rows = np.flatnonzero(is_kind(columns.kind, Kind.LOST))
    rows = rows[columns.first[rows] != LossKind.MENDED]
    lost = columns.second[rows]
    yield from first_of(
        rows + begin, lost > 0, lambda at: f"this CPU could not keep {lost[at]} records"
    )
