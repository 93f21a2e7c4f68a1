# SPDX-License-Identifier: MIT
"""Tests branches: an alternative continuation of a recorded moment, next to the unchanged one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import Command
from schedlab import paths, trace
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.base.toolchain.tools import find_browser
from schedlab.errors import WrongUsage
from schedlab.machines.folder import TRACE_FILE
from schedlab.monitor.system import Refused, Setup
from schedlab.monitor.systems.kernel import BRANCH_LENGTH_NS, KernelSystem, input_until
from schedlab.monitor.systems.recorded import RecordedSystem, recorded_setup
from schedlab.monitor.systems.simulator import SimulatorSystem
from schedlab.runs import results
from schedlab.runs.branches import open_branch_source
from schedlab.trace import Kind
from test_monitor_past import Table, state, watched

MS = 1_000_000


def with_a_page(test: Any) -> Any:
    """Marks tests that need a machine on Spike and a page."""
    skip = pytest.mark.skipif(not find_browser(), reason="NO BROWSER: futures are NOT TESTED")
    return pytest.mark.spike(pytest.mark.browser(skip(test)))


@pytest.fixture(scope="module")
def run_folder(schedlab: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the directory of a run that does not end before it is paused."""
    out = tmp_path_factory.mktemp("kept")
    result = schedlab(
        *("run", "--workload", "cpu-bound -n 6 -i 50000000", "--policy", "rr", "--tick", "1ms"),
        *("--cpus", "2", "--out", str(out)),
    )
    assert result.returncode == 0, result.stderr
    return results.find_run(out)


@pytest.fixture(autouse=True)
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(paths, "RUNS_FOLDER", tmp_path / "runs")
    return tmp_path / "runs"


def played(run: Path, test: Callable[[Table], Awaitable[None]]) -> None:
    watched([recorded_setup(run)], test, speed=0.01)


def switches(folder: Path) -> list[int]:
    """Returns when the policy changed."""
    return trace.read(folder / TRACE_FILE).events.filter(kind=Kind.POLICY)["time_ns"].to_list()[1:]


@with_a_page
def test_branch_is_shown_next_to_the_original(run_folder: Path) -> None:
    async def test(table: Table) -> None:
        systems = table.session.systems
        await table.do("seek", time_ns=20 * MS)  # a recording opens at its end
        await table.do("pause")
        await table.step("tick")
        at_ns = await table.step("millisecond", back=True)
        then = await table.at(at_ns)
        answer = await table.do("branch", policy="mlfq")
        assert (answer["unchanged"], answer["changed"]) == ("a", "b")
        assert list(systems) == ["a", "b"]
        assert table.session.recorded_folders == [Path(answer["folder"])]
        for letter in "ab":
            frame = await table.at(at_ns, letter)
            assert frame["paused"]
            assert {**state(frame), "system": "a"} == state(then)
        other = systems["b"].setup.source
        assert other
        assert systems["b"].title == f"from {at_ns + 1}ns on: mlfq"
        assert not switches(run_folder)
        (begin_ns,) = switches(other)
        assert at_ns < begin_ns <= at_ns + 2 * MS
        before = pl.col("time_ns") <= at_ns
        mine, theirs = (trace.read(place / TRACE_FILE).events for place in (run_folder, other))
        assert mine.filter(before).equals(theirs.filter(before))
        await table.do("resume")
        assert (await table.frame(begin_ns + MS, "b"))["policy"] == "mlfq"
        assert (await table.frame(begin_ns, "a"))["policy"] == "rr"
        await table.do("pause")
        reached = [
            (await table.page.frame(lambda f: f["paused"], letter))["now_ns"] for letter in "ab"
        ]
        assert abs(reached[0] - reached[1]) < MS
        with pytest.raises(Refused, match="itself a branch"):
            await table.do("branch", system="b", policy="rr")
        # A new request replaces the previous one.
        answer = await table.do("branch", system="a", settings="slice=7, table_scan=1")
        assert (answer["unchanged"], answer["changed"]) == ("a", "b")
        assert list(systems) == ["a", "b"]
        assert systems["b"].setup.source != other
        hello = table.session.hello()["systems"]
        assert [system["no_branches"] == "" for system in hello] == [True, False]

    played(run_folder, test)


@with_a_page
def test_a_live_machine_has_futures_of_what_was_typed() -> None:
    """Up to the moment, branches equal the live run, including its commands; then they
    continue independently.
    """

    async def test(table: Table) -> None:
        systems = table.session.systems
        await table.do("policy", policy="stride")
        await table.do("tunable", name="slice", value=3)
        frame = await table.page.frame(lambda frame: frame["policy"] == "stride")
        await table.frame(frame["now_ns"] + 200 * MS)
        await table.do("pause")
        await table.current_frame()
        then = await table.at(await table.step("millisecond", back=True))
        with pytest.raises(Refused, match="the kernel refuses, error 161"):
            await table.do("branch", settings="nosuch=3")
        answer = await table.do("branch", policy="rr")
        assert (answer["unchanged"], answer["changed"]) == ("b", "c")
        for letter in "bc":
            frame = await table.at(then["now_ns"], letter)
            assert frame["policy"] == then["policy"] == "stride"
            mine, seen = state(frame)["processes"], state(then)["processes"]
            # A live machine reports its slice; a trace does not.
            for name in (
                "pid",
                "name",
                "state",
                "run_ns",
                "waiting_ns",
                "selections",
                "own",
                "share",
            ):
                assert mine[name] == seen[name], name
        sources = {letter: systems[letter].setup.source for letter in "bc"}
        for place in sources.values():
            assert place
            trace.validate(trace.read(place / TRACE_FILE))
            assert results.read_manifest(place)["status"] == "success"
        assert sources["b"] and sources["c"]
        assert len(switches(sources["c"])) == len(switches(sources["b"])) + 1
        await table.do("resume", system="b")
        await table.do("resume", system="c")
        later = then["now_ns"] + 20 * MS
        assert (await table.frame(later, "c"))["policy"] == "rr"
        assert (await table.frame(later, "b"))["policy"] == "stride"
        with pytest.raises(Refused, match="was recorded live"):
            await table.do("branch", system="c", policy="mlfq")

    workloads = ("two-hogs", "interactive")
    watched([Setup("spike", PolicyChoice("mlfq"), workloads=workloads)], test, speed=0.5)


def test_systems_without_branches_give_a_reason(live_run_folder: Path, tmp_path: Path) -> None:
    async def reasons() -> list[str]:
        live = KernelSystem(Setup("qemu", PolicyChoice("rr")), tmp_path)
        simulated = SimulatorSystem(Setup("sim", PolicyChoice("rr")), tmp_path)
        recorded = RecordedSystem(recorded_setup(live_run_folder), tmp_path)
        await simulated.end()
        return [system.why_no_branches for system in (live, simulated, recorded)]

    live, simulated, recorded = asyncio.run(reasons())
    assert "cannot be repeated" in live
    assert "change it there" in simulated
    assert "was recorded live" in recorded
    with pytest.raises(WrongUsage, match="was recorded live"):
        open_branch_source(live_run_folder)


@pytest.mark.parametrize(
    ("at_ns", "expected_commands"),
    [
        (5, ""),
        (6, "5 @@ 1 re\n8 ad\\x0a\n"),  # a command is typed completely
        (9, "5 @@ 1 re\n8 ad\\x0a\n"),
        (10, "5 @@ 1 re\n8 ad\\x0a\n9 @@ 2 end\\x0a\n"),
    ],
)
def test_command_is_typed_completely_or_not_at_all(at_ns: int, expected_commands: str) -> None:
    text = "5 @@ 1 re\n8 ad\\x0a\n9 @@ 2 end\\x0a\n"
    end = f"{at_ns + BRANCH_LENGTH_NS} @@ 1000000 end\\x0a\n"
    assert input_until(text, at_ns) == expected_commands + end


@pytest.fixture
def live_run_folder(tmp_path: Path) -> Path:
    """Returns the directory of a monitor's recording of a machine on Spike."""
    from kept_runs import keep_simulated

    folder = tmp_path / "live"
    keep_simulated(folder, 1, kind="monitor", recorded_from_ns=7)
    manifest = json.loads((folder / results.MANIFEST_FILE).read_text())
    del manifest["limit_ns"]
    (folder / results.MANIFEST_FILE).write_text(json.dumps(manifest))
    return folder
