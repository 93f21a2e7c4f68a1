# SPDX-License-Identifier: MIT
"""The simulator as a system of the monitor: what it is told, what it obeys, and that its trace is the
same whatever the pace, and whoever went back in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from schedlab import trace
from schedlab.base.toolchain.build import SIMULATOR_LIBRARY, build
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.metrics.lives import descendants, lives
from schedlab.monitor.model import Model
from schedlab.monitor.system import Ability, Life, Paced, Records, Refused, Setup, StepKind
from schedlab.monitor.systems import simulated, simulator
from schedlab.monitor.systems.simulator import SimulatorSystem
from schedlab.trace import Kind
from schedlab.trace.follow import POLL_RECORDS
from schedlab.trace.format import RECORD, AttributeKind
from schedlab.workload.palette import palette

MS = 1_000_000
TICK = 10 * MS
FOREVER = 60.0
"""Of patience, in seconds."""

Result = TypeVar("Result")


@pytest.fixture(autouse=True, scope="module")
def _library() -> Iterator[None]:
    """Built once, not by each machine."""
    with pytest.MonkeyPatch.context() as patch:
        build(SIMULATOR_LIBRARY)
        patch.setattr(simulator, "build", lambda *targets: None)
        yield


def setup(policy: str = "rr", **others: object) -> Setup:
    name, _, preset = policy.partition(":")
    return Setup("sim", PolicyChoice(name, preset), **others)  # type: ignore[arg-type]


def taken(system: Paced) -> Records:
    """All that its trace says beyond the last time."""
    pieces = [np.empty(0, RECORD)]
    while len(piece := system.take()):
        pieces.append(piece)
    return np.concatenate(pieces)


def with_system(
    folder: Path, wanted: Setup, act: Callable[[SimulatorSystem], Awaitable[Result]]
) -> Result:
    """What an act gives on a machine that has begun, and ends."""

    async def run() -> Result:
        system = SimulatorSystem(wanted, folder)
        await system.begin()
        try:
            return await act(system)
        finally:
            await system.end()

    return asyncio.run(run())


# ---- begin and end


def test_it_begins_with_its_own_processes_and_ends_with_a_sound_trace(tmp_path: Path) -> None:
    async def run() -> tuple[SimulatorSystem, Records]:
        system = SimulatorSystem(setup("mlfq", cpus=3), tmp_path)
        paced: Paced = system  # it is one, says the type checker
        assert paced.life is Life.STARTING and paced.header is None and not len(paced.take())
        await system.begin()
        assert system.life is Life.RUNNING and system.now_ns == TICK
        rows = (await system.read_status()).rows
        assert {row.pid for row in rows} == system.own_pids
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


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (setup("none"), "no such policy"),
        (setup(cpus=2000), "2000 CPUs"),
        (setup(settings=(("slice", 0),)), "slice=0"),
        (setup(costs="free"), "free"),
        (setup(workloads=("none",)), "no workload is called none"),
    ],
)
def test_what_cannot_begin_says_why(tmp_path: Path, wrong: Setup, words: str) -> None:
    with pytest.raises(SchedlabError, match=words):
        with_system(tmp_path, wrong, lambda system: system.read_status())


def test_a_setup_is_heeded(tmp_path: Path) -> None:
    async def look(system: SimulatorSystem) -> None:
        status = await system.read_status()
        assert (status.policy, dict(status.changed)) == ("rr:table-scan", {"slice": 4})
        await system.advance(100 * MS, FOREVER)
        assert [row.name for row in (await system.read_status()).rows].count("hog") == 3

    wanted = setup("rr:table-scan", settings=(("slice", 4),), workloads=("two-hogs", "hog"))
    with_system(tmp_path, wanted, look)


# ---- steering


def test_each_command_has_its_effect(tmp_path: Path) -> None:
    """Read back from sched_status, and in the trace."""

    async def steer(system: SimulatorSystem) -> Records:
        root = await system.start_workload("hog")
        await system.advance(50 * MS, FOREVER)
        hog = root + 1
        await system.set_policy("lottery:thesis")
        assert (await system.read_status()).policy == "lottery:thesis"
        await system.set_tunable("slice", 7)
        assert dict((await system.read_status()).changed) == {"slice": 7}
        tunables = {each.name: each for each in await system.read_tunables()}
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
        assert {row.pid for row in (await system.read_status()).rows} == system.own_pids
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
            (system.set_attribute(99, AttributeKind.WEIGHT, 1), "no process of pid 99"),
            (system.kill(1), "for the monitor's sake"),
            (system.kill(2), "for the monitor's sake"),
            (system.kill(99), "no process of pid 99"),
            (system.start_workload("none"), "there are two-hogs"),
        ):
            with pytest.raises(Refused, match=words):
                await act
        assert before and not len(taken(system)) and system.life is Life.RUNNING
        await system.end()
        with pytest.raises(Refused, match="has ended"):
            await system.set_policy("rr")

    with_system(tmp_path, setup(), steer)


def test_a_machine_that_fails_says_why_and_leaves_a_sound_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fork bomb fills the machine's room for processes."""
    monkeypatch.setattr(simulated, "PROCESSES", 50)
    bomb = tmp_path / "bomb.json"
    bomb.write_text('{"starter": {"fork": "a"}, "tasks": {"a": {"fork": "a", "run": "1ms"}}}')

    async def burst(system: SimulatorSystem) -> None:
        await system.start_workload("bomb")
        now = await system.advance(1_000 * MS, FOREVER)
        assert system.life is Life.FAILED and TICK < now < 1_000 * MS
        assert "there is room for 50 processes" in system.message
        assert system.take_log() == [f"simulator: {system.message}"] and not system.take_log()
        assert await system.advance(2_000 * MS, FOREVER) == now
        with pytest.raises(Refused, match="room for 50"):
            await system.read_status()

    with_system(tmp_path, setup(files=(bomb,)), burst)
    (path,) = tmp_path.glob("*.bin")
    events = trace.read(path)
    trace.validate(events)
    assert not events.truncated


# ---- workloads


def test_all_of_the_palette_at_once(tmp_path: Path) -> None:
    """Each does what it does, and none is too long."""

    async def start(system: SimulatorSystem) -> None:
        names = [*palette(), "fork-storm", "ping-pong"]
        pids = [await system.start_workload(name) for name in names]
        assert len(set(pids)) == len(names)
        await system.advance(100 * MS, FOREVER)
        assert system.life is Life.RUNNING, system.message
        trace_kinds = set(taken(system)["kind"].tolist())
        assert {Kind.FORK, Kind.WAKEUP, Kind.EXIT, Kind.QUEUED} <= trace_kinds

    with_system(tmp_path, setup("stride", cpus=64), start)


@pytest.mark.parametrize(
    "name", [name for name, each in palette().items() if each.kind == "simple"]
)
def test_simple_ones_go_on_until_they_are_killed(tmp_path: Path, name: str) -> None:
    """But the fork storm, which ends."""

    async def watch(system: SimulatorSystem) -> None:
        root = await system.start_workload(name)
        await system.advance(20_000 * MS, FOREVER)
        records = taken(system)
        forks = records[records["kind"] == Kind.FORK]
        children = forks["first"][forks["process"] == root].tolist()
        living = {row.pid for row in (await system.read_status()).rows} - system.own_pids
        if name == "fork-storm":
            assert len(children) == 500 and not living
            return
        assert living == {root, *children} and 1 <= len(children) <= 3
        entered = records[records["kind"] == Kind.SCHEDULER_EXIT]
        late = entered[entered["time"] > 10_000 * MS]
        assert set(children) <= set(late["process"].tolist())
        for pid in (root, *children):
            await system.kill(pid)
        await system.advance(21_000 * MS, FOREVER)
        assert {row.pid for row in (await system.read_status()).rows} == system.own_pids

    with_system(tmp_path, setup(cpus=1), watch)


def test_shares_of_tickets_are_as_its_name_says(tmp_path: Path) -> None:
    async def shares(system: SimulatorSystem) -> dict[str, int]:
        await system.start_workload("tickets-3-2-1")
        await system.advance(10 * MS, FOREVER)
        await system.advance(6_010 * MS, FOREVER)
        rows = (await system.read_status()).rows
        names = {row.pid: row.name for row in rows}
        records = taken(system)
        switches = records[records["kind"] == Kind.SWITCH]
        run: dict[str, int] = {}
        for begin, end in pairwise(switches):
            name = names.get(int(begin["process"]), "")
            run[name] = run.get(name, 0) + int(end["time"]) - int(begin["time"])
        return run

    run = with_system(tmp_path, setup("stride", cpus=1), shares)
    assert run["three"] / run["one"] == pytest.approx(3, rel=0.02)
    assert run["two"] / run["one"] == pytest.approx(2, rel=0.02)


def test_what_is_started_is_the_workload(tmp_path: Path) -> None:
    """In metrics of its trace, and in the monitor's: it was forked by nobody, and init took it in."""

    async def run(system: SimulatorSystem) -> None:
        assert system.header
        model = Model(system.header, "rr", "equal", 1_000 * MS)
        model.own_pids = set(system.own_pids)
        await system.start_workload("two-hogs")
        await system.advance(500 * MS, FOREVER)
        model.feed(taken(system))
        model.reach(system.now_ns)
        shown = dict(
            zip(*(model.frame()["processes"][key] for key in ("pid", "share")), strict=True)
        )
        assert shown[4] + shown[5] == pytest.approx(1, abs=0.01)
        assert abs(shown[4] - shown[5]) < 1.1 / 49  # a tick, of 49

    with_system(tmp_path, setup(cpus=1), run)
    (path,) = tmp_path.iterdir()
    found = lives(trace.read(path))
    assert descendants(found, found.pid.tolist().index(1)).sum() == len(found) - 1


def test_own_files_and_wrong_ones(tmp_path: Path) -> None:
    good, bad = tmp_path / "mine.json", tmp_path / "bad.json"
    good.write_text('{"tasks": {"me": {"loop": 3, "run": {"below": "9ms"}, "sleep": "1ms"}}}')
    bad.write_text('{"tasks": {"me": {"loop": 0, "run": 1}}}')

    async def start(system: SimulatorSystem) -> list[int]:
        begins = []
        for _ in range(2):
            await system.start_workload("mine")
            await system.advance(system.now_ns + 200 * MS, FOREVER)
            records = taken(system)
            ends = records["time"][records["kind"] == Kind.EXIT]
            begins.append(int(ends[0]) - system.now_ns)
        with pytest.raises(Refused, match=r"bad.json:1: tasks.me.loop: 0"):
            await system.start_workload("bad")
        return begins

    first, second = with_system(tmp_path, setup(files=(good, bad)), start)
    assert first != second  # its random times are drawn anew
    assert with_system(tmp_path, setup(files=(good, bad)), start) == [first, second]
    with pytest.raises(WrongUsage, match="there is no such file"):
        SimulatorSystem(setup(files=(tmp_path / "none.json",)), tmp_path)


# ---- time


def test_patience_ends_before_the_time_has_come(tmp_path: Path) -> None:
    async def hurry(system: SimulatorSystem) -> None:
        await system.start_workload("ping-pong")
        goal = 10**15
        before = system.now_ns
        now = await system.advance(goal, 0.02)
        assert before < now < goal and system.now_ns == now
        assert await system.advance(goal, 0.02) > now

    with_system(tmp_path, setup(), hurry)


def test_it_waits_for_who_reads_its_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulator, "UNREAD_BYTES_MAX", 100_000)

    async def hurry(system: SimulatorSystem) -> None:
        await system.start_workload("ping-pong")
        now = await system.advance(2_000 * MS, FOREVER)
        assert now == 2_000 * MS and await system.advance(3_000 * MS, FOREVER) == now
        assert len(taken(system)) * RECORD.itemsize > 100_000
        assert await system.advance(3_000 * MS, FOREVER) == 3_000 * MS

    with_system(tmp_path, setup(), hurry)


def test_time_is_as_far_as_what_was_taken(tmp_path: Path) -> None:
    """A piece at a time: nobody is told a time before all that happened until then."""

    async def hurry(system: SimulatorSystem) -> None:
        await system.start_workload("ping-pong")
        goal = 80_000 * MS
        await system.advance(goal, FOREVER)
        assert system.now_ns == goal
        first = system.take()
        assert len(first) == POLL_RECORDS
        assert system.now_ns == first["time"].max() < goal
        rest = taken(system)
        assert rest["time"].min() >= first["time"].max() - MS and system.now_ns == goal

    with_system(tmp_path, setup(), hurry)


def test_steps(tmp_path: Path) -> None:
    async def step(system: SimulatorSystem) -> None:
        with pytest.raises(Refused, match="nothing is going to happen"):
            await system.step(StepKind.EVENT)
        await system.start_workload("two-hogs")
        await system.advance(1_005 * MS, FOREVER)
        taken(system)
        assert await system.step(StepKind.MILLISECOND) == 1_006 * MS
        assert await system.step(StepKind.TICK) == 1_010 * MS
        assert await system.step(StepKind.TICK) == 1_020 * MS
        taken(system)
        now = system.now_ns
        assert now < await system.step(StepKind.DECISION) <= now + TICK
        picked = taken(system)
        assert (picked["kind"] == Kind.SCHEDULER_EXIT).any()
        for _ in range(20):
            before = system.now_ns
            assert await system.step(StepKind.EVENT) >= before
            assert len(taken(system))

    with_system(tmp_path, setup(cpus=1), step)


async def _acts(system: SimulatorSystem, piece_ns: int) -> Records:
    """The same acts at the same times, between which it goes on in pieces."""

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
    return taken(system)


def test_the_pace_changes_nothing(tmp_path: Path) -> None:
    found = []
    for number, piece in enumerate((10**12, 7 * MS, 333_333)):
        folder = tmp_path / str(number)
        folder.mkdir()

        async def run(system: SimulatorSystem, piece: int = piece) -> Records:
            return await _acts(system, piece)

        found.append(with_system(folder, setup("mlfq", workloads=("ping-pong",)), run))
    assert len(found[0]) > 2_000
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()


def test_who_goes_back_and_forward_again_finds_the_same(tmp_path: Path) -> None:
    async def travel(system: SimulatorSystem) -> None:
        whole = await _acts(system, 10**12)
        for time in (200 * MS, 120 * MS, 0, 690 * MS):
            await system.seek(time)
            assert system.now_ns == max(time, TICK)
            records = taken(system)
            assert records.tobytes() == whole[: len(records)].tobytes()
            assert (whole["time"][len(records) :] >= time - MS).all()
        await system.advance(700 * MS, FOREVER)
        await system.seek(150 * MS)
        assert (await system.read_status()).policy == "lottery"
        await system.advance(650 * MS, FOREVER)
        await system.advance(700 * MS, FOREVER)
        assert taken(system).tobytes() == whole.tobytes()
        assert len(list(tmp_path.iterdir())) == 1  # traces of before are gone

    with_system(tmp_path, setup("mlfq", workloads=("ping-pong",)), travel)


def test_an_act_in_the_past_makes_another_future(tmp_path: Path) -> None:
    async def change(system: SimulatorSystem) -> None:
        await _acts(system, 10**12)
        await system.seek(110 * MS)
        await system.set_policy("stride")
        await system.advance(700 * MS, FOREVER)
        assert (await system.read_status()).policy == "stride"  # and not lottery, from 120 ms on

    with_system(tmp_path, setup("mlfq"), change)


def test_a_time_too_far_away_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulator, "SEEK_RECORDS_MAX", 1_000)

    async def travel(system: SimulatorSystem) -> None:
        await system.start_workload("ping-pong")
        await system.advance(5_000 * MS, FOREVER)
        before = len(taken(system))
        with pytest.raises(Refused, match="too far"):
            await system.seek(4_000 * MS)
        assert system.now_ns == 5_000 * MS and system.life is Life.RUNNING
        await system.advance(6_000 * MS, FOREVER)
        assert before > 1_000 and len(taken(system)) > 1_000
        await system.seek(20 * MS)
        assert system.now_ns == 20 * MS
        monkeypatch.setattr(simulator, "SEEK_SECONDS_MAX", 0.0)
        with pytest.raises(Refused, match="too far"):
            await system.seek(10**17)

    with_system(tmp_path, setup(), travel)


def test_what_was_read_leaves_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulator, "PUNCH_BYTES", 1 << 20)

    async def blocks(keep: bool) -> tuple[int, int]:
        folder = tmp_path / str(keep)
        folder.mkdir()
        system = SimulatorSystem(setup(workloads=("ping-pong",)), folder, keep_trace=keep)
        await system.begin()
        for _ in range(20):
            await system.advance(system.now_ns + 4_000 * MS, FOREVER)
            taken(system)
        await system.end()
        (path,) = folder.iterdir()
        return path.stat().st_size, path.stat().st_blocks * 512

    size, kept = asyncio.run(blocks(True))
    again, left = asyncio.run(blocks(False))
    assert size == again > 8 << 20
    assert kept >= size
    if left == kept:
        pytest.skip("this file system cannot give back parts of a file")
    assert left < 4 << 20
