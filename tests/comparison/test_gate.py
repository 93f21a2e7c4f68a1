# SPDX-License-Identifier: MIT
"""Tests `./schedlab compare --keep` and `--gate`: what a baseline stores and when the gate
fails."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import Command
from kept_runs import MS, keep_figures
from schedlab.analysis.comparison.compare import compare
from schedlab.analysis.gate.baseline import LISTING_FILE, unpacked_baseline, write_baseline
from schedlab.analysis.gate.verdict import GateVerdict, judge_comparison, verdict_markdown
from schedlab.errors import FileRefused
from schedlab.machines.folder import TRACE_FILE
from schedlab.paths import ROOT
from schedlab.runs.collection import read_collection
from schedlab.runs.results import MANIFEST_FILE

BEFORE = [10.0, 20.0, 30.0, 15.0, 25.0]
COUNTS = {"rr": {"8": 100, "4096": 200}}


def seeds(folder: Path, turnarounds: Sequence[float], **options: Any) -> Path:
    """Keeps runs with seeds 1, 2 … and these turnarounds in ms."""
    for number, turnaround in enumerate(turnarounds):
        keep_figures(folder, seed=number + 1, turnaround_mean_ns=turnaround * MS, **options)
    return folder


def judged(before: Path, after: Path, now: dict[str, dict[str, int]] | None = None) -> GateVerdict:
    comparison = compare(read_collection([before]), read_collection([after]), ["turnaround"])
    return judge_comparison(comparison, COUNTS, COUNTS if now is None else now)


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return seeds(tmp_path / "before", BEFORE)


def baseline_of(runs: Path, path: Path) -> Path:
    write_baseline(path, read_collection([runs]), COUNTS)
    return path


def test_baseline_replaces_its_runs(before: Path, tmp_path: Path) -> None:
    """A baseline equals the runs that it was made from, and identifies their traces by hash."""
    for run in before.iterdir():
        (run / TRACE_FILE).write_bytes(run.name.encode())
    with unpacked_baseline(baseline_of(before, tmp_path / "a.baseline")) as baseline:
        assert baseline.instructions == COUNTS
        comparison = compare(baseline.runs, read_collection([before]))
        (match,) = comparison.matches
        assert match.is_identical
        assert [fact.name for fact in comparison.facts if fact.differs] == []
        for run in before.iterdir():
            (run / TRACE_FILE).write_bytes(b"other")
        (match,) = compare(baseline.runs, read_collection([before])).matches
        assert not match.is_identical
        assert {row.verdict for row in match.rows} == {"same"}
        (direct,) = compare(read_collection([before]), read_collection([before])).matches
        assert len(match.rows) > 5
        again = seeds(tmp_path / "again", [value + 3 for value in BEFORE])
        shown = [
            compare(side, read_collection([again])).matches[0].rows
            for side in (baseline.runs, read_collection([before]))
        ]
        assert shown[0] == shown[1]
    assert direct.before.runs


def test_the_same_runs_make_the_same_file(before: Path, tmp_path: Path) -> None:
    files = [baseline_of(before, tmp_path / f"{name}.baseline").read_bytes() for name in "ab"]
    assert files[0] == files[1]
    with zipfile.ZipFile(tmp_path / "a.baseline") as packed:
        assert b"here" not in packed.read(LISTING_FILE)  # fact: the host


def test_what_is_no_baseline_is_refused(before: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.baseline"
    for content in (b"", b"PK", b"{}"):
        path.write_bytes(content)
        with pytest.raises(FileRefused), unpacked_baseline(path):
            pass
    good = baseline_of(before, tmp_path / "good.baseline")
    with zipfile.ZipFile(good) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    listing = json.loads(parts[LISTING_FILE])
    lost = {**listing["runs"][0], "files": {"workload.json": f"files/{'0' * 16}-workload.json"}}
    out = {**listing["runs"][0], "files": {"workload.json": "../../x"}}
    for changed, words in (
        ({"format": 2}, "of format 2"),
        ({"runs": [lost]}, "is listed but missing"),
        ({"runs": [out]}, "runs"),
        ({"runs": 3}, "runs"),
        ({"instructions": {"rr": {"8": "x"}}}, "instructions"),
    ):
        with zipfile.ZipFile(path, "w") as packed:
            for name, part in {
                **parts,
                LISTING_FILE: json.dumps(listing | changed).encode(),
            }.items():
                packed.writestr(name, part)
        with pytest.raises(FileRefused, match=words), unpacked_baseline(path):
            pass


def test_worse_by_more_than_chance_closes_the_gate(before: Path, tmp_path: Path) -> None:
    gate = judged(
        before, seeds(tmp_path / "after", [value * 1.2 + value % 7 / 100 for value in BEFORE])
    )
    assert not gate.passes
    assert "1 worse" in gate.summary
    text = verdict_markdown(gate)
    assert text.startswith("### schedlab: not passed: 1 worse")
    (line,) = (line for line in text.splitlines() if line.endswith("% worse"))
    assert line.index("│") < line.index("●")
    assert "+20." in line


def test_a_closed_gate_ends_with_status_1(before: Path, tmp_path: Path, schedlab: Command) -> None:
    after = seeds(tmp_path / "after", [value * 1.2 + value % 7 / 100 for value in BEFORE])
    assert schedlab("compare", str(before), str(after), "--gate").returncode == 1
    assert schedlab("compare", str(before), str(before), "--gate").returncode == 0


def fail(folder: Path) -> None:
    (run,) = (path for path in folder.iterdir() if path.name.endswith("seed1"))
    manifest = json.loads((run / MANIFEST_FILE).read_text())
    changed = manifest | {"status": "panic", "message": "it died"}
    (run / MANIFEST_FILE).write_text(json.dumps(changed))


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (fail, "seed 1: it died"),
        (lambda folder: shutil.rmtree(next(folder.iterdir())), "seeds of only one side"),
    ],
)
def test_what_cannot_be_compared_closes_the_gate(
    harm: Any, words: str, before: Path, tmp_path: Path
) -> None:
    """A run that fails under a changed policy fails the gate; otherwise the policy would pass."""
    after = shutil.copytree(before, tmp_path / "after")
    assert judged(before, after).passes
    harm(after)
    gate = judged(before, after)
    assert not gate.passes
    assert words in " ".join(gate.not_comparable())
    assert "No longer comparable" in verdict_markdown(gate)


@pytest.mark.parametrize(
    ("now", "passes"),
    [
        ({"rr": {"8": 100, "4096": 202}}, True),  # at most 1 %
        ({"rr": {"8": 103, "4096": 200}}, False),
        ({"rr": {"8": 90, "4096": 190}}, True),
        ({}, False),
    ],
)
def test_instructions_are_exact(now: dict[str, dict[str, int]], passes: bool, before: Path) -> None:
    gate = judged(before, before, now)
    assert gate.passes is passes
    assert ("### schedlab: passed" in verdict_markdown(gate)) is passes
    assert "Instructions of one pick" in verdict_markdown(gate)


def test_the_runs_of_a_baseline_are_carried_out_again(schedlab: Command, tmp_path: Path) -> None:
    """A baseline file with its workload is enough to repeat the runs; wrong options are refused."""
    file = tmp_path / "own.json"
    file.write_text(json.dumps({"tasks": {"a": {"loop": 3, "run": {"from": "1ms", "to": "9ms"}}}}))
    runs, place = tmp_path / "runs", tmp_path / "b.baseline"
    setup = (
        "--machine",
        "sim",
        "--policy",
        "rr",
        "--cpus",
        "1",
        "--runs",
        "2",
        "--workload",
        str(file),
    )
    assert schedlab("run", *setup, "--out", str(runs)).returncode == 0
    assert schedlab("compare", str(runs), "--keep", str(place)).returncode == 0
    shutil.rmtree(runs)
    file.unlink()
    comment = tmp_path / "comment.md"
    result = schedlab("compare", str(place), "--gate", "--markdown", str(comment))
    assert result.returncode == 0, result.stderr
    assert (
        "Gate passed: 0 worse, 0 better, 1 of 1 configurations the same, byte for byte"
        in result.stdout
    )
    assert comment.read_text().startswith("### schedlab: passed")
    change_manifests(place, label="../../../EVIL")
    result = schedlab("compare", str(place), "--gate", "--out", str(tmp_path / "deep/er/out"))
    assert result.returncode == 0, result.stderr
    assert len([*(tmp_path / "deep/er/out").iterdir()]) == 2
    assert not [*tmp_path.rglob("*EVIL*")]
    change_manifests(place, machine="host", workload=f"touch {tmp_path}/EVIL")
    result = schedlab("compare", str(place), "--gate")
    assert result.returncode == 2
    assert f"touch {tmp_path}/EVIL" in result.stderr
    assert not (tmp_path / "EVIL").exists()


def change_manifests(path: Path, **members: str) -> None:
    """Changes a baseline's manifests, as an untrusted author could."""
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    listing = json.loads(parts[LISTING_FILE])
    for run in listing["runs"]:
        run["manifest"] |= members
    with zipfile.ZipFile(path, "w") as packed:
        for name, part in {**parts, LISTING_FILE: json.dumps(listing).encode()}.items():
            packed.writestr(name, part)


def test_action_and_hook_call_existing_commands() -> None:
    """Only the form is checked, as GitHub and pre-commit require it; they cannot run here."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    (gate,) = (step for step in action["runs"]["steps"] if "run" in step)
    assert {f"${{{{ inputs.{name} }}}}" for name in action["inputs"]} <= set(gate["env"].values())
    assert "/tools/gate.sh" in gate["run"]
    subprocess.run(["bash", "-n", "-c", gate["run"]], check=True)
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert (ROOT / hook["entry"]).stat().st_mode & 0o111
    assert hook["language"] == "script"
