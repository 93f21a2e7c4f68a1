# SPDX-License-Identifier: MIT
"""What the kernel does for a monitor: run queues in the trace, records that leave in time, steer."""

from __future__ import annotations

import queue
import re
import struct
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO

import polars as pl
import pytest

from built_once import build_once
from guest_machine import ROUND_NS, sound_trace, traced
from schedlab import metrics
from schedlab.base.toolchain.build import IMAGE, KERNEL
from schedlab.base.toolchain.policies import read_catalogue
from schedlab.machines import Boot, kernel_machine
from schedlab.machines.folder import TRACE_FILE
from schedlab.trace import Kind, ProcessState, Trace
from trace_story import Record, records_of

pytestmark = [pytest.mark.spike, pytest.mark.xdist_group("kernel_monitor")]

SHARED = ("rr:table-scan",)
"""Policies with one queue for all CPUs, of those that are used here."""
COUNTED = ("lottery", "mlfq", "priority")
"""Policies that say with each choice how many waited."""
BLOCK_BYTES = 65536
TRACE_RECORD = struct.Struct("<IH")
"""The part of a record that says whose it is, and its kind."""
STEER = 2
"""Its PID: the first that init starts."""
PATIENCE_S = 120
"""Until a machine that does nothing more is given up."""


# Where each process waits


def test_the_trace_says_where_each_process_waits(tmp_path: Path) -> None:
    """Under each policy, on three CPUs: whoever is picked was queued there, and nobody else; the
    policies' own counts of who waited are those of the queues in the trace."""
    policies = ["mlfq", "rr:table-scan", "lottery", "priority", "stride"]
    command = "; ".join(f"policy {name}; mixed -n 3 -g 20 -i 600000" for name in policies)
    arguments = "trace-queues=1 trace-delay=3ms"
    events = traced(tmp_path, f"sh -c '{command}; true'", 3, arguments)
    told = Queues(events)
    for each in records_of(events):
        told.take(each)
    assert set(policies) <= set(told.picks)
    assert all(picks > 100 for policy, picks in told.picks.items() if policy in policies)
    assert all(told.counted[policy] > 50 for policy in COUNTED)
    assert told.moved > 5


@dataclass
class Queues:
    """Who waits in which queue, by what the trace says otherwise: each QUEUED is held against it."""

    events: Trace
    policy: str = ""
    where: dict[int, int] = field(default_factory=dict)
    """The queue of each process that waits; CPU 0's is also the one of all."""
    due: dict[int, set[int]] = field(default_factory=dict)
    """Of processes that must be queued next: the CPUs whose queue it may be."""
    inside: dict[int, int] = field(default_factory=dict)
    """By CPU: who ran when the scheduler was entered, until somebody is picked."""
    picks: Counter[str] = field(default_factory=Counter)
    counted: Counter[str] = field(default_factory=Counter)
    moved: int = 0

    def __post_init__(self) -> None:
        self.texts = iter(self.events.texts.sort("row")["text"].to_list())
        self.all_cpus = set(range(self.events.header.cpus))

    def take(self, each: Record) -> None:
        """The next record."""
        if each.kind in (Kind.EXEC, Kind.POLICY, Kind.TUNABLE):
            text = next(self.texts)
            self.policy = text if each.kind == Kind.POLICY else self.policy
        elif each.kind == Kind.FORK:
            self.due[each.first] = self.all_cpus
        elif each.kind == Kind.WAKEUP:
            self.due[each.process] = {each.second}
        elif each.kind == Kind.MIGRATE:
            self.migrate(each)
        elif each.kind == Kind.QUEUED:
            self.queued(each)
        elif each.kind == Kind.SCHEDULER_ENTER:
            self.inside[each.cpu] = each.process
        elif each.kind == Kind.DECISION:
            self.decide(each)
        elif each.kind == Kind.SWITCH:
            self.switch(each)
        elif each.kind == Kind.SCHEDULER_EXIT and each.cpu in self.inside:
            self.pick(each)

    def queue_of(self, cpu: int) -> int:
        return 0 if self.policy in SHARED else cpu

    def migrate(self, each: Record) -> None:
        """Out of one queue and into the other; or, as part of a wake-up, from no queue."""
        if each.process not in self.due:
            assert self.where.pop(each.process) == each.first
            self.moved += 1
        self.due[each.process] = {each.second}

    def queued(self, each: Record) -> None:
        """By whichever reason; without one only because the policy or an attribute has changed."""
        allowed = self.due.pop(each.process, None)
        if allowed is not None:
            assert each.first in {self.queue_of(cpu) for cpu in allowed}, each
        elif self.inside.get(each.cpu) == each.process:
            assert each.first == self.queue_of(each.cpu), each
        else:
            assert each.process in self.where, each
        self.where[each.process] = each.first

    def decide(self, each: Record) -> None:
        """Among those of the CPU's queue."""
        waiting = sum(cpu == self.queue_of(each.cpu) for cpu in self.where.values())
        if self.policy in COUNTED:
            assert each.first == waiting - 1, each
            self.counted[self.policy] += 1

    def switch(self, each: Record) -> None:
        """Who leaves is queued if and only if it could go on."""
        waits = each.first in self.where
        assert not each.first or waits == (each.second == ProcessState.RUNNABLE), each

    def pick(self, each: Record) -> None:
        """Out of this CPU's queue."""
        del self.inside[each.cpu]
        if each.process:
            assert self.where.pop(each.process) == self.queue_of(each.cpu), each
            self.picks[self.policy] += 1


def test_levels_are_those_of_the_choices(tmp_path: Path) -> None:
    """Without what changes levels within a queue, a process is picked from the level at which it
    was queued."""
    arguments = "policy=priority set=aging_interval=0 trace-queues=1"
    events = traced(tmp_path, "ladder -a 1 -f 2 -d 3 -n 3 -c 8 -i 300000 -r 20", 1, arguments)
    level: dict[int, int] = {}
    seen = Counter[int]()
    for each in records_of(events):
        if each.kind == Kind.QUEUED:
            level[each.process] = each.second
        elif each.kind == Kind.DECISION:
            assert each.second == level[each.process], each
            seen[each.second] += 1
    assert len(seen) > 2


def test_what_is_not_asked_for_is_not_there(tmp_path: Path) -> None:
    """Without the arguments: no QUEUED, and blocks that leave when they are full. With them, the
    same things happen, but for what takes a few instructions more."""
    runs: list[Trace] = []
    for arguments in ("", "trace-queues=1 trace-delay=2ms"):
        folder = tmp_path / str(len(runs))
        folder.mkdir()
        runs.append(traced(folder, "cpu-bound -n 3 -i 1500000", 2, arguments))
    plain, watched = runs
    assert len(plain.rows(Kind.QUEUED)) == 0
    assert len(watched.rows(Kind.QUEUED)) > 10
    kept = [each for each in records_of(watched) if each.kind != Kind.QUEUED]
    lives = (Kind.FORK, Kind.EXIT, Kind.BLOCK, Kind.MARK)
    assert Counter(each.kind for each in kept if each.kind in lives) == Counter(
        each.kind for each in records_of(plain) if each.kind in lives
    )
    assert blocks_of(plain) == plain.header.cpus
    assert blocks_of(watched) > 5 * plain.header.cpus


def blocks_of(events: Trace) -> int:
    """Runs of one CPU's records in the file, at most: what left together."""
    with events.path.open("rb") as file:
        file.seek(events.header.header_bytes)
        data = file.read()
    cpus = [data[at] for at in range(18, len(data), 32)]
    return 1 + sum(one != other for one, other in pairwise(cpus))


# steer


class Monitor:
    """A machine that runs steer, and what it says."""

    def __init__(self, folder: Path, cpus: int, arguments: str, machine: str = "spike") -> None:
        build_once("kernel", "image")
        words = f"{arguments} console-echo=0 trace={TRACE_FILE} run=steer"
        command = kernel_machine(machine).command(Boot(KERNEL, IMAGE, cpus, 512, words))
        self.trace = folder / TRACE_FILE
        self.log: list[str] = []
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        assert self.process.stdin
        assert self.process.stdout
        self.keys = self.process.stdin
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self.listen, args=(self.process.stdout,), daemon=True).start()
        self.number = 0

    def listen(self, console: IO[bytes]) -> None:
        for line in console:
            self.lines.put(line.decode().rstrip("\r\n"))

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The next line of the console that is such; those before it go to the log."""
        while True:
            line = self.lines.get(timeout=PATIENCE_S)
            found = re.search(pattern, line)
            if found:
                return found
            self.log.append(line)

    def type(self, text: str) -> None:
        self.keys.write(text.encode())

    def ask(self, command: str) -> tuple[list[str], str]:
        """The lines told, and how it ended: "ok", "ok 7", "error 2 …"."""
        self.number += 1
        self.type(f"@@ {self.number} {command}\n")
        told: list[str] = []
        while True:
            found = self.wait_for(rf"@@ {self.number} (\|(.*)|ok.*|error .*)$")
            if not found[1].startswith("|"):
                return told, found[1]
            told.append(found[2])

    def status(self) -> dict[int, list[str]]:
        """The rows of sched_status by PID: NAME, STATE, PRIORITY, TIMESLICE, TICKETS."""
        lines, end = self.ask("read sched_status")
        assert end == "ok"
        rows = [line.split() for line in lines[lines.index("") + 2 :]]
        return {int(row[1]): [row[0], *row[2:]] for row in rows}

    def wait_until_gone(self, pid: int) -> None:
        """Its patience counts questions, of which each takes the machine a millisecond or more."""
        for _ in range(10000):
            if pid not in self.status():
                return
        raise AssertionError(f"process {pid} lives on")

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitor]:
    """One boot for the tests below: they run in their order, and the last one ends it."""
    folder = tmp_path_factory.mktemp("steer")
    started = Monitor(folder, 2, "tick=1ms policy=rr trace-queues=1 trace-delay=5ms limit=3000s")
    yield started
    started.stop()


def test_steer_says_when_it_is_ready(monitor: Monitor) -> None:
    """A record takes some tens of instructions, which are nanoseconds on Spike."""
    found = monitor.wait_for(r"^@@ 0 ready (\d+) (\d+)$")
    assert found[1] == "2"
    assert 15_000 < int(found[2]) < 100_000


def test_records_leave_though_no_block_is_full(monitor: Monitor) -> None:
    """While the machine runs."""
    check_that_records_leave(monitor)
    assert (monitor.trace.stat().st_size - 64) % 32 == 0


def check_that_records_leave(monitor: Monitor) -> None:
    """What was asked for last is among them; all of them together fill no block."""
    tickets = TRACE_RECORD.pack(STEER - 1, Kind.ATTRIBUTE)
    assert tickets not in monitor.trace.read_bytes()
    assert monitor.ask("set 1 tickets 3") == ([], "ok")
    limit = time.monotonic() + PATIENCE_S
    while tickets not in monitor.trace.read_bytes():
        assert time.monotonic() < limit
        time.sleep(0.01)
    assert monitor.trace.stat().st_size < BLOCK_BYTES


def test_steer_reads(monitor: Monitor) -> None:
    """All lines of all files, in which blanks are made one."""
    rows = monitor.status()
    assert rows[1] == ["init", "blocked", "5", "?", "3"]  # it is urgent: no policy gives it a slice
    assert rows[2][:1] == ["steer"]
    lines, end = monitor.ask("read sched_policies")
    names = [line.split()[1] for line in lines[1:]]
    assert end == "ok"
    assert set(read_catalogue()) <= set(names)
    lines, end = monitor.ask("read sched_tunables")
    assert [line.split()[:5] for line in lines[:2]] == [
        ["NAME", "VALUE", "MINIMUM", "MAXIMUM", "DEFAULT"],
        ["slice", "1", "1", "1000", "1"],
    ]


def test_steer_writes_and_sets(monitor: Monitor) -> None:
    """What is set is read back."""
    assert monitor.ask("write sched_status mlfq:four-quanta") == ([], "ok")
    assert "Policy: mlfq:four-quanta" in monitor.ask("read sched_status")[0]
    assert monitor.ask("write sched_status rr") == ([], "ok")
    assert monitor.ask("write sched_tunables slice 3") == ([], "ok")
    assert "Changed: slice=3" in monitor.ask("read sched_status")[0]
    assert monitor.ask("set 1 priority 7") == ([], "ok")
    assert monitor.ask("set 1 tickets 12") == ([], "ok")
    assert monitor.status()[1][2:] == ["7", "?", "12"]
    assert monitor.ask("set 1 weight 2") == ([], "ok")
    assert monitor.ask("write sched_status wrr") == ([], "ok")
    assert monitor.status()[1][2] == "2"
    assert monitor.ask("write sched_status rr") == ([], "ok")


def test_steer_starts_and_kills(monitor: Monitor) -> None:
    """A program begins with the usual attributes, as init's child, without our input."""
    _, end = monitor.ask("start sleep 100000000")
    pid = int(end.removeprefix("ok "))
    assert monitor.status()[pid][2] == "5"
    assert monitor.status()[pid][4] == "1"
    assert monitor.ask(f"kill {pid}") == ([], "ok")
    monitor.wait_until_gone(pid)
    assert monitor.ask(f"kill {pid}") == ([], "error 3 kill: no such process")


def test_what_steer_starts_has_no_input_and_writes_to_the_console(monitor: Monitor) -> None:
    """`cat` comes to its end at once, and the words of a quote stay together."""
    _, end = monitor.ask("start cat")
    monitor.wait_until_gone(int(end.removeprefix("ok ")))
    monitor.log.clear()
    _, end = monitor.ask("start sh -c 'echo \"two  words\"; cat; echo done; exit 3'")
    monitor.wait_until_gone(int(end.removeprefix("ok ")))
    said = [line for line in monitor.log if line in ("two  words", "done")]
    assert said == ["two  words", "done"]


ERRORS = [
    ("read nothing", "error 2 nothing: no such file or directory"),
    ("read ../init", "error 22 usage: read NAME, of a file in /proc"),
    ("read", "error 22 usage: read NAME, of a file in /proc"),
    ("read sched_status twice", "error 22 usage: read NAME, of a file in /proc"),
    ("write sched_status", "error 22 usage: write NAME TEXT, of a file in /proc"),
    ("write sched_status nobody", "error 160 nobody: no such policy or preset"),
    ("write sched_tunables nothing 1", "error 161 nothing 1: the policy has no such tunable"),
    ("write sched_tunables slice 0", "error 34 slice 0: out of range"),
    ("write sched_policies rr", "error 1 rr: not permitted"),
    (f"write sched_status {'x' * 200}", f"error 36 {'x' * 200}: name too long"),
    ("set 1 tickets 0", "error 34 tickets: out of range"),
    ("set 1 priority 11", "error 34 priority: out of range"),
    ("set 99999 weight 1", "error 3 weight: no such process"),
    ("set 1 size 3", "error 22 usage: set PID ATTRIBUTE VALUE"),
    ("set 0 tickets 3", "error 22 usage: set PID ATTRIBUTE VALUE"),
    ("set 1 tickets many", "error 22 usage: set PID ATTRIBUTE VALUE"),
    ("start nothing", "error 2 nothing: no such file or directory"),
    ("start /proc", "error 8 /proc: not an executable of this machine"),
    ("start", "error 22 usage: start PROGRAM [ARGUMENT]..., quotes closed, up to 31 arguments"),
    ("start echo 'open", "error 22 usage: start PROGRAM [ARGUMENT]..., quotes closed, up to 31"),
    ("start echo" + " x" * 32, "error 22 usage: start PROGRAM [ARGUMENT]..., quotes closed, up to"),
    ("kill 1", "error 1 kill: not permitted"),
    ("kill 2", "error 1 steer itself: end ends the machine"),
    ("kill me", "error 22 usage: kill PID"),
    ("end now", "error 22 usage: end"),
    ("dance", "error 22 no such command: there are read, write, set, start, kill and end"),
    ("x" * 4200, "error 36 a command has up to 4,000 characters"),
]


def test_steer_says_what_is_wrong(monitor: Monitor) -> None:
    """And goes on."""
    for command, error in ERRORS:
        told, end = monitor.ask(command)
        assert (told, end[: len(error)]) == ([], error), command
    for line in ("hello", "@@", "@@ 0 end", "@@ x end", "@@ 99999999999 end"):
        monitor.type(line + "\n")
        assert monitor.wait_for(r"@@ 0 (.*)")[1].startswith("error 22 a command begins with @@ and")
    monitor.type("\n   \n")
    assert monitor.ask("write sched_status rr") == ([], "ok")


def test_many_commands_at_once(monitor: Monitor) -> None:
    """More than the console keeps: what is typed ahead waits, and each is answered in its turn."""
    numbers = range(1000, 1400)
    typed = "".join(f"@@ {number} set 1 weight {1 + number % 9}\n" for number in numbers)
    assert len(typed) > 2 * 4096
    threading.Thread(target=monitor.type, args=(typed,)).start()
    for number in numbers:
        assert monitor.wait_for(r"@@ (\d+) ok$")[1] == str(number)


def test_steer_is_heard_under_any_load(monitor: Monitor) -> None:
    """By a policy that knows no priorities, before forty others that compute. What each question
    took is in the trace, below."""
    monitor.ask("write sched_status lottery")
    monitor.ask("start cpu-bound -n 40 -i 100000000000")
    for _ in range(10000):
        if len(monitor.status()) == 43:
            break
    for _ in range(20):
        rows = monitor.status()
    assert sum(row[1] in ("runnable", "running") for row in rows.values()) == 41


def test_the_trace_of_a_steered_machine_is_whole(monitor: Monitor) -> None:
    """It ends in order. Steer has never waited for a turn, and the policy has never counted it among
    those that do."""
    assert monitor.ask("end") == ([], "ok")
    assert monitor.process.wait(PATIENCE_S) == 0
    events = sound_trace(monitor.trace)
    assert not events.truncated
    told = Queues(events)
    for each in records_of(events):
        told.take(each)
    assert told.counted["lottery"] > 20
    measured = metrics.compute(events)
    row = measured.processes.filter(pl.col("pid") == STEER).row(0, named=True)
    assert row["name"] == "steer"
    assert row["selections"] > 20
    waits = metrics.state_intervals(events).filter(
        (pl.col("pid") == STEER) & (pl.col("state") == "runnable")
    )
    longest = (waits["end_ns"] - waits["begin_ns"]).max()
    assert longest is not None
    assert longest <= 20 * ROUND_NS


@pytest.mark.qemu
def test_steer_on_qemu(tmp_path: Path) -> None:
    """The same by its console, its disk and its way out for the trace."""
    arguments = "tick=1ms policy=rr trace-queues=1 trace-delay=5ms limit=3000s"
    started = Monitor(tmp_path, 2, arguments, "qemu")
    try:
        assert started.wait_for(r"^@@ 0 ready (\d+) (\d+)$")[1] == str(STEER)
        check_that_records_leave(started)
        _, end = started.ask("start sleep 1")
        started.wait_until_gone(int(end.removeprefix("ok ")))
        assert started.ask("end") == ([], "ok")
        assert started.process.wait(PATIENCE_S) == 0
    finally:
        started.stop()
    assert not sound_trace(started.trace).truncated
