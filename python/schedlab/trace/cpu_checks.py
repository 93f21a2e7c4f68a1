# SPDX-License-Identifier: MIT
"""Checks that the records of each CPU are consistent, from START to END."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from schedlab.trace.breach import Breach, always, earliest
from schedlab.trace.cpu_records import CpuRecords, without
from schedlab.trace.errors import process_name
from schedlab.trace.format import TEXT_OWNERS, TEXT_RECORDS_MAX, Kind, is_kind
from schedlab.trace.model import Integers


def cpu_checks(cpu_records: CpuRecords, has_visits: bool) -> Iterator[Breach]:
    """Checks a part of a trace. `has_visits`: the trace contains a SCHEDULER_ENTER record."""
    yield from _time_check(cpu_records)
    yield from _end_checks(cpu_records)
    yield from _text_check(cpu_records)
    yield from _running_checks(cpu_records)
    yield from _scheduler_checks(cpu_records, has_visits)


def _time_check(cpu_records: CpuRecords) -> Iterator[Breach]:
    time = cpu_records.columns.time
    earlier = np.flatnonzero(time[1:] < time[:-1]) + 1
    yield from earliest(
        cpu_records,
        earlier[cpu_records.columns.cpu[earlier] == cpu_records.columns.cpu[earlier - 1]],
        lambda place: f"the time of the record before it on this CPU is {time[place - 1]} ns",
    )


def _end_checks(cpu_records: CpuRecords) -> Iterator[Breach]:
    first = cpu_records.begins
    yield from earliest(
        cpu_records,
        first[cpu_records.columns.kind[first] != Kind.START],
        always("the first record of a CPU must be START"),
    )
    starts = np.flatnonzero(is_kind(cpu_records.columns.kind, Kind.START))
    again = always("this CPU has started before")
    yield from earliest(cpu_records, without(starts, first), again)
    ends = np.flatnonzero(is_kind(cpu_records.columns.kind, Kind.END))
    after = ends[ends + 1 < len(cpu_records.columns.kind)] + 1
    after = after[cpu_records.columns.cpu[after] == cpu_records.columns.cpu[after - 1]]
    yield from earliest(cpu_records, after, always("this CPU has ended before"))
    yield from _count_check(cpu_records, ends)


def _count_check(cpu_records: CpuRecords, ends: Integers) -> Iterator[Breach]:
    stated = cpu_records.columns.second[ends].astype(np.int64)
    cpu = cpu_records.columns.cpu[ends]
    first = cpu_records.begins
    begin_of = first[np.searchsorted(cpu_records.columns.cpu[first], cpu)]
    counted = ends - begin_of + 1 + cpu_records.records_before[cpu]
    counts = dict(
        zip(ends.tolist(), zip(stated.tolist(), counted.tolist(), strict=True), strict=True)
    )
    yield from earliest(
        cpu_records,
        ends[stated != counted],
        lambda place: (
            f"it counts {counts[place][0]} records of this CPU; there are {counts[place][1]}"
        ),
    )


def _text_check(cpu_records: CpuRecords) -> Iterator[Breach]:
    is_text = is_kind(cpu_records.columns.kind, Kind.TEXT)
    texts = np.flatnonzero(is_text)
    if len(texts) == 0:
        return
    words = np.flatnonzero(~is_text)
    before = np.searchsorted(words, texts) - 1
    owner = np.where(before >= 0, words[before] if len(words) else -1, -1)
    owned = (owner >= 0) & is_kind(cpu_records.columns.kind[owner], *TEXT_OWNERS)
    owned &= cpu_records.columns.cpu[owner] == cpu_records.columns.cpu[texts]
    yield from earliest(
        cpu_records,
        texts[~owned],
        always("there is no EXEC, POLICY, TUNABLE, FOUND or SAID before it on this CPU"),
    )
    yield from earliest(
        cpu_records,
        texts[texts - owner >= TEXT_RECORDS_MAX],
        always(f"a text has at most {TEXT_RECORDS_MAX} records"),
    )


_OF_THE_RUNNING = (
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
    def runs(place: int) -> str:
        return f"{process_name(int(cpu_records.current[place]))} runs on this CPU"

    switches = np.flatnonzero(is_kind(cpu_records.columns.kind, Kind.SWITCH))
    left = cpu_records.columns.first[switches]
    yield from earliest(cpu_records, switches[left != cpu_records.current[switches]], runs)
    to_itself = switches[left == cpu_records.columns.process[switches]]
    yield from earliest(cpu_records, to_itself, lambda place: f"{runs(place)} already")
    initial_running = cpu_records.initially_running
    yield from earliest(
        cpu_records,
        initial_running[cpu_records.columns.kind[initial_running - 1] != Kind.START],
        always("the process that runs when a CPU starts is found right after its START"),
    )
    # A fork by process 0 comes from outside and is independent of the running process.
    by_nobody = is_kind(cpu_records.columns.kind, Kind.FORK) & (cpu_records.columns.process == 0)
    of_running = is_kind(cpu_records.columns.kind, *_OF_THE_RUNNING) & ~by_nobody
    wrong = of_running & (cpu_records.columns.process != cpu_records.current)
    yield from earliest(cpu_records, np.flatnonzero(wrong), runs)


def _scheduler_checks(cpu_records: CpuRecords, has_visits: bool) -> Iterator[Breach]:
    """Checks that ENTER and EXIT alternate, that SWITCH is between them, and that their counter never decreases."""
    enters = is_kind(cpu_records.columns.kind, Kind.SCHEDULER_ENTER)
    leaves = is_kind(cpu_records.columns.kind, Kind.SCHEDULER_EXIT)
    counted = cpu_records.counted
    inside = cpu_records.just_before(counted, enters[counted])
    switches = is_kind(cpu_records.columns.kind, Kind.SWITCH)
    if not has_visits:
        inside |= switches
    not_entered = "the scheduler was not entered on this CPU"
    for wrong, problem in (
        (enters & inside, "the scheduler was entered before on this CPU, and not left"),
        ((leaves | switches) & ~inside, not_entered),
    ):
        yield from earliest(cpu_records, np.flatnonzero(wrong), always(problem))
    cycles = cpu_records.columns.second[counted]
    lower = np.flatnonzero(cycles[1:] < cycles[:-1])
    back = counted[lower + 1]
    back = back[cpu_records.columns.cpu[back] == cpu_records.columns.cpu[counted[lower]]]
    higher = always("this CPU's cycle counter was higher before")
    yield from earliest(cpu_records, back, higher)
