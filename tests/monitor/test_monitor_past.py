# SPDX-License-Identifier: MIT
"""Steps back in time: what is shown then is what was shown when it was the present."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kept_runs import keep_simulated
from schedlab import paths
from schedlab.machines.folder import TRACE_FILE
from schedlab.monitor import past as past_module
from schedlab.monitor.commands import perform
from schedlab.monitor.frames import Frame
from schedlab.monitor.making import make_ready, make_system, read_choices
from schedlab.monitor.model import Model
from schedlab.monitor.past import Past
from schedlab.monitor.session import Session
from schedlab.monitor.system import Refused, Setup, Status, StatusRow, StepKind
from schedlab.monitor.systems.recorded import recorded_setup
from schedlab.toolchain.policies import PolicyChoice, read_catalogue
from schedlab.trace import read_records
from trace_simulator import Script, simulate, write

HAPPENED = ("timeline", "marks", "decisions", "log")
OF_THE_HOST = (
    *("number", "life", "paused", "speed", "pace", "events_per_s", "behind_ns", "back_ns"),
    *("whole", "skipped_frames", "recording", "message"),
)
PATIENCE_S = 60.0
STEPS = tuple(kind.value for kind in StepKind)


def plain(value: Any) -> Any:
    """Without numpy, so that it can be compared."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def state(frame: Any) -> dict[str, Any]:
    """What is the case at its moment."""
    return {
        key: plain(value) for key, value in frame.items() if key not in (*HAPPENED, *OF_THE_HOST)
    }


class Table:
    """A session under way; its frames are made here alone, when they are asked for."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def do(self, do: str, **message: Any) -> Any:
        return await perform(self.session, {"do": do, **message})

    async def step(self, kind: str, back: bool = False) -> int:
        reached: int = await self.do("step", kind=kind, back=back)
        return reached

    async def frame(self, now_ns: int = 0, letter: str = "a") -> Frame:
        """What is shown, once this time has been reached, and all is known up to then."""
        each = self.session.systems[letter]
        await until(lambda: each.model is not None)
        if each.view is None:
            await until(lambda: not each.is_behind and each.present_ns >= now_ns)
        return each.frame(1.0)


async def until(condition: Callable[[], object]) -> None:
    for _ in range(int(PATIENCE_S * 100)):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come to that")


def watched(setups: list[Setup], test: Callable[[Table], Awaitable[None]], speed: float) -> None:
    """Runs a test beside a session of these systems."""

    async def run() -> None:
        make_ready(setups[0])
        session = Session(setups, read_choices(), make=make_system, speed=speed)
        running = asyncio.ensure_future(session.run())
        table = Table(session)
        try:
            first = session.systems["a"]
            await until(lambda: first.failure or (first.model and first.model.events > 300))
            testing = asyncio.ensure_future(test(table))
            await asyncio.wait([testing, running], return_when="FIRST_COMPLETED")
            assert not running.done(), running.exception()
            await testing
            assert not [each.failure for each in session.systems.values() if each.failure]
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
            await session.close()

    asyncio.run(run())


@pytest.fixture(autouse=True)
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")


SIMULATED = Setup("sim", PolicyChoice("mlfq"), workloads=("two-hogs", "interactive"))


async def forth_and_back(table: Table, kinds: Sequence[str] = STEPS) -> None:
    """What was seen step by step is seen again on the way back, and once more forth."""
    await table.do("pause")
    system = table.session.systems["a"]
    for kind in kinds:
        seen = {}
        for _ in range(6):
            frame = await table.frame(await table.step(kind))
            seen[frame["now_ns"]] = state(frame)
        assert len(seen) == 6
        present_ns = max(seen)
        for time_ns in reversed(seen):
            system.look(time_ns)
            frame = await table.frame()
            assert state(frame) == seen[time_ns]
            assert frame["whole"]
            assert frame["back_ns"] == present_ns - time_ns
        system.look(None)
        await step_back(table, kind, seen)


async def step_back(table: Table, kind: str, seen: dict[int, Any]) -> None:
    """To the first moment that was seen, or before it, and back to the last."""
    found, way = set(), [max(seen)]
    while way[-1] > min(seen):
        time_ns = await table.step(kind, back=True)
        assert time_ns < way[-1]
        way.append(time_ns)
        frame = await table.frame()
        assert (frame["now_ns"], frame["paused"]) == (time_ns, True)
        if time_ns in seen:
            found.add(time_ns)
            assert state(frame) == seen[time_ns]
    assert kind != "event" or len(found) >= 4
    for time_ns in reversed(way[:-1]):
        assert await table.step(kind) == time_ns
    frame = await table.frame()
    assert state(frame) == seen[max(seen)]
    assert frame["back_ns"] == 0


def test_simulated_machines_go_forth_and_back() -> None:
    watched([SIMULATED], forth_and_back, speed=0.05)


def kept(folder: Path) -> Path:
    """A run's folder, of a simulated machine."""
    script = Script(cpus=2, steps=2000, queues=True)
    keep_simulated(folder, 1)
    write(folder / TRACE_FILE, simulate(random.Random(3), script), script)
    return folder


def test_a_recording_goes_forth_and_back(tmp_path: Path) -> None:
    """It is of less than a millisecond, but many events."""

    async def test(table: Table) -> None:
        await forth_and_back(table, ("event", "decision"))

    watched([recorded_setup(kept(tmp_path / "run"))], test, speed=1e-4)


def test_several_go_back_in_step() -> None:
    async def test(table: Table) -> None:
        await table.do("pause")
        at = await table.step("tick")
        for _ in range(3):
            earlier = await table.step("tick", back=True)
            assert earlier == at - SIMULATED.tick_ns
            at = earlier
            for letter in "ab":
                assert (await table.frame(letter=letter))["now_ns"] == earlier

    other = replace(SIMULATED, policy=PolicyChoice("rr"))
    watched([SIMULATED, other], test, speed=0.5)


def test_a_machine_whose_clock_is_ours_goes_on_from_there() -> None:
    """What is done to it is done then; so the future is another one."""

    async def test(table: Table) -> None:
        system = table.session.systems["a"]
        await table.do("pause")
        present = system.now_ns
        for _ in range(3):
            then = await table.step("tick", back=True)
        seen = await table.frame()
        await until(lambda: system.is_on)
        await table.do("policy", policy="lottery")
        assert system.view is None
        assert system.now_ns == then < present
        await until(lambda: system.frame(1.0)["policy"] == "lottery")
        frame = await table.frame(then)
        assert then <= frame["now_ns"] < present
        assert frame["processes"]["pid"] == seen["processes"]["pid"]
        await table.step("tick", back=True)
        assert (await table.frame())["policy"] == "mlfq"
        await table.do("resume")
        frame = await table.frame(present + 1)
        assert frame["policy"] == "lottery"

    watched([SIMULATED], test, speed=1)


def test_the_past_that_is_kept_has_a_beginning() -> None:
    async def test(table: Table) -> None:
        await table.do("pause")
        refusal = ""
        while not refusal:
            try:
                first = await table.step("tick", back=True)
            except Refused as error:
                refusal = str(error)
        assert "nothing is kept of what was before" in refusal
        frame = await table.frame()
        assert frame["now_ns"] == first
        assert frame["back_ns"] > 0

    watched([SIMULATED], test, speed=1)


@pytest.mark.spike
def test_a_live_machine_is_shown_as_it_was() -> None:
    """Frames that were shown while it ran are found again, and it goes on from the present."""

    async def test(table: Table) -> None:
        system = table.session.systems["a"]
        live = []
        for _ in range(20):
            await asyncio.sleep(0.05)
            live.append(system.frame(1.0))
        await table.do("pause")
        await asyncio.sleep(0.2)
        present = await table.frame()
        for frame in live:
            system.look(frame["now_ns"])
            again = await table.frame()
            assert state(again) == state(frame)
        await table.step("decision", back=True)
        assert (await table.frame())["back_ns"] > 0
        await table.do("resume")
        later = await table.frame(present["now_ns"] + 1)
        assert later["back_ns"] == 0

    watched([replace(SIMULATED, machine="spike")], test, speed=1)


# --- what is kept


def fed(tmp_path: Path) -> tuple[Any, Model]:
    """A trace, and a model at its beginning."""
    records = read_records(kept(tmp_path / "run") / TRACE_FILE)
    return records, Model(records.header, "rr", "equal", 10**9, read_catalogue())


def test_less_is_kept_than_there_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past_module, "RECORDS_MAX", 400)
    monkeypatch.setattr(past_module, "_STRETCH", 100)
    records, model = fed(tmp_path)
    past = Past(model)
    seen = {}
    row = StatusRow("x", 3, "RUNNABLE", 1, 5_000_000, 1)
    for begin in range(0, len(records), 50):
        piece = records.piece(begin, begin + 50)
        model.feed(piece)
        past.add(piece)
        if begin % 300 == 0:
            status = Status("rr", rows=(row,))
            model.apply_status(status)
            past.add_status(status)
        past.mark(model)
        assert sum(each.records for each in past._stretches) <= 400
        later = records.piece(begin + 50, begin + 51)
        if not len(later) or int(later["time"][0]) > model.now_ns:
            seen[model.now_ns] = plain(model.frame())
    assert len(records) > 2000
    assert past.begin_ns > min(seen)
    compared = 0
    for time_ns, frame in seen.items():
        if time_ns < past.begin_ns:
            with pytest.raises(Refused):
                past.model_at(time_ns)
            continue
        found = plain(past.model_at(time_ns).frame())
        assert {key: found[key] for key in found if key not in HAPPENED} == {
            key: frame[key] for key in frame if key not in HAPPENED
        }
        compared += 1
    assert compared > 3
    time_ns, moments = model.now_ns, [model.now_ns]
    while time_ns > past.begin_ns:
        time_ns = past.before(time_ns, StepKind.EVENT)
        assert time_ns < moments[-1]
        moments.append(time_ns)
    with pytest.raises(Refused, match="nothing is kept"):
        past.before(time_ns, StepKind.EVENT)
    for earlier, later_ns in zip(moments[:0:-1], moments[-2::-1], strict=True):
        assert past.after(earlier, StepKind.EVENT) == later_ns
