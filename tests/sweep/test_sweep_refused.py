# SPDX-License-Identifier: MIT
"""Tests the refusals of `./schedlab sweep`, and its listing without running."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from conftest import ROOT
from refused import refusal
from schedlab.commands.cli import cli
from test_sweep_best import MS, swept, turnarounds

MIXED = ROOT / "workloads" / "files" / "study4-mixed.json"
OPEN = ROOT / "workloads" / "files" / "open" / "exponential.json"
RR = f"--workload {MIXED} --policy rr"
ONE = f"{RR} --set slice=1..40 --search 24"


@pytest.mark.parametrize(
    ("words", "word"),
    [
        ("--from SWEPT", "--best"),
        ("--from SWEPT --best turnaround --chart x.svg", "two metrics"),
        ("--from SWEPT --best turnaround --best response --chart x.pdf", ".svg"),
        ("--from SWEPT --best turnaround --policy rr", "--from"),
        ("--from SWEPT --best turnaround --map slice,cpus", "--effects METRIC"),
        ("--from SWEPT --effects speed", "speed"),
        ("--from nowhere --best turnaround", "nowhere"),
        (f"--group job --workload {MIXED}", "--load"),
        (f"{RR} --load 0.5", "arrivals"),
        ("--workload no-such --policy rr --dry-run", "no-such"),
        (ONE, "--best"),
        (f"{ONE} --best turnaround --cpus 1,2", "name one workload"),
        (f"--workload {MIXED} --policy mlfq --set boost=-1", "1000000"),
    ],
)
def test_what_makes_no_sense_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, word: str
) -> None:
    monkeypatch.chdir(tmp_path)
    swept(tmp_path / "swept", turnarounds({"a=1": [2 * MS], "a=2": [MS]}))
    before = sorted(tmp_path.rglob("*"))
    assert word in refusal("sweep", *words.replace("SWEPT", "swept").split())
    assert sorted(tmp_path.rglob("*")) == before


def listed(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["sweep", *arguments, "--dry-run"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_dry_run_counts_and_shows(tmp_path: Path) -> None:
    many = f"--workload {MIXED} --policy mlfq --set boost=0,480 --seeds 1..20"
    lines = listed(*many.split()).splitlines()
    assert (lines[0].split()[0], len(lines)) == ("40", 11)
    assert lines[1].endswith("mlfq boost=0, 1 CPU, sim, seed 1")
    assert lines[-1].endswith("mlfq boost=480, 1 CPU, sim, seed 20")
    assert "24 configurations" in listed(*ONE.split(), "--best", "turnaround")
    assert "workloads/files/mixed.json" in listed("--workload", "mixed", "--policy", "rr")
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text(f"workloads: {OPEN}\npolicies: [rr, mlfq]\nseeds: 1..3\n")
    output = json.loads(listed(str(sweep), "--load", "0.3,0.6", "--json"))
    assert output["runs"] == 12
    assert "with_load" in output["dimensions"]
