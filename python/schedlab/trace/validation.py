# SPDX-License-Identifier: MIT
"""Checks whether a whole trace is consistent, without a Python loop over its records.

There are four groups of checks. Each relies on the groups before it:

1. each record individually: its kind, its CPU and its numbers (`record_checks`);

2. order: no sequence number is missing or duplicate;

3. each CPU: its records fit together, from START to END (`cpu_checks`);

4. each process: its state changes are possible (`process_checks`).

The error names the first invalid record that the first failing group found.
"""

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from schedlab.trace.cpu_records import CpuRecords, Mask, difference, is_change
from schedlab.trace.errors import RecordName, RecordSource, TraceError, process_name, state_name
from schedlab.trace.format import TEXT_OWNERS, TEXT_RECORDS_MAX, Kind, ProcessState, is_kind
from schedlab.trace.model import Columns, Integers, Trace
from schedlab.trace.outline import TraceFacts
from schedlab.trace.parts import Source, TracePart, TraceParts
from schedlab.trace.reader import sequence_differences
from schedlab.trace.record_checks import (
    AffinityChecks,
    Breach,
    constant_text,
    earliest_breach,
    first_breach,
    first_breach_of,
    loss_check,
    record_checks,
)
from schedlab.trace.steps import Steps
from schedlab.trace.timeline import EXITING, OUT_OF_SIGHT, Step


def validate(trace: Trace) -> None:
    """Raises TraceError if a trace is not consistent.

    In a truncated trace, the last records of CPUs may be missing. Records of different CPUs are
    then compared only up to the first possible gap.
    """
    checks = Checks(trace, trace)
    for part in TraceParts(trace):
        checks.take(part)
    checks.end()


def check_records(trace: Trace) -> None:
    """Raises TraceError if a record has invalid contents; does not compare records."""
    for part in TraceParts(trace):
        breach = min(record_checks(part.columns, part.begin, trace.header.cpus), default=None)
        if breach is not None:
            raise _trace_error(trace, breach)


class Checks:
    """All checks of a trace whose parts arrive in order."""

    def __init__(self, trace: Source, facts: TraceFacts, *, only_together: bool = False) -> None:
        """`only_together`: contents and order of the records were checked before."""
        self._trace = trace
        self._facts = facts
        self._breach: Breach | None = None
        self._groups = [self._record_breaches, self._order_breaches, self._consistency_breaches]
        """The checks that may find an error of higher precedence."""
        if only_together:
            self._groups = [self._consistency_breaches]
        self._affinity = AffinityChecks(facts.header.cpus, facts.has(Kind.AFFINITY))
        self._has_visits = facts.has(Kind.SCHEDULER_ENTER)
        self._sequence: npt.NDArray[np.uint32] | None = None
        """The sequence number of the last record."""

    @property
    def good(self) -> bool:
        """True if no error was found yet."""
        return self._breach is None

    def take(self, part: TracePart) -> None:
        """Checks the next part.

        Raises TraceError as soon as it is certain which record is the first invalid one.
        """
        for index, group in enumerate(self._groups):
            breach = min(group(part), default=None)
            if breach is not None:
                self._breach = breach
                self._groups = self._groups[:index]
                break
        if not self._groups:
            self.end()
        self._sequence = part.records["sequence"][-1:].copy()

    def end(self) -> None:
        """Raises TraceError if an error was found."""
        if self._breach is not None:
            raise _trace_error(self._trace, self._breach)

    def _record_breaches(self, part: TracePart) -> Iterator[Breach]:
        yield from record_checks(part.columns, part.begin, self._facts.header.cpus)
        if not self._facts.truncated:
            yield from loss_check(part.columns, part.begin)

    def _order_breaches(self, part: TracePart) -> Iterator[Breach]:
        begin = part.begin
        step = sequence_differences(self._sequence, part.records["sequence"])
        yield from first_breach(
            begin,
            step == 0,
            lambda at: f"the sequence number {self._sequence_at(begin + at)} is there twice",
        )
        has_gap = step > 1
        if has_gap.any():
            # Records that a truncated CPU could not write follow all records that it wrote.
            has_gap &= np.arange(begin, begin + len(has_gap)) < self._certain_rows
        yield from first_breach(
            begin,
            has_gap,
            lambda at: (
                f"{step[at] - 1} records before it are missing: "
                f"expected sequence number {self._sequence_at(begin + at - 1) + 1}"
            ),
        )

    def _sequence_at(self, row: int) -> int:
        return self._trace.sequence_at(row)

    def _consistency_breaches(self, part: TracePart) -> Iterator[Breach]:
        yield from cpu_checks(part.cpu_records, self._has_visits)
        yield from process_checks(self._trace, part.steps, lambda: self._certain_rows)
        yield from queued_checks(part.columns, part.steps, lambda: self._certain_rows)
        yield from self._affinity.take(part.columns, part.begin, lambda: self._certain_rows)

    @cached_property
    def _certain_rows(self) -> int:
        """How many rows are surely complete: later ones may lack records of a truncated CPU."""
        if not self._facts.truncated:
            return len(self._trace)
        cpus = self._facts.header.cpus
        ended = np.zeros(cpus, bool)
        ends = self._facts.at("cpu", self._facts.rows(Kind.END))
        ended[ends[ends < cpus]] = True
        if ended.all():
            return len(self._trace)
        return max(int(_last_rows(self._trace, cpus)[~ended].min()), 1)


def _last_rows(trace: Source, cpus: int) -> Integers:
    """Returns each CPU's last row, counted from 1; 0 without records."""
    last = np.zeros(cpus, np.int64)
    for part in TraceParts(trace):
        cpu = part.records["cpu"]
        valid_rows = np.flatnonzero(cpu < cpus)
        last[cpu[valid_rows]] = valid_rows + part.begin + 1
    return last


def _trace_error(trace: Source, breach: Breach) -> TraceError:
    name = RecordName.of(trace, breach.row)
    offset = trace.file_offset(breach.row)
    return TraceError(f"{trace.path}: {name}: {breach.problem} (byte {offset} of the file)", name)


_UNKNOWN = 6
"""State of a PID before its first step."""

_STATE_COUNT = 128
_ALLOWED = np.zeros((len(Step), _STATE_COUNT), bool)
"""Which steps may follow each state."""
_ALLOWED[Step.BORN, [_UNKNOWN, ProcessState.ZOMBIE]] = True
_ALLOWED[Step.FOUND, [_UNKNOWN, OUT_OF_SIGHT]] = True
_ALLOWED[Step.UNSEEN, [ProcessState.RUNNABLE, ProcessState.BLOCKED]] = True
_ALLOWED[Step.IN, ProcessState.RUNNABLE] = True
_ALLOWED[Step.OUT, [ProcessState.RUNNING, EXITING]] = True
_ALLOWED[Step.WOKEN, ProcessState.BLOCKED] = True
_ALLOWED[Step.ENDED, ProcessState.RUNNING] = True
_FORBIDDEN = ~_ALLOWED.reshape(-1)


def process_checks(
    trace: RecordSource, steps: Steps, certain: Callable[[], int]
) -> Iterator[Breach]:
    """Yields steps in a part that may not follow the process's previous step.

    `certain` returns the number of rows that are surely complete: later rows may lack records of a
    truncated trace, and are not checked. That a process leaves the CPU where it runs is checked by
    `cpu_checks`.
    """
    if len(steps.pid) == 0:
        return
    previous_state = np.empty_like(steps.after)
    previous_state[1:] = steps.after[:-1]
    previous_state[is_change(steps.pid)] = _UNKNOWN
    is_forbidden = _FORBIDDEN[steps.step.astype(np.int16) * _STATE_COUNT + previous_state]
    is_forbidden |= _leaves_in_wrong_state(steps, previous_state)
    forbidden = np.flatnonzero(is_forbidden)
    forbidden = forbidden[steps.row[forbidden] >= steps.begin]
    if len(forbidden):
        at = int(forbidden[steps.row[forbidden].argmin()])
        if steps.row[at] < certain():
            yield Breach(int(steps.row[at]), _explain(trace, steps, at, int(previous_state[at])))


def queued_checks(columns: Columns, steps: Steps, certain: Callable[[], int]) -> Iterator[Breach]:
    """Yields QUEUED records of processes that do not exist.

    `certain`: see `process_checks`. A process may be queued while it still runs, and lose its CPU
    afterwards.
    """
    rows = np.flatnonzero(is_kind(columns.kind, Kind.QUEUED))
    if len(rows) == 0:
        return
    pid = columns.process[rows].astype(np.int64)
    last = steps.last_before(pid, rows + steps.begin)
    state = np.where(last < 0, _UNKNOWN, steps.after[last] if len(steps.pid) else _UNKNOWN)
    is_wrong = (state == _UNKNOWN) | is_kind(state, ProcessState.ZOMBIE)
    if is_wrong.any():
        is_wrong &= rows + steps.begin < certain()
    yield from first_breach_of(
        rows + steps.begin,
        is_wrong,
        lambda at: f"{process_name(int(pid[at]))} {_NOT_ALIVE_TEXTS[int(state[at])]}",
    )


def _leaves_in_wrong_state(steps: Steps, before: npt.NDArray[np.int8]) -> Mask:
    """Returns which steps leave a CPU in a wrong state: as a zombie without EXIT, or the reverse."""
    leaves_cpu = is_kind(steps.step, Step.OUT)
    as_zombie = is_kind(steps.after, ProcessState.ZOMBIE)
    alive = is_kind(steps.after, ProcessState.RUNNABLE, ProcessState.BLOCKED)
    is_wrong: Mask = leaves_cpu & ~np.where(before == EXITING, as_zombie, alive)
    return is_wrong


def _explain(trace: RecordSource, steps: Steps, at: int, before: int) -> str:
    """Returns why a process cannot take this step from its state `before`."""
    pid = int(steps.pid[at])
    if before == _UNKNOWN:
        return f"process {pid} was never forked, nor found when the trace began"
    record = RecordName.of(trace, int(steps.row[at - 1]))
    since = f"since record {record.sequence} ({record.kind_name} on CPU {record.cpu})"
    if before == EXITING:
        return f"process {pid} exited {since}; expected a switch from it as a zombie"
    if before == ProcessState.RUNNING:
        return (
            f"process {pid} runs on CPU {record.cpu} {since}; {_EXPECTATIONS[Step(steps.step[at])]}"
        )
    if before == ProcessState.ZOMBIE:
        return f"process {pid} is a zombie {since}; {_EXPECTATIONS[Step(steps.step[at])]}"
    return f"process {pid} is {state_name(before)} {since}; {_EXPECTATIONS[Step(steps.step[at])]}"


_NOT_ALIVE_TEXTS = {
    _UNKNOWN: "was never forked, nor found when the trace began",
    int(ProcessState.ZOMBIE): "is a zombie; expected a live process",
}

_EXPECTATIONS = {
    Step.BORN: "expected a free PID",
    Step.IN: "expected a runnable one",
    Step.OUT: "expected it to run here, and to leave it runnable, blocked, or a zombie after EXIT",
    Step.WOKEN: "expected a blocked one",
    Step.ENDED: "expected it to run here",
    Step.FOUND: "expected a process that is new in the trace",
    Step.UNSEEN: "expected a runnable or blocked process",
}


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
