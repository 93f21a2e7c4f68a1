# SPDX-License-Identifier: MIT
"""Tests `./schedlab monitor` and `top`: arguments become a session, or a clear error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kept_runs import MANIFEST, keep_simulated
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.commands import monitor as cli_monitor
from schedlab.commands import top as cli_top
from schedlab.commands.cli import cli
from schedlab.errors import WrongUsage
from schedlab.monitor import conduct
from schedlab.monitor.session import Session


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Session]:
    """Returns the sessions that would have been watched."""
    sessions: list[Session] = []

    def watch(make: Any, front: Any) -> None:
        sessions.append(make())

    monkeypatch.setattr(conduct, "run_session", watch)
    return sessions


def call(*arguments: str) -> None:
    CliRunner().invoke(cli, ["monitor", *arguments], catch_exceptions=False, standalone_mode=False)


def test_without_options_something_is_shown(made: list[Session]) -> None:
    call()
    (session,) = made
    (watched,) = session.systems.values()
    setup = watched.setup
    assert (setup.machine, str(setup.policy), setup.cpus) == ("qemu", "rr", 2)
    assert (setup.tick_ns, setup.seed, setup.memory_mib) == (10_000_000, 1, 512)
    assert setup.workloads == cli_monitor.DEFAULT_WORKLOADS
    assert session.pace == 1
    assert not session.record_from_start


def test_policies_with_commas_are_side_by_side(made: list[Session], tmp_path: Path) -> None:
    workload_file = tmp_path / "mine.json"
    workload_file.write_text(json.dumps({"tasks": {"a": {"run": "1ticks"}}}))
    given = ("--machine", "sim", "--policy", "lottery:thesis,mlfq", "--cpus", "3", "--tick", "1ms")
    call(*given, "--workload", "hog", "--workload", str(workload_file), "--speed", "0", "--record")
    (session,) = made
    assert list(session.systems) == ["a", "b"]
    setups = [system.setup for system in session.systems.values()]
    assert [setup.policy for setup in setups] == [
        PolicyChoice("lottery", "thesis"),
        PolicyChoice("mlfq"),
    ]
    assert {setup.cpus for setup in setups} == {3}
    assert setups[0].workloads == ("hog", "mine")
    assert setups[0].files == (workload_file,)
    assert session.choices.palette["mine"].kind == "own"
    assert session.pace == 0
    assert session.record_from_start


def test_a_real_machine_is_left_as_it_is_unless_a_policy_is_named(made: list[Session]) -> None:
    call("--machine", "host")
    call("--machine", "host", "--policy", "lottery")
    assert [str(session.systems["a"].setup.policy) for session in made] == ["fair", "lottery"]


def test_a_recorded_run_is_played(made: list[Session], tmp_path: Path) -> None:
    (tmp_path / "trace.bin").write_bytes(b"")
    manifest = {**MANIFEST, "policy": "mlfq", "cpus": 4, "seed": 9}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    call(str(tmp_path), "--speed", "4")
    (session,) = made
    (watched,) = session.systems.values()
    assert (watched.setup.machine, watched.setup.source) == ("recorded", tmp_path)
    assert (watched.setup.cpus, watched.setup.seed) == (4, 9)
    assert session.software["machine"] == "spike"
    with (tmp_path / "trace.bin").open("r+b") as file:
        file.truncate((2 << 30) + 1)
    with pytest.raises(WrongUsage, match=r"trace\.bin: larger than 2 GiB"):
        call(str(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", "rrr"], "did you mean 'rr'"),
        (["--policy", "fair"], "only Linux has its own scheduler"),
        (["--policy", "scx:./a.o"], "the live monitor cannot run sched_ext .*play its folder"),
        (["--policy", "rr", "--set", "slices=1"], "slices"),
        (["--policy", "rr", "--set", "slice=1", "--set", "slice=2"], "more than once"),
        (["--policy", "rr,mlfq,lottery,stride,wrr"], "more than 4 policies"),
        (["--workload", "nothing"], "unknown workload 'nothing'"),
        (["--workload", "no/such/file.json"], "the file does not exist"),
        (["--machine", "linux", "--cpus", "17"], "has 1 to 16"),
        (["--machine", "sim", "--memory", "64"], "has no memory size"),
        (["--machine", "sim", "--ignore-limits"], "add --machine host"),
        ([".", "--ignore-limits"], "leave out --ignore-limits"),
        ([".", "--machine", "sim"], "already determines what runs"),
        (["--at", "193ms"], "--at: only recorded runs and simulated machines"),
        (["--lesson", "mlfq", "--at", "193ms"], "--at: a lesson chooses its moments"),
        ([".", "--policy", "rr", "--cpus", "2"], "leave out --policy and --cpus"),
        (["."], "contains no run"),
        (
            ["--machine", "sim", "--seed", str(1 << 53)],
            "--seed: 9007199254740992 is too large for the page",
        ),
    ],
)
def test_impossible_options_are_refused_with_a_fix(
    made: list[Session], arguments: list[str], message: str, tmp_path: Path
) -> None:
    arguments = [str(tmp_path) if argument == "." else argument for argument in arguments]
    with pytest.raises(WrongUsage, match=message):
        call(*arguments)
    assert not made


def test_a_recording_opens_full_or_at_a_moment(made: list[Session], tmp_path: Path) -> None:
    """Its window covers all of it, unless another one is wanted."""
    keep_simulated(tmp_path, 1, policy="mlfq")
    for options in ([], ["--at", "193us", "--window", "5"]):
        call(str(tmp_path), *options)
    call("--machine", "sim", "--at", "1.5s")
    assert [session.systems["a"].begin_ns for session in made] == [None, 193_000, 1_500_000_000]
    assert [session.window_ns for session in made] == [100_000_000, 5 * 10**9, 10 * 10**9]


def test_lesson_states_what_runs(made: list[Session]) -> None:
    call("--lesson", "mlfq")
    (session,) = made
    (watched,) = session.systems.values()
    setup = watched.setup
    assert (setup.machine, str(setup.policy), setup.cpus) == ("sim", "mlfq", 1)
    assert setup.workloads == ("two-hogs", "interactive")
    assert session.page_runs_systems and session.begins_paused
    assert session.hello()["lesson"]["steps"]
    with pytest.raises(WrongUsage, match="leave out --cpus"):
        call("--lesson", "mlfq", "--cpus", "2")


def test_top_accepts_the_same_options_except_serving() -> None:
    options = {parameter.name for parameter in cli_monitor.monitor.params}
    of_top = {parameter.name for parameter in cli_top.top.params}
    assert options - of_top == {"listen", "port", "no_browser", "lesson", "at_ns"}
    assert of_top < options
