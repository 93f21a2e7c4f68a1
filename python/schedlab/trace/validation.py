# SPDX-License-Identifier: MIT
"""Could this have happened? Checks of a whole trace, without a Python loop over its records.

Four groups of checks, each sure of what the group before it has found good:

1. each record by itself: its kind, its CPU, the numbers in it;
2. order: no sequence number missing or twice;
3. each CPU: what it says of itself is one story, from START to END;
4. each process: a state machine, whose steps `timeline` has put in order.

The first record that cannot be is the one that is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schedlab.trace.bounds import (
    CYCLES_MAX,
    PROCESS_MAX,
    TIME_MAX,
    no_counter,
    no_process,
    too_late,
)
from schedlab.trace.errors import RecordName, TraceError, process_name, state_name
from schedlab.trace.format import (
    SHARE_ATTRIBUTES,
    TEXT_OWNERS,
    TEXT_RECORDS_MAX,
    AttributeKind,
    BlockReason,
    Kind,
    MarkKind,
    PreemptReason,
    ProcessState,
    is_kind,
)
from schedlab.trace.model import Integers, Trace
from schedlab.trace.timeline import EXITING, Step, Timeline, timeline

Mask = npt.NDArray[np.bool_]


class Breach(NamedTuple):
    """A record that cannot be, and what should have been instead."""

    row: int
    problem: str


def validate(trace: Trace) -> None:
    """Checks that what the trace says can have happened; raises TraceError if not.

    Of a truncated trace, each CPU's last records may be missing, and what other
    CPUs say of a process is only compared as long as nothing is missing.
    """
    for checks in (_record_checks, _order_checks, _story_checks):
        breach = min(checks(trace), default=None)
        if breach is not None:
            raise _error(trace, breach)


def check_records(trace: Trace) -> None:
    """Checks each record by itself, not what they say together; raises TraceError."""
    breach = min(_record_checks(trace, with_losses=False), default=None)
    if breach is not None:
        raise _error(trace, breach)


def _error(trace: Trace, breach: Breach) -> TraceError:
    name = RecordName.of(trace, breach.row)
    offset = trace.file_offset(breach.row)
    return TraceError(f"{trace.path}: {name}: {breach.problem} (byte {offset} of the file)", name)


def _first(rows: Integers, wrong: Mask, problem: Callable[[int], str]) -> Iterator[Breach]:
    """The first of `rows` (ascending) at which `wrong` is true; `problem` gets its index."""
    if wrong.any():
        index = int(wrong.argmax())
        yield Breach(int(rows[index]), problem(index))


# --- each record by itself


def _record_checks(trace: Trace, with_losses: bool = True) -> Iterator[Breach]:
    kind = trace.column("kind")
    cpu = trace.column("cpu")
    time = trace.column("time_ns")
    rows = np.arange(len(kind))
    cpus = trace.header.cpus
    yield from _first(
        rows,
        (kind < Kind.START) | (kind > max(Kind)),
        lambda at: f"there is no kind {kind[at]}",
    )
    yield from _first(
        rows, cpu >= cpus, lambda at: f"there is no CPU {cpu[at]}: the header says {cpus} CPUs"
    )
    yield from _first(
        rows, too_late(time), lambda at: f"a time of more than {TIME_MAX} ns, which is 73 years"
    )
    process, first, second = (trace.column(name) for name in ("process", "first", "second"))
    yield from _first(
        rows,
        no_process(kind, process, first, second),
        lambda at: f"no process has such a number: there are 1 to {PROCESS_MAX}",
    )
    yield from _first(
        rows, no_counter(kind, second), lambda at: f"a cycle counter above {CYCLES_MAX}"
    )
    for of_kind, enumeration, called in (
        (Kind.BLOCK, BlockReason, "reason to block"),
        (Kind.PREEMPT, PreemptReason, "reason to preempt"),
        (Kind.ATTRIBUTE, AttributeKind, "attribute"),
        (Kind.MARK, MarkKind, "kind of mark"),
    ):
        yield from _number_check(trace, of_kind, enumeration, called)
    for of_policy in (Kind.POLICY, Kind.TUNABLE):
        yield from _shares_check(trace, of_policy)
    yield from _found_check(trace)
    yield from _queue_check(trace)
    if with_losses and not trace.truncated:
        yield from _loss_check(trace)


def _number_check(
    trace: Trace, kind: Kind, enumeration: type[IntEnum], called: str
) -> Iterator[Breach]:
    allowed = [int(number) for number in enumeration if number]
    rows = trace.rows(kind)
    number = trace.column("first")[rows]
    yield from _first(
        rows,
        (number < min(allowed)) | (number > max(allowed)),
        lambda at: f"there is no {called} {number[at]}",
    )


def _shares_check(trace: Trace, kind: Kind) -> Iterator[Breach]:
    rows = trace.rows(kind)
    by = trace.column("process")[rows]
    yield from _first(
        rows,
        ~np.isin(by, SHARE_ATTRIBUTES),
        lambda at: f"there are no shares by attribute {by[at]}",
    )


def _found_check(trace: Trace) -> Iterator[Breach]:
    rows = trace.rows(Kind.FOUND)
    state = trace.column("first")[rows]
    yield from _first(
        rows,
        ~np.isin(state, _FOUND_STATES),
        lambda at: f"no process can be found as {state_name(int(state[at]))}",
    )


def _queue_check(trace: Trace) -> Iterator[Breach]:
    rows = trace.rows(Kind.QUEUED)
    cpu = trace.column("first")[rows]
    cpus = trace.header.cpus
    yield from _first(
        rows,
        cpu >= cpus,
        lambda at: f"there is no queue of CPU {cpu[at]}: the header says {cpus} CPUs",
    )


_FOUND_STATES = (ProcessState.RUNNABLE, ProcessState.RUNNING, ProcessState.BLOCKED)


def _loss_check(trace: Trace) -> Iterator[Breach]:
    """A loss does no harm where the writer of the trace has mended its story."""
    rows = trace.rows(Kind.LOST)
    rows = rows[trace.column("first")[rows] != 1]
    lost = trace.column("second")[rows]
    yield from _first(rows, lost > 0, lambda at: f"this CPU could not keep {lost[at]} records")


# --- order


def _order_checks(trace: Trace) -> Iterator[Breach]:
    sequence = trace.column("sequence")
    step = np.diff(sequence)
    rows = np.arange(1, len(sequence))
    yield from _first(
        rows, step == 0, lambda at: f"the sequence number {sequence[at]} is there twice"
    )
    # What one CPU could not write comes after all that it wrote.
    tolerated = sequence[_certain_rows(trace) - 1] if trace.truncated and len(sequence) else None
    wrong = step > 1
    if tolerated is not None:
        wrong &= sequence[:-1] < tolerated
    yield from _first(
        rows,
        wrong,
        lambda at: (
            f"{step[at] - 1} records before it are missing: "
            f"expected sequence number {sequence[at] + 1}"
        ),
    )


def _certain_rows(trace: Trace) -> int:
    """How many of the first rows come before anything that a cut-off CPU may not have written."""
    cpu = trace.column("cpu")
    ended = np.zeros(trace.header.cpus, bool)
    ended[cpu[trace.rows(Kind.END)]] = True
    last = np.zeros(trace.header.cpus, np.int64)
    last[cpu] = np.arange(1, len(cpu) + 1)
    return len(cpu) if ended.all() else max(int(last[~ended].min()), 1)


# --- each CPU, and each process


def _story_checks(trace: Trace) -> Iterator[Breach]:
    yield from _cpu_checks(trace)
    steps = timeline(trace)
    yield from _process_checks(trace, steps)
    yield from _queued_checks(trace, steps)


class _Stories(NamedTuple):
    """The records of all CPUs, one CPU after the other, each in its order."""

    row: Integers
    cpu: npt.NDArray[np.integer]
    kind: npt.NDArray[np.integer]
    process: npt.NDArray[np.integer]
    begins: Integers
    """Index of the first record of each CPU."""
    begin_of: Integers
    """For each record, the index of the first one of its CPU."""
    current: npt.NDArray[np.integer]
    """The process that ran on the CPU just before each record; 0: idle."""


def _stories(trace: Trace) -> _Stories:
    row = np.argsort(trace.column("cpu"), kind="stable")
    cpu = trace.column("cpu")[row]
    kind = trace.column("kind")[row]
    process = trace.column("process")[row]
    index = np.arange(len(row))
    begins = np.flatnonzero(np.diff(cpu.astype(np.int64), prepend=-1))
    begin_of = np.repeat(begins, np.diff(begins, append=len(row)))
    found_running = (kind == Kind.FOUND) & (trace.column("first")[row] == ProcessState.RUNNING)
    entry = _last_before((kind == Kind.SWITCH) | found_running, index)
    current = np.where(entry >= begin_of, process[entry], 0)
    return _Stories(row, cpu, kind, process, begins, begin_of, current)


def _last_before(which: Mask, index: Integers) -> Integers:
    """For each index, the last one before it at which `which` is true; -1: there is none."""
    last = np.maximum.accumulate(np.where(which, index, -1))
    return np.concatenate(([-1], last[:-1]))


def _cpu_checks(trace: Trace) -> Iterator[Breach]:
    if len(trace.events) == 0:
        return
    stories = _stories(trace)
    yield from _time_check(trace, stories)
    yield from _end_checks(trace, stories)
    yield from _text_check(stories)
    yield from _running_checks(trace, stories)
    yield from _scheduler_checks(trace, stories)


def _earliest(
    stories: _Stories, index: Integers, wrong: Mask, problem: Callable[[int], str]
) -> Iterator[Breach]:
    """Like `_first`, of records given by their place in `stories`: `problem` gets that place."""
    if wrong.any():
        bad = index[wrong]
        place = int(bad[stories.row[bad].argmin()])
        yield Breach(int(stories.row[place]), problem(place))


def _always(problem: str) -> Callable[[int], str]:
    return lambda _: problem


def _time_check(trace: Trace, stories: _Stories) -> Iterator[Breach]:
    time = trace.column("time_ns")[stories.row]
    later = np.arange(1, len(time))
    yield from _earliest(
        stories,
        later,
        (time[1:] < time[:-1]) & (stories.cpu[1:] == stories.cpu[:-1]),
        lambda place: f"the time of the record before it on this CPU is {time[place - 1]} ns",
    )


def _end_checks(trace: Trace, stories: _Stories) -> Iterator[Breach]:
    first = stories.begins
    yield from _earliest(
        stories,
        first,
        stories.kind[first] != Kind.START,
        lambda place: "the first record of a CPU must be START",
    )
    starts = np.flatnonzero(stories.kind == Kind.START)
    yield from _earliest(
        stories,
        starts,
        stories.begin_of[starts] != starts,
        lambda place: "this CPU has started before",
    )
    after = np.flatnonzero((stories.kind[:-1] == Kind.END) & (stories.cpu[1:] == stories.cpu[:-1]))
    yield from _earliest(
        stories,
        after + 1,
        np.ones(len(after), bool),
        lambda place: "this CPU has ended before",
    )
    ends = np.flatnonzero(stories.kind == Kind.END)
    said = trace.column("second")[stories.row].astype(np.int64)
    there = np.arange(len(stories.row)) - stories.begin_of + 1
    yield from _earliest(
        stories,
        ends,
        said[ends] != there[ends],
        lambda place: f"it counts {said[place]} records of this CPU; there are {there[place]}",
    )


def _text_check(stories: _Stories) -> Iterator[Breach]:
    index = np.arange(len(stories.row))
    is_text = stories.kind == Kind.TEXT
    texts = np.flatnonzero(is_text)
    owner = _last_before(~is_text, index)[texts]
    owned = (owner >= stories.begin_of[texts]) & is_kind(stories.kind[owner], *TEXT_OWNERS)
    yield from _earliest(
        stories,
        texts,
        ~owned,
        _always("there is no EXEC, POLICY, TUNABLE or FOUND before it on this CPU"),
    )
    yield from _earliest(
        stories,
        texts,
        texts - owner >= TEXT_RECORDS_MAX,
        lambda place: f"a text has at most {TEXT_RECORDS_MAX} records",
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


def _running_checks(trace: Trace, stories: _Stories) -> Iterator[Breach]:
    def runs(place: int) -> str:
        return f"{process_name(int(stories.current[place]))} runs on this CPU"

    switches = np.flatnonzero(stories.kind == Kind.SWITCH)
    left = trace.column("first")[stories.row[switches]]
    yield from _earliest(stories, switches, left != stories.current[switches], runs)
    yield from _earliest(
        stories, switches, left == stories.process[switches], lambda place: f"{runs(place)} already"
    )
    found = np.flatnonzero(stories.kind == Kind.FOUND)
    found = found[trace.column("first")[stories.row[found]] == ProcessState.RUNNING]
    yield from _earliest(
        stories,
        found,
        stories.kind[found - 1] != Kind.START,
        _always("the process that runs when a CPU starts is found right after its START"),
    )
    # A fork by process 0 comes from outside, whichever process runs.
    by_nobody = (stories.kind == Kind.FORK) & (stories.process == 0)
    own = np.flatnonzero(is_kind(stories.kind, *_OF_THE_RUNNING) & ~by_nobody)
    yield from _earliest(stories, own, stories.process[own] != stories.current[own], runs)


def _scheduler_checks(trace: Trace, stories: _Stories) -> Iterator[Breach]:
    """ENTER and EXIT take turns, SWITCH comes between them, and their counter does not go back."""
    index = np.arange(len(stories.row))
    enters = stories.kind == Kind.SCHEDULER_ENTER
    leaves = stories.kind == Kind.SCHEDULER_EXIT
    last_enter = _last_before(enters, index)
    last_leave = _last_before(leaves, index)
    inside = (last_enter >= stories.begin_of) & (last_enter > last_leave)
    if not enters.any():
        inside |= stories.kind == Kind.SWITCH  # a machine that does not tell of its scheduler
    for which, expected, problem in (
        (enters, False, "the scheduler was entered before on this CPU, and not left"),
        (leaves, True, "the scheduler was not entered on this CPU"),
        (stories.kind == Kind.SWITCH, True, "the scheduler was not entered on this CPU"),
    ):
        at = np.flatnonzero(which)
        yield from _earliest(stories, at, inside[at] != expected, _always(problem))
    counted = np.flatnonzero(enters | leaves | (stories.kind == Kind.START))
    cycles = trace.column("second")[stories.row[counted]]
    back = (cycles[1:] < cycles[:-1]) & (stories.cpu[counted[1:]] == stories.cpu[counted[:-1]])
    yield from _earliest(
        stories, counted[1:], back, lambda place: "this CPU's cycle counter was higher before"
    )


# --- each process


def _process_checks(trace: Trace, steps: Timeline) -> Iterator[Breach]:
    """Each step may follow the one before. (That a process leaves the CPU that it runs on, and
    exits there, is what `_running_checks` has found.)"""
    if len(steps.pid) == 0:
        return
    before = np.concatenate(([_UNKNOWN], steps.after[:-1]))
    before[np.diff(steps.pid, prepend=-1) != 0] = _UNKNOWN
    wrong = ~_ALLOWED[steps.step, before] | _left_wrongly(steps, before)
    if trace.truncated:
        wrong &= steps.row < _certain_rows(trace)
    if wrong.any():
        bad = np.flatnonzero(wrong)
        at = int(bad[steps.row[bad].argmin()])
        yield Breach(int(steps.row[at]), _explain(trace, steps, at, int(before[at])))


def _queued_checks(trace: Trace, steps: Timeline) -> Iterator[Breach]:
    """A process that is queued lives. (It may still run when that is recorded, and lose its CPU only
    then.)"""
    rows = trace.rows(Kind.QUEUED)
    pid = trace.column("process")[rows]
    last = steps.last_before(pid, rows)
    state = np.where(last < 0, _UNKNOWN, steps.after[last] if len(steps.pid) else _UNKNOWN)
    wrong = (state == _UNKNOWN) | (state == ProcessState.ZOMBIE)
    if trace.truncated:
        wrong &= rows < _certain_rows(trace)
    yield from _first(
        rows, wrong, lambda at: f"{process_name(int(pid[at]))} {_NOT_ALIVE[int(state[at])]}"
    )


_UNKNOWN = 6
"""The state of a PID before its first step."""

_ALLOWED = np.zeros((len(Step), 128), bool)
"""The steps that may follow each state."""
_ALLOWED[Step.BORN, [_UNKNOWN, ProcessState.ZOMBIE]] = True
_ALLOWED[Step.FOUND, _UNKNOWN] = True
_ALLOWED[Step.IN, ProcessState.RUNNABLE] = True
_ALLOWED[Step.OUT, [ProcessState.RUNNING, EXITING]] = True
_ALLOWED[Step.WOKEN, ProcessState.BLOCKED] = True
_ALLOWED[Step.ENDED, ProcessState.RUNNING] = True


def _left_wrongly(steps: Timeline, before: npt.NDArray[np.int8]) -> Mask:
    """A process leaves its CPU runnable or blocked, and as a zombie only and always after EXIT."""
    out = steps.step == Step.OUT
    as_zombie = steps.after == ProcessState.ZOMBIE
    alive = (steps.after == ProcessState.RUNNABLE) | (steps.after == ProcessState.BLOCKED)
    wrong: Mask = out & ~np.where(before == EXITING, as_zombie, alive)
    return wrong


def _explain(trace: Trace, steps: Timeline, at: int, before: int) -> str:
    pid = int(steps.pid[at])
    if before == _UNKNOWN:
        return f"process {pid} was never forked, nor found when the trace began"
    record = RecordName.of(trace, int(steps.row[at - 1]))
    since = f"since record {record.sequence} ({record.kind_name} on CPU {record.cpu})"
    if before == EXITING:
        return f"process {pid} exited {since}; expected a switch from it as a zombie"
    if before == ProcessState.RUNNING:
        return f"process {pid} runs on CPU {record.cpu} {since}; {_EXPECTED[Step(steps.step[at])]}"
    if before == ProcessState.ZOMBIE:
        return f"process {pid} is a zombie {since}; {_EXPECTED[Step(steps.step[at])]}"
    return f"process {pid} is {state_name(before)} {since}; {_EXPECTED[Step(steps.step[at])]}"


_NOT_ALIVE = {
    _UNKNOWN: "was never forked, nor found when the trace began",
    int(ProcessState.ZOMBIE): "is a zombie; expected one that lives",
}

_EXPECTED = {
    Step.BORN: "expected a PID that is free",
    Step.IN: "expected a runnable one",
    Step.OUT: "expected it to run here, and to leave it runnable, blocked, or a zombie after EXIT",
    Step.WOKEN: "expected a blocked one",
    Step.ENDED: "expected it to run here",
    Step.FOUND: "expected one of which the trace says nothing before",
}
