# SPDX-License-Identifier: MIT
"""Tests systems watched together: in step, controlled, and isolated from each other's failures."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from monitor_stand_ins import SECOND, StandIn, Watching, choices, setup, until
from schedlab import metrics, paths, trace
from schedlab.base.host import disk
from schedlab.errors import SchedlabError
from schedlab.monitor.commands import perform_command
from schedlab.monitor.followed_system import HostClock
from schedlab.monitor.recorder import Recorder
from schedlab.monitor.session import Session
from schedlab.monitor.system import Refused, Setup
from schedlab.monitor.terminal_feed import FrameMaker
from schedlab.runs import results


class Bench:
    """A session in progress, its systems, and its watchers."""

    def __init__(self, session: Session, made: list[StandIn]) -> None:
        self.session = session
        self.made = made
        self.watching = Watching(session)

    async def do(self, do: str, **message: Any) -> Any:
        if do == "explain":
            return self.frame_maker().explain(message["pid"])
        return await perform_command(self.session, {"do": do, **message})

    def frame_maker(self, letter: str = "a") -> FrameMaker:
        return self.watching.screen.frame_maker(letter)

    def system(self, letter: str = "a") -> StandIn:
        stand_in = self.session.systems[letter].system
        assert isinstance(stand_in, StandIn)
        return stand_in

    async def shown(self, what: Callable[[Mapping[str, Any]], object], system: str = "a") -> Any:
        """Waits for a frame that meets the condition, and returns it."""
        seen = len(self.watching.frames)

        def find_frames() -> list[Any]:
            new = self.watching.frames[seen:]
            return [frame for frame in new if frame["system"] == system and what(frame)]

        await until(find_frames)
        return find_frames()[0]


@asynccontextmanager
async def bench(
    *setups: Setup, make: Callable[[Setup, Path], StandIn] = StandIn, **options: Any
) -> AsyncIterator[Bench]:
    made: list[StandIn] = []

    def noted(setup: Setup, folder: Path) -> StandIn:
        made.append(make(setup, folder))
        return made[-1]

    session = Session(setups or [setup()], choices(), make=noted, **options)
    running = asyncio.ensure_future(session.run())
    try:
        table = Bench(session, made)
        await until(
            lambda: running.done() or all(system.tape for system in session.systems.values())
        )
        assert not [system.failure for system in session.systems.values() if system.failure]
        yield table
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError, SchedlabError):
            await running
        await session.close()
        assert all(stand_in.ended for stand_in in made)
        assert not session.scratch.exists()


@pytest.fixture(autouse=True)
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(paths, "RUNS_FOLDER", tmp_path / "runs")
    return tmp_path / "runs"


def in_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Runs a test in a separate event loop."""

    def run(**fixtures: Any) -> None:
        async def limited() -> None:
            await asyncio.wait_for(test(**fixtures), 60)

        asyncio.run(limited())

    run.__name__ = test.__name__
    run.__signature__ = inspect.signature(test)  # type: ignore[attr-defined]
    return run


@pytest.mark.parametrize(
    ("message", "expected_message"),
    [
        ({"do": "fly"}, "unknown command 'fly'"),
        ({"do": "status", "system": "z"}, "unknown system 'z'"),
        ({"do": "policy", "policy": "rrr"}, "did you mean 'rr'"),
        ({"do": "policy", "policy": "lottery:none"}, "unknown preset of lottery"),
        ({"do": "policy", "policy": "rr,lottery"}, "one policy at a time"),
        ({"do": "policy"}, "policy: expected a text"),
        ({"do": "tunable", "name": "slices", "value": 3}, "no tunable slices"),
        ({"do": "attribute", "pid": 1, "kind": "priority", "value": 11}, "0 to 10"),
        ({"do": "start", "workload": "hogs"}, "unknown workload 'hogs'"),
        ({"do": "kill", "pid": 404}, "no process 404"),
        ({"do": "pace", "speed": float("nan")}, "a number from 0"),
        ({"do": "step", "kind": "event"}, "unknown command 'step'"),
        ({"do": "window", "seconds": 0}, "a number from 0.1"),
        ({"do": "restart", "cpus": 2000}, "has 1 to 1024"),
        ({"do": "kill", "pids": ["x"]}, "expected a whole number"),
        ({"do": "branch", "policy": "rr"}, "time_ns: expected a whole number"),
        ({"do": "branch", "settings": " "}, "nothing to change"),
        ({"do": "branch", "settings": "slice"}, "expected NAME=NUMBER"),
        ({"do": "branch", "settings": "slice=3 slice=4"}, "more than once"),
        ({"do": "follow", "acts": [], "time_ns": 0}, "this system runs on the server"),
        ({"do": "text", "workload": "hogs"}, "unknown workload 'hogs'"),
        ({"do": "text", "workload": "hog", "seed": 1, "tick_ns": 1}, "tick_ns: "),
        ({"do": "record", "on": "yes"}, "true or false"),
        ({"do": "record", "on": False}, "no recording is in progress"),
        ({"do": "report"}, "nothing is recorded"),
    ],
)
def test_impossible_commands_are_reported(message: dict[str, Any], expected_message: str) -> None:
    async def ask() -> None:
        async with bench() as table:
            with pytest.raises(SchedlabError, match=expected_message):
                await perform_command(table.session, message)

    asyncio.run(ask())


@in_loop
async def test_command_goes_to_one_or_all() -> None:
    async with bench(setup("rr"), setup("lottery")) as table:
        await table.do("tunable", system="b", name="slice", value=4)
        assert "tunable slice=4" not in table.system("a").commands
        assert "tunable slice=4" in table.system("b").commands
        status = await table.do("status")
        assert sorted(status) == ["a", "b"]
        assert await table.do("kill", system="*", pid=5) == {"a": 1, "b": 1}
        with pytest.raises(Refused, match="a: no process 404; b: no process 404"):
            await table.do("kill", pid=404)


@in_loop
async def test_played_systems_go_in_step_and_the_slowest_decides() -> None:
    async with bench(setup("rr"), setup("lottery"), speed=0.5) as table:
        slow = table.system("b")
        slow.slowness = 0.3
        await until(lambda: slow.now_ns > SECOND // 10)
        for _ in range(20):
            fast_ns, slow_ns = table.system("a").now_ns, slow.now_ns
            assert abs(fast_ns - slow_ns) < SECOND // 10
            await asyncio.sleep(0.02)
        frame = await table.shown(lambda frame: frame["speed"] > 0)
        assert frame["pace"] == 0.5
        assert frame["speed"] < 0.6


@in_loop
async def test_system_restarts_as_another() -> None:
    async with bench(setup("rr"), setup("lottery")) as table:
        before = table.watching.changes
        first = table.system("a")
        await until(lambda: first.now_ns > SECOND // 20)
        restarted = {"cpus": 1, "policy": "lottery:thesis", "seed": 7, "workloads": ["hog"]}
        await table.do("restart", system="a", **restarted)
        assert first.ended == 1
        now = table.session.systems["a"].setup
        assert (now.cpus, str(now.policy), now.seed, now.workloads) == (
            *(1, "lottery:thesis", 7),
            ("hog",),
        )
        assert table.watching.changes > before
        system_entry = table.session.hello()["systems"][0]
        assert system_entry["setup"]["policy"] == "lottery:thesis"
        reached = table.system("b").now_ns
        await until(lambda: table.system("b").now_ns > reached)
        # It continues in step with the other system from that system's moment.
        assert table.system("b").now_ns > table.system("a").now_ns + SECOND // 40
        assert (await table.shown(lambda frame: frame["events"]))["life"] == "running"


@in_loop
async def test_failing_systems_report_it_and_others_continue() -> None:
    async with bench(setup("rr"), setup("lottery")) as table:
        table.system("a").broken = Refused("its trace is torn")
        frame = await table.shown(lambda frame: frame["life"] == "failed")
        assert frame["message"] == "its trace is torn"
        reached = table.system("b").now_ns
        await until(lambda: table.system("b").now_ns > reached)
        with pytest.raises(Refused, match="is not running: its trace is torn"):
            await table.do("policy", system="a", policy="lottery")
        await table.do("restart", system="a")
        frame = await table.shown(lambda frame: frame["life"] == "running")
        assert frame["message"] == ""


@in_loop
async def test_unstartable_systems_report_it() -> None:
    class Broken(StandIn):
        async def begin(self) -> None:
            if self.setup.policy.name == "lottery":
                raise Refused("no such thing here")
            await super().begin()

    async with bench(make=Broken) as table:
        with pytest.raises(Refused, match="no such thing here"):
            await table.do("restart", policy="lottery")
        frame = await table.shown(lambda frame: frame["life"] == "failed")
        assert frame["message"] == "no such thing here"
        await table.do("restart", policy="rr")
        await table.shown(lambda frame: frame["life"] == "running")
    session = Session([setup("lottery")], choices(), make=Broken)
    with pytest.raises(SchedlabError, match="no such thing here"):
        await session.run()
    await session.close()


@in_loop
async def test_recording_begins_at_the_click_and_ends_at_the_next(runs: Path) -> None:
    async with bench(setup("rr"), setup("lottery"), speed=0.2) as table:
        await until(lambda: table.system("a").now_ns > SECOND // 50)
        await table.do("record", on=True, label="mine")
        frame = await table.shown(lambda frame: frame["recording"])
        assert frame["recording"].startswith(str(runs))
        with pytest.raises(Refused, match="already being recorded"):
            await table.do("record", on=True)
        table.system("a").say("while it was recorded")
        await table.do("tunable", system="a", name="slice", value=2)
        now_ns = table.system("b").now_ns
        await until(lambda: table.system("b").now_ns > now_ns + SECOND // 50)
        perfetto = await table.do("perfetto", system="a")
        assert Path(perfetto).stat().st_size > 1000
        folders = await table.do("record", on=False)
    assert sorted(folders) == ["a", "b"]
    for folder in map(Path, folders.values()):
        manifest = results.read_manifest(folder)
        assert (manifest["status"], manifest["label"]) == ("success", "mine")
        assert not manifest["repeatable"]
        read = trace.read(folder / "trace.bin")
        trace.validate(read)
        assert metrics.load(folder / "metrics").summary["elapsed_ns"][0] >= SECOND // 50
    first = Path(folders["a"])
    assert results.read_manifest(first)["monitor"]["steered"] == ["tunable slice=2"]
    assert (first / "console.log").read_text() == "while it was recorded\n"
    assert Path(folders["b"]).parent == first.parent


# --- the host's state


def test_silent_clock_advances_and_stops_with_its_system() -> None:
    clock = HostClock()
    assert clock.time_ns(0) == 0
    clock.start(10)
    clock.note_record(11, 1_900_000_000)
    clock.note_record(12, 3_000_000_000)  # arrived with less delay
    clock.note_record(13, 3_500_000_000)
    assert clock.time_ns(14) == 5_000_000_000
    clock.stop(14)
    assert clock.time_ns(20) == 5_000_000_000
    clock.start(20)
    assert clock.time_ns(21) == 6_000_000_000
    # It was stopped externally: earlier measurements expire after some seconds.
    for second in range(22, 30):
        clock.note_record(second, (second - 18) * 1_000_000_000)
    assert clock.time_ns(30) == 12_000_000_000


@in_loop
async def test_a_recording_that_cannot_be_written_is_given_up_and_the_rest_goes_on(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(recorder: Recorder, records: Any) -> None:
        raise OSError(28, "No space left on device")

    async with bench() as table:
        monkeypatch.setattr(Recorder, "add", full)
        await table.do("record", on=True)
        frame = await table.shown(lambda frame: not frame["recording"] and frame["marks"])
        assert any("No space left" in mark["text"] for mark in frame["marks"])
        assert frame["life"] == "running"
        assert not list(runs.glob("*"))
        with pytest.raises(Refused, match="no recording is in progress"):
            await table.do("record", on=False)


@in_loop
async def test_a_disk_that_fills_up_ends_systems_and_keeps_recordings(
    monkeypatch: pytest.MonkeyPatch, runs: Path
) -> None:
    async with bench(setup(), setup()) as table:
        await table.do("record", on=True, system="a")
        monkeypatch.setattr(disk, "_free_bytes", lambda _: 0)
        await until(lambda: all(system.failure for system in table.session.systems.values()))
        await until(lambda: all(stand_in.ended for stand_in in table.made))
        assert "Free some space" in table.session.systems["b"].failure
        (run_folder,) = table.session.recorded_folders
        assert (run_folder / results.MANIFEST_FILE).exists()
