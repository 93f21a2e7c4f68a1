# SPDX-License-Identifier: MIT
"""Tests `./schedlab explore kernel`: seeds are repeatable, races are found, and failures are
reduced."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from built_once import build_once
from conftest import Command
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.commands.explore import kernel as command
from schedlab.machines.folder import TRACE_FILE
from schedlab_tools.benchmarks.races import planted_races
from schedlab_tools.interleavings.holds import read_holds, write_holds
from schedlab_tools.interleavings.search import minimal_subset, minimise, search
from schedlab_tools.interleavings.trial import HOLDS_FILE, Setup, holds_in, run_trial

CHANNELS = Setup("test-channels", PolicyChoice("rr"), 3, 10_000_000_000)


def planted(name: str) -> Setup:
    build_once("image", "build/fsck", f"build/races/{name}.elf")
    (race,) = (candidate for candidate in planted_races() if candidate.name == name)
    return replace(CHANNELS, kernel=race.kernel())


@pytest.mark.parametrize("needed", [{3, 17}, {5}, set(), {0, 19, 39}])
def test_what_is_not_needed_is_left_out(needed: set[int]) -> None:
    remaining = minimal_subset(range(40), lambda some: needed <= set(some), 200)
    assert set(remaining) == needed


@pytest.mark.spike
def test_seed_and_list_of_turns_determine_the_run(tmp_path: Path) -> None:
    build_once("kernel", "image", "build/fsck")
    assert run_trial(CHANNELS, 7, tmp_path / "drawn") is None
    holds = holds_in(tmp_path / "drawn")
    assert len(holds) > 100
    assert {hold.called for hold in holds} == {False, True}
    for name, turns in (("again", 7), ("listed", holds)):
        assert run_trial(CHANNELS, turns, tmp_path / name) is None
        assert holds_in(tmp_path / name) == holds
    traces = {(tmp_path / name / TRACE_FILE).read_bytes() for name in ("drawn", "again", "listed")}
    assert len(traces) == 1


@pytest.mark.spike
def test_race_is_detected_reduced_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The planted wake-up does not wait until the process has left its CPU."""
    setup = planted("queued-while-running")
    one = search([setup], range(1, 5), 1, lambda seed: None)
    assert one
    reduced_case = minimise(*one, 16, lambda count: None)
    assert reduced_case.failure.kind == "panic"
    assert "on_cpu" in reduced_case.failure.words
    assert len(reduced_case.holds) < reduced_case.drawn
    path = tmp_path / "kept"
    command._print_failure(options(path), reduced_case)
    output = " ".join(capsys.readouterr().out.split())
    assert f" of {reduced_case.drawn:,} turns of other than normal length are enough" in output
    assert "stands still for" in output
    assert "kernel/" in output
    assert f"./schedlab monitor {path}" in output
    again = run_trial(setup, read_holds(path / HOLDS_FILE), tmp_path / "again")
    assert again
    assert again.kind == "panic"


def options(out: Path) -> command.Options:
    return command.Options(
        1, None, None, ("test-channels",), PolicyChoice("rr"), 3, 10_000_000_000, 1, out, False
    )


@pytest.mark.spike
def test_idle_cpu_while_work_waits_is_detected(tmp_path: Path) -> None:
    """The planted CPU reports too late that it is idle: no assertion fails, and its next tick
    repairs it."""
    failure = run_trial(planted("idle-and-not-told"), 1, tmp_path)
    assert failure
    assert failure.kind == "idle"
    assert "idles for" in failure.words


@pytest.mark.spike
def test_the_command(tmp_path: Path, schedlab: Command) -> None:
    arguments = ("explore", "kernel", "--workload", "test-channels")
    result = schedlab(*arguments, "--seed", "1")
    assert result.returncode == 0, result.stderr
    assert "test-channels under rr on 3 CPUs: no rule broken with 1 seed" in result.stdout
    write_holds(tmp_path / "holds", ())
    result = schedlab(*arguments, "--holds", str(tmp_path / "holds"))
    assert result.returncode == 0, result.stderr
    (tmp_path / "holds").write_text("1 2 three\n")
    result = schedlab(*arguments, "--holds", str(tmp_path / "holds"))
    assert result.returncode == 2
    assert "no list of turns" in result.stderr
    assert "Traceback" not in result.stderr
