# SPDX-License-Identifier: MIT
"""Tests the breakdown of waits in watched systems, and the panel with the total per process,
against `./schedlab explain` of the same trace.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from kept_runs import keep_simulated
from monitor_stand_ins import StandIn, recorded, setup
from perf_recordings import imported
from schedlab.analysis.explanation import Blames
from schedlab.analysis.explanation.waits import QUEUED_KINDS, WAIT_KINDS
from schedlab.analysis.tables import TraceTables
from schedlab.commands.cli import cli
from schedlab.errors import WrongUsage
from schedlab.machines.folder import TRACE_FILE
from schedlab.monitor import wait_breakdown
from schedlab.monitor.commands import perform_command
from schedlab.monitor.model import Model
from schedlab.monitor.session import Session
from schedlab.monitor.system import Records, Refused
from schedlab.monitor.system_factory import read_choices
from schedlab.trace import Kind, ProcessState, Trace, read
from schedlab.trace.format import LossKind
from schedlab.trace.model import Header
from schedlab.trace.writer import header_bytes
from trace_simulator import Record, Script, load, simulate

Ask = Callable[..., Awaitable[dict[str, Any]]]
PARTS = 20
"""The number of parts of the trace."""


def played() -> tuple[Header, Records]:
    return recorded("study4-mixed", 4, "mlfq", queues=True)


def end() -> int:
    return int(played()[1]["time"].max())


def answer_of(ask: Callable[[Ask], Awaitable[Any]]) -> Any:
    """Returns the answers of a session that has played the whole trace."""

    async def play() -> Any:
        make = partial(StandIn, trace=played())
        session = Session([setup("mlfq")], read_choices(), make=make, window_ns=2 * end())
        watched = session.systems["a"]
        await watched.begin()
        for part in range(1, PARTS + 1):
            await watched.played.advance(end() * part // PARTS, 1.0)
            watched.take_output()

        async def blame(pid: int, time_ns: int | None = None, **others: Any) -> dict[str, Any]:
            request = {
                "kinds": list(QUEUED_KINDS),
                "time_ns": end() if time_ns is None else time_ns,
                **others,
            }
            answer: dict[str, Any] = await perform_command(
                session, {"do": "blame", "pid": pid, **request}
            )
            return answer

        try:
            return await ask(blame)
        finally:
            assert not list(session.scratch.glob("*.bin"))
            await session.close()

    return asyncio.run(play())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the same trace as a run."""
    path = tmp_path_factory.mktemp("watched") / "one"
    keep_simulated(path, 1)
    header, records = played()
    begin = header_bytes(header.cpus, header.tick_ns, header.cycles_per_second, header.seed)
    (path / TRACE_FILE).write_bytes(begin + records.tobytes())
    return path


def explained(run: Path, *options: str) -> dict[str, Any]:
    result = CliRunner().invoke(cli, ["explain", str(run), *options, "--json"])
    assert result.exit_code == 0, result.output
    explanation: dict[str, Any] = json.loads(result.output)
    return explanation


@pytest.mark.parametrize("kinds", [QUEUED_KINDS, ("blocked",)])
def test_the_figures_are_those_of_explain(
    run: Path, kinds: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wait_breakdown, "_PARTS_MAX", 1_000)
    options = ("--kind", ",".join(kinds), "--worst", "10000", "--from", "0ns", "--to", f"{end()}ns")
    everything = explained(run, *options)
    pids = {wait["pid"] for wait in everything["longest"]}

    async def blame_processes(blame: Ask) -> dict[int, Any]:
        return {pid: await blame(pid, kinds=list(kinds)) for pid in pids}

    assert len(pids) > 3
    answers = answer_of(blame_processes)
    for name in ("waits", "waited_ns", "beside_idle_ns"):
        assert sum(answer[name] for answer in answers.values()) == everything[name]
    for pid, answer in answers.items():
        should = [wait for wait in everything["longest"] if wait["pid"] == pid]
        assert answer["waits"] == len(should)
        assert len(answer["longest"]) == min(len(should), 8)
        for wait, other in zip(answer["longest"], should, strict=False):
            parts = [(part["words"], part["duration_ns"]) for part in wait["parts"]]
            assert parts == [(part["words"], part["duration_ns"]) for part in other["parts"]]
            assert sum(length for _, length in parts) == wait["duration_ns"]
            for name in ("kind", "begin_ns", "end_ns", "duration_ns", "ended"):
                assert wait[name] == other[name]
            idle = {str(cpu["cpu"]): cpu["duration_ns"] for cpu in wait["idle_elsewhere"]}
            assert idle == other["idle_elsewhere_ns"]
            options = len(wait["choices"]) + wait["choices_before"]
            assert options == len(other["choices"])
            moments = [choice["time_ns"] for choice in wait["choices"]]
            assert moments == [choice["time_ns"] for choice in other["choices"]][-len(moments) :]


def test_of_a_moment_before_the_end_no_later_one_is_known(run: Path) -> None:
    moment = end() // 2
    waits = explained(run, "--worst", "10000", "--from", "0ns")["longest"]
    goes_on = next(w for w in waits if w["begin_ns"] < moment < w["end_ns"])
    pid = goes_on["pid"]

    async def then(blame: Ask) -> tuple[dict[str, Any], dict[str, Any]]:
        return await blame(pid, moment), await blame(pid, moment, at_ns=goes_on["begin_ns"])

    answer, one = answer_of(then)
    all_waits = {w["begin_ns"]: w for w in waits if w["pid"] == pid}
    assert answer["end_ns"] == moment
    for wait in answer["longest"]:
        if wait["end_ns"] < moment:
            assert wait["duration_ns"] == all_waits[wait["begin_ns"]]["duration_ns"]
        else:
            assert (wait["begin_ns"], wait["end_ns"]) == (goes_on["begin_ns"], moment)
    (wait,) = one["longest"]
    assert (wait["begin_ns"], wait["end_ns"]) == (goes_on["begin_ns"], moment)
    assert sum(part["duration_ns"] for part in wait["parts"]) == wait["duration_ns"]


def test_few_parts_are_listed_and_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_breakdown, "_PARTS_MAX", 2)

    async def collect_waits(blame: Ask) -> list[dict[str, Any]]:
        return [wait for pid in range(3, 9) for wait in (await blame(pid))["longest"]]

    waits = answer_of(collect_waits)
    last = [wait["parts"][-1] for wait in waits if wait["parts"]]
    assert any(part["words"].endswith(" more") for part in last)
    for wait in waits:
        assert len(wait["parts"]) <= 3
        assert sum(part["duration_ns"] for part in wait["parts"]) == wait["duration_ns"]


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"kinds": ["sleep"]}, "unknown kind of wait 'sleep'"),
        ({"kinds": "turn"}, "kinds: expected a list of texts"),
        ({"pid": 999_999}, "process 999999: not in the stored part"),
        ({"pid": "5"}, "expected a whole number"),
        ({"at_ns": 1.5}, "expected a whole number"),
    ],
)
def test_impossible_questions_are_refused(message: dict[str, Any], error: str) -> None:
    async def ask(blame: Ask) -> None:
        with pytest.raises((Refused, WrongUsage), match=error):
            await blame(**{"pid": 5, **message})

    answer_of(ask)
    assert set(QUEUED_KINDS) < set(WAIT_KINDS)


# --- the panel: the breakdown of all waits of a process

FOREVER_NS = 1 << 60
Parts = Counter[tuple[int | None, int | str, str]]


def of_command(trace: Trace, pid: int, begin_ns: int) -> dict[str, Any]:
    """Returns the expected panel, after a given time, of the last process with this PID."""
    tables = TraceTables(trace)
    blames, pids = Blames(tables), tables.lives.pid
    (*_, life) = np.flatnonzero(pids == pid).tolist()
    life_waits = tables.waits.filter(pl.col("life") == life, pl.col("end_ns") > begin_ns)
    life_waits = life_waits.filter(pl.col("end_ns") > pl.col("begin_ns")).sort("begin_row")
    begin, end = (life_waits[name].to_numpy() for name in ("begin_ns", "end_ns"))
    begin = np.maximum(begin, begin_ns)
    before = blames.occupancy.some_idle_before
    waits = list(zip(begin.tolist(), end.tolist(), strict=True))
    parts_per_wait = [Parts() for _ in waits]
    for parts, (since, until) in zip(parts_per_wait, waits, strict=True):
        for part in blames.of(life, since, until):
            what = f"({part.cause.value})" if part.life is None else int(pids[part.life])
            parts[part.cpu, what, "ns"] += part.duration_ns
            parts[part.cpu, what, "times"] += 1
    return {
        "total": int((end - begin).sum()),
        "beside_idle": int((before(end) - before(begin)).sum()),
        "parts": sum(parts_per_wait, Parts()),
        "waits": list(zip(waits, parts_per_wait, strict=True))[-50:],
    }


def of_panel(model: Model, pid: int) -> dict[str, Any]:
    explanation = model.explain(pid)

    def counted(parts: Any) -> Parts:
        counts = Parts()
        for part in parts:
            counts[part["cpu"], part["pid"] or part["name"], "ns"] += part["duration_ns"]
            counts[part["cpu"], part["pid"] or part["name"], "times"] += part["times"]
        return counts

    lengths = [part["duration_ns"] for part in explanation["parts"]]
    assert lengths == sorted(lengths, reverse=True)
    return {
        "total": explanation["total_ns"],
        "beside_idle": explanation["beside_idle_ns"],
        "parts": counted(explanation["parts"]),
        "waits": [
            ((wait["begin_ns"], wait["end_ns"]), counted(wait["parts"]))
            for wait in explanation["waits"]
        ],
    }


def compare_panel(trace: Trace, policy: str, window_ns: int) -> int:
    """Compares the panel with the command for each process; returns the number of processes
    that waited.
    """
    records = trace.piece(0, len(trace))
    model = Model(trace.header, policy, "equal", window_ns)
    for part in np.array_split(records, 3):
        model.feed(part)
        frame = model.frame()
    begin_ns = max(int(records["time"].min()), frame["now_ns"] - window_ns)
    waited = 0
    for pid in sorted(set(TraceTables(trace).lives.pid.tolist())):
        should = of_command(trace, pid, begin_ns)
        try:
            actual = of_panel(model, pid)
        except KeyError:  # it had ended before the window
            assert not should["waits"]
            continue
        assert actual == should
        assert (
            sum(n for (*_, what), n in actual["parts"].items() if what == "ns") == actual["total"]
        )
        waited += actual["total"] > 0
    return waited


def random_trace(source: random.Random) -> Trace:
    """Returns a trace up to some record, without queue records, which explain does not use."""
    script = Script(
        cpus=source.randint(1, 4),
        steps=source.randint(0, 120),
        pids=source.choice((0, 4)),
        initial_tasks=source.choice((0, 0, 3, 7)),
        queues=source.random() < 0.5,
    )
    records = simulate(source, script)
    return load(records[: source.randint(1, len(records))], script)


@pytest.mark.parametrize("seeds", [30, pytest.param(1_000, marks=pytest.mark.long)])
def test_the_panel_has_the_figures_of_explain(seeds: int) -> None:
    waited = 0
    for seed in range(seeds):
        source = random.Random(seed)
        policy = source.choice(("rr", "rr:table-scan"))
        window_ns = source.choice((2_000, 20_000, FOREVER_NS))
        waited += compare_panel(random_trace(source), policy, window_ns)
    assert waited > seeds


@pytest.mark.parametrize("name", ["perf-7.3.txt", "ftrace.txt"])
def test_the_panel_has_the_figures_of_explain_of_recordings(name: str, tmp_path: Path) -> None:
    """The recordings contain no scheduler events, and begin in the middle of activity."""
    trace = read(imported(name, tmp_path).folder / "trace.bin")
    assert compare_panel(trace, "", FOREVER_NS) > 5


def test_unknown_time_of_a_cpu_is_not_blamed(tmp_path: Path) -> None:
    """CPU 0 is not recorded from 30 to 40 ns, and ends at 60 ns; process 2 waits there
    throughout.
    """
    records = [
        (0, 0, Kind.START, 0, 0, 0), (0, 0, Kind.START, 1, 0, 0),
        (0, 3, Kind.FOUND, 0, ProcessState.RUNNING, 0), (10, 2, Kind.FOUND, 0, ProcessState.RUNNABLE, 0),
        (30, 0, Kind.SWITCH, 0, 3, ProcessState.BLOCKED), (30, 0, Kind.LOST, 0, LossKind.UNSEEN, 0),
        (40, 0, Kind.LOST, 0, LossKind.SEEN, 0), (50, 4, Kind.FOUND, 0, ProcessState.BLOCKED, 0),
        (50, 4, Kind.WAKEUP, 0, 0, 1), (50, 4, Kind.SWITCH, 0, 0, 0), (60, 0, Kind.END, 0, 10, 0),
        (75, 0, Kind.END, 1, 2, 0),
    ]  # fmt: skip
    packed = b"".join(
        Record(time, row, process, kind, cpu, first, second).pack()
        for row, (time, process, kind, cpu, first, second) in enumerate(records)
    )
    path = tmp_path / "trace.bin"
    path.write_bytes(header_bytes(2, 1_000_000, 1_000_000_000) + packed)
    trace = read(path)
    should = of_command(trace, 2, 0)
    assert {key[1]: ns for key, ns in should["parts"].items() if key[2] == "ns"} == {
        3: 20, "(unknown)": 25, "(idle)": 10, 4: 10,
    }  # fmt: skip
    assert should["beside_idle"] == 65
    assert compare_panel(trace, "rr", FOREVER_NS) == 1
    assert TraceTables(trace).waits.filter(pl.col("pid") == 2)["cpu"].to_list() == [0]
