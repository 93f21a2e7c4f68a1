# SPDX-License-Identifier: MIT
"""Checks that the records of each CPU, from START to END, fit together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from schedlab.trace.breach import Breach, constant_text, earliest_breach
from schedlab.trace.cpu_records import CpuRecords, difference
from schedlab.trace.errors import process_name
from schedlab.trace.format import TEXT_OWNERS, TEXT_RECORDS_MAX, Kind, is_kind
from schedlab.trace.model import Integers


def cpu_checks(cpu_records: CpuRecords, has_visits: bool) -> Iterator[Breach]:
    """Yields inconsistencies in a part of a trace.

    `has_visits`: whether the whole trace contains a SCHEDULER_ENTER record.
    """
    yield from _time_check(cpu_records)
    yield from _end_checks(cpu_records)
    yield from _text_check(cpu_records)
    yield from _running_checks(cpu_records)
    yield from _scheduler_checks(cpu_records, has_visits)


def _time_check(cpu_records: CpuRecords) -> Iterator[Breach]:
    """Yields the earliest record whose time is before that of the CPU's previous record."""
    time = cpu_records.columns.time
    decreasing = np.flatnonzero(time[1:] < time[:-1]) + 1
    yield from earliest_breach(
        cpu_records,
        decreasing[cpu_records.columns.cpu[decreasing] == cpu_records.columns.cpu[decreasing - 1]],
        lambda place: f"the time of the record before it on this CPU is {time[place - 1]} ns",
    )


def _end_checks(cpu_records: CpuRecords) -> Iterator[Breach]:
    """Yields the earliest records before a START, after an END, or with a wrong count."""
    first = cpu_records.begins
    yield from earliest_breach(
        cpu_records,
        first[cpu_records.columns.kind[first] != Kind.START],
        constant_text("the first record of a CPU must be START"),
    )
    starts = np.flatnonzero(is_kind(cpu_records.columns.kind, Kind.START))
    started_before = constant_text("this CPU has started before")
    yield from earliest_breach(cpu_records, difference(starts, first), started_before)
    ends = np.flatnonzero(is_kind(cpu_records.columns.kind, Kind.END))
    after_end = ends[ends + 1 < len(cpu_records.columns.kind)] + 1
    after_end = after_end[
        cpu_records.columns.cpu[after_end] == cpu_records.columns.cpu[after_end - 1]
    ]
    yield from earliest_breach(cpu_records, after_end, constant_text("this CPU has ended before"))
    yield from _count_check(cpu_records, ends)


def _count_check(cpu_records: CpuRecords, ends: Integers) -> Iterator[Breach]:
    """Yields the earliest END record with a wrong number of its CPU's records."""
    stated = cpu_records.columns.second[ends].astype(np.int64)
    cpu = cpu_records.columns.cpu[ends]
    first = cpu_records.begins
    begin_of = first[np.searchsorted(cpu_records.columns.cpu[first], cpu)]
    counted = ends - begin_of + 1 + cpu_records.records_before[cpu]
    counts = dict(
        zip(ends.tolist(), zip(stated.tolist(), counted.tolist(), strict=True), strict=True)
    )
    yield from earliest_breach(
        cpu_records,
        ends[stated != counted],
        lambda place: (
            f"it counts {counts[place][0]} records of this CPU; there are {counts[place][1]}"
        ),
    )


def _text_check(cpu_records: CpuRecords) -> Iterator[Breach]:
    """Yields the earliest TEXT record without an owner, or beyond the maximal length."""
    is_text = is_kind(cpu_records.columns.kind, Kind.TEXT)
    texts = np.flatnonzero(is_text)
    if len(texts) == 0:
        return
    other_records = np.flatnonzero(~is_text)
    preceding = np.searchsorted(other_records, texts) - 1
    owner = np.where(preceding >= 0, other_records[preceding] if len(other_records) else -1, -1)
    has_owner = (owner >= 0) & is_kind(cpu_records.columns.kind[owner], *TEXT_OWNERS)
    has_owner &= cpu_records.columns.cpu[owner] == cpu_records.columns.cpu[texts]
    yield from earliest_breach(
        cpu_records,
        texts[~has_owner],
        constant_text("there is no EXEC, POLICY, TUNABLE, FOUND or SAID before it on this CPU"),
    )
    yield from earliest_breach(
        cpu_records,
        texts[texts - owner >= TEXT_RECORDS_MAX],
        constant_text(f"a text has at most {TEXT_RECORDS_MAX} records"),
    )


_KINDS_OF_RUNNING_PROCESS = (
    Kind.EXIT,
    Kind.BLOCK,
    Kind.YIELD,
    Kind.PREEMPT,
    Kind.FORK,
    Kind.MARK,
    Kind.SCHEDULER_ENTER,
    Kind.SCHEDULER_EXIT,
)


def _running_checks(cpu_records: CpuRecords) -> Iterator[Breach]:
    """Yields the earliest records that contradict which process runs on the CPU."""

    def describe_running(index: int) -> str:
        return f"{process_name(int(cpu_records.current[index]))} runs on this CPU"

    switches = np.flatnonzero(is_kind(cpu_records.columns.kind, Kind.SWITCH))
    leaving_pid = cpu_records.columns.first[switches]
    yield from earliest_breach(
        cpu_records, switches[leaving_pid != cpu_records.current[switches]], describe_running
    )
    to_itself = switches[leaving_pid == cpu_records.columns.process[switches]]
    yield from earliest_breach(
        cpu_records, to_itself, lambda place: f"{describe_running(place)} already"
    )
    initial_running = cpu_records.initially_running
    yield from earliest_breach(
        cpu_records,
        initial_running[cpu_records.columns.kind[initial_running - 1] != Kind.START],
        constant_text("the process that runs when a CPU starts is found right after its START"),
    )
    # A fork by PID 0 comes from outside, not from the running process.
    is_fork_by_idle = is_kind(cpu_records.columns.kind, Kind.FORK) & (
        cpu_records.columns.process == 0
    )
    of_running = is_kind(cpu_records.columns.kind, *_KINDS_OF_RUNNING_PROCESS) & ~is_fork_by_idle
    is_wrong_process = of_running & (cpu_records.columns.process != cpu_records.current)
    yield from earliest_breach(cpu_records, np.flatnonzero(is_wrong_process), describe_running)


def _scheduler_checks(cpu_records: CpuRecords, has_visits: bool) -> Iterator[Breach]:
    """Checks that ENTER and EXIT alternate, that SWITCH is between them, and that the cycle counter
    does not fall.
    """
    enters = is_kind(cpu_records.columns.kind, Kind.SCHEDULER_ENTER)
    leaves = is_kind(cpu_records.columns.kind, Kind.SCHEDULER_EXIT)
    counted = cpu_records.counted
    is_inside = cpu_records.just_before(counted, enters[counted])
    switches = is_kind(cpu_records.columns.kind, Kind.SWITCH)
    if not has_visits:
        is_inside |= switches
    not_entered = "the scheduler was not entered on this CPU"
    for wrong, problem in (
        (enters & is_inside, "the scheduler was entered before on this CPU, and not left"),
        ((leaves | switches) & ~is_inside, not_entered),
    ):
        yield from earliest_breach(cpu_records, np.flatnonzero(wrong), constant_text(problem))
    cycles = cpu_records.columns.second[counted]
    lower = np.flatnonzero(cycles[1:] < cycles[:-1])
    decreasing = counted[lower + 1]
    decreasing = decreasing[
        cpu_records.columns.cpu[decreasing] == cpu_records.columns.cpu[counted[lower]]
    ]
    higher = constant_text("this CPU's cycle counter was higher before")
    yield from earliest_breach(cpu_records, decreasing, higher)
