# SPDX-License-Identifier: MIT
"""Tests workloads by name: names are the same on every machine, and no machine starts for a
name of another.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from built_once import build_once
from conftest import Command
from schedlab.paths import BUILD_FOLDER, ROOT
from schedlab.runs.request import resolve_workload
from schedlab.workload.palette import read_palette
from schedlab.workload.programs import disk_programs

NONE: frozenset[str] = frozenset()
MIXED = "workloads/files/mixed.json"


def test_the_programs_are_those_of_the_disk() -> None:
    build_once("image")
    made = {
        path.name for folder in ("programs", "raw") for path in (BUILD_FOLDER / folder).iterdir()
    }
    assert disk_programs() == {name for name in made if "." not in name} - {"storm"}


@pytest.mark.parametrize(
    ("workload", "programs", "runs"),
    [
        ("mixed", NONE, MIXED),
        ("mixed", frozenset({"mixed"}), "mixed"),
        ("mixed -n 3", frozenset({"mixed"}), "mixed -n 3"),
        ("inversion", disk_programs(), "workloads/files/monitor/inversion.json"),
        ("sh -c 'true; true'", disk_programs(), "sh -c 'true; true'"),
        ("mine.json", NONE, "mine.json"),
        ("hackbench -l 3", None, "hackbench -l 3"),
    ],
)
def test_a_name_alone_is_a_program_or_a_ready_file(
    workload: str, programs: frozenset[str] | None, runs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert resolve_workload(workload, programs) == runs


@pytest.mark.parametrize(
    ("machine", "workload", "message"),
    [
        ("spike", "mixd", "did you mean 'mixed'?"),
        ("qemu", "zzz", "unknown workload 'zzz'. `./schedlab workloads` lists all"),
        (
            "spike",
            "inversion -n 3",
            "takes no options; leave them out, or change its values with --with",
        ),
        ("sim", "mixed -n 3", "takes no options"),
        ("sim", "lotterytest basic", "run programs on spike, qemu or linux"),
        ("sim", "mixd", "did you mean 'mixed'?"),
        ("sim", " ", "--machine sim runs only workload files"),
    ],
)
def test_nothing_starts_for_missing_files(
    machine: str, workload: str, message: str, schedlab: Command, tmp_path: Path
) -> None:
    path = tmp_path / "runs"
    result = schedlab("run", "--machine", machine, "--workload", workload, "--out", str(path))
    assert result.returncode == 2
    assert message in result.stderr
    assert not path.exists()


@pytest.mark.spike
@pytest.mark.parametrize("name", sorted(read_palette().keys() & disk_programs()))
def test_a_name_has_as_many_processes_everywhere(
    name: str, schedlab: Command, tmp_path: Path
) -> None:
    """A kernel program and a workload file of the same name do the same work."""
    counts = []
    for machine in ("spike", "sim"):
        arguments = ("--machine", machine, "--workload", name, "--cpus", "4", "--policy", "rr")
        result = schedlab("run", *arguments, "--json", "--out", str(tmp_path / machine), cwd=ROOT)
        assert result.returncode == 0, result.stderr
        (only,) = json.loads(result.stdout)["runs"]
        counts.append({row["group"]: row["processes"] for row in only["metrics"]["groups"]})
    assert counts[0] == counts[1]
