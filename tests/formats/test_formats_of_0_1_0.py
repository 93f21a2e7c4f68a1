# SPDX-License-Identifier: MIT
"""Tests that files of version 0.1.0 stay readable: `0.1.0/` holds one of each kind.

Version 0.1.0 itself printed every figure below from these files.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from conftest import ROOT, Command

FORMATS = ROOT / "tests" / "formats" / "0.1.0"

pytestmark = pytest.mark.xdist_group("formats of 0.1.0")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies the files, because commands write next to the files that they read."""
    copy = tmp_path_factory.mktemp("formats") / "0.1.0"
    shutil.copytree(FORMATS, copy)
    return copy


def query_rows(schedlab: Command, place: Path, sql: str) -> list[tuple[str, ...]]:
    """Returns the rows of a query, without the names of its columns."""
    done = schedlab("query", str(place), sql, "--format", "csv")
    assert done.returncode == 0, done.stderr
    return [tuple(row) for row in csv.reader(io.StringIO(done.stdout))][1:]


SQL = (
    "SELECT run, policy, machine, status, seed, count(*) AS switches"
    " FROM runs JOIN switches USING (run) GROUP BY ALL ORDER BY run"
)

ROWS = {
    "run": [
        ("mlfq-1cpu-seed1", "mlfq", "sim", "success", "1", "35"),
        ("rr-1cpu-seed1", "rr", "sim", "success", "1", "56"),
    ],
    "kernel-run": [("lottery-1cpu-seed1", "lottery", "spike", "success", "1", "183")],
    "replay": [("stride-1cpu-seed1", "stride", "sim", "success", "1", "55")],
    "branch": [
        ("mlfq", "mlfq", "spike", "success", "1", "122"),
        ("rr", "rr", "spike", "success", "1", "258"),
        ("unchanged", "lottery", "spike", "success", "1", "183"),
    ],
    "study": [
        (
            "s2-priority-short-priority-aging_interval=0-2cpu-seed1",
            *("priority", "sim", "success", "1", "340"),
        ),
        (
            "s2-timing-short-rr-table-scan-2cpu-seed1",
            *("rr:table-scan", "sim", "success", "1", "386"),
        ),
    ],
}


@pytest.mark.parametrize("folder", ROWS)
def test_traces_of_runs_are_read(schedlab: Command, files: Path, folder: str) -> None:
    assert query_rows(schedlab, files / folder, SQL) == ROWS[folder]


SOON = ("run", "study")
"""Folders reported in every test run; the others take long and add little."""


@pytest.mark.parametrize(
    "folder", [pytest.param(name, marks=[pytest.mark.long] * (name not in SOON)) for name in ROWS]
)
def test_metrics_of_runs_are_reported(
    schedlab: Command, files: Path, tmp_path: Path, folder: str
) -> None:
    how = ("--format", "markdown", "--out", str(tmp_path / "report"), "--json")
    done = schedlab("report", str(files / folder), *how)
    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout)
    assert (output["runs"], output["failed"]) == (len(ROWS[folder]), [])


def test_a_run_is_equal_to_its_baseline(schedlab: Command, files: Path) -> None:
    done = schedlab("compare", str(files / "run.baseline"), str(files / "run"), "--json")
    assert done.returncode == 0, done.stderr
    assert not any(fact["differs"] for fact in json.loads(done.stdout)["facts"])


def test_a_sweep_is_ranked(schedlab: Command, files: Path) -> None:
    done = schedlab("sweep", "--from", str(files / "sweep"), "--best", "turnaround", "--json")
    assert done.returncode == 0, done.stderr
    (scene,) = json.loads(done.stdout)["scenes"]
    best = scene["setups"][0]
    assert (best["policy"], best["settings"], best["mean"]) == ("lottery", "slice=1", 34939932.5)


def test_the_description_of_a_sweep_is_read(schedlab: Command, files: Path) -> None:
    done = schedlab("sweep", str(files / "sweep.yaml"), "--dry-run")
    assert done.returncode == 0, done.stderr


def test_costs_and_workloads_are_read(schedlab: Command, files: Path, tmp_path: Path) -> None:
    what = ("--workload", str(files / "workload.json"), "--costs", str(files / "costs.json"))
    how = ("--machine", "sim", "--cpus", "1", "--out", str(tmp_path / "runs"))
    done = schedlab("run", *what, *how)
    assert done.returncode == 0, done.stderr


def test_an_archive_is_carried_out_again(schedlab: Command, files: Path, tmp_path: Path) -> None:
    """Status 1 reports a difference, which later versions may cause."""
    done = schedlab("verify", str(files / "run.zip"), "--out", str(tmp_path / "again"))
    assert done.returncode in (0, 1), done.stderr
    assert "of 2 runs are the same" in done.stdout
