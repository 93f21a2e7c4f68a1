# SPDX-License-Identifier: MIT
"""Writes the story of a scenario of tests/scenario, tick by tick, from a machine's trace.

Two machines have the same story if the same events happen on each CPU, in the same order and at the
same ticks. Within a tick a story is ordered by CPU: the events of two CPUs at the same tick have no
order common to all machines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from schedlab.trace import AttributeKind, BlockReason, Kind, MarkKind, PreemptReason, Trace

SCENARIO_START = 20
"""As in tests/scenario/scenario.h."""


class Record(NamedTuple):
    """A record of a trace."""

    time_ns: int
    cpu: int
    kind: int
    process: int
    first: int
    second: int


def records_of(trace: Trace) -> list[Record]:
    """Returns all records in order."""
    names = ("time_ns", "cpu", "kind", "process", "first", "second")
    return [Record(*row) for row in trace.events.select(names).iter_rows()]


def scenario_records(trace: Trace) -> list[Record]:
    """Returns the records from the root's mark of the scenario's start to the root's end."""
    records = records_of(trace)
    begin = next(
        index
        for index, record in enumerate(records)
        if record.kind == Kind.MARK and record.first == MarkKind.BEGIN
    )
    root = records[begin].process
    end = next(
        index
        for index, record in enumerate(records)
        if record.kind == Kind.EXIT and record.process == root
    )
    return records[begin + 1 : end + 1]


def role_names(trace: Trace) -> dict[int, str]:
    """Returns roles by PID: the root names itself, and parents name children before forking
    them.
    """
    names = {0: "nobody"}
    announced: dict[int, str] = {}
    for record in records_of(trace):
        if record.kind == Kind.MARK and record.first == MarkKind.GROUP:
            names[record.process] = label(record.second)
        elif record.kind == Kind.MARK and record.first == MarkKind.NOTE:
            announced[record.process] = label(record.second)
        elif record.kind == Kind.FORK and record.process in announced:
            names[record.first] = announced.pop(record.process)
    return names


def label(value: int) -> str:
    """Returns the characters in a mark."""
    return value.to_bytes(8, "little").rstrip(b"\0").decode()


_BLOCKS = {BlockReason.SLEEP: "sleeps", BlockReason.CHILD: "waits for a child"}
_PREEMPTS = {
    PreemptReason.SLICE: "turn is over",
    PreemptReason.WAKEUP: "CPU is wanted",
    PreemptReason.POLICY: "CPU picks again",
}


class Story:
    """Writes lines of the form "tick cpu event"."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.names = role_names(trace)
        self.entered: dict[int, int] = {}
        self.switched: dict[int, bool] = {}
        self.remark: dict[int, str] = {}

    def lines(self) -> list[str]:
        """Returns the whole story; ticks count from the scenario's start."""
        entries: list[tuple[int, int, str]] = []
        for record in scenario_records(self.trace):
            tick = record.time_ns // self.trace.header.tick_ns - SCENARIO_START
            what = self.line_of(record)
            if what:
                entries.append((tick, record.cpu, what))
        entries.sort(key=lambda line: line[:2])
        return [f"{tick:>3} {cpu} {what}" for tick, cpu, what in entries]

    def line_of(self, record: Record) -> str:
        """Returns the line of a record, or nothing if the record is irrelevant to readers."""
        teller = _TELLERS.get(Kind(record.kind))
        return teller(self, record) if teller else ""

    def name(self, pid: int) -> str:
        """Returns the role of a process."""
        return self.names.get(pid, f"process {pid}")

    def fork(self, record: Record) -> str:
        return f"{self.name(record.process)} forks {self.name(record.first)}"

    def wakeup(self, record: Record) -> str:
        place = f" for CPU {record.second}" if record.second != record.cpu else ""
        return f"{self.name(record.process)} wakes{place}"

    def block(self, record: Record) -> str:
        return f"{self.name(record.process)} {_BLOCKS[BlockReason(record.first)]}"

    def yielded(self, record: Record) -> str:
        return f"{self.name(record.process)} yields"

    def preempt(self, record: Record) -> str:
        return f"{self.name(record.process)}: {_PREEMPTS[PreemptReason(record.first)]}"

    def migrate(self, record: Record) -> str:
        return f"{self.name(record.process)} moves from CPU {record.first} to CPU {record.second}"

    def attribute(self, record: Record) -> str:
        kind = AttributeKind(record.first).name.lower()
        return f"{kind} of {self.name(record.process)} becomes {record.second}"

    def exit(self, record: Record) -> str:
        return f"{self.name(record.process)} ends"

    def decision(self, record: Record) -> str:
        self.remark[record.cpu] = f", chosen by {record.second}"
        return ""

    def enter(self, record: Record) -> str:
        self.switched[record.cpu] = False
        self.remark[record.cpu] = ""
        return ""

    def switch(self, record: Record) -> str:
        self.switched[record.cpu] = True
        return f"{self.name(record.process)} runs{self.remark.get(record.cpu, '')}"

    def leave(self, record: Record) -> str:
        if self.switched.get(record.cpu, True) or record.process == 0:
            return ""
        return f"{self.name(record.process)} goes on{self.remark[record.cpu]}"


_TELLERS: dict[Kind, Callable[[Story, Record], str]] = {
    Kind.FORK: Story.fork,
    Kind.WAKEUP: Story.wakeup,
    Kind.BLOCK: Story.block,
    Kind.YIELD: Story.yielded,
    Kind.PREEMPT: Story.preempt,
    Kind.MIGRATE: Story.migrate,
    Kind.ATTRIBUTE: Story.attribute,
    Kind.EXIT: Story.exit,
    Kind.DECISION: Story.decision,
    Kind.SCHEDULER_ENTER: Story.enter,
    Kind.SWITCH: Story.switch,
    Kind.SCHEDULER_EXIT: Story.leave,
}
