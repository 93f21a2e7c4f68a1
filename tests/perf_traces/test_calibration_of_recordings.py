# SPDX-License-Identifier: MIT
"""Tests estimates of costs from recordings, against recordings whose costs are known."""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from built_once import build_once
from conftest import Command
from perf_recordings import unpacked
from schedlab import trace
from schedlab.base.toolchain.build import SIMULATOR_PROGRAM
from schedlab.recordings.calibration import Estimate, calibrate
from schedlab.recordings.events import Events
from schedlab.recordings.text import parse
from schedlab.trace import Kind, ProcessState
from schedlab.workload import costs
from simulator_command import write_workload

# --- recordings with known costs


@dataclass
class Recording:
    """Lines of a recording on two CPUs, with known costs in ns."""

    lines: list[str] = field(default_factory=list)
    now: int = 1_000_000

    def add(self, time_ns: int, cpu: int, thread: int, text: str) -> None:
        seconds, nanoseconds = divmod(time_ns, 1_000_000_000)
        self.lines.append(f"  {thread} [{cpu:03}] {seconds}.{nanoseconds:09}: {text}\n")

    def switch(self, time_ns: int, cpu: int, previous: int, following: int, state: str) -> None:
        self.add(
            time_ns, cpu, previous,
            f"sched:sched_switch: prev_comm=t{previous} prev_pid={previous} prev_prio=120"
            f" prev_state={state} ==> next_comm=t{following} next_pid={following} next_prio=120",
        )  # fmt: skip

    def waking(self, time_ns: int, cpu: int, waker: int, thread: int) -> None:
        text = f"comm=t{thread} pid={thread} prio=120 target_cpu={cpu:03}"
        self.add(time_ns, cpu, waker, f"sched:sched_waking: {text}")

    def tick(self, time_ns: int, cpu: int, length_ns: int, function: str) -> None:
        self.add(
            time_ns, cpu, 0,
            f"timer:hrtimer_expire_entry: hrtimer=0xff01 function={function} now={time_ns}",
        )  # fmt: skip
        self.add(time_ns + length_ns, cpu, 0, "timer:hrtimer_expire_exit: hrtimer=0xff01")

    def events(self) -> Events:
        return parse("".join(self.lines))


TRUTH = {"interrupt": 5_000, "wakeup": 3_000, "switch": 1_500, "tick": 2_500, "migration": 40_000}


def noisy(numbers: random.Random, level: list[float], middle: int) -> int:
    """Returns a value whose distribution has this median, and that depends on the values before it."""
    level[0] = 0.6 * level[0] + numbers.gauss(0, 0.25)
    return max(1, round(middle * (1 + level[0] + numbers.gauss(0, 0.2))))


def recording(seed: int, wakeups: int = 300) -> Recording:
    """Returns the recording of a thread that is woken on an idle CPU, computes and blocks."""
    numbers, made = random.Random(seed), Recording()
    levels = {name: [0.0] for name in TRUTH}
    last = 0
    for turn in range(wakeups):
        cpu = numbers.randrange(2)
        is_remote = numbers.random() < 0.5
        cost = "interrupt" if is_remote else "wakeup"
        entered = made.now + noisy(numbers, levels[cost], TRUTH[cost])
        made.waking(made.now, 1 - cpu if is_remote else cpu, 0, 7)
        made.switch(entered, cpu, 0, 7, "R")
        work = (
            200_000 + round(numbers.gauss(0, 20_000)) + (turn and cpu != last) * TRUTH["migration"]
        )
        made.switch(entered + work, cpu, 7, 0, "S")
        # A thread that does nothing, such as a kernel thread that finds no work.
        short = entered + work + 10_000
        made.switch(short, cpu, 0, 8, "R")
        made.switch(short + TRUTH["switch"] + numbers.randrange(300), cpu, 8, 0, "S")
        made.tick(
            short + 20_000, cpu, noisy(numbers, levels["tick"], TRUTH["tick"]), "tick_nohz_handler"
        )
        made.tick(short + 40_000, cpu, 77_000, "hrtimer_wakeup")
        made.now, last = short + numbers.randrange(200_000, 900_000), cpu
    return made


def estimates(events: Events) -> dict[str, Estimate]:
    return {measured.cost: measured.estimate for measured in calibrate(events) if measured.estimate}


def test_intervals_contain_the_true_costs() -> None:
    """If an interval holds in 95 % of recordings, it fails in more than 7 of 40 once in 1,000 times."""
    hits = dict.fromkeys(TRUTH, 0)
    for seed in range(40):
        measured = estimates(recording(seed).events())
        assert set(measured) == set(TRUTH)
        for name, truth in TRUTH.items():
            hits[name] += measured[name].low_ns <= truth <= measured[name].high_ns
            # 4 standard errors of the noisiest cost are less than a third.
            assert measured[name].ns == pytest.approx(truth, rel=1 / 3)
    bounded = hits.pop("switch")
    assert min(hits.values()) >= 33, hits
    assert bounded < 40  # an upper bound: the work of the shortest stays is included


def test_switch_is_an_upper_bound() -> None:
    (measured,) = (
        measured for measured in calibrate(recording(1).events()) if measured.cost == "switch"
    )
    assert measured.is_bound
    assert measured.estimate
    assert TRUTH["switch"] <= measured.estimate.ns <= TRUTH["switch"] + 50


def test_lost_events_end_what_is_known() -> None:
    """A wake-up before a loss may be another one than the switch after it shows."""
    made = Recording()
    for turn in range(20):
        begin = 1_000_000 * (turn + 1)
        made.waking(begin, 0, 0, 7)
        made.lines.append("CPU:0 [LOST 3 EVENTS]\n")
        made.switch(begin + 500_000, 0, 0, 7, "R")
        made.switch(begin + 600_000, 0, 7, 0, "S")
    assert not {"wakeup", "interrupt"} & set(estimates(made.events()))


# --- the simulator, whose costs are known

KNOWN = {"scheduler": 700, "switch": 900, "wakeup": 2_100, "interrupt": 4_300, "migration": 30_000}
SLEEPERS = """
program root
  mark begin
  loop 3
    fork sleeper
  end
  fork giver
  fork taker
  loop 5
    wait
  end
program sleeper
  loop 300
    run 100us
    sleep 437us
  end
program giver
  loop 300
    run 50us
    give door
    sleep 500us
  end
program taker
  loop 300
    take door
  end
"""


def as_recording(read: trace.Trace) -> Iterator[str]:
    """Yields the events that Linux's tools would record.

    A switch of the simulator takes effect when the interrupt begins, and its cycle counter shows when
    the CPU enters the scheduler.
    """
    left = dict.fromkeys(ProcessState, "R") | {
        ProcessState.BLOCKED: "S",
        ProcessState.ZOMBIE: "Z",
    }
    made, current = Recording(), dict.fromkeys(range(read.header.cpus), 0)
    entered = dict(current)
    rows = read.events.select("time_ns", "cpu", "kind", "process", "first", "second")
    for time_ns, cpu, kind, process, first, second in rows.iter_rows():
        if kind == Kind.SCHEDULER_ENTER:
            entered[cpu] = second
        elif kind == Kind.SWITCH:
            made.switch(entered[cpu], cpu, first, process, left[ProcessState(second)])
            current[cpu] = process
        elif kind == Kind.WAKEUP:
            made.waking(time_ns, cpu, current[cpu], process)
    yield from sorted(made.lines, key=lambda line: line.split()[2])


def test_costs_of_the_simulator_are_estimated(tmp_path: Path) -> None:
    build_once("simulator")
    workload, path = write_workload(tmp_path, SLEEPERS), tmp_path / "trace.bin"
    option = ",".join(["none", *(f"{name}={value}" for name, value in KNOWN.items())])
    options = ("--cpus", "3", "--policy", "rr", "--costs", option, "--trace", str(path))
    subprocess.run(
        [SIMULATOR_PROGRAM, *options, workload], check=True, capture_output=True, timeout=60
    )
    measured = estimates(parse("".join(as_recording(trace.read(path)))))
    for name in ("wakeup", "interrupt", "migration"):
        assert measured[name].low_ns <= KNOWN[name] <= measured[name].high_ns, (
            name,
            measured[name],
        )
    # The taker only blocks.
    assert measured["switch"].ns == KNOWN["scheduler"] + KNOWN["switch"]


# --- the command


def test_the_command_writes_a_profile(schedlab: Command, tmp_path: Path) -> None:
    file, out = tmp_path / "recording.txt", tmp_path / "costs.json"
    file.write_text("".join(recording(3).lines))
    result = schedlab("calibrate", "--from-perf", str(file), "--out", str(out), "--json")
    assert result.returncode == 0, result.stderr
    printed = json.loads(result.stdout)
    profile = costs.read_profile(out)
    assert set(profile.costs) == set(TRUTH)
    assert profile.base == "none"
    for name, cost in profile.costs.items():
        assert printed["costs"][name]["low_ns"] == cost.low_ns
        assert cost.low_ns is not None and cost.high_ns is not None
        assert cost.low_ns <= cost.ns <= cost.high_ns
    assert profile.costs["switch"].source.startswith("upper bound")
    assert set(printed["unknown"]) == set(costs.COST_MEANINGS) - set(TRUTH)
    assert "batches" in printed["statistic"]


@pytest.mark.parametrize("name", ["sched.data", "sched.dat", "ftrace.txt", "perf-7.3.txt"])
def test_real_recordings_bound_a_switch(name: str, schedlab: Command, tmp_path: Path) -> None:
    """Emulated CPUs are slow: a switch takes 20 to 150 µs. No recording has events of timers."""
    result = schedlab("calibrate", "--from-perf", str(unpacked(name, tmp_path)))
    assert result.returncode == 0, result.stderr
    (bound,) = re.findall(r"switch +([\d,]+) ", result.stdout)
    assert 20_000 < int(bound.replace(",", "")) < 150_000
    assert "record timer:hrtimer_expire_entry" in result.stdout
    assert "no event shows system calls" in result.stdout


def test_switches_alone_give_no_cost_of_a_wakeup(schedlab: Command, tmp_path: Path) -> None:
    file = unpacked("switch_only.dat", tmp_path)
    result = schedlab("calibrate", "--from-perf", str(file), "--json")
    assert {"wakeup", "interrupt"} <= set(json.loads(result.stdout)["unknown"])
