# SPDX-License-Identifier: MIT
"""Tests the monitor's control of the kernel through its console, without a kernel: texts,
torn lines, and a machine that refuses, does not answer, or is gone.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processes import is_running, wait_until
from schedlab.monitor.system import Refused, StatusRow
from schedlab.monitor.systems import steering as steering_module
from schedlab.monitor.systems.console import (
    Answer,
    CommandDone,
    CommandFailed,
    Console,
    SteerReady,
    TextLine,
)
from schedlab.monitor.systems.machine_process import MachineProcess
from schedlab.monitor.systems.status_text import parse_status
from schedlab.monitor.systems.steering import Steering

# --- sched_status and sched_tunables --------------------------------------------------------------

HEADINGS = "NAME                PID STATE    PRIORITY TIMESLICE TICKETS\n"
HEAD = f"""Scheduler status
Policy: mlfq:four-quanta
Changed: boost=48 purse=-2
PRIORITY: 0, the highest, to 10
TIMESLICE: milliseconds; -: no limit; ?: not seen by this policy yet

{HEADINGS}"""


def test_a_status_as_the_kernel_writes_it() -> None:
    text = f"""{HEAD}init                  1 blocked         5         ?       1
sh                    2 runnable        0     2.500 1000000
cat               65535 running        10         -       1
"""
    status = parse_status(text)
    assert status.policy == "mlfq:four-quanta"
    assert status.changed == {"boost": 48, "purse": -2}
    assert status.remark == ""
    assert status.rows == (
        StatusRow("init", 1, "blocked", 5, None, 1),
        StatusRow("sh", 2, "runnable", 0, 2_500_000, 1_000_000),
        StatusRow("cat", 65535, "running", 10, None, 1),
    )


@given(
    st.text(st.characters(exclude_characters=" \n"), min_size=1, max_size=15),
    st.sampled_from(["0.001", "10", "12.345", "-", "?"]),
)
def test_any_name_is_read(name: str, slice_text: str) -> None:
    (row,) = parse_status(f"{HEAD}{name} 7 blocked 5 {slice_text} 1\n").rows
    assert row.name == name
    assert row.slice_ns == (None if slice_text in "-?" else round(float(slice_text) * 1000) * 1000)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Scheduler status\nPolicy: rr\n",
        HEADINGS,
        f"{HEAD}init 1 blocked 5 10",
        f"{HEAD}init 1 blocked 5 10 1 1",
        f"{HEAD}init one blocked 5 10 1",
        f"{HEAD}init 1 blocked 5 1.2.3 1",
        f"{HEAD}init 1 blocked 5 10 ١",
    ],
)
def test_incomplete_status_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="sched_status"):
        parse_status(text)


# --- the console ----------------------------------------------------------------------------------

STREAM = (
    b"disk: virtio\r\n@@ 0 ready 2 32123\nhello @@ 1 |NAME PID\nworld\n@@ 1 |a 1\n@@ 1 ok\n"
    b"half a line@@ 2 error 160 nix: no such policy\n, the rest\n@@ 3 ok 17\n@@ not ours\n"
    b"@@ 4 frobnicate\n@@ 5 |\n@@ 5 |it says @@ 1 ok\n@@ 6 error 5\n\xff\x1b[31m\n"
)
ANSWERS: list[Answer] = [
    SteerReady(2, 32123),
    TextLine(1, "NAME PID"),
    TextLine(1, "a 1"),
    CommandDone(1, None),
    CommandFailed(2, 160, "nix: no such policy"),
    CommandDone(3, 17),
    TextLine(5, ""),
    TextLine(5, "it says @@ 1 ok"),
    CommandFailed(6, 5, ""),
]
LOG = [
    "disk: virtio",
    "hello world",
    "half a line, the rest",
    "@@ not ours",
    "@@ 4 frobnicate",
    "��[31m",
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_lines_may_be_torn_anywhere(cuts: list[int]) -> None:
    console = Console()
    places = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[begin:end] for begin, end in pairwise(places)]
    assert [answer for piece in pieces for answer in console.feed(piece)] == ANSWERS
    assert console.take_log() == LOG


# --- commands -------------------------------------------------------------------------------------


class StandIn:
    """A guest in the same process that answers by a rule."""

    def __init__(self, answers: Callable[[int, str], list[str]]) -> None:
        self.answers = answers
        self.commands: list[str] = []
        self.steering = Steering(Console(), self.write)

    def write(self, data: bytes) -> None:
        for line in data.decode().splitlines():
            sign, number, command = line.split(" ", 2)
            assert sign == "@@"
            self.commands.append(command)
            self.say(*(f"@@ {number} {answer}" for answer in self.answers(int(number), command)))

    def say(self, *lines: str) -> None:
        for line in lines:
            asyncio.get_running_loop().call_soon(self.steering.receive, f"{line}\n".encode())


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


@pytest.mark.parametrize(
    "command", ["write sched_status rr\n@@ 9 end", "write \x03", "ü", "x" * 121]
)
def test_what_would_be_more_than_one_line_is_not_typed(command: str) -> None:
    async def work() -> None:
        guest = StandIn(lambda _, __: ["ok"])
        with pytest.raises(Refused, match="cannot be sent"):
            await guest.steering.execute(command, "it")
        assert guest.commands == []

    run(work())


def test_a_silent_guest_is_given_up_and_its_late_answer_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(steering_module, "ANSWER_TIMEOUT_S", 0.3)
    monkeypatch.setattr(steering_module, "_POLL_S", 0.02)

    async def work() -> None:
        guest = StandIn(lambda _, __: [])
        guest.steering.explain_silence = lambda: "who has a better priority has the CPUs"
        with pytest.raises(Refused, match=r"rr: no answer for .*; who has a better priority"):
            await guest.steering.execute("write sched_status rr", "rr")
        guest.answers = lambda number, _: [f"|{number}", "ok"]
        guest.say("@@ 1 |late", "@@ 1 ok")
        assert await guest.steering.read("it") == "2\n"

    run(work())


def test_commands_do_not_pile_up_in_a_guest_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(steering_module, "ANSWER_TIMEOUT_S", 0.02)
    monkeypatch.setattr(steering_module, "_POLL_S", 0.005)

    async def work() -> None:
        guest = StandIn(lambda _, __: [])
        for _ in range(20):
            with pytest.raises(Refused):
                await guest.steering.execute("kill 9", "kill 9")
        assert len(guest.commands) == steering_module.UNANSWERED_COMMANDS_MAX
        guest.say(f"@@ {len(guest.commands)} ok")
        guest.answers = lambda _, __: ["ok"]
        await asyncio.sleep(0)
        await guest.steering.execute("kill 9", "kill 9")

    run(work())


# --- the process ----------------------------------------------------------------------------------


def await_end(pid: int) -> None:
    wait_until(lambda: not is_running(pid), f"process {pid} is still there")


def test_all_that_a_machine_prints_is_heard_before_its_end(tmp_path: Path) -> None:
    async def work() -> None:
        heard: list[bytes] = []
        process = MachineProcess(heard.append)
        script = "read line; echo $line; seq 20000; echo oops >&2; exit 7"
        await process.start(["sh", "-c", script], tmp_path, ())
        process.write(b"begin\n")
        assert await process.wait() == 7
        process.write(b"nobody reads this\n")
        numbers = "".join(f"{number}\n" for number in range(1, 20001))
        assert b"".join(heard).decode() == f"begin\n{numbers}oops\n"

    run(work())


@pytest.mark.parametrize("before", ["", "trap '' TERM; "])
def test_a_machine_is_ended_with_all_that_it_started(tmp_path: Path, before: str) -> None:
    """This holds even if the machine is stopped or ignores requests to end."""

    async def work() -> None:
        heard: list[bytes] = []
        process = MachineProcess(heard.append)
        script = f"{before}sh -c '{before}echo $$; exec sleep 1000' & wait"
        await process.start(["sh", "-c", script], tmp_path, ())
        while b"\n" not in b"".join(heard):
            await asyncio.sleep(0.01)
        process.signal(signal.SIGSTOP)
        waiting = asyncio.ensure_future(process.wait())
        await process.end()
        assert await waiting < 0
        await_end(int(b"".join(heard)))

    run(work())


def test_a_machine_does_not_outlive_us(tmp_path: Path) -> None:
    """This holds even if this process is killed and cannot clean up."""
    code = """
import asyncio, sys
from itertools import pairwise
from pathlib import Path
from schedlab.monitor.systems.machine_process import MachineProcess
async def work():
    process = MachineProcess(lambda data: None)
    await process.start(["sleep", "1000"], Path(sys.argv[1]), ())
    print(process.pid, flush=True)
    await process.wait()
asyncio.run(work())
"""
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as ours:
        assert ours.stdout
        pid = int(ours.stdout.readline())
        # Before exec, the child must first tie itself to this process.
        wait_until(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
        os.kill(ours.pid, signal.SIGKILL)
    await_end(pid)
