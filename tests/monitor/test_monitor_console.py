# SPDX-License-Identifier: MIT
"""The monitor's hand on our kernel, without one: texts, lines that are torn, a machine that says no,
says nothing, or is gone."""

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

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from processes import is_running, wait_until
from schedlab.monitor.system import Records, Refused, StatusRow, TunableNow
from schedlab.monitor.systems import console as console_module
from schedlab.monitor.systems import steering as steering_module
from schedlab.monitor.systems.console import Answer, Console, Done, Failed, Line, Ready
from schedlab.monitor.systems.guest_errors import ESRCH, GuestError
from schedlab.monitor.systems.machine_process import MachineProcess
from schedlab.monitor.systems.status_text import parse_status, parse_tunables
from schedlab.monitor.systems.steering import Steering
from schedlab.monitor.systems.steering_cost import SteeringCost
from schedlab.trace.format import RECORD, Kind

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


def test_a_status_with_one_blank_between_columns_and_nobody_in_it() -> None:
    """As `steer` tells it."""
    text = "Scheduler status\nPolicy: rr\n\nNAME PID STATE PRIORITY TIMESLICE TICKETS\n"
    status = parse_status(text)
    assert (status.policy, status.changed, status.rows) == ("rr", {}, ())


def test_remarks_of_linux() -> None:
    text = f"""Scheduler status
Policy: fair
Fair class since: runnable task stall (1234)

{HEADINGS}(the threads cannot be read: Permission denied)
"""
    status = parse_status(text)
    assert "runnable task stall" in status.remark
    assert "Permission denied" in status.remark
    assert status.rows == ()


@pytest.mark.parametrize(
    "name",
    [
        "(sd-pam)",
        "a\x85b",
        "a\u2028b",
        "\u00a0\u00a0",
        "\x1c\x1d",
        "-",
        "Policy:",
        "a=b",
        "|",
        "NAME",
    ],
)
def test_odd_names(name: str) -> None:
    """What Python takes for white space or an end of line is none."""
    status = parse_status(f"{HEAD}{name} 7 running 5 10 1\nlast 8 running 5 10 1\n")
    assert [(row.name, row.pid) for row in status.rows] == [(name, 7), ("last", 8)]


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
def test_a_status_that_is_not_whole_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="sched_status"):
        parse_status(text)


def test_tunables() -> None:
    text = """NAME                      VALUE MINIMUM MAXIMUM DEFAULT MEANING
slice_3                       2       0  100000       2 ticks of a turn; 0: no limit
credit                       -5 -100000  100000       0 who  wakes
"""
    assert parse_tunables(text) == (
        TunableNow("slice_3", 2, 0, 100_000, 2, "ticks of a turn; 0: no limit"),
        TunableNow("credit", -5, -100_000, 100_000, 0, "who  wakes"),
    )
    with pytest.raises(Refused, match="sched_tunables"):
        parse_tunables("slice 1 2 3\n")
    with pytest.raises(Refused, match="sched_tunables"):
        parse_tunables("NAME VALUE MINIMUM MAXIMUM DEFAULT MEANING\nslice 1 2\n")


# --- the console ----------------------------------------------------------------------------------

STREAM = (
    b"disk: virtio\r\n@@ 0 ready 2 32123\nhello @@ 1 |NAME PID\nworld\n@@ 1 |a 1\n@@ 1 ok\n"
    b"half a line@@ 2 error 160 nix: no such policy\n, the rest\n@@ 3 ok 17\n@@ not ours\n"
    b"@@ 4 frobnicate\n@@ 5 |\n@@ 5 |it says @@ 1 ok\n@@ 6 error 5\n\xff\x1b[31m\n"
)
ANSWERS: list[Answer] = [
    Ready(2, 32123),
    Line(1, "NAME PID"),
    Line(1, "a 1"),
    Done(1, None),
    Failed(2, 160, "nix: no such policy"),
    Done(3, 17),
    Line(5, ""),
    Line(5, "it says @@ 1 ok"),
    Failed(6, 5, ""),
]
LOG = [
    "disk: virtio",
    "hello world",
    "half a line, the rest",
    "@@ not ours",
    "@@ 4 frobnicate",
    "��[31m",
]


def test_answers_and_the_log_part() -> None:
    console = Console()
    assert console.feed(STREAM) == ANSWERS
    assert console.take_log() == LOG
    assert console.take_log() == []


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_lines_may_be_torn_anywhere(cuts: list[int]) -> None:
    console = Console()
    places = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[begin:end] for begin, end in pairwise(places)]
    assert [answer for piece in pieces for answer in console.feed(piece)] == ANSWERS
    assert console.take_log() == LOG


def test_a_line_that_does_not_end_is_shown_once_it_stands_still() -> None:
    console = Console()
    console.feed(b"name: ")
    assert console.take_log() == []
    console.feed(b"your")
    assert console.take_log() == []
    assert console.take_log() == ["name: your"]
    console.feed(b" own\nand @@ 1 ")
    assert console.take_log() == [" own"]
    assert console.take_log() == []
    assert console.take_log() == []  # what may become an answer is not shown
    console.close()
    assert console.take_log() == ["and @@ 1 "]


def test_the_log_is_bounded_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_module, "_PARTIAL_MAX", 1000)
    console = Console()
    most = console_module.LOG_MAX
    console.feed(b"".join(b"%d\n" % number for number in range(most + 3)))
    lines = console.take_log()
    assert len(lines) == most + 1
    assert lines[0].startswith("(3 lines were left out")
    assert lines[1] == "3"
    console.feed(b"x" * 5000)
    (line,) = console.take_log()
    assert len(line) == console_module.LINE_MAX
    assert len(console.tail) <= 1 << 16


def test_the_tail_is_without_answers() -> None:
    console = Console()
    console.feed(b"one\n@@ 1 |NAME\ntwo\n")
    assert console.tail == "one\ntwo\n"


# --- commands -------------------------------------------------------------------------------------


class StandIn:
    """A guest that answers in the same process, by a rule."""

    def __init__(self, answers: Callable[[int, str], list[str]]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.steering = Steering(Console(), self.write)

    def write(self, data: bytes) -> None:
        for line in data.decode().splitlines():
            sign, number, command = line.split(" ", 2)
            assert sign == "@@"
            self.asked.append(command)
            self.say(*(f"@@ {number} {answer}" for answer in self.answers(int(number), command)))

    def say(self, *lines: str) -> None:
        for line in lines:
            asyncio.get_running_loop().call_soon(self.steering.heard, f"{line}\n".encode())


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


def test_commands_are_answered_in_turn() -> None:
    async def work() -> None:
        guest = StandIn(lambda number, command: [f"|{command}", "|", f"ok {number}"])
        texts = await asyncio.gather(*(guest.steering.read(f"file-{i}") for i in range(20)))
        assert texts == [f"read file-{i}\n\n" for i in range(20)]
        assert await guest.steering.tell("start play", "a workload") == 21

    run(work())


def test_what_the_guest_refuses_is_told_in_words() -> None:
    async def work() -> None:
        guest = StandIn(lambda _, __: [f"error {ESRCH} kill: ESRCH"])
        with pytest.raises(GuestError, match=r"^kill 9: there is no such process$") as caught:
            await guest.steering.tell("kill 9", "kill 9")
        assert caught.value.number == ESRCH
        guest.answers = lambda _, __: ["error 77 of a new kind"]
        with pytest.raises(Refused, match=r"^x: of a new kind$"):
            await guest.steering.tell("x", "x")

    run(work())


@pytest.mark.parametrize(
    "command", ["write sched_status rr\n@@ 9 end", "write \x03", "ü", "x" * 121]
)
def test_what_would_be_more_than_one_line_is_not_typed(command: str) -> None:
    async def work() -> None:
        guest = StandIn(lambda _, __: ["ok"])
        with pytest.raises(Refused, match="cannot be said"):
            await guest.steering.tell(command, "it")
        assert guest.asked == []

    run(work())


def test_a_silent_guest_is_given_up_and_its_late_answer_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(steering_module, "PATIENCE_S", 0.3)
    monkeypatch.setattr(steering_module, "_LOOK_S", 0.02)

    async def work() -> None:
        guest = StandIn(lambda _, __: [])
        guest.steering.explain_silence = lambda: "who has a better priority has the CPUs"
        with pytest.raises(Refused, match=r"rr: it has not answered .*; who has a better priority"):
            await guest.steering.tell("write sched_status rr", "rr")
        guest.answers = lambda number, _: [f"|{number}", "ok"]
        guest.say("@@ 1 |late", "@@ 1 ok")
        assert await guest.steering.read("it") == "2\n"

    run(work())


def test_a_slow_answer_is_waited_for_while_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steering_module, "PATIENCE_S", 0.4)
    monkeypatch.setattr(steering_module, "_LOOK_S", 0.02)

    async def work() -> None:
        guest = StandIn(lambda _, __: [])
        reading = asyncio.ensure_future(guest.steering.read("it"))
        for number in range(8):
            await asyncio.sleep(0.1)
            guest.say(f"@@ 1 |{number}")
        guest.say("@@ 1 ok")
        assert await reading == "".join(f"{number}\n" for number in range(8))

    run(work())


def test_commands_do_not_pile_up_in_a_guest_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(steering_module, "PATIENCE_S", 0.02)
    monkeypatch.setattr(steering_module, "_LOOK_S", 0.005)

    async def work() -> None:
        guest = StandIn(lambda _, __: [])
        for _ in range(20):
            with pytest.raises(Refused):
                await guest.steering.tell("kill 9", "kill 9")
        assert len(guest.asked) == steering_module.UNANSWERED_MAX
        guest.say(f"@@ {len(guest.asked)} ok")
        guest.answers = lambda _, __: ["ok"]
        await asyncio.sleep(0)
        await guest.steering.tell("kill 9", "kill 9")

    run(work())


def test_whoever_waits_is_told_when_the_machine_is_gone() -> None:
    async def work() -> None:
        guest = StandIn(lambda _, __: [])
        waiting = [asyncio.ensure_future(guest.steering.tell(f"{i}", f"{i}")) for i in range(3)]
        ready = asyncio.ensure_future(guest.steering.wait_ready(60))
        await asyncio.sleep(0.01)
        guest.steering.fail("the machine's process was ended by SIGKILL")
        results = await asyncio.gather(*waiting, ready, return_exceptions=True)
        assert all(isinstance(each, Refused) and "SIGKILL" in str(each) for each in results)
        with pytest.raises(Refused, match="SIGKILL"):
            await guest.steering.tell("kill 9", "kill 9")
        assert guest.asked == ["0"]

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
    """Also if it is stopped, or takes no notice of being asked."""

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
    """Not even if we are killed and can do nothing any more."""
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
        # Before it runs, it is a program that yet has to tell the host to do so.
        wait_until(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
        os.kill(ours.pid, signal.SIGKILL)
    await_end(pid)


# --- what steering costs --------------------------------------------------------------------------


def records_of_runs(pid: int, runs: list[tuple[int, int]]) -> Records:
    """A trace in which a process runs from one time to another, again and again."""
    rows = [
        row
        for begin, end in runs
        for row in ((begin, 0, pid, Kind.SWITCH, 0, 9, 1), (end, 0, 9, Kind.SWITCH, 0, pid, 3))
    ]
    return np.array(rows, RECORD)


def test_how_long_who_steers_has_run() -> None:
    cost = SteeringCost(2)
    records = records_of_runs(2, [(100, 150), (200, 300), (1000, 1001)])
    for cut in range(len(records) + 1):
        cost = SteeringCost(2)
        cost.feed(records[:cut])
        cost.feed(records[:0])
        cost.feed(records[cut:])
        assert cost.ran_ns == 50 + 100 + 1
    cost.feed(records_of_runs(2, [(2000, 5000)])[:1])
    cost.feed(records_of_runs(3, [(3000, 4000)]))
    assert cost.ran_ns == 151 + 2000


def test_a_status_that_costs_much_is_asked_for_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's clock goes at half the speed of ours; an answer takes 60 ms of it."""
    now = [0.0]
    monkeypatch.setattr("schedlab.monitor.systems.steering_cost.time.monotonic", lambda: now[0])
    cost = SteeringCost(2)
    assert cost.period_s == 1
    for _ in range(5):
        cost.asked()
        ns = int(now[0] * 5e8)
        cost.feed(records_of_runs(2, [(ns, ns + 60_000_000)]))
        now[0] += 0.1
        cost.answered()
        now[0] += cost.period_s - 0.1
        cost.feed(records_of_runs(3, [(int(now[0] * 5e8), int(now[0] * 5e8))]))
    assert cost.period_s == pytest.approx(0.06 / 0.02 / 0.5)
    now[0] += 5  # one answer takes long, since the machine is busy
    cost.asked()
    now[0] += 10
    cost.answered()
    assert cost.period_s == pytest.approx(10 / 0.25)
