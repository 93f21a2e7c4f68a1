# SPDX-License-Identifier: MIT
"""Linux kernels as systems of the monitor: a guest, watched and steered once from its boot to its end;
and this machine's own kernel, with stand-ins for who serves there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from linux_guests import need_guests
from schedlab import trace
from schedlab.linux.parts import build_linux
from schedlab.machines.base import TRACE_FILE
from schedlab.monitor.system import Life, Records, Refused, Setup, Status, TunableNow
from schedlab.monitor.systems.linux import LinuxGuestSystem
from schedlab.paths import BUILD
from schedlab.policies import PolicyChoice
from schedlab.trace.format import AttributeKind, Kind

PLACE = BUILD / "linux-tests"
PATIENCE_S = 300
"""Of a host that has much else to do."""


async def until(what: Callable[[], bool], taking: asyncio.Task[None] | None = None) -> None:
    """Waits for a condition, that is met as long as somebody takes the trace."""
    limit = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < limit
        if taking and taking.done():
            taking.result()
        await asyncio.sleep(0.05)


async def refusal(command: Awaitable[object]) -> str:
    """What a command that is refused says."""
    with pytest.raises(Refused) as caught:
        await command
    return str(caught.value)


# --- a guest


@dataclass
class Seen:
    """What came of the guest."""

    folder: Path
    records: list[Records] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    status: dict[str, Status] = field(default_factory=dict)
    tunables: tuple[TunableNow, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)
    pids: list[int] = field(default_factory=list)
    """Of the workload: who was started, and all that came of it."""
    steer: int = 0
    own: frozenset[int] = frozenset()
    record_cost_ns: float = 0
    while_paused: int = 0
    life: list[tuple[Life, str]] = field(default_factory=list)
    taking: asyncio.Task[None] | None = None

    @property
    def all_records(self) -> Records:
        return np.concatenate(self.records)

    def take(self, system: LinuxGuestSystem) -> int:
        """How many records have come."""
        records = system.take()
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
async def begun(seen: Seen) -> AsyncIterator[LinuxGuestSystem]:
    """A guest under round-robin; what its trace says is taken all the time, as a session does."""
    setup = Setup(
        "linux", PolicyChoice("rr"), (("slice", 2),), memory_mib=768, workloads=("two-hogs",)
    )
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
    async with begun(seen) as system:
        seen.life.append((system.life, system.message))
        seen.record_cost_ns = system.record_cost_ns
        await steer(seen, system)
        await stand_still(seen, system)
        await misbehave(seen, system)
        seen.own = system.own_pids
        await end_workload(seen, system)


async def steer(seen: Seen, system: LinuxGuestSystem) -> None:
    """Policy, tunables, attributes: read back from the control files."""
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
    await asyncio.sleep(0.3)  # what was under way has come
    count = sum(map(len, seen.records))
    await asyncio.sleep(0.3)
    seen.while_paused = sum(map(len, seen.records)) - count
    await system.resume()
    await until(lambda: sum(map(len, seen.records)) > count, seen.taking)


async def misbehave(seen: Seen, system: LinuxGuestSystem) -> None:
    """The kernel throws a policy out, at its beginning or soon after."""
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


@pytest.mark.qemu
class TestGuest:
    """What was seen of it."""

    def test_the_policy_and_its_tunables_are_as_asked(self, seen: Seen) -> None:
        assert (seen.status["rr"].policy, seen.status["rr"].changed) == ("rr", {"slice": 2})
        assert [(each.name, each.value) for each in seen.tunables][:1] == [("slice", 3)]
        assert (seen.status["mlfq"].policy, seen.status["mlfq"].changed) == ("mlfq", {})

    def test_an_attribute_is_set(self, seen: Seen) -> None:
        (row,) = [row for row in seen.status["tickets"].rows if row.pid == seen.pids[-1]]
        assert row.tickets == 17

    def test_refusals_say_why(self, seen: Seen) -> None:
        assert "no such policy" in seen.refused["policy"]
        assert "mlfq has no tunable nosuch" in seen.refused["tunable"]
        assert "from 0 to 10" in seen.refused["range"]
        assert "there is no such process" in seen.refused["process"]
        assert "No such process" in seen.refused["kill"]
        assert "the guest's own" in seen.refused["own"]
        assert "there are two-hogs" in seen.refused["workload"]

    def test_the_trace_tells_of_it(self, seen: Seen) -> None:
        """In order, none missing; and all of it can have happened."""
        records = seen.all_records
        assert np.array_equal(records["sequence"], np.arange(len(records)))
        whole = trace.read(seen.folder / TRACE_FILE)
        trace.validate(whole)
        assert len(whole.events) == len(records)
        assert not whole.truncated
        told = [text for text in whole.texts["text"] if text in ("fair", "rr", "mlfq")]
        switches = [name for name, _ in groupby(told)]  # a tunable's value is said with a policy
        assert switches == ["fair", "rr", "mlfq", "fair", "rr"]
        tickets = records[records["kind"] == Kind.ATTRIBUTE]
        assert (seen.pids[-1], 17) in zip(tickets["process"], tickets["second"], strict=True)

    def test_queues_are_told_with_their_levels(self, seen: Seen) -> None:
        records = seen.all_records
        queued = records[(records["kind"] == Kind.QUEUED) & np.isin(records["process"], seen.pids)]
        assert set(queued["first"].tolist()) <= {0, 1}
        assert len(set(queued["second"].tolist())) > 1  # who computes sinks

    def test_who_was_started_is_told_from_the_rest(self, seen: Seen) -> None:
        assert len(seen.pids) >= 3
        assert seen.own.isdisjoint(seen.pids)
        assert {1, 2, seen.steer} <= seen.own
        assert 0 < seen.record_cost_ns < 1e6

    def test_nothing_happens_while_it_is_paused(self, seen: Seen) -> None:
        assert seen.while_paused == 0
        assert [life for life, _ in seen.life] == [Life.RUNNING, Life.PAUSED, Life.ENDED]

    def test_a_policy_that_the_kernel_throws_out_is_shown(self, seen: Seen) -> None:
        status = seen.status["thrown out"]
        assert status.policy == "fair"
        assert "the kernel ended complains" in status.remark
        assert "is not to its liking" in status.remark
        assert any("complains" in line and "disabled" in line for line in seen.log)
        assert (seen.status["again"].policy, seen.status["again"].remark) == ("rr", "")

    def test_killed_processes_are_gone(self, seen: Seen) -> None:
        assert not set(seen.pids) & {row.pid for row in seen.status["ended"].rows}
