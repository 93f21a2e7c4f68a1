# SPDX-License-Identifier: MIT
"""Tests `./schedlab replay` and `./schedlab trace --as-workload`."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import Command
from schedlab.base.files.atomic import file_hash
from schedlab.errors import WrongUsage
from schedlab.runs.recording import read_recording
from schedlab.runs.replay import parse_charges
from schedlab.workload.costs import BUILT_IN_PROFILES, COST_MEANINGS
from simulator_command import built, simulate

pytestmark = pytest.mark.xdist_group("replay command")  # shared data is made once

TASKS = {
    "tasks": {
        "cpu": {"instance": 3, "loop": 1, "run": 20_000},
        "io": {"instance": 2, "loop": 10, "run": 300, "sleep": "3ticks"},
    }
}


def run(schedlab: Command, command: str, *arguments: str) -> list[dict[str, Any]]:
    result = schedlab(command, "--json", *arguments)
    assert result.returncode == 0, result.stderr
    runs: list[dict[str, Any]] = json.loads(result.stdout)["runs"]
    return runs


@pytest.fixture(scope="module")
def recorded(schedlab: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a run of the simulator with unusual settings. All tests share it, so it is
    read-only.
    """
    place = tmp_path_factory.mktemp("recorded")
    workload = place / "w.json"
    workload.write_text(json.dumps(TASKS))
    arguments = ("--machine", "sim", "--workload", str(workload), "--policy", "rr", "--cpus", "2")
    more = ("--set", "slice=3", "--seed", "9", "--tick", "2ms", "--costs", "none,tick=1000")
    (only,) = run(
        schedlab, "run", *arguments, *more, "--limit", "9s", "--out", str(place / "recorded")
    )
    return Path(only["folder"])


def test_unspecified_attributes_are_as_recorded(
    schedlab: Command, tmp_path: Path, recorded: Path
) -> None:
    (only,) = run(schedlab, "replay", str(recorded), "--out", str(tmp_path / "out"))
    recorded_manifest = json.loads((recorded / "manifest.json").read_text())
    replay_manifest = only["manifest"]
    same = ("machine", "policy", "tunables", "cpus", "seed", "tick_ns", "limit_ns", "costs")
    assert {key: replay_manifest[key] for key in same} == {
        key: recorded_manifest[key] for key in same
    }
    assert "--costs none,tick=1000" in replay_manifest["boot_arguments"]
    assert replay_manifest["workload_sha256"] == file_hash(recorded / "trace.bin")
    assert replay_manifest["replay_of"]["trace_sha256"] == replay_manifest["workload_sha256"]
    assert replay_manifest["replay_of"]["policy"] == "rr"
    assert replay_manifest["replay_of"]["switches"] == "kept"
    assert recorded_manifest["workload"] in replay_manifest["workload"]
    ends = [run["metrics"]["summary"] for run in (only,)]
    assert ends[0]["processes"] == 5
    again = subprocess.run(
        [built("sim/schedlab-sim"), *shlex.split(replay_manifest["boot_arguments"])],
        cwd=only["folder"],
        capture_output=True,
        check=False,
    )
    assert again.returncode == 0, again.stderr


def test_other_policies_are_compared_with_the_recording(
    schedlab: Command, tmp_path: Path, recorded: Path
) -> None:
    """Tunables apply with the policy; compare and report take recording and replays together."""
    out = tmp_path / "out"
    arguments = ("replay", str(recorded / "trace.bin"), "--machine", "sim", "--out", str(out))
    runs = run(schedlab, *arguments, "--policy", "mlfq,lottery", "--cpus", "1-2", "--runs", "2")
    assert len(runs) == 8
    assert {run["manifest"]["policy"] for run in runs} == {"mlfq", "lottery"}
    assert all(run["manifest"]["tunables"] == {} for run in runs)
    assert all(run["manifest"]["tick_ns"] == 2_000_000 for run in runs)
    assert {run["manifest"]["seed"] for run in runs} == {9, 10}
    assert all(run["manifest"]["replay_of"]["switches"] == "left out" for run in runs)
    result = schedlab("compare", str(recorded), str(out / "mlfq-2cpu-seed9"))
    assert result.returncode == 0, result.stderr
    assert "replay of" in result.stdout
    both = ("report", str(recorded), str(out), "--out", str(tmp_path / "report"))
    assert schedlab(*both).returncode == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--workload", "mixed"], "--workload"),
        (["--machine", "spike"], "only sim replays"),
        (["--memory", "64"], "--memory"),
    ],
)
def test_what_makes_no_sense_together(
    schedlab: Command, tmp_path: Path, recorded: Path, words: list[str], expected: str
) -> None:
    result = schedlab("replay", *words, str(recorded), "--out", str(tmp_path / "out"))
    assert result.returncode == 2
    assert expected in result.stderr
    assert not (tmp_path / "out").exists()


def test_trace_alone_shows_how_it_was_made(tmp_path: Path) -> None:
    path = tmp_path / "alone.bin"
    text = "program root\nrun 3ms\n"
    options = ("--policy", "mlfq:four-quanta", "--set", "levels=3", "--cpus", "3", "--seed", "5")
    result = simulate(tmp_path, text, *options, "--tick", "500000", "--trace", str(path))
    assert result.returncode == 0, result.stderr
    metadata = read_recording(path)
    assert (str(metadata.policy), metadata.settings) == ("mlfq:four-quanta", (("levels", 3),))
    assert (metadata.cpus, metadata.seed, metadata.tick_ns) == (3, 5, 500_000)


def test_a_workload_to_be_read_and_run(schedlab: Command, tmp_path: Path, recorded: Path) -> None:
    file = tmp_path / "wanted.txt"
    result = schedlab("trace", str(recorded), "--as-workload", str(file))
    assert result.returncode == 0, result.stderr
    assert "run 20000000ns" in file.read_text()
    assert "sleep 3ticks" in file.read_text()
    make, command = (line.split() for line in file.read_text().split("\n")[1:3])
    assert make[:3] == ["#", "./schedlab", "workloads"]
    result = schedlab(*make[2:], cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert command[:2] == ["#", "schedlab-sim"]
    program = built("sim/schedlab-sim")
    again = subprocess.run([program, *command[2:]], cwd=tmp_path, capture_output=True, check=False)
    assert again.returncode == 0, again.stderr


def test_costs_are_those_of_the_simulator(tmp_path: Path) -> None:
    """The trace is the same, byte for byte, if each cost is named. (Textbook costs also set an
    order.)
    """
    text = "program root\nloop 20\nfork one\nend\nloop 20\nwait\nend\nprogram one\nrun 3ms\nsleep 1ms\n"
    for costs in (
        *BUILT_IN_PROFILES,
        "kernel,fork=40000,migration=700",
        "none,call=900",
        "kernel,fork+=9000",
    ):
        read = parse_charges(costs)
        order = "textbook" if costs == "textbook" else "none"
        named = ",".join([order, *(f"{name}={getattr(read, name)}" for name in COST_MEANINGS)])
        traces = []
        for cost_text in (costs, named):
            path = tmp_path / "trace.bin"
            result = simulate(
                tmp_path, text, "--costs", cost_text, "--cpus", "2", "--trace", str(path)
            )
            assert result.returncode == 0, result.stderr
            traces.append(path.read_bytes())
        assert traces[0] == traces[1]
    last_costs = parse_charges(
        "none,fork=1,fork.rr=2,fork.rr:table-scan=3,fork+=10", "rr:table-scan"
    )
    assert last_costs.fork == 13
    assert parse_charges("none,fork.rr:table-scan=3,fork.rr=2", "rr:table-scan").fork == 2
    assert parse_charges("kernel,fork=7", "lottery").fork == 7
    with pytest.raises(WrongUsage, match="furlong"):
        parse_charges("kernel,furlong=3")
