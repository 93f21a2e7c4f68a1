# SPDX-License-Identifier: MIT
"""Tests that `--dry-run` runs nothing, and that `--quiet` prints no progress."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Command

SMALL = ("--machine", "sim", "--workload", "lottery-low", "--cpus", "1")


@pytest.fixture
def run_folder(schedlab: Command, tmp_path: Path) -> Path:
    result = schedlab("run", *SMALL, "--policy", "lottery", "-q", "--out", str(tmp_path / "kept"))
    assert (result.returncode, result.stderr) == (0, "")
    assert "Kept in" in result.stdout
    return tmp_path / "kept" / "lottery-1cpu-seed1"


def test_a_dry_run_runs_nothing(schedlab: Command, run_folder: Path, tmp_path: Path) -> None:
    out, baseline = tmp_path / "out", tmp_path / "x.baseline"
    assert schedlab("compare", str(run_folder), "--keep", str(baseline), "-q").returncode == 0
    for command, count in (
        (("run", *SMALL, "--policy", "rr,mlfq"), 2),
        (("reproduce", "study-4", "--machine", "sim"), 137),
        (("replay", str(run_folder), "--cpus", "1-3"), 3),
        (("verify", str(run_folder)), 1),
        (("analyse", "deadlines", "--policy", "edf,rr"), 2),
        (("calibrate", "--policy", "rr"), 4),
        (("compare", str(baseline), "--gate"), 1),
    ):
        result = schedlab(*command, "--dry-run", "--json", "--out", str(out))
        assert result.returncode == 0, result.stderr
        output = json.loads(result.stdout)
        assert output["runs"] == count
        assert len(output["some"]) == min(count, 10)
        assert not out.exists()


def test_a_dry_score_runs_nothing(schedlab: Command, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(tmp_path.name.encode().ljust(16, b"-"))
    result = schedlab("score", "mlfq", "--key", str(tmp_path / "key"), "--dry-run", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["runs"] > 100


def test_quiet_keeps_errors(schedlab: Command, run_folder: Path) -> None:
    result = schedlab("run", "-q", *SMALL, "--policy", "lottery", "--out", str(run_folder.parent))
    assert result.returncode == 2
    assert "already" in result.stderr
