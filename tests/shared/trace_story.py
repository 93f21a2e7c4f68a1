# SPDX-License-Identifier: MIT
"""Tells what happened in a scenario of tests/scenario, tick by tick, from a machine's trace.

Two machines tell the same story if the same things happen on each CPU, in the same order and at
the same ticks. Within a tick a story is ordered by CPU: what two CPUs do at the same tick has no
order that all machines could share.
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
    """All records, in their order."""
    names = ("time_ns", "cpu", "kind", "process", "first", "second")
    return [Record(*row) for row in trace.events.select(names).iter_rows()]


def scenario_records(trace: Trace) -> list[Record]:
    """From the root's mark that the scenario begins until the root ends."""
    records = records_of(trace)
    begin = next(
        place
        for place, each in enumerate(records)
        if each.kind == Kind.MARK and each.first == MarkKind.BEGIN
    )
    root = records[begin].process
    end = next(
        place
        for place, each in enumerate(records)
        if each.kind == Kind.EXIT and each.process == root
    )
    return records[begin + 1 : end + 1]


def role_names(trace: Trace) -> dict[int, str]:
    """PID to role: the root names itself, and parents name children before they fork them."""
    names = {0: "nobody"}
    announced: dict[int, str] = {}
    for each in records_of(trace):
        if each.kind == Kind.MARK and each.first == MarkKind.GROUP:
            names[each.process] = label(each.second)
        elif each.kind == Kind.MARK and each.first == MarkKind.NOTE:
            announced[each.process] = label(each.second)
        elif each.kind == Kind.FORK and each.process in announced:
            names[each.first] = announced.pop(each.process)
    return names


def label(value: int) -> str:
    """The characters in a mark."""
    return value.to_bytes(8, "little").rstrip(b"\0").decode()


_BLOCKS = {BlockReason.SLEEP: "sleeps", BlockReason.CHILD: "waits for a child"}
_PREEMPTS = {
    PreemptReason.SLICE: "turn is over",
    PreemptReason.WAKEUP: "CPU is wanted",
    PreemptReason.POLICY: "CPU picks again",
}


class Story:
    """Writes lines of the form "tick cpu what"."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.names = role_names(trace)
        self.entered: dict[int, int] = {}
        self.switched: dict[int, bool] = {}
        self.remark: dict[int, str] = {}

    def lines(self) -> list[str]:
        """The whole story, its ticks counted from the scenario's begin."""
        told: list[tuple[int, int, str]] = []
        for each in scenario_records(self.trace):
            tick = each.time_ns // self.trace.header.tick_ns - SCENARIO_START
            what = self.tell(each)
            if what:
                told.append((tick, each.cpu, what))
        told.sort(key=lambda line: line[:2])
        return [f"{tick:>3} {cpu} {what}" for tick, cpu, what in told]

    def tell(self, each: Record) -> str:
        """What a record says; nothing for those that say nothing to people."""
        teller = _TELLERS.get(Kind(each.kind))
        return teller(self, each) if teller else ""

    def name(self, pid: int) -> str:
        """The role that a process plays."""
        return self.names.get(pid, f"process {pid}")

    def fork(self, each: Record) -> str:
        return f"{self.name(each.process)} forks {self.name(each.first)}"

    def wakeup(self, each: Record) -> str:
        place = f" for CPU {each.second}" if each.second != each.cpu else ""
        return f"{self.name(each.process)} wakes{place}"

    def block(self, each: Record) -> str:
        return f"{self.name(each.process)} {_BLOCKS[BlockReason(each.first)]}"

    def yielded(self, each: Record) -> str:
        return f"{self.name(each.process)} yields"

    def preempt(self, each: Record) -> str:
        return f"{self.name(each.process)}: {_PREEMPTS[PreemptReason(each.first)]}"

    def migrate(self, each: Record) -> str:
        return f"{self.name(each.process)} moves from CPU {each.first} to CPU {each.second}"

    def attribute(self, each: Record) -> str:
        kind = AttributeKind(each.first).name.lower()
        return f"{kind} of {self.name(each.process)} becomes {each.second}"

    def exit(self, each: Record) -> str:
        return f"{self.name(each.process)} ends"

    def decision(self, each: Record) -> str:
        self.remark[each.cpu] = f", chosen by {each.second}"
        return ""

    def enter(self, each: Record) -> str:
        self.switched[each.cpu] = False
        self.remark[each.cpu] = ""
        return ""

    def switch(self, each: Record) -> str:
        self.switched[each.cpu] = True
        return f"{self.name(each.process)} runs{self.remark.get(each.cpu, '')}"

    def leave(self, each: Record) -> str:
        if self.switched.get(each.cpu, True) or each.process == 0:
            return ""
        return f"{self.name(each.process)} goes on{self.remark[each.cpu]}"


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
