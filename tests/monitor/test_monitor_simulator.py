# SPDX-License-Identifier: MIT
"""Tests the simulator as a system of the monitor: its input, the commands it accepts, and
that its trace does not depend on the pace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from schedlab import trace
from schedlab.base.toolchain.build import SIMULATOR_LIBRARY, build
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.monitor.system import Ability, Life, Records, Refused, Setup
from schedlab.monitor.systems import simulator
from schedlab.monitor.systems.driven_system import PlayedSystem
from schedlab.monitor.systems.simulator import SimulatorSystem
from schedlab.trace import Kind
from schedlab.trace.format import RECORD, AttributeKind

MS = 1_000_000
TICK = 10 * MS
FOREVER = 60.0
"""Patience in seconds."""

Result = TypeVar("Result")


@pytest.fixture(autouse=True, scope="module")
def _library() -> Iterator[None]:
    """Builds the library once, not per machine."""
    with pytest.MonkeyPatch.context() as patch:
        build(SIMULATOR_LIBRARY)
        patch.setattr(simulator, "build", lambda *targets: None)
        yield


def setup(policy: str = "rr", **others: object) -> Setup:
    name, _, preset = policy.partition(":")
    return Setup("sim", PolicyChoice(name, preset), **others)  # type: ignore[arg-type]


def taken(system: PlayedSystem) -> Records:
    """Returns all records of its trace after the last time."""
    pieces = [np.empty(0, RECORD)]
    while len(piece := system.take_records()):
        pieces.append(piece)
    return np.concatenate(pieces)


def with_system(
    folder: Path, configuration: Setup, act: Callable[[SimulatorSystem], Awaitable[Result]]
) -> Result:
    """Returns the result of an act on a machine that has begun, and ends the machine."""

    async def run() -> Result:
        system = SimulatorSystem(configuration, folder)
        await system.begin()
        try:
            return await act(system)
        finally:
            await system.end()

    return asyncio.run(run())


# ---- begin and end


def test_session_starts_with_its_processes_and_ends_with_a_sound_trace(tmp_path: Path) -> None:
    async def run() -> tuple[SimulatorSystem, Records]:
        system = SimulatorSystem(setup("mlfq", cpus=3), tmp_path)
        life_before = system.life
        assert (
            life_before is Life.STARTING
            and system.header is None
            and not len(system.take_records())
        )
        await system.begin()
        assert system.life is Life.RUNNING and system.now_ns == TICK
        rows = (await system.read_status()).rows
        assert {row.pid for row in rows} == system.monitor_pids
        await system.advance(5_000 * MS, FOREVER)
        await system.end()
        await system.end()
        return system, taken(system)

    system, records = asyncio.run(run())
    header = system.header
    assert header and (header.cpus, header.tick_ns, header.seed) == (3, TICK, 1)
    assert system.life is Life.ENDED and system.end_ns is None
    assert (records["sequence"] == np.arange(len(records))).all()
    assert np.count_nonzero(records["kind"] == Kind.END) == 3
    (path,) = tmp_path.iterdir()
    trace.validate(trace.read(path))
    assert system.abilities == frozenset(Ability)


# ---- control


def test_commands_have_effects(tmp_path: Path) -> None:
    """Effects are read back from sched_status and from the trace."""

    async def steer(system: SimulatorSystem) -> Records:
        root = await system.start_workload("hog")
        await system.advance(50 * MS, FOREVER)
        hog = root + 1
        await system.set_policy("lottery:thesis")
        assert (await system.read_status()).policy == "lottery:thesis"
        await system.set_tunable("slice", 7)
        assert dict((await system.read_status()).changed) == {"slice": 7}
        tunables = {tunable.name: tunable for tunable in await system.read_tunables()}
        assert (tunables["slice"].value, tunables["slice"].default) == (7, 1)
        for kind, value in zip(AttributeKind, (2, 30, 9, -3, 400, 5, 6, 7, 1), strict=True):
            await system.set_attribute(hog, kind, value)
        (row,) = [row for row in (await system.read_status()).rows if row.pid == hog]
        assert (row.name, row.state, row.priority, row.tickets) == ("hog", "running", 2, 30)
        await system.set_policy("wrr")
        (row,) = [row for row in (await system.read_status()).rows if row.pid == hog]
        assert row.priority == 9
        await system.kill(hog)
        await system.advance(100 * MS, FOREVER)
        assert {row.pid for row in (await system.read_status()).rows} == system.monitor_pids
        return taken(system)

    records = with_system(tmp_path, setup(cpus=1), steer)
    for kind, count in ((Kind.POLICY, 3), (Kind.TUNABLE, 1), (Kind.ATTRIBUTE, 9), (Kind.EXIT, 2)):
        assert np.count_nonzero(records["kind"] == kind) == count, kind.name


def test_what_cannot_be_done_is_refused_and_nothing_happens(tmp_path: Path) -> None:
    async def steer(system: SimulatorSystem) -> None:
        await system.start_workload("hog")
        await system.advance(50 * MS, FOREVER)
        before = len(taken(system))
        for act, words in (
            (system.set_policy("none"), "no such policy"),
            (system.set_tunable("none", 1), "no such tunable"),
            (system.set_tunable("slice", 0), "slice=0"),
            (system.set_attribute(3, AttributeKind.WEIGHT, 11), "weight"),
            (system.set_attribute(99, AttributeKind.WEIGHT, 1), "pid 99: no such process"),
            (system.kill(1), "process 1: the monitor needs it"),
            (system.kill(2), "process 2: the monitor needs it"),
            (system.kill(99), "pid 99: no such process"),
            (system.start_workload("none"), "unknown workload 'none'; choose from two-hogs"),
        ):
            with pytest.raises(Refused, match=words):
                await act
        assert before and not len(taken(system)) and system.life is Life.RUNNING
        await system.end()
        with pytest.raises(Refused, match="has ended"):
            await system.set_policy("rr")

    with_system(tmp_path, setup(), steer)


def test_failing_machine_gives_its_reason_and_a_sound_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fork bomb fills the machine's process table."""
    monkeypatch.setattr(simulator, "PROCESSES_MAX", 50)
    bomb = tmp_path / "bomb.json"
    bomb.write_text('{"starter": {"fork": "a"}, "tasks": {"a": {"fork": "a", "run": "1ms"}}}')

    async def burst(system: SimulatorSystem) -> None:
        await system.start_workload("bomb")
        await system.advance(1_000 * MS, FOREVER)
        now = system.now_ns
        assert system.life is Life.FAILED and TICK < now < 1_000 * MS
        assert "at most 50 at once" in system.message
        assert system.take_log() == [f"simulator: {system.message}"] and not system.take_log()
        await system.advance(2_000 * MS, FOREVER)
        assert system.now_ns == now
        with pytest.raises(Refused, match="at most 50 at once"):
            await system.read_status()

    with_system(tmp_path, setup(files=(bomb,)), burst)
    (path,) = tmp_path.glob("*.bin")
    events = trace.read(path)
    trace.validate(events)
    assert not events.truncated


# ---- time


async def _acts(system: SimulatorSystem, piece_ns: int) -> tuple[Records, int]:
    """Performs the same acts at the same times, with pauses between pieces; returns the PID
    of the hogs' parent.
    """

    async def go_to(time_ns: int) -> None:
        while system.now_ns < time_ns:
            await system.advance(min(system.now_ns + piece_ns, time_ns), FOREVER)

    await go_to(33 * MS)
    await system.start_workload("interactive")
    hogs = await system.start_workload("two-hogs")
    await go_to(120 * MS)
    await system.set_policy("lottery")
    await system.set_attribute(hogs, AttributeKind.TICKETS, 4)
    await system.start_workload("sleepers")
    await go_to(300 * MS + 1)
    await system.set_tunable("slice", 2)
    await system.kill(hogs)
    await go_to(700 * MS)
    return taken(system), hogs


def test_the_pace_changes_nothing(tmp_path: Path) -> None:
    record_arrays = []
    for number, piece in enumerate((10**12, 7 * MS, 333_333)):
        folder = tmp_path / str(number)
        folder.mkdir()

        async def run(system: SimulatorSystem, piece: int = piece) -> Records:
            return (await _acts(system, piece))[0]

        record_arrays.append(with_system(folder, setup("mlfq"), run))
    assert len(record_arrays[0]) > 2_000
    assert record_arrays[0].tobytes() == record_arrays[1].tobytes() == record_arrays[2].tobytes()


def test_the_same_acts_are_done_when_their_times_come(tmp_path: Path) -> None:
    """A page reports how it reached its state; acts that it has not received belong to
    another past.
    """

    async def ask(system: SimulatorSystem) -> tuple[Records, int]:
        await system.start_workload("ping-pong")
        return await _acts(system, 10**12)

    places = [tmp_path / "asked", tmp_path / "followed"]
    for place in places:
        place.mkdir()
    original_records, hogs = with_system(places[0], setup("mlfq"), ask)
    acts = [
        f"{TICK} start 1 ping-pong",
        f"{33 * MS} start 2 interactive",
        f"{33 * MS} start 3 two-hogs",
        f"{120 * MS} policy lottery",
        f"{120 * MS} tickets {hogs} 4",
        f"{120 * MS} start 6 sleepers",
        f"{300 * MS + 1} tunable slice=2",
        f"{300 * MS + 1} kill {hogs}",
    ]

    async def follow(system: SimulatorSystem) -> Records:
        assert system.has_performed(acts)
        system.schedule(acts[:3])
        await system.advance(100 * MS, FOREVER)
        assert system.has_performed(acts) and not system.has_performed(acts[:2])
        assert not system.has_performed([*acts[:3], f"{99 * MS} policy rr"])
        system.schedule(acts)
        await system.advance(700 * MS, FOREVER)
        assert system.has_performed(acts) and not system.has_performed(acts[:-1])
        return taken(system)

    followed = with_system(places[1], setup("mlfq"), follow)
    assert len(original_records) > 2_000
    assert followed.tobytes() == original_records.tobytes()


def test_it_goes_by_our_clock_until_it_is_paused(tmp_path: Path) -> None:
    async def play(system: SimulatorSystem) -> None:
        system.speed = 3.0
        await system.play_by_itself()
        while system.now_ns < 200 * MS:
            await asyncio.sleep(0.01)
        await system.pause()
        now, records = system.now_ns, len(taken(system))
        await asyncio.sleep(0.1)
        assert records > 100 and (system.now_ns, len(taken(system))) == (now, 0)
        system.speed = 0.0
        await system.resume()
        while system.now_ns < 20_000 * MS:
            await asyncio.sleep(0.01)
            taken(system)

    with_system(tmp_path, setup(workloads=("two-hogs",)), play)
