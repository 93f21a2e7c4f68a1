# SPDX-License-Identifier: MIT
"""Tests the page's history: after steps back, the page shows the same state as when it was
the present. Also tests pages that connect later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from live_page import LivePage, another_page, live_page
from monitor_stand_ins import StandIn, setup
from schedlab import paths
from schedlab.base.toolchain.build import wasm_module
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.base.toolchain.tools import find_browser
from schedlab.errors import WrongUsage
from schedlab.monitor.commands import perform_command
from schedlab.monitor.session import Session
from schedlab.monitor.system import Setup
from schedlab.monitor.system_factory import (
    SystemMaker,
    build_requirements,
    make_system,
    read_choices,
)
from schedlab.monitor.terminal_feed import FrameMaker
from schedlab.runs import results
from schedlab.trace import read, validate

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not find_browser(), reason="NO BROWSER: steps back are NOT TESTED"),
]
HAPPENED = ("timeline", "marks", "decisions", "log")
OF_THE_HOST = (
    *("type", "number", "life", "paused", "speed", "pace", "events_per_s", "behind_ns", "back_ns"),
    *("whole", "anew", "skipped_frames", "recording", "message"),
)


def state(frame: Any) -> dict[str, Any]:
    """Returns the state at the system's moment."""
    return {key: value for key, value in frame.items() if key not in (*HAPPENED, *OF_THE_HOST)}


class Table:
    """A session in progress, and a page of it."""

    def __init__(self, session: Session, page: LivePage) -> None:
        self.session = session
        self.page = page

    async def do(self, do: str, **message: Any) -> Any:
        return await self.page.ask(do, **message)

    async def step(self, kind: str, back: bool = False) -> int:
        reached: int = await self.do("step", kind=kind, back=back)
        return reached

    async def frame(self, now_ns: int = 0, letter: str = "a") -> dict[str, Any]:
        """Returns the frame shown once this time has been reached."""
        return await self.page.frame(lambda frame: frame["now_ns"] >= now_ns, letter)

    async def at(self, now_ns: int, letter: str = "a") -> dict[str, Any]:
        """Returns the frame of this moment once it is shown."""
        return await self.page.frame(lambda frame: frame["now_ns"] == now_ns, letter)

    async def current_frame(self, letter: str = "a") -> dict[str, Any]:
        """Returns the frame shown once the system is paused, with all records up to then."""
        await self.page.frame(lambda frame: frame["paused"], letter)
        await asyncio.sleep(0.3)
        return await self.page.frame(lambda frame: frame["paused"], letter)


def watched(
    setups: list[Setup],
    test: Callable[[Table], Awaitable[None]],
    speed: float,
    make: SystemMaker = make_system,
    begun: bool = True,
) -> None:
    """Runs a test next to a page of a session of these systems; systems from another maker are not
    played by a page.

    `begun`: waits until there is something to see.
    """
    wasm_module()
    plays = make is make_system
    if plays:
        build_requirements(setups[0])

    async def run() -> None:
        session = Session(setups, read_choices(), make=make, speed=speed, page_plays=plays)
        async with live_page(session) as page:
            if begun:
                await page.frame(lambda frame: frame["events"] > 300)
            await test(Table(session, page))
            assert not [system.failure for system in session.systems.values() if system.failure]

    asyncio.run(run())


@pytest.fixture(autouse=True)
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(paths, "RUNS_FOLDER", tmp_path / "runs")


TICK_NS = 10_000_000
SIMULATED = Setup("sim", PolicyChoice("mlfq"), workloads=("two-hogs", "interactive"))


def test_machine_with_simulated_clock_continues() -> None:
    """Acts take effect at the shown moment; so the continuation is another branch."""

    async def test(table: Table) -> None:
        await table.do("pause")
        present = (await table.current_frame())["now_ns"]
        for _ in range(3):
            then = await table.step("tick", back=True)
        seen = await table.page.frame(lambda frame: then <= frame["now_ns"] < then + TICK_NS)
        await table.do("policy", policy="lottery")
        frame = await table.page.frame(lambda frame: frame["policy"] == "lottery")
        assert then <= frame["now_ns"] < present
        assert frame["back_ns"] == 0
        assert frame["processes"]["pid"] == seen["processes"]["pid"]
        await table.step("tick", back=True)
        await table.page.frame(lambda frame: frame["policy"] == "mlfq")
        await table.do("resume")
        frame = await table.frame(present + 1)
        assert frame["policy"] == "lottery"

    watched([SIMULATED], test, speed=1)


def test_server_moves_to_the_page(runs: Path) -> None:
    """By the same acts its machine has the same trace, even after the page has stepped back
    and acted differently.
    """

    async def test(table: Table) -> None:
        system = table.session.systems["a"]

        async def agrees() -> int:
            """Checks that the page agrees with the session; returns the number of records so
            far.
            """
            blamed = await table.do("blame", pid=3, kinds=["response"])
            shown = await table.page.frame(lambda frame: frame["paused"])
            assert system.tape and blamed["end_ns"] == system.now_ns
            assert system.tape.state.count == shown["events"]
            frame_maker = FrameMaker(system, table.session.choices)
            while frame_maker.feed(table.session.window_ns):
                pass
            ours, theirs = (
                {name: plain(frame["processes"][name]) for name in ("pid", "run_ns", "selections")}
                for frame in (frame_maker.frame(1, table.session.window_ns), shown)
            )
            assert ours == theirs
            assert frame_maker.frame(1, table.session.window_ns)["policy"] == shown["policy"]
            return int(shown["events"])

        await table.do("start", workload="mixed")
        await table.do("tunable", name="boost", value=40)
        await table.do("pause")
        await table.current_frame()
        await table.do("record", on=True)
        for _ in range(20):
            await table.step("tick")
        before = await agrees()
        await table.do("attribute", pid=3, kind="tickets", value=50)
        folder = await table.do("record", on=False)
        manifest = results.read_manifest(Path(folder))
        assert manifest["workload"] == "two-hogs and interactive and mixed"
        assert manifest["monitor"]["steered"] == ["tickets 3 50"]
        validate(read(Path(folder) / "trace.bin"))
        for _ in range(12):
            then = await table.step("tick", back=True)
        await table.page.frame(lambda frame: then <= frame["now_ns"] < then + TICK_NS)
        assert system.now_ns > then
        await table.do("policy", policy="stride")
        assert await agrees() < before
        assert system.now_ns == then
        for _ in range(12):
            await table.step("tick")
        await agrees()
        with pytest.raises(WrongUsage, match="acts: expected TIME_NS ACTION"):
            await perform_command(table.session, {"do": "follow", "acts": ["5 fly"], "time_ns": 5})

    watched([SIMULATED], test, speed=1)


def plain(values: Any) -> list[Any]:
    return [value.item() if hasattr(value, "item") else value for value in values]


def test_late_page_receives_the_past() -> None:
    """Its figures and its time line equal those of a page that was open from the beginning."""

    async def test(table: Table) -> None:
        table.session.systems["a"].log.add(["a line of the console"])
        await table.page.frame(lambda frame: frame["now_ns"] > 50_000_000)
        await table.do("pause")
        context = table.page.page.context
        (server,) = table.session._listeners
        other = await another_page(await context.new_page(), server)  # type: ignore[arg-type]
        system = table.session.systems["a"]

        def has_all(frame: dict[str, Any]) -> bool:
            return bool(
                frame["paused"] and system.tape and frame["events"] == system.tape.state.count
            )

        shown, late = await table.page.frame(has_all), await other.frame(has_all)
        assert state(late) == state(shown)
        # Each system has a separate past.
        then = await table.step("tick", back=True)
        await table.at(then)
        assert (await other.frame())["now_ns"] == shown["now_ns"]
        await other.ask("look", time_ns=then)
        await other.frame(lambda frame: frame["now_ns"] == then)
        # Frames of an earlier moment begin with all records kept up to then.
        mine, theirs = [(await client.received("whole"))["a"] for client in (table.page, other)]
        for key in ("timeline", "marks", "log"):
            assert mine[key] == theirs[key]
        # If records arrive together, only the last decisions are kept, and their number depends on
        # the host.
        first, second = (
            {decision["number"]: decision for decision in history["decisions"]}
            for history in (mine, theirs)
        )
        assert max(first) == max(second)
        assert all(first[number] == second[number] for number in first.keys() & second.keys())
        assert mine["timeline"]["runs"]
        assert "a line of the console" in mine["log"]

    def slow(given: Setup, folder: Path) -> StandIn:
        made = StandIn(given, folder, played=False)
        made.slowness = 0.01
        return made

    watched([replace(setup(), machine="spike")], test, speed=1, make=slow)


@pytest.mark.spike
def test_a_live_machine_is_shown_as_it_was() -> None:
    """Frames shown while it ran are found again, and it continues from the present."""

    async def test(table: Table) -> None:
        live = {}
        await table.frame(1)
        for _ in range(20):
            await asyncio.sleep(0.05)
            frame = await table.page.frame()
            live[frame["now_ns"]] = state(frame)
        await table.do("pause")
        present = await table.current_frame()
        for time_ns in reversed(live):
            assert await table.do("look", time_ns=time_ns) == time_ns
            assert state(await table.at(time_ns)) == live[time_ns]
        assert len(live) > 5
        await table.do("step", kind="decision", back=True)
        assert (await table.page.frame())["back_ns"] > 0
        await table.do("resume")
        later = await table.frame(present["now_ns"] + 1)
        assert later["back_ns"] == 0

    watched([replace(SIMULATED, machine="spike")], test, speed=1)
