# SPDX-License-Identifier: MIT
"""Tests watching and controlling the running kernel; most tests share one machine of each kind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from processes import is_running, is_stopped
from schedlab import trace
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.machines.folder import TRACE_FILE, TYPED_FILE
from schedlab.machines.kernel import KERNEL_PARTS
from schedlab.monitor.system import Ability, Life, Records, Refused, Setup, Status, System
from schedlab.monitor.system_factory import read_choices
from schedlab.monitor.systems import kernel as kernel_module
from schedlab.monitor.systems import steering as steering_module
from schedlab.monitor.systems.kernel import KernelSystem
from schedlab.runs.parts import build_parts
from schedlab.trace.format import RECORD, AttributeKind, Kind
from schedlab.workload.loading import DISK_TOOLS

pytestmark = pytest.mark.xdist_group("monitor_kernel")

T = TypeVar("T")
PATIENCE_S = 60
CPUS = 2
MACHINES = [
    pytest.param("spike", marks=pytest.mark.spike),
    pytest.param("qemu", marks=pytest.mark.qemu),
]
ENDLESS = {
    "tasks": {
        "hog": {"loop": -1, "run": 10_000},
        "sleeper": {"loop": -1, "run": 100, "sleep": 20_000},
    },
    "global": {"duration": 1000},
}


class Live:
    """A system and its event loop."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self.system = self.do(make(setup, folder))
        self.records: list[Records] = []

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(work, PATIENCE_S))

    def refused(self, work: Coroutine[Any, Any, object]) -> str:
        """Returns the message of a refusal."""
        with pytest.raises(Refused) as caught:
            self.do(work)
        return str(caught.value)

    def life(self) -> Life:
        return self.system.life

    def status(self) -> Status:
        return self.do(self.system.read_status())

    def take(self) -> Records:
        """Returns the new records of the trace, and keeps them."""
        records = self.system.take_records()
        self.records.append(records)
        return records

    def until(self, condition: Callable[[], T]) -> T:
        """Waits for a condition while the system runs."""
        limit = time.monotonic() + PATIENCE_S
        while not (result := condition()):
            assert time.monotonic() < limit, self.system.message
            self.do(asyncio.sleep(0.02))
        return result

    def now_ns(self) -> int:
        """Returns the time of a record that is not older than this call."""
        self.take()
        self.status()
        self.do(asyncio.sleep(0.2))  # the existing records of all CPUs have arrived by then
        self.until(lambda: len(self.take()))
        return int(self.records[-1]["time"].max())

    def end(self) -> None:
        self.do(self.system.end())
        self.loop.close()


async def make(setup: Setup, folder: Path) -> KernelSystem:
    return KernelSystem(setup, folder)


def machine_pid(system: KernelSystem) -> int:
    return system._process.pid


def is_contiguous(records: Records) -> bool:
    return bool((np.diff(records["sequence"].astype(np.int64)) == 1).all())


@pytest.fixture(scope="module")
def workload_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("workload") / "endless.json"
    file.write_text(json.dumps(ENDLESS))
    return file


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """Builds the image, without a time limit."""
    build_parts((*KERNEL_PARTS, *DISK_TOOLS))


@pytest.fixture(scope="module", params=MACHINES)
def live(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, workload_file: Path
) -> Iterator[Live]:
    setup = Setup(
        request.param,
        PolicyChoice("mlfq"),
        settings=(("boost", 100),),
        cpus=CPUS,
        files=(workload_file,),
        workloads=("endless",),
    )
    live = Live(setup, tmp_path_factory.mktemp(f"live-{request.param}"))
    try:
        live.do(live.system.begin())
        live.until(lambda: {"hog", "sleeper"} <= {row.name for row in live.status().rows})
        yield live
    finally:
        live.end()


def test_it_runs_as_it_was_set_up(live: Live) -> None:
    system: System = live.system
    assert live.life() is Life.RUNNING
    assert system.message == ""
    assert Ability.PAUSE in system.abilities
    assert system.header
    assert (system.header.cpus, system.header.tick_ns) == (CPUS, 10_000_000)
    assert len(system.monitor_pids) == 2
    assert 0 < system.record_cost_ns < 100_000
    status = live.status()
    assert (status.policy, dict(status.changed)) == ("mlfq", {"boost": 100})
    names = {row.pid: row.name for row in status.rows}
    assert {names[pid] for pid in system.monitor_pids} == {"init", "steer"}
    log = system.take_log()
    assert any("2 CPUs" in line for line in log)
    assert not any("@@" in line for line in log)


def test_policies_are_switched(live: Live) -> None:
    live.take()
    for policy in ("lottery", "rr:table-scan"):
        live.do(live.system.set_policy(policy))
        assert live.status().policy == policy
    live.do(live.system.set_policy("0"))
    assert live.status().policy == "rr"
    live.until(lambda: live.take()["kind"].__contains__(Kind.POLICY))


def test_tunables_are_set(live: Live) -> None:
    live.do(live.system.set_policy("rr"))
    live.do(live.system.set_tunable("slice", 7))
    assert dict(live.status().changed) == {"slice": 7}
    slice_now = {tunable.name: tunable for tunable in live.do(live.system.read_tunables())}["slice"]
    assert (slice_now.value, slice_now.default) == (7, 1)
    assert slice_now.meaning
    too_much = live.refused(live.system.set_tunable("slice", slice_now.maximum + 1))
    assert f"out of range; choose {slice_now.minimum} to {slice_now.maximum}" in too_much
    assert "did you mean 'slice'" in live.refused(live.system.set_tunable("slize", 1))
    assert "expected a tunable" in live.refused(live.system.set_tunable("slice 1", 1))
    assert "64-bit" in live.refused(live.system.set_tunable("slice", 2**63))
    assert dict(live.status().changed) == {"slice": 7}


def test_attributes_are_set(live: Live) -> None:
    system = live.system
    live.do(system.set_policy("wrr"))
    pid = next(row.pid for row in live.status().rows if row.pid not in system.monitor_pids)
    live.do(system.set_attribute(pid, AttributeKind.TICKETS, 42))
    live.do(system.set_attribute(pid, AttributeKind.WEIGHT, 9))
    live.do(system.set_attribute(pid, AttributeKind.PRIORITY, 3))
    row = next(row for row in live.status().rows if row.pid == pid)
    assert (row.priority, row.tickets) == (9, 42)  # under wrr, PRIORITY is the weight
    live.do(system.set_policy("rr"))
    row = next(row for row in live.status().rows if row.pid == pid)
    assert (row.priority, row.tickets) == (3, 42)


def test_workloads_are_started_and_killed(live: Live) -> None:
    system = live.system
    before = {row.pid for row in live.status().rows}
    live.take()
    pid = live.do(system.start_workload("endless"))
    assert pid not in before
    tasks = ["hog", "sleeper"]

    def started() -> list[int]:
        rows = [row for row in live.status().rows if row.pid not in before and row.pid != pid]
        return [row.pid for row in rows] if sorted(row.name for row in rows) == tasks else []

    children = live.until(started)
    for process in [pid, *children]:
        live.do(system.kill(process))
    live.until(lambda: {row.pid for row in live.status().rows} <= before)
    assert f"process {pid} has ended" in live.refused(system.kill(pid))

    def is_recorded(field: str, kind: Kind) -> bool:
        live.take()
        records = np.concatenate(live.records)
        return pid in records[field][records["kind"] == kind]

    # The trace arrives a moment after the event.
    live.until(lambda: is_recorded("first", Kind.FORK))
    live.until(lambda: is_recorded("process", Kind.EXIT))


def test_clock_pauses_with_the_system(live: Live) -> None:
    """QEMU's clock follows the host's before and after the pause. The guest's clock must not
    advance by more than the host's time.
    """
    system = live.system
    begin, begin_ns = time.monotonic(), live.now_ns()
    live.do(system.pause())
    live.do(system.pause())  # pausing twice equals pausing once
    paused = time.monotonic()
    assert live.life() is Life.PAUSED
    live.do(asyncio.sleep(0.1))
    live.take()
    live.do(asyncio.sleep(0.5))
    assert len(live.take()) == 0
    stood = time.monotonic() - paused
    live.do(system.resume())
    live.do(system.resume())
    assert live.life() is Life.RUNNING
    end_ns = live.now_ns()
    assert end_ns > begin_ns
    if system.setup.machine == "qemu":
        assert (end_ns - begin_ns) / 1e9 <= time.monotonic() - begin - stood + 0.05


def test_a_machine_that_hangs(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process stops the machine: the monitor reports this and leaves the machine as
    it is.
    """
    monkeypatch.setattr(steering_module, "ANSWER_TIMEOUT_S", 1.5)
    monkeypatch.setattr(kernel_module, "_SILENCE_MAX_S", 1.0)
    system = live.system
    os.killpg(machine_pid(system), signal.SIGSTOP)
    try:
        live.until(lambda: is_stopped(machine_pid(system)))
        assert "its trace has no records either" in live.refused(system.set_policy("rr"))
    finally:
        os.killpg(machine_pid(system), signal.SIGCONT)
    live.until(lambda: live.status().policy == "rr")


def test_a_machine_that_is_killed(live: Live) -> None:
    """This test is last. All waiting callers are notified at once and receive the rest of the
    trace.
    """
    system = live.system
    live.do(system.pause())

    async def ask_and_kill() -> None:
        asking = asyncio.ensure_future(system.read_status())
        await asyncio.sleep(0.1)
        os.kill(machine_pid(system), signal.SIGKILL)
        await asking

    assert "SIGKILL" in live.refused(ask_and_kill())
    live.until(lambda: system.life is Life.FAILED)
    assert "SIGKILL" in system.message
    assert "2 CPUs" in system.message
    assert "SIGKILL" in live.refused(system.set_policy("rr"))
    assert "SIGKILL" in live.refused(system.pause())
    live.take()
    assert is_contiguous(np.concatenate(live.records))
    assert len(system.take_records()) == 0
    live.do(system.end())
    assert live.life() is Life.FAILED


# --- separate machines ----------------------------------------------------------------------------


@pytest.mark.parametrize("machine", MACHINES)
def test_session_ends_with_a_complete_trace(tmp_path: Path, machine: str) -> None:
    """This holds even if the machine is paused then, or if other tasks run before init forever."""
    crowd = tmp_path / "crowd.json"
    hog = {"instance": CPUS, "priority": 0, "loop": -1, "run": 10_000}
    crowd.write_text(json.dumps({"tasks": {"hog": hog}}))
    folder = tmp_path / "system"
    folder.mkdir()
    strict = Setup(machine, PolicyChoice("priority"), (("aging_interval", 0),), CPUS)
    setup = replace(strict, files=(crowd,), workloads=("crowd",))
    live = Live(setup, folder)
    live.system.keep_trace = True
    live.do(live.system.begin())
    live.until(lambda: [row.name for row in live.status().rows].count("hog") == CPUS)
    live.take()
    live.do(live.system.pause())
    live.do(live.system.end())
    live.take()
    assert (live.life(), live.system.message) == (Life.ENDED, "it was ended")
    assert {path.name for path in folder.iterdir()} - {TYPED_FILE} == {TRACE_FILE}
    full_trace = trace.read(folder / TRACE_FILE)
    trace.validate(full_trace)
    assert not full_trace.truncated
    assert len(np.concatenate(live.records)) == len(full_trace.events)
    live.end()


@pytest.mark.spike
def test_panic_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = kernel_module.boot_arguments
    monkeypatch.setattr(
        kernel_module, "boot_arguments", lambda setup: f"inject=panic {arguments(setup)}"
    )
    live = Live(Setup("spike", PolicyChoice("rr"), cpus=1), tmp_path)
    try:
        live.do(live.system.begin())
        live.until(lambda: live.system.life is Life.FAILED)
    except Refused:
        pass  # it may end before it has begun
    assert live.system.life is Life.FAILED
    assert "panic: CPU 0" in live.system.message
    assert any(line.startswith("panic: CPU 0") for line in live.system.take_log())
    live.end()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"cpus": 257}, "cpus=257.*qemu has 1 to 256 CPUs"),
        ({"policy": PolicyChoice("lotery")}, "did you mean 'lottery'"),
        ({"settings": (("slice", -1),)}, "settings=.*-1"),
        ({"workloads": ("mixt",)}, "did you mean 'mixed'"),
        ({"tick_ns": 10}, "tick_ns="),
    ],
)
def test_what_cannot_be_started(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(WrongUsage, match=why):
        read_choices().check(replace(Setup("qemu", PolicyChoice("rr")), **changes))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"memory_mib": 1, "workloads": ("two-hogs",)}, "may need"),
        ({"files": (Path("nowhere.json"),)}, "the file does not exist"),
    ],
)
def test_workloads_that_cannot_be_stored(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    live = Live(replace(Setup("qemu", PolicyChoice("rr")), **changes), tmp_path)
    with pytest.raises(WrongUsage, match=why):
        live.do(live.system.begin())
    assert live.system.life is Life.ENDED
    live.end()


@pytest.mark.parametrize("machine", MACHINES)
def test_a_machine_that_does_not_come_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    """It reports the reason, and no process remains."""
    arguments = kernel_module.boot_arguments

    def wrong(setup: Setup) -> str:
        return arguments(setup).replace("steer", "nothing")

    monkeypatch.setattr(kernel_module, "boot_arguments", wrong)
    live = Live(Setup(machine, PolicyChoice("rr"), cpus=1), tmp_path)
    with pytest.raises(SchedlabError, match=r"failure; its console ends:\n(.*\n)*.*nothing"):
        live.do(live.system.begin())
    assert live.life() is Life.FAILED
    assert not is_running(machine_pid(live.system))
    live.end()


# --- a stand-in for the machine -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sequence", "left"), [([], 0), ([5, 6, 7], 3), ([5, 6, 8], 2), ([6, 7], 0)]
)
def test_nothing_is_given_behind_a_gap(tmp_path: Path, sequence: list[int], left: int) -> None:
    """The machine was cut off; records up to 4 had been delivered."""
    live = Live(Setup("spike", PolicyChoice("rr")), tmp_path)
    live.system._last_sequence = 4
    records = np.zeros(len(sequence), RECORD)
    records["sequence"] = sequence
    assert len(live.system._usable_records(records)) == left
    live.end()
