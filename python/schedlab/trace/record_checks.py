# SPDX-License-Identifier: MIT
"""Checks each record individually: its kind, its CPU and its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

import numpy as np

from schedlab.trace.affinity_checks import CPUS_PER_RECORD
from schedlab.trace.bounds import (
    CYCLES_MAX,
    PROCESS_MAX,
    TIME_MAX,
    has_impossible_counter,
    has_impossible_pid,
    is_too_late,
)
from schedlab.trace.breach import Breach, first_breach, first_breach_of
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
from schedlab.trace.model import Columns

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
