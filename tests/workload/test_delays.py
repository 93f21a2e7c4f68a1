# SPDX-License-Identifier: MIT
"""Tests artificial delays of operations: reading, the copy kept with a run, and their effects."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from conftest import ROOT, Command
from guest_machine import run_guest, sound_trace
from schedlab import trace
from schedlab.machines.spike import DEFAULT_TURN
from schedlab.runs.branches import open_branch_source
from schedlab.runs.recording import read_recording
from schedlab.trace import Kind

FILE = str(ROOT / "workloads" / "files" / "timing-creation.json")
SLOW = ("--delay", "fork=400us")
SLOW_NS = 400_000
STEP_NS = 20_000
"""FORK_DELAY_STEP of kernel/process/lifecycle.c."""
FORKS = 50


def runs(schedlab: Command, out: Path, *arguments: str) -> list[dict[str, Any]]:
    options = ("--workload", FILE, "--policy", "rr:table-scan", "--cpus", "1", "--out", str(out))
    result = schedlab("run", "--json", *options, *arguments)
    assert result.returncode == 0, result.stderr
    output_runs: list[dict[str, Any]] = json.loads(result.stdout)["runs"]
    return output_runs


def completion(run: dict[str, Any]) -> int:
    return int(run["metrics"]["summary"]["completion_ns"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fork",), "'fork': expected OPERATION=TIME, such as fork=380us"),
        (("frok=1us",), "'frok=1us': unknown operation 'frok'; did you mean 'fork'?"),
        (("fork=380",), "'fork=380': write a number and its unit"),
        (("fork=2s",), "'fork=2s': 2s: expected at most 1s"),
        (("fork=1us", "--delay", "fork=2us"), "--delay fork: given more than once"),
        (("fork=1us", "--machine", "linux"), "--delay: --machine linux is a real kernel"),
        (("fork=1us", "study-1"), "No such option '--delay'"),
    ],
)
def test_wrong_usage(
    schedlab: Command, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    result = schedlab("run", "--out", str(tmp_path / "out"), "--delay", *words)
    assert result.returncode == 2
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("policy", ["lottery", "rr:table-scan"])
def test_the_simulator_adds_it_to_the_cost(schedlab: Command, tmp_path: Path, policy: str) -> None:
    """This includes a policy with a separate fork cost, and a plain `--costs fork=N`."""
    kinds = {"plain": (), "slow": SLOW, "said": ("--costs", "kernel,fork=400000")}
    completions = {
        name: completion(
            runs(schedlab, tmp_path / name, "--machine", "sim", "--policy", policy, *words)[0]
        )
        for name, words in kinds.items()
    }
    least = (FORKS - 1) * SLOW_NS
    assert completions["slow"] - completions["plain"] >= least
    assert completions["said"] >= least


def test_a_run_remembers_it(schedlab: Command, tmp_path: Path) -> None:
    (run,) = runs(schedlab, tmp_path / "out", "--machine", "sim", *SLOW)
    assert run["manifest"]["delays"] == "fork=400us"
    assert "--costs kernel,fork+=400000 " in run["manifest"]["boot_arguments"]
    again, plain = tmp_path / "again", tmp_path / "plain"
    (replayed,) = runs_of_replay(schedlab, again, Path(run["folder"]))
    assert completion(replayed) == pytest.approx(completion(run), rel=0.001)
    runs(schedlab, plain, "--machine", "sim")
    result = schedlab("compare", str(plain), str(tmp_path / "out"))
    assert result.returncode == 0, result.stderr
    assert "delays" in result.stdout


def runs_of_replay(schedlab: Command, out: Path, recorded: Path) -> list[dict[str, Any]]:
    result = schedlab("replay", "--json", str(recorded), "--out", str(out))
    assert result.returncode == 0, result.stderr
    output_runs: list[dict[str, Any]] = json.loads(result.stdout)["runs"]
    return output_runs


@pytest.mark.spike
def test_branches_and_replays_of_a_kernel_have_it_too(schedlab: Command, tmp_path: Path) -> None:
    (run,) = runs(schedlab, tmp_path / "out", "--machine", "spike", *SLOW)
    assert "fork-delay=400us" in run["manifest"]["boot_arguments"]
    folder = Path(run["folder"])
    assert open_branch_source(folder).run.delays == (("fork", SLOW_NS),)
    assert read_recording(folder).costs.text == "kernel,fork+=400000"
    (replayed,) = runs_of_replay(schedlab, tmp_path / "again", folder)
    assert completion(replayed) == pytest.approx(completion(run), rel=0.01)


def between_forks(events: trace.Trace) -> list[int]:
    """Returns the nanoseconds between consecutive forks of the process that forks most."""
    rows = events.rows(Kind.FORK)
    parents = events.column("process")[rows]
    busiest = max(set(parents.tolist()), key=parents.tolist().count)
    times = events.column("time_ns")[rows[parents == busiest]].astype(int)
    return [int(after - before) for before, after in pairwise(times)]


@pytest.mark.spike
def test_the_kernel_lets_the_time_pass(tmp_path: Path) -> None:
    """The delay is in each fork, before the child exists. It passes in steps (FORK_DELAY_STEP),
    each of which ends at the first step of Spike's clock that is not too early.
    """
    fork_gaps = []
    for number, delay in enumerate(("", "fork-delay=400us")):
        folder = tmp_path / str(number)
        folder.mkdir()
        guest = run_guest(
            folder,
            "timingtests creation",
            arguments=f"tick=100ms {delay}",
            traced=True,
        )
        assert guest.status == 0, guest.console
        fork_gaps.append(between_forks(sound_trace(guest.trace)))
    plain, slow = (sorted(gaps) for gaps in fork_gaps)
    assert len(plain) == len(slow) == FORKS - 1
    assert slow[0] >= SLOW_NS
    late = mean(slow) - mean(plain) - SLOW_NS
    assert 0 <= late < SLOW_NS / STEP_NS * int(DEFAULT_TURN)
