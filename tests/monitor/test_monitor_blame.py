# SPDX-License-Identifier: MIT
"""Waits of what is watched, taken apart: as `./schedlab explain` does with the same trace."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kept_runs import keep_simulated
from monitor_stand_ins import StandIn, recorded, setup
from schedlab.analysis.explanation.waits import KINDS, QUEUED
from schedlab.commands.cli import cli
from schedlab.errors import WrongUsage
from schedlab.machines.folder import TRACE_FILE
from schedlab.monitor import blamed
from schedlab.monitor.commands import perform
from schedlab.monitor.making import read_choices
from schedlab.monitor.session import Session
from schedlab.monitor.system import Records, Refused
from schedlab.trace.model import Header
from schedlab.trace.writer import header_bytes

Ask = Callable[..., Awaitable[dict[str, Any]]]
PARTS = 20
"""In so many the trace comes."""


def played() -> tuple[Header, Records]:
    return recorded("study4-mixed", 4, "mlfq", queues=True)


def end() -> int:
    return int(played()[1]["time"].max())


def asked(ask: Callable[[Ask], Awaitable[Any]]) -> Any:
    """What is answered by a session in which the trace has been played to its end."""

    async def play() -> Any:
        make = partial(StandIn, trace=played())
        session = Session([setup("mlfq")], read_choices(), make=make, window_ns=2 * end())
        watched = session.systems["a"]
        await watched.begin()
        for part in range(1, PARTS + 1):
            await watched.paced.advance(end() * part // PARTS, 1.0)
            watched.take()

        async def blame(pid: int, time_ns: int | None = None, **others: Any) -> dict[str, Any]:
            told = {
                "kinds": list(QUEUED),
                "time_ns": end() if time_ns is None else time_ns,
                **others,
            }
            found: dict[str, Any] = await perform(session, {"do": "blame", "pid": pid, **told})
            return found

        try:
            return await ask(blame)
        finally:
            assert not list(session.scratch.glob("*.bin"))
            await session.close()

    return asyncio.run(play())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same trace as a run."""
    place = tmp_path_factory.mktemp("watched") / "one"
    keep_simulated(place, 1)
    header, records = played()
    begin = header_bytes(header.cpus, header.tick_ns, header.cycles_per_second, header.seed)
    (place / TRACE_FILE).write_bytes(begin + records.tobytes())
    return place


def explained(run: Path, *options: str) -> dict[str, Any]:
    done = CliRunner().invoke(cli, ["explain", str(run), *options, "--json"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.output)
    return found


@pytest.mark.parametrize("kinds", [QUEUED, ("blocked",)])
def test_the_figures_are_those_of_explain(
    run: Path, kinds: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blamed, "_PARTS", 1_000)
    told = ("--kind", ",".join(kinds), "--worst", "10000", "--from", "0ns", "--to", f"{end()}ns")
    everything = explained(run, *told)
    pids = {wait["pid"] for wait in everything["longest"]}

    async def each(blame: Ask) -> dict[int, Any]:
        return {pid: await blame(pid, kinds=list(kinds)) for pid in pids}

    assert len(pids) > 3
    answers = asked(each)
    for name in ("waits", "waited_ns", "beside_idle_ns"):
        assert sum(found[name] for found in answers.values()) == everything[name]
    for pid, found in answers.items():
        should = [wait for wait in everything["longest"] if wait["pid"] == pid]
        assert found["waits"] == len(should)
        assert len(found["longest"]) == min(len(should), 8)
        for wait, other in zip(found["longest"], should, strict=False):
            parts = [(part["words"], part["duration_ns"]) for part in wait["parts"]]
            assert parts == [(part["words"], part["duration_ns"]) for part in other["parts"]]
            assert sum(length for _, length in parts) == wait["duration_ns"]
            for name in ("kind", "begin_ns", "end_ns", "duration_ns"):
                assert wait[name] == other[name]
            idle = {str(cpu["cpu"]): cpu["duration_ns"] for cpu in wait["idle_elsewhere"]}
            assert idle == other["idle_elsewhere_ns"]
            told = len(wait["choices"]) + wait["choices_before"]
            assert told == len(other["choices"])
            moments = [choice["time_ns"] for choice in wait["choices"]]
            assert moments == [choice["time_ns"] for choice in other["choices"]][-len(moments) :]


def test_of_a_moment_before_the_end_no_later_one_is_known(run: Path) -> None:
    moment = end() // 2
    waits = explained(run, "--worst", "10000", "--from", "0ns")["longest"]
    goes_on = next(w for w in waits if w["begin_ns"] < moment < w["end_ns"])
    pid = goes_on["pid"]

    async def then(blame: Ask) -> tuple[dict[str, Any], dict[str, Any]]:
        return await blame(pid, moment), await blame(pid, moment, at_ns=goes_on["begin_ns"])

    found, one = asked(then)
    whole = {w["begin_ns"]: w for w in waits if w["pid"] == pid}
    assert found["end_ns"] == moment
    for wait in found["longest"]:
        if wait["end_ns"] < moment:
            assert wait["duration_ns"] == whole[wait["begin_ns"]]["duration_ns"]
        else:
            assert (wait["begin_ns"], wait["end_ns"]) == (goes_on["begin_ns"], moment)
    (wait,) = one["longest"]
    assert (wait["begin_ns"], wait["end_ns"]) == (goes_on["begin_ns"], moment)
    assert sum(part["duration_ns"] for part in wait["parts"]) == wait["duration_ns"]


def test_few_parts_are_told_and_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blamed, "_PARTS", 2)

    async def each(blame: Ask) -> list[dict[str, Any]]:
        return [wait for pid in range(3, 9) for wait in (await blame(pid))["longest"]]

    waits = asked(each)
    last = [wait["parts"][-1] for wait in waits if wait["parts"]]
    assert any(part["words"].endswith(" more") for part in last)
    for wait in waits:
        assert len(wait["parts"]) <= 3
        assert sum(part["duration_ns"] for part in wait["parts"]) == wait["duration_ns"]


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"kinds": ["sleep"]}, "no kind of wait is called 'sleep'"),
        ({"kinds": "turn"}, "a list of kinds of waits is expected"),
        ({"pid": 999_999}, "no process 999999 has lived"),
        ({"pid": "5"}, "a whole number is expected"),
        ({"at_ns": 1.5}, "a whole number is expected"),
    ],
)
def test_what_cannot_be_asked_is_refused(message: dict[str, Any], error: str) -> None:
    async def ask(blame: Ask) -> None:
        with pytest.raises((Refused, WrongUsage), match=error):
            await blame(**{"pid": 5, **message})

    asked(ask)
    assert set(QUEUED) < set(KINDS)
