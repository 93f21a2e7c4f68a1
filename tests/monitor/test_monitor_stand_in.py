# SPDX-License-Identifier: MIT
"""The page's stand-in says what a real session says: the same fields, of the same types, at each depth.

What comes out of a session that plays a simulated run is the measure. Tests of the page are worth as much
as this holds.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import orjson
import pytest

import monitor_stand_in as page
import monitor_stand_ins as played
from schedlab.monitor.commands import perform
from schedlab.monitor.making import read_choices
from schedlab.monitor.session import Session
from test_monitor_blame import blames_of_all

Shape = dict[str, set[str]]
"""Types, by the way to a value: such as ".cpus[].queue[][0]"."""
BY_NAME = {".setup.settings", ".policies[].tunables", ".policies[].presets", ".cpus_max"}
BY_NAME |= {".policies[].presets{}.settings"}
"""Objects whose names are not fields: those of policies, machines, tunables."""
FRAMES = 40
TYPES = {int: "number", float: "number", bool: "truth", str: "text", type(None): "nothing"}


def ways(value: Any, way: str = "") -> Iterator[tuple[str, str]]:
    """All that a message has, with its type; the parts of a row are told apart by their places."""
    if isinstance(value, dict):
        yield way, "object"
        for name, part in value.items():
            end = (
                "{}" if way.removeprefix(".systems[]") in BY_NAME or way in BY_NAME else f".{name}"
            )
            yield from ways(part, way + end)
    elif isinstance(value, list):
        yield way, "list"
        for place, part in enumerate(value):
            yield from ways(part, f"{way}[{place}]" if way.endswith("[]") else f"{way}[]")
    else:
        yield way, TYPES[type(value)]


def shape(*messages: Any) -> Shape:
    found: Shape = defaultdict(set)
    for message in messages:
        for way, kind in ways(json.loads(orjson.dumps(message, option=orjson.OPT_SERIALIZE_NUMPY))):
            found[way].add(kind)
    return found


def differences(made: Mapping[str, set[str]], real: Mapping[str, set[str]]) -> list[str]:
    """Fields of one alone, and values of a type that the real one never has."""
    one_sided = [
        f"{way}: {'the stand-in' if way in made else 'the session'} alone has it"
        for way in sorted(made.keys() ^ real.keys())
    ]
    return one_sided + [
        f"{way}: {made[way]} here, {real[way]} there"
        for way in sorted(made.keys() & real.keys())
        if not made[way] <= real[way] | {"number"} & made[way] & _sometimes(real[way])
    ]


def _sometimes(kinds: set[str]) -> set[str]:
    """A figure that this run has nothing to compute from is a number in others."""
    return {"number"} if kinds == {"nothing"} else set()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What a session said: by the kind of message."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("schedlab.paths.RUNS", tmp_path_factory.mktemp("runs"))
        said = asyncio.run(asyncio.wait_for(_said(), 60))
        return {**said, "blame": blames_of_all()}


async def _said() -> dict[str, list[Any]]:
    trace = played.recorded("mixed", 1, "mlfq", queues=True)
    make = partial(played.StandIn, trace=trace)
    session = Session(
        [played.setup("mlfq", cpus=1, workloads=("two-hogs",))], read_choices(), make=make
    )
    watching = played.Watching(session)
    running = asyncio.ensure_future(session.run())
    try:
        await played.until(lambda: all(each.tape for each in session.systems.values()))
        await perform(session, {"do": "pace", "speed": 0})
        await played.until(lambda: watching.frames and watching.last()["life"] == "ended")
        ran = {run[1] for frame in watching.frames for run in _runs(frame)}
        picture = watching.screen.picture("a")
        explained = [picture.explain(pid) for pid in ran]
        assert picture.model
        history = {**watching.last(), **picture.model.history()}
        return {
            "hello": [session.hello(), await _hello_of_endless()],
            "frame": [{"type": "frame", **each} for each in (*watching.frames, history)],
            "explain": explained,
        }
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await session.close()


async def _hello_of_endless() -> dict[str, Any]:
    session = Session([played.setup()], read_choices(), make=played.StandIn)
    try:
        return session.hello()
    finally:
        await session.close()


def _runs(frame: Mapping[str, Any]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = frame["timeline"]["runs"]
    return found


@pytest.fixture(scope="module")
def made() -> dict[str, list[Any]]:
    """What the stand-in says, of its system with levels."""
    stand_in = page.StandIn(systems=1)
    (system,) = stand_in.made
    system.mark("note", "something")
    frames = []
    for _ in range(FRAMES):
        system.advance(200_000_000)
        frames.append(system.frame())
    pid = next(iter(system.processes.values())).pid
    return {
        "hello": [stand_in.hello()],
        "frame": [*frames, system.history()],
        "explain": [stand_in.do_explain(system, {"pid": pid})],
        "blame": [stand_in.do_blame(system, {"pid": pid})],
    }


@pytest.mark.parametrize("kind", ["hello", "frame", "explain", "blame"])
def test_the_stand_in_says_what_a_session_says(
    made: dict[str, list[Any]], real: dict[str, list[Any]], kind: str
) -> None:
    assert differences(shape(*made[kind]), shape(*real[kind])) == []


def test_a_difference_is_found() -> None:
    real = shape({"a": 1, "rows": [[1, "x"]], "b": None})
    assert differences(shape({"a": 2.5, "rows": [[2, "y"]], "b": None}), real) == []
    assert differences(shape({"a": 2, "rows": [[2, "y"]], "b": 3}), real) == []
    assert len(differences(shape({"a": "1", "rows": [[2, 3]]}), real)) == 3
    assert len(differences(shape({"a": 1, "rows": [[2]], "b": None, "c": 1}), real)) == 2


def test_this_run_has_what_it_takes(real: dict[str, list[Any]]) -> None:
    """Rows, decisions with others that waited, marks: an empty list would hide their fields."""
    found = shape(*real["frame"])
    ways_to_rows = (".timeline.runs[][5]", ".marks[].text", ".decisions[].candidates[][1]")
    assert {*ways_to_rows, ".cpus[].queue[][2]", ".log[]"} <= found.keys()
    assert ".waits[].parts[].runs" in shape(*real["explain"])
