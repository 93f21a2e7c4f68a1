# SPDX-License-Identifier: MIT
"""Generates traces: a small machine with random processes, recorded as by the kernel."""

from __future__ import annotations

import random
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from schedlab.trace import (
    AttributeKind,
    BlockReason,
    Kind,
    MarkKind,
    PreemptReason,
    ProcessState,
    Trace,
    read,
)

PATIENT = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
"""For tests with many traces: a busy host must not cause a failure."""
RANDOMS = st.builds(random.Random, st.integers(0, 2**32 - 1))
"""The source of a trace's random numbers. `st.randoms()` would draw each number by
Hypothesis, which is slower than all other work, and gives up on long traces.
"""


class Record(NamedTuple):
    """One record, its sequence number not yet wrapped."""

    time: int
    sequence: int
    process: int
    kind: int
    cpu: int
    first: int
    second: int

    def pack(self) -> bytes:
        """Returns its 32 bytes."""
        return struct.pack(
            "<QIIHHIQ", self.time, self.sequence & 0xFFFF_FFFF, self.process, self.kind,
            self.cpu, self.first, self.second,
        )  # fmt: skip


@dataclass
class Script:
    """The possible events of a trace."""

    cpus: int = 2
    steps: int = 200
    first_sequence: int = 0
    cycles_per_second: int = 1_000_000_000
    marks: bool = True
    """MARK_BEGIN and MARK_END, at random places."""
    drain: bool = False
    """All processes end before the trace does."""
    pids: int = 0
    """PIDs above 1 are reused once this many have been assigned; 0: never."""
    initial_tasks: int = 0
    """The number of processes at the start of the trace."""
    shares_by: int | None = None
    """The attribute in POLICY and TUNABLE records; None: any."""
    queues: bool = False
    """QUEUED records when a process is put into a run queue."""


@dataclass
class Simulator:
    """Runs one script; `records` are in order, over all CPUs."""

    random: random.Random
    script: Script
    records: list[Record] = field(default_factory=list)
    time: int = 1000
    state: dict[int, ProcessState] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    next_pid: int = 1

    def __post_init__(self) -> None:
        cpus = self.script.cpus
        self.current = [0] * cpus
        self.cycles = [self.random.randrange(1000) for _ in range(cpus)]
        self.count = [0] * cpus
        self.draining = False
        self.began_by_pid = 0
        self.ended = False

    def run(self) -> list[Record]:
        """Returns the whole trace, from START to END of all CPUs."""
        cpus = range(self.script.cpus)
        existing_count = self.script.initial_tasks
        running = self.random.randrange(existing_count + 1) if existing_count else 0
        for cpu in self.random.sample(cpus, len(cpus)):
            self.emit(cpu, Kind.START, 0, 0, self.cycles[cpu])
            if self.next_pid <= running:
                self.current[cpu] = self.find(cpu, ProcessState.RUNNING)
        while self.next_pid <= existing_count:
            others = (ProcessState.RUNNABLE, ProcessState.BLOCKED)
            self.find(self.random.choice(cpus), self.random.choice(others))
        self.text(0, Kind.POLICY, self.shares_by(), "lottery:thesis-long-name")
        self.fork(0, 0)
        stories = [self.story(cpu) for cpu in cpus]
        for _ in range(self.script.steps):
            next(stories[self.random.randrange(len(stories))])
        self.draining = self.script.drain
        while self.draining and any(self.current + self.alive()):
            next(stories[self.random.randrange(len(stories))])
        # No CPU stops in the middle of a switch.
        for cpu in cpus:
            while next(stories[cpu]):
                pass
        for cpu in cpus:
            self.emit(cpu, Kind.END, 0, 0, self.count[cpu] + 1)
        return self.records

    def alive(self) -> list[int]:
        """Returns the PIDs that have not ended."""
        return [pid for pid, state in self.state.items() if state != ProcessState.ZOMBIE]

    def emit(self, cpu: int, kind: Kind, process: int, first: int = 0, second: int = 0) -> None:
        """Adds a record, some time after the last."""
        self.time += self.random.choice((0, 0, 1, 5, 100, 2000))
        sequence = self.script.first_sequence + len(self.records)
        self.records.append(Record(self.time, sequence, process, kind, cpu, first, second))
        self.count[cpu] += 1

    def text(self, cpu: int, kind: Kind, process: int, text: str) -> None:
        """Adds a text, twelve bytes per record."""
        data = text.encode() or b"\0"
        for index in range(0, len(data), 12):
            second, first = struct.unpack("<QI", data[index : index + 12].ljust(12, b"\0"))
            self.emit(cpu, Kind.TEXT if index else kind, process, first, second)

    def cycle_count(self, cpu: int) -> int:
        """Returns the CPU's counter, some time later."""
        self.cycles[cpu] += self.random.randrange(500)
        return self.cycles[cpu]

    def those(self, state: ProcessState) -> list[int]:
        """Returns the PIDs in a state."""
        return [pid for pid, now in self.state.items() if now == state]

    def fork(self, cpu: int, parent: int) -> None:
        """Forks a process with a free PID."""
        pid = self.next_pid
        limit = self.script.pids
        ended = [pid for pid in self.those(ProcessState.ZOMBIE) if pid > 1]
        if limit and pid > limit:
            if not ended:
                return
            pid = self.random.choice(ended)
        else:
            self.next_pid += 1
        self.state[pid] = ProcessState.RUNNABLE
        self.parents[pid] = parent
        self.emit(cpu, Kind.FORK, parent, pid)
        self.queued(cpu, pid)

    def queued(self, cpu: int, pid: int) -> None:
        """Puts a process into a run queue."""
        if self.script.queues:
            queue = self.random.randrange(self.script.cpus)
            self.emit(cpu, Kind.QUEUED, pid, queue, self.random.randrange(3))

    def find(self, cpu: int, state: ProcessState) -> int:
        """Adds a process that existed before the trace."""
        pid = self.next_pid
        self.next_pid += 1
        self.state[pid] = state
        self.emit(cpu, Kind.FOUND, pid, state, self.random.choice((0, 0, 1)))
        self.text(cpu, Kind.TEXT, pid, self.random.choice(("init", "[kworker/u8:1-ev]")))
        return pid

    def story(self, cpu: int) -> Iterator[bool]:
        """Performs a CPU's next action, record by record; returns whether the CPU is in the
        middle of an operation.
        """
        while True:
            steps = self.of_process(cpu) if self.current[cpu] else self.of_idle(cpu)
            for _ in steps:
                yield True
            yield False

    def of_idle(self, cpu: int) -> Iterator[None]:
        """An idle CPU looks for work, or serves an interrupt."""
        if self.random.random() < 0.3:
            self.wake(cpu)
        elif self.those(ProcessState.RUNNABLE) or self.random.random() < 0.1:
            yield from self.schedule(cpu, ProcessState.RUNNABLE)

    def wake(self, cpu: int) -> None:
        """Wakes a blocked process, if there is one."""
        blocked = self.those(ProcessState.BLOCKED)
        if blocked:
            pid = self.random.choice(blocked)
            self.state[pid] = ProcessState.RUNNABLE
            by = self.current[cpu] if self.random.random() < 0.7 else 0
            self.emit(cpu, Kind.WAKEUP, pid, by, self.random.randrange(self.script.cpus))
            self.queued(cpu, pid)

    def of_process(self, cpu: int) -> Iterator[None]:
        """A CPU with a running process: a system call or an interrupt."""
        pid = self.current[cpu]
        if self.draining:
            yield from self.exit(cpu, pid)
            return
        chance = self.random.random()
        if chance < 0.12:
            self.fork(cpu, pid)
        elif chance < 0.30:
            self.wake(cpu)
        elif chance < 0.45:
            self.remark(cpu, pid)
        elif chance < 0.60:
            never = {BlockReason.NONE, BlockReason.EXIT}
            if not self.script.initial_tasks:
                never.add(BlockReason.OTHER)  # only in traces of Linux
            reasons = [reason for reason in BlockReason if reason not in never]
            self.emit(cpu, Kind.BLOCK, pid, self.random.choice(reasons))
            yield
            yield from self.schedule(cpu, ProcessState.BLOCKED)
        elif chance < 0.68:
            self.emit(cpu, Kind.YIELD, pid)
            yield
            yield from self.schedule(cpu, ProcessState.RUNNABLE)
        elif chance < 0.90:
            yield from self.schedule(
                cpu, ProcessState.RUNNABLE, self.random.choice(list(PreemptReason))
            )
        elif pid != 1:
            yield from self.exit(cpu, pid)

    def exit(self, cpu: int, pid: int) -> Iterator[None]:
        """Ends a process."""
        self.emit(cpu, Kind.EXIT, pid, self.random.choice((0, 1, 0xFFFF_FFFF)))
        yield
        if self.draining or self.random.random() < 0.5:
            self.wake(cpu)
        yield from self.schedule(cpu, ProcessState.ZOMBIE)

    def shares_by(self) -> int:
        """Sets the attribute that determines shares."""
        chosen = self.script.shares_by
        return self.random.choice((0, 2, 3)) if chosen is None else chosen

    def remark(self, cpu: int, pid: int) -> None:
        """Adds records that change no process's state."""
        choice = self.random.randrange(8)
        anybody = self.random.choice(list(self.state))
        if choice == 0:
            name = self.random.choice(("sh", "a", "twelve-bytes", "thirteen-byte", "bürste"))
            self.text(cpu, Kind.EXEC, pid, name)
        elif choice == 1:
            kind = self.random.choice(list(AttributeKind))
            value = self.random.randrange(1, 9)
            if kind >= AttributeKind.SLICE:
                value *= self.random.choice((0, 100, 1000))
            self.emit(cpu, Kind.ATTRIBUTE, anybody, kind, value)
        elif choice == 2:
            self.emit(cpu, Kind.TUNABLE, self.shares_by(), 0, self.random.randrange(100))
            self.text(cpu, Kind.TEXT, 0, "boost_ticks")
            self.say(cpu, anybody)
        elif choice == 3:
            group = self.random.choice((b"cpu", b"io", b"eight888"))
            self.emit(cpu, Kind.MARK, pid, MarkKind.GROUP, int.from_bytes(group, "little"))
        elif choice == 4:
            self.emit(cpu, Kind.MIGRATE, anybody, 0, self.random.randrange(self.script.cpus))
        elif choice == 5:
            value_name = self.random.choice((b"ticks", b"eight888"))
            choices = (
                (MarkKind.NOTE, 7),
                (MarkKind.NAME, int.from_bytes(value_name, "little")),
                (MarkKind.VALUE, self.random.choice((0, 7, 2**63, 2**64 - 1))),
                (MarkKind.JOB, self.random.choice((0, self.time, self.time + 4000))),
            )
            self.emit(cpu, Kind.MARK, pid, *self.random.choice(choices))
        elif self.script.marks and not self.began_by_pid:
            self.began_by_pid = pid
            self.emit(cpu, Kind.MARK, pid, MarkKind.BEGIN)
        elif self.began_by_pid == pid and not self.ended and self.random.random() < 0.2:
            self.ended = True
            self.emit(cpu, Kind.MARK, pid, MarkKind.END)

    def say(self, cpu: int, process: int) -> None:
        """Adds an annotation at the time of the last record, so that all other draws stay the
        same.
        """
        words = b"{} is more than {}, which is told".ljust(36, b"\0")
        rows = [(Kind.SAID, process, 0xFFFF_FFFE, len(self.records))]
        for index in range(0, len(words), 12):
            second, first = struct.unpack("<QI", words[index : index + 12])
            rows.append((Kind.TEXT, 0, first, second))
        for kind, pid, first, second in rows:
            sequence = self.script.first_sequence + len(self.records)
            self.records.append(Record(self.time, sequence, pid, kind, cpu, first, second))
            self.count[cpu] += 1

    def schedule(self, cpu: int, leaves: ProcessState, preempted: int = 0) -> Iterator[None]:
        """Runs the scheduler: the next process, the same one, or idle."""
        previous = self.current[cpu]
        self.emit(cpu, Kind.SCHEDULER_ENTER, previous, 0, self.cycle_count(cpu))
        yield
        if previous and leaves == ProcessState.RUNNABLE:
            self.queued(cpu, previous)
        waiting = self.those(ProcessState.RUNNABLE)
        choices = waiting + [0] * (not waiting)
        if previous and leaves == ProcessState.RUNNABLE:
            choices.append(previous)
        picked = self.random.choice(choices)
        if self.random.random() < 0.5 and picked:
            self.emit(cpu, Kind.DECISION, picked, len(waiting), 3)
        if picked != previous:
            if preempted and previous:
                self.emit(cpu, Kind.PREEMPT, previous, preempted)
            # Other CPUs may see it only after it is recorded.
            if previous:
                self.state[previous] = leaves
            if picked:
                self.state[picked] = ProcessState.RUNNING
            self.current[cpu] = picked
            self.emit(cpu, Kind.SWITCH, picked, previous, int(leaves) if previous else 0)
            yield
        self.emit(cpu, Kind.SCHEDULER_EXIT, picked, 0, self.cycle_count(cpu))


def simulate(source: random.Random, script: Script) -> list[Record]:
    """Returns the records of one random trace, in order."""
    return Simulator(source, script).run()


def header(cpus: int, cycles_per_second: int = 1_000_000_000, **changes: int | bytes) -> bytes:
    """Returns a header's 64 bytes."""
    fields: dict[str, int | bytes] = {
        "magic": b"SCHEDLAB", "version": 1, "header_bytes": 64, "record_bytes": 32, "cpus": cpus,
        "tick_ns": 1_000_000, "cycles_per_second": cycles_per_second, "seed": 1, **changes,
    }  # fmt: skip
    return struct.pack("<8sIIIIQQQ16x", *fields.values())


def write(
    path: Path,
    records: list[Record],
    script: Script,
    block: int = 16,
    source: random.Random | None = None,
) -> Path:
    """Writes a trace file: blocks of one CPU each, in the order of completion, or in any order."""
    waiting: dict[int, list[Record]] = {}
    blocks: list[list[Record]] = []
    for record in records:
        part = waiting.setdefault(record.cpu, [])
        part.append(record)
        if len(part) == block:
            blocks.append(waiting.pop(record.cpu))
    blocks += waiting.values()
    if source:
        source.shuffle(blocks)
    data = b"".join(record.pack() for part in blocks for record in part)
    path.write_bytes(header(script.cpus, script.cycles_per_second) + data)
    return path


def load(
    records: list[Record],
    script: Script,
    source: random.Random | None = None,
    cut: int | None = None,
) -> Trace:
    """Returns the trace, loaded from a file; `cut`: only this many bytes of it."""
    with tempfile.TemporaryDirectory() as directory:
        path = write(Path(directory) / "trace.bin", records, script, 8, source)
        if cut is not None:
            path.write_bytes(path.read_bytes()[:cut])
        return read(path)
