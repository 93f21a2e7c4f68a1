# SPDX-License-Identifier: MIT
"""Checks that the records of each CPU are consistent, from START to END."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from schedlab.trace.breach import Breach, always, earliest
from schedlab.trace.cpu_records import Stories, without
from schedlab.trace.errors import process_name
from schedlab.trace.format import TEXT_OWNERS, TEXT_RECORDS_MAX, Kind, is_kind
from schedlab.trace.model import Integers


def cpu_checks(stories: Stories, has_visits: bool) -> Iterator[Breach]:
    """Checks a part of a trace. `has_visits`: the trace contains a SCHEDULER_ENTER record."""
    yield from _time_check(stories)
    yield from _end_checks(stories)
    yield from _text_check(stories)
    yield from _running_checks(stories)
    yield from _scheduler_checks(stories, has_visits)


def _time_check(stories: Stories) -> Iterator[Breach]:
    time = stories.columns.time
    earlier = np.flatnonzero(time[1:] < time[:-1]) + 1
    yield from earliest(
        stories,
        earlier[stories.columns.cpu[earlier] == stories.columns.cpu[earlier - 1]],
        lambda place: f"the time of the record before it on this CPU is {time[place - 1]} ns",
    )


def _end_checks(stories: Stories) -> Iterator[Breach]:
    first = stories.begins
    yield from earliest(
        stories,
        first[stories.columns.kind[first] != Kind.START],
        always("the first record of a CPU must be START"),
    )
    starts = np.flatnonzero(is_kind(stories.columns.kind, Kind.START))
    again = always("this CPU has started before")
    yield from earliest(stories, without(starts, first), again)
    ends = np.flatnonzero(is_kind(stories.columns.kind, Kind.END))
    after = ends[ends + 1 < len(stories.columns.kind)] + 1
    after = after[stories.columns.cpu[after] == stories.columns.cpu[after - 1]]
    yield from earliest(stories, after, always("this CPU has ended before"))
    yield from _count_check(stories, ends)


def _count_check(stories: Stories, ends: Integers) -> Iterator[Breach]:
    stated = stories.columns.second[ends].astype(np.int64)
    cpu = stories.columns.cpu[ends]
    first = stories.begins
    begin_of = first[np.searchsorted(stories.columns.cpu[first], cpu)]
    counted = ends - begin_of + 1 + stories.records_before[cpu]
    counts = dict(
        zip(ends.tolist(), zip(stated.tolist(), counted.tolist(), strict=True), strict=True)
    )
    yield from earliest(
        stories,
        ends[stated != counted],
        lambda place: (
            f"it counts {counts[place][0]} records of this CPU; there are {counts[place][1]}"
        ),
    )


def _text_check(stories: Stories) -> Iterator[Breach]:
    is_text = is_kind(stories.columns.kind, Kind.TEXT)
    texts = np.flatnonzero(is_text)
    if len(texts) == 0:
        return
    words = np.flatnonzero(~is_text)
    before = np.searchsorted(words, texts) - 1
    owner = np.where(before >= 0, words[before] if len(words) else -1, -1)
    owned = (owner >= 0) & is_kind(stories.columns.kind[owner], *TEXT_OWNERS)
    owned &= stories.columns.cpu[owner] == stories.columns.cpu[texts]
    yield from earliest(
        stories,
        texts[~owned],
        always("there is no EXEC, POLICY, TUNABLE, FOUND or SAID before it on this CPU"),
    )
    yield from earliest(
        stories,
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


def _running_checks(stories: Stories) -> Iterator[Breach]:
    def runs(place: int) -> str:
        return f"{process_name(int(stories.current[place]))} runs on this CPU"

    switches = np.flatnonzero(is_kind(stories.columns.kind, Kind.SWITCH))
    left = stories.columns.first[switches]
    yield from earliest(stories, switches[left != stories.current[switches]], runs)
    to_itself = switches[left == stories.columns.process[switches]]
    yield from earliest(stories, to_itself, lambda place: f"{runs(place)} already")
    initial_running = stories.initially_running
    yield from earliest(
        stories,
        initial_running[stories.columns.kind[initial_running - 1] != Kind.START],
        always("the process that runs when a CPU starts is found right after its START"),
    )
    # A fork by process 0 comes from outside and is independent of the running process.
    by_nobody = is_kind(stories.columns.kind, Kind.FORK) & (stories.columns.process == 0)
    of_running = is_kind(stories.columns.kind, *_OF_THE_RUNNING) & ~by_nobody
    wrong = of_running & (stories.columns.process != stories.current)
    yield from earliest(stories, np.flatnonzero(wrong), runs)


def _scheduler_checks(stories: Stories, has_visits: bool) -> Iterator[Breach]:
    """Checks that ENTER and EXIT alternate, that SWITCH is between them, and that their counter never decreases."""
    enters = is_kind(stories.columns.kind, Kind.SCHEDULER_ENTER)
    leaves = is_kind(stories.columns.kind, Kind.SCHEDULER_EXIT)
    counted = stories.counted
    inside = stories.just_before(counted, enters[counted])
    switches = is_kind(stories.columns.kind, Kind.SWITCH)
    if not has_visits:
        inside |= switches
    not_entered = "the scheduler was not entered on this CPU"
    for wrong, problem in (
        (enters & inside, "the scheduler was entered before on this CPU, and not left"),
        ((leaves | switches) & ~inside, not_entered),
    ):
        yield from earliest(stories, np.flatnonzero(wrong), always(problem))
    cycles = stories.columns.second[counted]
    lower = np.flatnonzero(cycles[1:] < cycles[:-1])
    back = counted[lower + 1]
    back = back[stories.columns.cpu[back] == stories.columns.cpu[counted[lower]]]
    higher = always("this CPU's cycle counter was higher before")
    yield from earliest(stories, back, higher)
