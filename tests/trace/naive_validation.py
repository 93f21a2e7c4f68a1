# SPDX-License-Identifier: MIT
"""A slow and obvious version of the checks of a whole trace: finds the first impossible record."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from schedlab.trace import (
    AttributeKind,
    BlockReason,
    DispatchCallback,
    GroupField,
    Kind,
    MarkKind,
    PreemptReason,
    ProcessState,
)
from trace_simulator import Record

NUMBERS = {
    Kind.BLOCK: len(BlockReason) - 1,
    Kind.PREEMPT: len(PreemptReason),
    Kind.ATTRIBUTE: len(AttributeKind),
    Kind.TASK_GROUP: len(GroupField),
    Kind.DISPATCH: len(DispatchCallback),
    Kind.KICK: len(DispatchCallback),
    Kind.MARK: len(MarkKind),
}
OF_THE_RUNNING = (Kind.EXIT, Kind.BLOCK, Kind.YIELD, Kind.PREEMPT, Kind.FORK, Kind.MARK,
                  Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT)  # fmt: skip

COUNTERS = (Kind.START, Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT)


def first_breach(records: list[Record], cpus: int) -> int | None:
    """Returns its index among the records in order, or None for a valid trace."""
    for number, record in enumerate(records):
        if not good_by_itself(record, cpus):
            return number
    for number, (one, next_one) in enumerate(pairwise(records), 1):
        if next_one.sequence != one.sequence + 1:
            return number
    machine = Machine(any(record.kind == Kind.SCHEDULER_ENTER for record in records))
    for number, record in enumerate(records):
        if not machine.take(record):
            return number
    return None


def good_by_itself(record: Record, cpus: int) -> bool:
    """Returns True if its numbers are valid."""
    if not 1 <= record.kind <= len(Kind) or record.cpu >= cpus or record.time > 2**61:
        return False
    if record.process >= 2**31 or max(other_processes(record)) >= 2**31:
        return False
    if record.kind in COUNTERS and record.second >= 2**63:
        return False
    most = NUMBERS.get(Kind(record.kind))
    if most and not 1 <= record.first <= most:
        return False
    if record.kind in (Kind.POLICY, Kind.TUNABLE) and record.process not in (0, 2, 3, 4, 9, 100):
        return False
    if record.kind == Kind.FOUND and record.first not in (1, 2, 3):
        return False
    if record.kind == Kind.QUEUED and record.first >= cpus:
        return False
    if record.kind == Kind.AFFINITY:
        beyond = record.second << 64 * min(record.first, cpus) >> cpus
        return not beyond and 64 * record.first < cpus
    if record.kind == Kind.KICK:
        return record.second % 2**32 < cpus and record.second >> 32 <= 7
    return record.kind != Kind.LOST or record.second == 0 or record.first == 1


def other_processes(record: Record) -> tuple[int, ...]:
    """Returns the other processes that it mentions, if any."""
    match record.kind:
        case Kind.FORK:
            return record.first, record.second
        case Kind.SWITCH | Kind.WAKEUP:
            return (record.first,)
        case Kind.FOUND:
            return (record.second,)
    return (0,)


@dataclass
class Cpu:
    """The state of a CPU."""

    current: int = 0
    time: int = 0
    count: int = 0
    cycles: int = 0
    inside: bool = False
    ended: bool = False
    text_left: int = 0
    just_started: bool = False


class Machine:
    """The state of all CPUs and processes."""

    def __init__(self, has_visits: bool) -> None:
        self.has_visits = has_visits
        self.cpus: dict[int, Cpu] = {}
        self.state: dict[int, str] = {}
        self.last_cpu: dict[int, int] = {}
        self.sets: dict[int, set[int]] = {}
        """The CPU sets of processes that may not run on all CPUs."""

    def take(self, record: Record) -> bool:
        """Returns True if this record can be next."""
        first = record.cpu not in self.cpus
        cpu = self.cpus.setdefault(record.cpu, Cpu())
        cpu.count += 1
        if first != (record.kind == Kind.START) or cpu.ended or record.time < cpu.time:
            return False
        cpu.time = record.time
        fine = (
            self.text(cpu, record)
            and self.running(cpu, record)
            and self.scheduler(cpu, record)
            and self.end(cpu, record)
            and self.process(cpu, record)
            and self.affinity(record)
        )
        cpu.just_started = first
        return fine

    def affinity(self, record: Record) -> bool:
        """No process gets a CPU outside its set."""
        everywhere = set(range(1024))
        if record.kind == Kind.FORK:
            self.sets[record.first] = self.sets.get(record.process, everywhere)
        if record.kind == Kind.AFFINITY:
            first = 64 * record.first
            allowed_cpus = {first + bit for bit in range(64) if record.second >> bit & 1}
            before = self.sets.get(record.process, everywhere)
            self.sets[record.process] = before - set(range(first, first + 64)) | allowed_cpus
        allowed = self.sets.get(record.process, everywhere)
        return record.kind != Kind.SWITCH or record.process == 0 or record.cpu in allowed

    def text(self, cpu: Cpu, record: Record) -> bool:
        """TEXT follows a record with a text, at most twenty times."""
        if record.kind in (Kind.EXEC, Kind.POLICY, Kind.TUNABLE, Kind.FOUND, Kind.SAID):
            cpu.text_left = 20
        elif record.kind == Kind.TEXT:
            cpu.text_left -= 1
            return cpu.text_left >= 0
        else:
            cpu.text_left = 0
        return True

    def running(self, cpu: Cpu, record: Record) -> bool:
        """Only the running process acts on a CPU."""
        if record.kind == Kind.SWITCH:
            return record.first == cpu.current and record.process != record.first
        if record.kind == Kind.FOUND and record.first == ProcessState.RUNNING:
            return cpu.just_started
        by_nobody = record.kind == Kind.FORK and record.process == 0
        return record.kind not in OF_THE_RUNNING or by_nobody or cpu.current == record.process

    def scheduler(self, cpu: Cpu, record: Record) -> bool:
        """Scheduler entries and exits alternate, and switches occur only inside."""
        if record.kind == Kind.SWITCH:
            return cpu.inside or not self.has_visits
        if record.kind in (Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT, Kind.START):
            if record.second < cpu.cycles:
                return False
            cpu.cycles = record.second
        if record.kind in (Kind.SCHEDULER_ENTER, Kind.SCHEDULER_EXIT):
            enters = record.kind == Kind.SCHEDULER_ENTER
            if cpu.inside == enters:
                return False
            cpu.inside = enters
        return True

    def end(self, cpu: Cpu, record: Record) -> bool:
        """END has the count, and is last."""
        if record.kind != Kind.END:
            return True
        cpu.ended = True
        return record.second == cpu.count

    def process(self, cpu: Cpu, record: Record) -> bool:
        """Applies a record to a process."""
        pid = record.process
        if record.kind == Kind.FORK:
            if record.first == 0:
                return True
            fine = self.state.get(record.first, "zombie") == "zombie"
            self.state[record.first] = "runnable"
            return fine
        if record.kind == Kind.FOUND:
            return self.take_existing(cpu, record)
        if record.kind == Kind.QUEUED:
            return self.state.get(pid, "zombie") != "zombie"
        if record.kind == Kind.WAKEUP and pid:
            fine = self.state.get(pid) == "blocked"
            self.state[pid] = "runnable"
            return fine
        if record.kind == Kind.EXIT and pid:
            fine = self.state.get(pid) == "running"
            self.state[pid] = "exiting"
            return fine
        if record.kind == Kind.SWITCH:
            cpu.current = pid
            return self.leave(record) and self.come(record)
        return True

    def take_existing(self, cpu: Cpu, record: Record) -> bool:
        """Applies FOUND."""
        if record.first == ProcessState.RUNNING:
            cpu.current = record.process
        if record.process == 0:
            return True
        fine = record.process not in self.state
        self.state[record.process] = {1: "runnable", 2: "running", 3: "blocked"}[record.first]
        return fine

    def leave(self, record: Record) -> bool:
        """Applies SWITCH to the previous process."""
        if record.first == 0:
            return True
        now = self.state[record.first]
        names: dict[int, str] = {
            ProcessState.RUNNABLE: "runnable",
            ProcessState.BLOCKED: "blocked",
            ProcessState.ZOMBIE: "zombie",
        }
        after = names.get(record.second, "")
        self.state[record.first] = after
        if now == "exiting":
            return after == "zombie"
        return now == "running" and after in ("runnable", "blocked")

    def come(self, record: Record) -> bool:
        """Applies SWITCH to the next process."""
        if record.process == 0:
            return True
        fine = self.state.get(record.process) == "runnable"
        self.state[record.process] = "running"
        return fine
