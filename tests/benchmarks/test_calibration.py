# SPDX-License-Identifier: MIT
"""Costs that are measured from traces: of what has known costs, and of the kernel."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from built_once import build_once
from conftest import Command
from schedlab import trace
from schedlab.base.toolchain.build import SIMULATOR
from schedlab.trace import Kind, MarkKind
from schedlab.workload import costs
from schedlab.workload.costs import Cost, Profile
from schedlab_tools.benchmarks import calibration
from schedlab_tools.benchmarks.calibration import (
    COMPUTE,
    CROWD,
    FORK,
    NEW,
    PIPE,
    REAP,
    SLEEP,
    TOUCH,
    USED,
    WAKE,
    YIELD,
)
from schedlab_tools.benchmarks.observing import Observed, observe
from trace_simulator import Record, Script, load

STEP = 500
"""Of the clock, in ns, which are cycles."""
CALL = 280
SCHEDULER = 296


# --- by cycles


class Tape:
    """Records of one CPU, whose clock moves in steps and whose counter counts what is done.

    Process 2 is the one that is measured.
    """

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.waited = 0
        self.cycles = 0

    def add(self, kind: Kind, first: int = 0, second: int = 0, process: int = 2) -> None:
        time = (self.cycles + self.waited) // STEP * STEP
        self.records.append(Record(time, len(self.records), process, kind, 0, first, second))

    def visit(self, before: int = 2, after: int = 2, cycles: int = SCHEDULER) -> None:
        self.add(Kind.SCHEDULER_ENTER, 0, self.cycles, before)
        self.cycles += cycles
        self.add(Kind.SCHEDULER_EXIT, 0, self.cycles, after)

    def note(self, number: int) -> None:
        """A part of the program begins, with a yield."""
        self.add(Kind.MARK, MarkKind.NOTE, number)
        self.visit()

    def work(self, cycles: int) -> None:
        self.cycles += cycles

    def act(self, cycles: int) -> None:
        """Something and then a yield."""
        self.work(cycles + CALL)
        self.add(Kind.YIELD)
        self.visit()

    def observed(self) -> Observed:
        yields = Tape()
        yields.note(YIELD)
        for _ in range(8):
            yields.act(0)
        before, passed = len(yields.records), yields.cycles // STEP * STEP
        for number, record in enumerate(self.records):
            yields.records.append(
                record._replace(sequence=before + number, time=record.time + passed)
            )
        return observe(load(yields.records, Script(cpus=1)), by_cycles=True)


def test_yields() -> None:
    seen = Tape().observed()
    assert calibration.call_cost(seen).ns == CALL
    assert calibration.scheduler_cost(seen).ns == SCHEDULER
    assert calibration.scheduler_cost(seen).events == 8


def test_calls() -> None:
    tape = Tape()
    tape.note(PIPE)
    for _ in range(4):
        tape.act(450)
        tape.act(470)
    tape.note(REAP)
    for _ in range(4):
        tape.act(CALL + 700)
    tape.note(SLEEP)
    for _ in range(4):
        tape.work(449)
        tape.add(Kind.BLOCK, 1)
        tape.visit(after=0)
        tape.work(500_000)
        tape.visit(before=0)
        tape.act(60)
    seen = tape.observed()
    call = calibration.call_cost(seen)
    assert calibration.pipe_cost(seen, call) == Cost(
        460, 20, 8, calibration.pipe_cost(seen, call).source
    )
    assert calibration.reap_cost(seen, call).ns == 700
    assert calibration.sleep_cost(seen).ns == 449


def test_a_tick_within_known_work() -> None:
    tape = Tape()
    tape.note(COMPUTE)
    tape.act(3_000_000 + 3 * 645)  # three ticks of 1 ms come
    seen = tape.observed()
    assert calibration.tick_cost(seen, calibration.call_cost(seen)).ns == 645


def test_processes_that_wake_together() -> None:
    tape = Tape()
    tape.note(WAKE)
    for count in (1, 8):
        tape.visit(after=0)
        tape.work(500 + 512 * count)
        for pid in range(count):
            tape.add(Kind.WAKEUP, process=3 + pid)
        tape.visit(before=0)
    assert calibration.wakeup_cost(tape.observed()).ns == 512


FAULT, OWN = 1720, 4560


def test_forks() -> None:
    """Each with a fault after it, before the next one."""
    calls, creation = Tape(), Tape()
    for note, touched in ((FORK, 0), (TOUCH, 8)):
        calls.note(note)
        for _ in range(4):
            calls.work(CALL + 5000 + touched * FAULT)
            calls.add(Kind.FORK, 3)
            calls.add(Kind.YIELD)
            calls.visit()
    creation.visit()
    for _ in range(50):
        creation.work(OWN)
        creation.add(Kind.FORK, 3)
        creation.work(FAULT)
    creation.add(Kind.BLOCK, 2)
    creation.visit(after=0)
    found = calibration.fork_costs(creation.observed(), calls.observed())
    assert found["fork"].ns == pytest.approx(OWN, abs=STEP / 49)
    assert found["fork_return"].ns == FAULT


def test_forks_by_two_and_beside_a_tick() -> None:
    """Under some policies a child soon takes the CPU; and what a tick takes is no part of a fork."""
    tape = Tape()
    tape.visit()
    for pair in range(9):
        for _ in range(2):
            tape.work(OWN)
            tape.add(Kind.FORK, 3)
        tape.work(2_000_000 if pair == 4 else FAULT)
        tape.add(Kind.YIELD)
        tape.visit()
    gaps = calibration._gaps(tape.observed())
    assert len(gaps) >= 7
    assert gaps == pytest.approx([OWN] * len(gaps), abs=2 * STEP)


def test_forks_where_no_process_has_been() -> None:
    tape = Tape()
    for note, cycles in ((NEW, 8500), (USED, 8164)):
        tape.note(note)
        for _ in range(40):
            tape.work(cycles)
            tape.add(Kind.FORK, 3)
        tape.add(Kind.YIELD)
        tape.visit()
        tape.waited += 1_000_000
    assert calibration.new_cost(tape.observed()).ns == 336


def test_a_child() -> None:
    """It marks its group, asks for the time, and ends. What it asks is a call of its own, which a
    workload's file has, and costs nothing twice."""
    calls, creation = Tape(), Tape()
    calls.note(CROWD)
    calls.work(2283)
    calls.add(Kind.EXIT)
    calls.visit(after=0)
    creation.visit(before=0, after=3)
    creation.work(700)
    creation.add(Kind.MARK, MarkKind.GROUP, 65, process=3)
    creation.work(CALL + 2283)
    creation.add(Kind.EXIT, process=3)
    creation.visit(before=3, after=0)
    calls_seen = calls.observed()
    call = calibration.call_cost(calls_seen)
    found = calibration.child_costs(creation.observed(), calls_seen, call)
    assert found["exit"].ns == 2283
    assert found["first_run"].ns == 700


def test_a_trace_without_what_is_needed() -> None:
    with pytest.raises(calibration.Unmeasurable, match="sleep"):
        calibration.sleep_cost(Tape().observed())


# --- by the clock: a machine whose costs are known, the simulator

KNOWN = {
    "scheduler": 300,
    "switch": 100,
    "call": 900,
    "sleep": 700,
    "pipe": 1100,
    "reap": 50,
    "interrupt": 4000,
    "first_run": 2500,
    "exit": 3500,
}

CALLS = f"""
channel pipe 0
program root
  mark begin
  mark note {YIELD}
  loop 9
    yield
  end
  mark note {PIPE}
  loop 9
    yield
    give pipe
    yield
    take pipe
  end
  yield
  mark note {SLEEP}
  loop 9
    yield
    sleep 1tick
  end
  mark note {FORK}
  loop 9
    yield
    fork yields
    yield
    wait
  end
  mark note {CROWD}
  fork sleeper
  loop 9
    give pipe
    sleep 1tick
  end
  wait
  mark end
program yields
  yield
program sleeper
  loop 9
    take pipe
  end
  yield
"""

CREATION = """
program root
  mark begin
  loop 20
    fork child
  end
  loop 20
    wait
  end
  mark end
program child
  group child
"""


def simulated(folder: Path, text: str, cpus: int) -> Observed:
    build_once("simulator")
    workload, path = folder / "workload.txt", folder / "trace.bin"
    workload.write_text(text)
    told = ",".join(["none", *(f"{name}={value}" for name, value in KNOWN.items())])
    options = ("--cpus", str(cpus), "--costs", told, "--trace", str(path))
    subprocess.run([SIMULATOR, *options, workload], check=True, capture_output=True, timeout=60)
    return observe(trace.read(path), by_cycles=False)


def test_known_costs_are_found(tmp_path: Path) -> None:
    calls, creation = simulated(tmp_path, CALLS, 1), simulated(tmp_path, CREATION, 1)
    call = calibration.call_cost(calls)
    scheduler = calibration.scheduler_cost(calls)
    found = {
        "scheduler": scheduler,
        "switch": calibration.switch_cost(calls, scheduler),
        "call": call,
        "sleep": calibration.sleep_cost(calls),
        "pipe": calibration.pipe_cost(calls, call),
        "interrupt": calibration.interrupt_cost(simulated(tmp_path, CALLS, 2)),
        **calibration.child_costs(creation, calls, call),
    }
    assert {name: cost.ns for name, cost in found.items()} == {name: KNOWN[name] for name in found}


# --- what came of it


def test_drifts() -> None:
    before = Profile({"call": Cost(280), "fork": Cost(9000, 100), "tick": Cost(600)})
    now = Profile(
        {
            "call": Cost(299),
            "fork": Cost(9300),
            "tick": Cost(700, 99),
            "tick.mlfq": Cost(640),
            "reap": Cost(30),
        }
    )
    assert calibration.drifts(before, now) == [
        calibration.Drift("fork", 9000, 9300),
        calibration.Drift("tick", 600, 700),
        calibration.Drift("tick.mlfq", 600, 640),
        calibration.Drift("reap", 0, 30),
    ]


def test_a_profile_is_written_as_it_is_read(tmp_path: Path) -> None:
    profile = costs.read(costs.SHIPPED)
    place = tmp_path / "profile.json"
    costs.write(place, profile)
    assert costs.read(place) == profile
    assert place.read_text() == costs.SHIPPED.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["profile.json"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--cpus", "1"), "--cpus: one number, 2 or more"),
        (("-o", "/nowhere/at/all.json"), "there is no folder /nowhere/at"),
        (("--policy", "frr"), "no policy is called 'frr'"),
        (("--machine", "sim"), "'sim' is not one of 'spike', 'qemu'"),
    ],
)
def test_wrong_usage(schedlab: Command, words: tuple[str, ...], message: str) -> None:
    done = schedlab("calibrate", *words)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.spike
def test_the_kernel_has_the_costs_that_ship(schedlab: Command, tmp_path: Path) -> None:
    """The same machine gives the same values, to the instruction."""
    place = tmp_path / "profile.json"
    done = schedlab("calibrate", "--policy", "lottery,rr:table-scan", "-o", str(place), "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["drifts"] == []
    measured, shipped = costs.read(place), costs.read(costs.SHIPPED)
    assert told["costs"] == measured.costs_as_dicts()
    assert len(measured.costs) == len(costs.COSTS) - 1 + 2 * len(calibration.OF_POLICY)
    for name, cost in measured.costs.items():
        there = shipped.costs[name]
        bound = max(there.spread_ns, 0.03 * there.ns, 20)
        assert abs(cost.ns - there.ns) <= bound, name
