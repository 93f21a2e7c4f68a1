# SPDX-License-Identifier: MIT
"""Tests Linux kernels as systems of the monitor: a guest, watched and controlled once from
boot to shutdown; and this host's kernel, with stand-ins for the servers.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from fit_hosts import fit_root
from linux_guests import need_guests
from processes import is_running
from schedlab import trace
from schedlab.base.files.trusted_path import Untrusted
from schedlab.base.toolchain.build import build
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.errors import MachineUnfit
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.linux.parts import build_linux
from schedlab.monitor.system import Life, Records, Refused, Setup, Status, TunableState
from schedlab.monitor.systems import linux_host
from schedlab.monitor.systems.linux_guest import LinuxGuestSystem, MonitorProcesses
from schedlab.monitor.systems.linux_host import LinuxHostSystem
from schedlab.monitor.systems.linux_server import (
    ControlFiles,
    HostPaths,
    find_server,
)
from schedlab.paths import BUILD_FOLDER
from schedlab.trace.format import RECORD, AttributeKind, Kind
from schedlab.trace.writer import header_bytes

PLACE = BUILD_FOLDER / "linux-tests"
PATIENCE_S = 300
"""Sufficient for a busy host, in seconds."""


async def until(what: Callable[[], bool], taking: asyncio.Task[None] | None = None) -> None:
    """Waits for a condition while another task takes the trace."""
    limit = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < limit
        if taking and taking.done():
            taking.result()
        await asyncio.sleep(0.05)


async def refusal(command: Awaitable[object]) -> str:
    """Returns the message of a refused command."""
    with pytest.raises(Refused) as caught:
        await command
    return str(caught.value)


# --- a guest


@dataclass
class Seen:
    """The events and results of the guest."""

    folder: Path
    records: list[Records] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    status: dict[str, Status] = field(default_factory=dict)
    tunables: tuple[TunableState, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)
    pids: list[int] = field(default_factory=list)
    """The workload's processes: the started one and all of its descendants."""
    steer: int = 0
    monitor_pids: frozenset[int] = frozenset()
    record_cost_ns: float = 0
    while_paused: int = 0
    life: list[tuple[Life, str]] = field(default_factory=list)
    taking: asyncio.Task[None] | None = None

    @property
    def all_records(self) -> Records:
        return np.concatenate(self.records)

    def take(self, system: LinuxGuestSystem) -> int:
        """Returns the number of records that have arrived."""
        records = system.take_records()
        self.records.append(records)
        self.log += system.take_log()
        return len(records)


def of_name(status: Status, *names: str) -> list[int]:
    return [row.pid for row in status.rows if row.name in names]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    need_guests()
    build_linux("linux-tests")
    seen = Seen(tmp_path_factory.mktemp("guest"))
    asyncio.run(watch(seen))
    return seen


@asynccontextmanager
async def started_system(seen: Seen) -> AsyncIterator[LinuxGuestSystem]:
    """Starts a guest under round-robin; its trace is taken continuously, as by a session."""
    setup = Setup("linux", PolicyChoice("rr"), (("slice", 2),), workloads=("two-hogs",))
    system = LinuxGuestSystem(setup, seen.folder, objects=PLACE)
    system.keep_trace = True
    await system.begin()
    seen.taking = asyncio.create_task(keep_taking(seen, system))
    try:
        yield system
    finally:
        seen.taking.cancel()
        await asyncio.wait([seen.taking])
        await system.end()
    while seen.take(system):
        pass
    seen.life.append((system.life, system.message))


async def keep_taking(seen: Seen, system: LinuxGuestSystem) -> None:
    while True:
        seen.take(system)
        await asyncio.sleep(0.05)


async def watch(seen: Seen) -> None:
    async with started_system(seen) as system:
        seen.life.append((system.life, system.message))
        seen.record_cost_ns = system.record_cost_ns
        await steer(seen, system)
        await stand_still(seen, system)
        await misbehave(seen, system)
        seen.monitor_pids = system.monitor_pids
        await end_workload(seen, system)


async def steer(seen: Seen, system: LinuxGuestSystem) -> None:
    """Sets policy, tunables and attributes, and reads them back from the control files."""
    seen.status["rr"] = await system.read_status()
    await system.set_tunable("slice", 3)
    seen.tunables = await system.read_tunables()
    await system.set_policy("mlfq")
    seen.status["mlfq"] = status = await system.read_status()
    (seen.steer,) = of_name(status, "steer")
    seen.pids = of_name(status, "play", "root", "hog")
    await system.set_attribute(seen.pids[-1], AttributeKind.TICKETS, 17)
    seen.status["tickets"] = await system.read_status()
    seen.refused = {
        "policy": await refusal(system.set_policy("nosuch")),
        "tunable": await refusal(system.set_tunable("nosuch", 1)),
        "range": await refusal(system.set_attribute(seen.pids[-1], AttributeKind.PRIORITY, 11)),
        "process": await refusal(system.set_attribute(99999, AttributeKind.WEIGHT, 1)),
        "kill": await refusal(system.kill(99999)),
        "own": await refusal(system.kill(1)),
        "workload": await refusal(system.start_workload("nosuch")),
    }


async def stand_still(seen: Seen, system: LinuxGuestSystem) -> None:
    await system.pause()
    seen.life.append((system.life, system.message))
    await asyncio.sleep(0.3)  # pending records have arrived
    count = sum(map(len, seen.records))
    await asyncio.sleep(0.3)
    seen.while_paused = sum(map(len, seen.records)) - count
    await system.resume()
    await until(lambda: sum(map(len, seen.records)) > count, seen.taking)


async def misbehave(seen: Seen, system: LinuxGuestSystem) -> None:
    """The kernel unloads a policy, at its start or soon after."""
    with suppress(Refused):
        await system.set_policy("complains")
    await system.start_workload("interactive")
    while (await system.read_status()).policy != "fair":
        await asyncio.sleep(0.1)
    seen.status["thrown out"] = await system.read_status()
    await system.set_policy("rr")
    seen.status["again"] = await system.read_status()


async def end_workload(seen: Seen, system: LinuxGuestSystem) -> None:
    await system.kill(seen.pids[0])
    while set(of_name(status := await system.read_status(), "hog")) & set(seen.pids):
        await asyncio.sleep(0.1)
    seen.status["ended"] = status


@pytest.mark.linux
@pytest.mark.xdist_group("monitor_linux")
class TestGuest:
    """Tests the guest's recorded events."""

    def test_questions_are_answered_or_refused_with_the_cause(self, seen: Seen) -> None:
        assert (seen.status["rr"].policy, seen.status["rr"].changed) == ("rr", {"slice": 2})
        assert [(tunable.name, tunable.value) for tunable in seen.tunables][:1] == [("slice", 3)]
        assert (seen.status["mlfq"].policy, seen.status["mlfq"].changed) == ("mlfq", {})
        (row,) = [row for row in seen.status["tickets"].rows if row.pid == seen.pids[-1]]
        assert row.tickets == 17
        assert "no such policy" in seen.refused["policy"]
        assert "mlfq has no tunable nosuch" in seen.refused["tunable"]
        assert "use 0 to 10" in seen.refused["range"]
        assert "no such process" in seen.refused["process"]
        assert "No such process" in seen.refused["kill"]
        assert "the guest needs it" in seen.refused["own"]
        assert "choose from two-hogs" in seen.refused["workload"]

    def test_trace_contains_the_act(self, seen: Seen) -> None:
        """The events are in order, none is missing, and all are possible."""
        records = seen.all_records
        assert np.array_equal(records["sequence"], np.arange(len(records)))
        full_trace = trace.read(seen.folder / TRACE_FILE)
        trace.validate(full_trace)
        assert len(full_trace.events) == len(records)
        assert not full_trace.truncated
        policy_names = [text for text in full_trace.texts["text"] if text in ("fair", "rr", "mlfq")]
        switches = [
            name for name, _ in groupby(policy_names)
        ]  # a tunable's value is reported with a policy
        assert switches == ["fair", "rr", "mlfq", "fair", "rr"]
        tickets = records[records["kind"] == Kind.ATTRIBUTE]
        assert (seen.pids[-1], 17) in zip(tickets["process"], tickets["second"], strict=True)
        records = seen.all_records
        queued = records[(records["kind"] == Kind.QUEUED) & np.isin(records["process"], seen.pids)]
        assert set(queued["first"].tolist()) <= {0, 1}
        assert len(set(queued["second"].tolist())) > 1  # a task that computes is demoted

    def test_paused_system_knows_its_processes(self, seen: Seen) -> None:
        assert len(seen.pids) >= 3
        assert seen.monitor_pids.isdisjoint(seen.pids)
        assert {1, 2, seen.steer} <= seen.monitor_pids
        assert 0 < seen.record_cost_ns < 1e6
        assert not set(seen.pids) & {row.pid for row in seen.status["ended"].rows}
        assert seen.while_paused == 0
        assert [life for life, _ in seen.life] == [Life.RUNNING, Life.PAUSED, Life.ENDED]

    def test_a_policy_that_the_kernel_throws_out_is_shown(self, seen: Seen) -> None:
        status = seen.status["thrown out"]
        assert status.policy == "fair"
        assert "the kernel ended complains" in status.remark
        assert "is not to its liking" in status.remark
        assert any("complains" in line and "disabled" in line for line in seen.log)
        assert (seen.status["again"].policy, seen.status["again"].remark) == ("rr", "")


# --- which process belongs to which


def fork(parent: int, child: int, thread_of: int = 0) -> tuple[int, ...]:
    return (0, 0, parent, Kind.FORK, 0, child, thread_of)


def test_monitor_pids_exclude_descendants_of_the_workload() -> None:
    family = MonitorProcesses()
    family.feed(np.array([(0, 0, 1, Kind.FOUND, 0, 3, 0), fork(1, 5), fork(2, 6)], RECORD))
    family.steer_pid = 5
    assert family.monitor_pids == {1, 5, 6}
    # a workload, its child and grandchild; a thread of `steer`; the child of another process
    family.feed(np.array([fork(5, 7), fork(7, 8), fork(8, 9), fork(5, 10, 5), fork(2, 11)], RECORD))
    assert family.monitor_pids == {1, 5, 6, 10, 11}
    family.feed(np.array([fork(2, 8), fork(8, 12)], RECORD))  # another process with that number
    assert family.monitor_pids == {1, 5, 6, 8, 10, 11, 12}


# --- this host's kernel


STATUS = """Scheduler status
Policy: rr
PRIORITY: 0, the highest, to 10

NAME                PID STATE    PRIORITY TIMESLICE TICKETS
init                  1 blocked         5         ?       1
"""


@dataclass
class Machine:
    """A stand-in for /proc, for the control files of the servers, and for the kernel's log."""

    folder: Path

    @property
    def control(self) -> Path:
        return self.folder / "control"

    @property
    def trace(self) -> Path:
        return self.folder / "trace.bin"

    @property
    def program(self) -> Path:
        return self.folder / "bin" / "schedlab-linux"

    @property
    def lock(self) -> Path:
        return self.folder / "lock"

    def serve(self, *options: str) -> None:
        """Adds a server with these options."""
        self.control.mkdir()
        (self.control / "sched_status").write_text(STATUS)
        (self.control / "sched_tunables").write_text(
            "NAME VALUE MINIMUM MAXIMUM DEFAULT MEANING\nslice 1 1 1000 1 ticks of a turn\n"
        )
        for thread in (4711, 4712):
            (self.folder / "proc" / "4711" / "task" / str(thread)).mkdir(parents=True)
        self.claim(4711, *options)
        (self.folder / "proc" / "4711" / "exe").symlink_to(self.program)
        status = self.lock.stat()
        place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        (self.folder / "proc" / "locks").write_text(
            f"1: FLOCK  ADVISORY  WRITE 12 {place} 0 EOF\n2: POSIX  ADVISORY  READ 13 {place} 0 EOF\n"
            f"3: POSIX  ADVISORY  WRITE 4711 {place} 0 EOF\n3: -> POSIX  ADVISORY  WRITE 14 {place} 0 EOF\n"
        )

    def claim(self, pid: int, *options: str, user: int | None = None) -> None:
        """A process claims to be such a server."""
        proc = self.folder / "proc" / str(pid)
        proc.mkdir(parents=True, exist_ok=True)
        words = ("/some/where/schedlab-linux", "serve", *options)
        (proc / "cmdline").write_text("".join(f"{word}\0" for word in words))
        users = "\t".join([str(os.getuid() if user is None else user), *3 * [str(os.getuid())]])
        (proc / "status").write_text(f"Name:\tschedlab-linux\nUid:\t{users}\nGid:\t0\t0\t0\t0\n")

    def write_record(self, sequence: int, kind: Kind, second: int = 0) -> None:
        """Adds a record to the trace."""
        record = np.zeros(1, RECORD)
        record["sequence"], record["kind"], record["second"] = sequence, kind, second
        with self.trace.open("ab") as file:
            file.write(record.tobytes())

    def system(self) -> LinuxHostSystem:
        log = self.folder / "kmsg"
        log.write_text("6,1,5140900,-;before\n")
        setup = Setup("host", PolicyChoice("rr"))
        system_folder = self.folder / "own"
        system_folder.mkdir()
        return LinuxHostSystem(setup, system_folder, self.places)

    @property
    def places(self) -> HostPaths:
        return HostPaths(
            self.folder / "proc",
            self.folder / "kmsg",
            self.lock,
            self.program,
            fit_root(self.folder / "root"),
        )

    def write_kernel_log(self, text: str) -> None:
        """Adds a line to the kernel's log."""
        with (self.folder / "kmsg").open("a") as log:
            log.write(text)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(linux_host, "build_linux", lambda *targets: build("linux-workloads"))
    monkeypatch.setattr(linux_host, "record_cost_ns", lambda: 5.0)
    (tmp_path / "proc").mkdir()
    made = Machine(tmp_path)
    made.lock.touch()
    made.program.parent.mkdir()
    made.program.write_text("no program")
    made.trace.write_bytes(header_bytes(1, 4_000_000, 10**9))
    made.write_record(0, Kind.START)
    return made


def test_who_serves_already_is_watched_and_steered(machine: Machine) -> None:
    async def work() -> None:
        machine.serve(
            "--policy", "rr", f"--trace={machine.trace}", "--control", str(machine.control)
        )
        system = machine.system()
        await system.begin()
        assert (system.life, system.setup.cpus, system.setup.tick_ns) == (
            Life.RUNNING,
            1,
            4_000_000,
        )
        assert system.monitor_pids == {4711, 4712}
        assert system.take_records()["kind"].tolist() == [Kind.START]
        machine.write_record(1, Kind.MARK)
        assert system.take_records()["kind"].tolist() == [Kind.MARK]
        machine.write_kernel_log("3,2,6140900,-;sched_ext: words\n SUBSYSTEM=x\n")
        assert system.take_log() == ["[    6.140900] sched_ext: words"]

        assert (await system.read_status()).policy == "rr"
        assert [(tunable.name, tunable.value) for tunable in await system.read_tunables()] == [
            ("slice", 1)
        ]
        await obey(system, machine)

        machine.write_record(2, Kind.END, 3)
        await until(lambda: len(system.take_records()) == 0 and system.life is Life.ENDED)
        assert "the kernel's own class" in await refusal(system.set_policy("rr"))
        await system.end()

    asyncio.run(work())


async def obey(system: LinuxHostSystem, machine: Machine) -> None:
    """Accepts commands; each is one write."""
    for command, file, line in (
        (system.set_policy("mlfq"), "sched_status", "mlfq"),
        (system.set_tunable("slice", 7), "sched_tunables", "slice=7"),
        (system.set_attribute(12, AttributeKind.WEIGHT, 3), "sched_status", "12 weight 3"),
    ):
        (machine.control / file).write_text("")
        await command
        assert (machine.control / file).read_text() == line
    (machine.control / "sched_status").unlink()
    assert "has ended" in await refusal(system.set_policy("rr"))
    (machine.control / "sched_problem").write_text("rr: no such policy\n")
    assert await refusal(system.set_policy("rr")) == "policy rr: rr: no such policy"


def test_workloads_are_started_and_only_they_are_killed(machine: Machine) -> None:
    async def work() -> None:
        machine.serve("--trace", str(machine.trace), "--control", str(machine.control))
        system = machine.system()
        await system.begin()
        pid = await system.start_workload("interactive")
        other = await system.start_workload("interactive")
        assert "only processes that it started" in await refusal(system.kill(os.getpid()))
        await system.kill(pid)
        await until(lambda: not is_running(pid))
        assert f"kill {pid}: the process has ended" in await refusal(system.kill(pid))
        await system.end()
        assert not is_running(other)

    asyncio.run(work())


def test_who_serves_is_of_a_trusted_user(machine: Machine) -> None:
    machine.serve("--trace", str(machine.trace))
    machine.claim(4711, "--trace", "/etc/shadow", user=4242)  # a set-user-ID program of root's
    with pytest.raises(MachineUnfit, match="belongs to user 4242"):
        find_server(machine.places)


def test_who_serves_is_our_program(machine: Machine) -> None:
    machine.serve("--trace", str(machine.trace))
    copy = machine.program.with_name("copy")
    copy.write_bytes(machine.program.read_bytes())
    exe = machine.folder / "proc" / "4711" / "exe"
    exe.unlink()
    exe.symlink_to(copy)
    with pytest.raises(MachineUnfit, match="another program"):
        find_server(machine.places)


@pytest.mark.skipif(os.geteuid() != 0, reason="it takes root to be another user")
def test_what_a_stranger_makes_is_neither_read_nor_written(machine: Machine) -> None:
    """Another user owns the directory given to root's server, and replaces its content with
    links.
    """
    secret = machine.folder / "secret"
    secret.write_text("kept")
    machine.serve("--trace", str(machine.trace), "--control", str(machine.control))
    files = ControlFiles(machine.control)
    assert "Scheduler status" in files.read("sched_status")
    (machine.control / "sched_status").unlink()
    (machine.control / "sched_status").symlink_to(secret)
    os.lchown(machine.control / "sched_status", 4242, 4242)
    with pytest.raises(Untrusted, match="a link that belongs to another user"):
        files.read("sched_status")
    os.chown(machine.control, 4242, 4242)
    for use in (lambda: files.read("sched_problem"), lambda: files.write("sched_problem", "x", "")):
        with pytest.raises(Untrusted, match="a folder of another user"):
            use()
    with pytest.raises(Untrusted, match="a folder of another user"):
        asyncio.run(machine.system().begin())
    assert secret.read_text() == "kept"
