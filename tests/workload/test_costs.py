# SPDX-License-Identifier: MIT
"""Tests cost profiles: reading, refusals, and the copy kept with a run."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from built_once import build_once
from conftest import Command
from schedlab.base.toolchain.build import SIMULATOR_PROGRAM
from schedlab.errors import WrongUsage
from schedlab.workload import costs
from simulator_command import write_workload

PROFILE = {
    "format": 1,
    "description": "A machine whose forks are slow.",
    "base": "kernel",
    "costs": {"fork": {"ns": 20000, "spread_ns": 30, "events": 7, "source": "told"}, "tick": 9},
}


def written(folder: Path, content: object) -> Path:
    path = folder / "profile.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_names_and_changes() -> None:
    assert costs.parse_costs("kernel") == costs.KERNEL_COSTS
    assert costs.parse_costs("none,fork=7").text == "none,fork=7"
    assert costs.parse_costs("fork=7").text == "kernel,fork=7"
    assert costs.parse_costs("kernel, fork=7 ,tick=0").name == "kernel,fork=7,tick=0"


def test_a_file_and_changes(tmp_path: Path) -> None:
    path = written(tmp_path, PROFILE)
    chosen = costs.parse_costs(f"{path},exit=5")
    assert chosen.text == "kernel,fork=20000,tick=9,exit=5"
    assert re.fullmatch(r"profile\.json \([0-9a-f]{12}\),exit=5", chosen.name)
    path.write_text(path.read_text().replace("20000", "20001"))
    assert costs.parse_costs(f"{path},exit=5").name != chosen.name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("free", "'free': unknown costs; use kernel, none, textbook, a profile"),
        ("kernel,fork=-1", "'fork=-1': not a cost; write NAME=NANOSECONDS"),
        ("kernel,frok=1", "unknown cost 'frok'; did you mean 'fork'?"),
        ("kernel,fork=9999999999999", "too large; use at most 1000000000000 ns"),
        ("nowhere.json", "nowhere.json: cannot be read: No such file"),
    ],
)
def test_wrong_choices(text: str, message: str) -> None:
    with pytest.raises(WrongUsage, match=re.escape(message)):
        costs.parse_costs(text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "profile.json:1: an array: expected an object: a profile of costs"),
        ({"format": 2, "costs": {}}, "format: 2: expected 1, the only format"),
        ({"format": 1, "costs": [], "x": 1}, "x: unknown: expected one of format, description"),
        ({"format": 1, "costs": {"frok": 1}}, "costs.frok: unknown cost 'frok'; did you mean"),
        ({"format": 1, "costs": {"fork": -1}}, "costs.fork: -1: expected nanoseconds"),
        ({"format": 1, "costs": {"fork": {"ns": 1.5}}}, "costs.fork.ns: 1.5: expected a whole"),
        ({"format": 1, "costs": {"fork": {"ns": 1, "us": 1}}}, "costs.fork.us: unknown: expected"),
        ('{"format": 1, "costs": {\n"fork": 1,\n"fork": 2}}', "json:3: costs.fork: given"),
    ],
)
def test_wrong_profiles(tmp_path: Path, content: object, message: str) -> None:
    with pytest.raises(WrongUsage, match=re.escape(message)):
        costs.read_profile(written(tmp_path, content))


def simulator(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    build_once("simulator")
    words = "program a\n  fork b\n  wait\nprogram b\n  run 3ms\n  yield\n  sleep 1ms\n"
    workload = write_workload(folder, words)
    command = [str(SIMULATOR_PROGRAM), "--no-trace", "--costs", text, str(workload)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_simulator_knows_the_same_costs(tmp_path: Path) -> None:
    every = ",".join(f"{name}=1" for name in costs.COST_MEANINGS)
    done = simulator(tmp_path, f"none,{every}")
    assert done.returncode == 0, done.stderr
    stderr = simulator(tmp_path, "none,frok=1").stderr
    for name in costs.COST_MEANINGS:
        assert re.search(rf"\b{name}\b", stderr), stderr


def test_what_ships_is_what_is_built_in(tmp_path: Path) -> None:
    text = costs.read_profile(costs.SHIPPED_PROFILE).text()
    assert simulator(tmp_path, text).stdout == simulator(tmp_path, "kernel").stdout


def command(folder: Path, *arguments: str) -> tuple[str, ...]:
    workload = folder / "w.json"
    workload.write_text(json.dumps({"tasks": {"cpu": {"instance": 2, "loop": 1, "run": 2000}}}))
    options = ("run", "--machine", "sim", "--workload", str(workload), "--cpus", "1")
    return (*options, "--out", str(folder / "out"), *arguments)


def test_a_run_remembers_its_costs(schedlab: Command, tmp_path: Path) -> None:
    path = written(tmp_path, PROFILE)
    result = schedlab(*command(tmp_path, "--costs", f"{path},exit=5", "--json"))
    assert result.returncode == 0, result.stderr
    manifest = json.loads(result.stdout)["runs"][0]["manifest"]
    assert manifest["costs"] == costs.parse_costs(f"{path},exit=5").name
    assert "--costs kernel,fork=20000,tick=9,exit=5" in manifest["boot_arguments"]
