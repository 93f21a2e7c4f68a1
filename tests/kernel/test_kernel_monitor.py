# SPDX-License-Identifier: MIT
"""Tests the kernel's services for a monitor: timely trace records, and the `steer` program."""

from __future__ import annotations

import queue
import re
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import polars as pl
import pytest

from built_once import build_once
from guest_machine import ROUND_NS, sound_trace
from schedlab import metrics
from schedlab.base.toolchain.build import DISK_IMAGE, KERNEL_PROGRAM
from schedlab.machines import Boot, kernel_machine
from schedlab.machines.folder import TRACE_FILE
from schedlab.trace import Kind

pytestmark = [pytest.mark.spike, pytest.mark.xdist_group("kernel_monitor")]

BLOCK_BYTES = 65536
TRACE_RECORD = struct.Struct("<IH")
"""Part of a record: process and kind."""
STEER = 2
"""PID of the `steer` program: the first that init starts."""
PATIENCE_S = 120
"""Seconds after which an idle machine counts as hung."""


# Where each process waits


# The `steer` program


class Monitor:
    """A machine that runs the `steer` program, and its output."""

    def __init__(self, folder: Path, cpus: int, arguments: str, machine: str = "spike") -> None:
        build_once("kernel", "image")
        words = f"{arguments} console-echo=0 trace={TRACE_FILE} run=steer"
        command = kernel_machine(machine).command(
            Boot(KERNEL_PROGRAM, DISK_IMAGE, cpus, 512, words)
        )
        self.trace = folder / TRACE_FILE
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
        """Returns the next console line that matches, and drops the lines before it."""
        while True:
            line = self.lines.get(timeout=PATIENCE_S)
            match = re.search(pattern, line)
            if match:
                return match

    def type(self, text: str) -> None:
        self.keys.write(text.encode())

    def ask(self, command: str) -> tuple[list[str], str]:
        """Returns the reply lines and the result: "ok", "ok 7", "error 2 …"."""
        self.number += 1
        self.type(f"@@ {self.number} {command}\n")
        reply_lines: list[str] = []
        while True:
            match = self.wait_for(rf"@@ {self.number} (\|(.*)|ok.*|error .*)$")
            if not match[1].startswith("|"):
                return reply_lines, match[1]
            reply_lines.append(match[2])

    def status(self) -> dict[int, list[str]]:
        """Returns the rows of sched_status by PID: NAME, STATE, PRIORITY, TIMESLICE, TICKETS."""
        lines, end = self.ask("read sched_status")
        assert end == "ok"
        rows = [line.split() for line in lines[lines.index("") + 2 :]]
        return {int(row[1]): [row[0], *row[2:]] for row in rows}

    def wait_until_ended(self, pid: int) -> None:
        """Waits for at most 10,000 queries; each takes the machine at least 1 ms."""
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
    """One boot for the tests below, which run in order; the last test ends it."""
    folder = tmp_path_factory.mktemp("steer")
    started = Monitor(folder, 2, "tick=1ms policy=rr trace-queues=1 trace-delay=5ms limit=3000s")
    yield started
    started.stop()


def test_steer_announces_that_it_is_ready(monitor: Monitor) -> None:
    """A record takes some tens of instructions, which equal nanoseconds on Spike."""
    match = monitor.wait_for(r"^@@ 0 ready (\d+) (\d+)$")
    assert match[1] == "2"
    assert 15_000 < int(match[2]) < 100_000


def test_records_leave_though_no_block_is_full(monitor: Monitor) -> None:
    """Records arrive while the machine runs."""
    check_that_records_leave(monitor)
    assert (monitor.trace.stat().st_size - 64) % 32 == 0


def check_that_records_leave(monitor: Monitor) -> None:
    """The record of the latest request arrives, although all records together fill no block."""
    tickets = TRACE_RECORD.pack(STEER - 1, Kind.ATTRIBUTE)
    assert tickets not in monitor.trace.read_bytes()
    assert monitor.ask("set 1 tickets 3") == ([], "ok")
    limit = time.monotonic() + PATIENCE_S
    while tickets not in monitor.trace.read_bytes():
        assert time.monotonic() < limit
        time.sleep(0.01)
    assert monitor.trace.stat().st_size < BLOCK_BYTES


def test_steer_writes_and_sets(monitor: Monitor) -> None:
    """Values are read back after they are set."""
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


def test_study_5s_commands(monitor: Monitor) -> None:
    """Each preset interprets the numbers itself; unknown numbers and PIDs do nothing; a
    wrong priority becomes 5."""
    for number, policy in (
        (1, "wrr:linux"),
        (0, "cfs:linux"),
        (2, "lottery:linux"),
        (0, "cfs:linux"),
    ):
        assert monitor.ask(f"write sched_status {number}") == ([], "ok")
        assert f"Policy: {policy}" in monitor.ask("read sched_status")[0]
        for stray in (3, 11, -1):
            assert monitor.ask(f"write sched_status {stray}") == ([], "ok")
        assert f"Policy: {policy}" in monitor.ask("read sched_status")[0]
        for value, shown in ((10, "10"), (11, "5"), (1, "1"), (0, "5"), (2, "2"), (-7, "5")):
            assert monitor.ask(f"write sched_status 1 {value}") == ([], "ok")
            assert monitor.status()[1][2] == shown
        for stray in (99999, 0, -1):
            assert monitor.ask(f"write sched_status {stray} 7") == ([], "ok")
        assert monitor.ask("write sched_status 99999 weight 7")[1].startswith("error 3 ")
        assert monitor.status()[1][2] == "5"
    assert monitor.ask("write sched_status wrr") == ([], "ok")
    assert monitor.ask("write sched_status 1 11") == ([], "error 34 1 11: out of range")
    assert monitor.ask("write sched_status 0") == ([], "ok")
    assert "Policy: rr" in monitor.ask("read sched_status")[0]


ERRORS = [
    ("read nothing", 2),
    ("read sched_status twice", 22),
    ("write sched_status", 22),
    ("write sched_status nobody", 160),
    ("write sched_tunables nothing 1", 161),
    ("write sched_tunables slice 0", 34),
    ("write sched_policies rr", 1),
    (f"write sched_status {'x' * 200}", 36),
    ("set 1 priority 11", 34),
    ("set 99999 weight 1", 3),
    ("set 1 tickets many", 22),
    ("start nothing", 2),
    ("start /proc", 8),
    ("start echo 'open", 22),
    ("start echo" + " x" * 32, 22),
    ("kill 1", 1),
    ("end now", 22),
    ("dance", 22),
    ("x" * 4200, 36),
]
"""Commands and the error number of each answer."""


def test_steer_explains_errors(monitor: Monitor) -> None:
    """Errors do not end the `steer` program."""
    for command, error in ERRORS:
        reply_lines, end = monitor.ask(command)
        assert (reply_lines, end.split()[:2]) == ([], ["error", str(error)]), command
    for line in ("hello", "@@ 0 end", "@@ 99999999999 end"):
        monitor.type(line + "\n")
        assert monitor.wait_for(r"@@ 0 (.*)")[1].startswith("error 22")
    monitor.type("\n   \n")
    assert monitor.ask("write sched_status rr") == ([], "ok")


def test_many_commands_at_once(monitor: Monitor) -> None:
    """Input beyond the console's buffer waits, and each command is answered in order."""
    numbers = range(1000, 1400)
    typed = "".join(f"@@ {number} set 1 weight {1 + number % 9}\n" for number in numbers)
    assert len(typed) > 2 * 4096
    threading.Thread(target=monitor.type, args=(typed,)).start()
    for number in numbers:
        assert monitor.wait_for(r"@@ (\d+) ok$")[1] == str(number)


def test_steer_is_heard_under_any_load(monitor: Monitor) -> None:
    """A policy without priorities runs, and forty processes compute.

    The next test reads the duration of each query from the trace.
    """
    monitor.ask("write sched_status lottery")
    monitor.ask("start cpu-bound -n 40 -i 100000000000")
    for _ in range(10000):
        if len(monitor.status()) == 43:
            break
    for _ in range(20):
        rows = monitor.status()
    assert sum(row[1] in ("runnable", "running") for row in rows.values()) == 41


def test_trace_of_a_steered_machine_is_complete(monitor: Monitor) -> None:
    """The run ends in good order, and the `steer` program never waited for a time slice."""
    assert monitor.ask("end") == ([], "ok")
    assert monitor.process.wait(PATIENCE_S) == 0
    events = sound_trace(monitor.trace)
    assert not events.truncated
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
    """QEMU behaves the same with its console, disk and trace device."""
    arguments = "tick=1ms policy=rr trace-queues=1 trace-delay=5ms limit=3000s"
    started = Monitor(tmp_path, 2, arguments, "qemu")
    try:
        assert started.wait_for(r"^@@ 0 ready (\d+) (\d+)$")[1] == str(STEER)
        check_that_records_leave(started)
        _, end = started.ask("start sleep 1")
        started.wait_until_ended(int(end.removeprefix("ok ")))
        assert started.ask("end") == ([], "ok")
        assert started.process.wait(PATIENCE_S) == 0
    finally:
        started.stop()
    assert not sound_trace(started.trace).truncated
