# SPDX-License-Identifier: MIT
"""What a page shows of a session's systems: steps back in time, where what is shown then is what was shown when
it was the present; and pages that come later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from live_page import LivePage, another_page, live_page
from monitor_stand_ins import until
from schedlab import paths
from schedlab.base.toolchain.build import machine_module
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.base.toolchain.tools import find_browser
from schedlab.monitor.making import make_ready, make_system, read_choices
from schedlab.monitor.page_socket import Socket
from schedlab.monitor.session import Session
from schedlab.monitor.system import Refused, Setup
from schedlab.monitor.watched import Watched

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not find_browser(), reason="NO BROWSER: steps back are NOT TESTED"),
]
HAPPENED = ("timeline", "marks", "decisions", "log")
OF_THE_HOST = (
    *("type", "number", "life", "paused", "speed", "pace", "events_per_s", "behind_ns", "back_ns"),
    *("whole", "skipped_frames", "recording", "message"),
)


def state(frame: Any) -> dict[str, Any]:
    """What is the case at its moment."""
    return {key: value for key, value in frame.items() if key not in (*HAPPENED, *OF_THE_HOST)}


class Table:
    """A session under way, and a page of it."""

    def __init__(self, session: Session, page: LivePage) -> None:
        self.session = session
        self.page = page

    async def do(self, do: str, **message: Any) -> Any:
        return await self.page.ask(do, **message)

    async def step(self, kind: str, back: bool = False) -> int:
        reached: int = await self.do("step", kind=kind, back=back)
        return reached

    async def frame(self, now_ns: int = 0, letter: str = "a") -> dict[str, Any]:
        """What is shown, once this time has been reached."""
        return await self.page.frame(lambda frame: frame["now_ns"] >= now_ns, letter)

    async def at(self, now_ns: int, letter: str = "a") -> dict[str, Any]:
        """What is shown of this moment, as soon as it is."""
        return await self.page.frame(lambda frame: frame["now_ns"] == now_ns, letter)

    async def present(self, reached: int, letter: str = "a") -> dict[str, Any]:
        """What is shown of a system that stands, once all is known of what it did up to this time."""
        each = self.session.systems[letter]
        await until(lambda: each.known_ns >= reached)
        return await self.page.frame(
            lambda frame: frame["now_ns"] >= reached and frame["events"] == _records(each), letter
        )

    async def standing(self, letter: str = "a") -> dict[str, Any]:
        """What is shown once it stands, and all is known up to then."""
        await self.page.frame(lambda frame: frame["paused"], letter)
        await asyncio.sleep(0.3)
        return await self.page.frame(lambda frame: frame["paused"], letter)


def watched(setups: list[Setup], test: Callable[[Table], Awaitable[None]], speed: float) -> None:
    """Runs a test beside a page of a session of these systems."""
    machine_module()
    make_ready(setups[0])

    async def run() -> None:
        session = Session(setups, read_choices(), make=make_system, speed=speed)
        async with live_page(session) as page:
            first = session.systems["a"]
            await until(lambda: first.failure or _records(first) > 300)
            await test(Table(session, page))
            assert not [each.failure for each in session.systems.values() if each.failure]

    asyncio.run(run())


def _records(each: Watched) -> int:
    return each.tape.recent.end if each.tape else 0


@pytest.fixture(autouse=True)
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")


SIMULATED = Setup("sim", PolicyChoice("mlfq"), workloads=("two-hogs", "interactive"))


def test_a_machine_whose_clock_is_ours_goes_on_from_there() -> None:
    """What is done to it is done then; so the future is another one."""

    async def test(table: Table) -> None:
        system = table.session.systems["a"]
        await table.do("pause")
        await table.standing()
        present = system.now_ns
        for _ in range(3):
            then = await table.step("tick", back=True)
        seen = await table.at(then)
        await table.do("policy", policy="lottery")
        assert system.now_ns == then < present
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


def test_what_a_page_asks_before_it_is_connected_is_asked_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on a busy host: its module is there before the socket is open."""
    connected = asyncio.Event()
    connect = Socket.get

    async def late(socket: Socket, *words: Any, **named: Any) -> None:
        await connected.wait()
        await connect(socket, *words, **named)

    monkeypatch.setattr(Socket, "get", late)

    async def test(table: Table) -> None:
        asking = asyncio.ensure_future(table.do("pause"))
        await asyncio.wait([asking], timeout=1)
        assert not asking.done()
        connected.set()
        await asking
        assert (await table.standing())["paused"]

    watched([SIMULATED], test, speed=1)


def test_a_page_that_comes_later_is_told_the_past() -> None:
    """Its figures are those of a page that was there from the beginning, and so is its time line."""

    async def test(table: Table) -> None:
        table.session.systems["a"].log.add(["a line of the console"])
        await table.page.frame(lambda frame: frame["now_ns"] > 200_000_000)
        await table.do("pause")
        shown = await table.standing()
        context = table.page.page.context
        (server,) = table.session._listeners
        other = await another_page(await context.new_page(), server)  # type: ignore[arg-type]
        late = await other.frame(lambda frame: frame["now_ns"] == shown["now_ns"])
        assert state(late) == state(shown)
        mine, theirs = await table.page.ask("history"), await other.ask("history")
        for key in ("timeline", "marks", "log"):
            assert mine[key] == theirs[key]
        # Of all records that come at once, the last decisions alone are kept, and how many come hangs on the host.
        first, second = (
            {each["number"]: each for each in history["decisions"]} for history in (mine, theirs)
        )
        assert max(first) == max(second)
        assert all(first[number] == second[number] for number in first.keys() & second.keys())
        assert mine["timeline"]["runs"]
        assert "a line of the console" in mine["log"]
        # The past of each is its own.
        then = await table.step("tick", back=True)
        await table.at(then)
        assert (await other.frame())["now_ns"] == shown["now_ns"]

    watched([SIMULATED], test, speed=1)


def test_what_is_asked_of_a_group_goes_to_its_processes() -> None:
    async def test(table: Table) -> None:
        frame = await table.page.frame(lambda frame: any(frame["processes"]["group"]))
        await table.do("pause")
        frame = await table.standing()
        processes = frame["processes"]
        group = next(each for each in processes["group"] if each)
        count = processes["group"].count(group)
        assert await table.do("attribute", group=group, kind="tickets", value=77) == count
        with pytest.raises(Refused, match="no process of the group"):
            await table.do("kill", group="none")
        explained = await table.do("explain", pid=processes["pid"][-1])
        assert explained["pid"] == processes["pid"][-1]
        with pytest.raises(Refused, match="no process 999999"):
            await table.do("explain", pid=999999)
        blamed = await table.do("blame", pid=processes["pid"][-1], kinds=["response", "turn"])
        assert blamed["end_ns"] == frame["now_ns"]
        await table.do("window", seconds=0.25)
        await table.page.frame(lambda frame: frame["metrics"]["window_ns"] == 250_000_000)

    watched([SIMULATED], test, speed=1)


@pytest.mark.spike
def test_a_live_machine_is_shown_as_it_was() -> None:
    """Frames that were shown while it ran are found again, and it goes on from the present."""

    async def test(table: Table) -> None:
        live = {}
        await table.frame(1)
        for _ in range(20):
            await asyncio.sleep(0.05)
            frame = await table.page.frame()
            live[frame["now_ns"]] = state(frame)
        await table.do("pause")
        present = await table.standing()
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
