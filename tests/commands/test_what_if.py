# SPDX-License-Identifier: MIT
"""Tests `./schedlab replay --what-if`, which turns a recording into one page."""

from __future__ import annotations

import json
from pathlib import Path

from conftest import Command
from perf_recordings import unpacked
from schedlab.runs import results


def test_simulated_run_is_replayed_under_its_policy_first(
    schedlab: Command, tmp_path: Path
) -> None:
    workload = ("--machine", "sim", "--workload", "mixed", "--policy", "mlfq", "--cpus", "2")
    ran = schedlab("run", *workload, "--out", str(tmp_path / "run"))
    assert ran.returncode == 0, ran.stderr
    out = tmp_path / "out"
    result = schedlab(
        *("replay", "--what-if", str(tmp_path / "run"), "--policy", "rr,mlfq"),
        *("--out", str(out), "--json"),
    )
    assert result.returncode == 0, result.stderr
    output = json.loads(result.stdout)
    original_policy = output["own_policy"]
    assert original_policy["policy"] == "mlfq"
    assert original_policy["is_own"]
    assert all(off < 0.02 for off in original_policy["error"].values())
    assert {policy["policy"] for policy in output["policies"]} == {"rr", "mlfq"}
    change = {policy["policy"]: policy["change"] for policy in output["policies"]}
    assert change["mlfq"] == 0
    assert len(output["findings"]) == 3
    page = Path(output["page"]).read_text()
    assert all(
        words in page
        for words in ("The worst waits", "Largest delays", "A replay under the recording")
    )
    again = schedlab("replay", "--what-if", str(tmp_path / "run"), "--out", str(out))
    assert again.returncode == 2
    assert "already contains replays" in again.stderr


def test_a_recording_of_linux_leads_to_a_page(schedlab: Command, tmp_path: Path) -> None:
    path, out = unpacked("raw.txt", tmp_path), tmp_path / "out"
    result = schedlab("replay", "--what-if", str(path), "--policy", "rr,eevdf", "--out", str(out))
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[-1] == f"Page: {out / 'page' / 'index.html'}"
    assert max(len(line) for line in lines if str(out) not in line) <= 80
    output = " ".join(result.stdout.split())
    assert {"rr", "eevdf"} <= {line.split()[0] for line in lines if line.strip()}
    assert "Of the policies here, rr is the most similar" in output or "eevdf is the most" in output
    assert sum(line.startswith("- ") for line in lines) == 4  # findings, and how far to trust them
    recorded = json.loads((out / "recorded" / results.MANIFEST_FILE).read_text())
    assert recorded["policy"] == "fair"
    # Some processes of the machine run without end, so the recording's length limits the replay:
    # no failure, which the progress would name.
    assert ": limit" not in result.stderr
    for manifest in out.glob(f"replays/*/{results.MANIFEST_FILE}"):
        assert json.loads(manifest.read_text())["limit_ns"] == 776_803_961


def test_processes_are_matched_despite_new_names(schedlab: Command, tmp_path: Path) -> None:
    """One name contains a newline."""
    path, out = unpacked("threads.data", tmp_path), tmp_path / "out"
    arguments = ("replay", "--what-if", str(path), "--policy", "rr", "--out", str(out), "--json")
    result = schedlab(*arguments)
    assert result.returncode == 0, result.stderr
    output = json.loads(result.stdout)
    assert output["recorded"]["processes"] == 4
    assert [policy["processes"] for policy in output["policies"]] == [4]
    text = (out / "page" / "index.html").read_text()
    assert "Of the policies here, rr is the most similar" in " ".join(text.split())


def test_recordings_of_several_seeds_make_one_page(schedlab: Command, tmp_path: Path) -> None:
    file = tmp_path / "work.json"
    file.write_text(json.dumps({"tasks": {"cpu": {"instance": 5, "loop": 1, "run": 20_000}}}))
    recorded = tmp_path / "recorded"
    arguments = ("--machine", "sim", "--workload", str(file), "--policy", "lottery", "--cpus", "2")
    ran = schedlab("run", *arguments, "--runs", "2", "--out", str(recorded))
    assert ran.returncode == 0, ran.stderr
    result = schedlab(
        *("replay", "--what-if", str(recorded), "--policy", "rr,lottery", "--json"),
        *("--out", str(tmp_path / "out")),
    )
    assert result.returncode == 0, result.stderr
    output = json.loads(result.stdout)
    assert len(output["recorded"]["folders"]) == 2
    assert {policy: len(places) for policy, places in output["replays"].items()} == {
        "lottery": 2,
        "rr": 2,
    }
    assert {entry["processes"] for entry in output["policies"]} == {2 * 5}
    assert output["own_policy"]["error"]["waiting"] < 0.02
    assert "2 replays per policy" in Path(output["page"]).read_text()


def test_unrecorded_events_are_not_compared(schedlab: Command, tmp_path: Path) -> None:
    full_recording = unpacked("raw.txt", tmp_path)
    path = tmp_path / "switches.txt"
    path.write_text(
        "".join(
            line for line in full_recording.read_text().splitlines(True) if "sched_switch" in line
        )
    )
    result = schedlab(
        *("replay", "--what-if", str(path), "--policy", "eevdf,rr", "--json"),
        *("--out", str(tmp_path / "out")),
    )
    assert result.returncode == 0, result.stderr
    output = json.loads(result.stdout)
    assert output["own_policy"]["error"] == {"turnaround": None, "waiting": None}
    assert not any(policy["is_told"] for policy in output["policies"])
    assert any("counts as sleep" in note for note in output["notes"])


def test_an_experiment_on_a_recording_of_linux_uses_a_stand_in(
    schedlab: Command, tmp_path: Path
) -> None:
    path, run = unpacked("raw.txt", tmp_path), tmp_path / "run"
    assert schedlab("import", str(path), "--out", str(run)).returncode == 0
    question = ("explain", str(run), "--task", "ping", "--worst", "0", "--json")
    for change in (("--attribute", "ping:nice=-15"), ("--without", "storm")):
        result = schedlab(*question, *change)
        assert result.returncode == 0, result.stderr
        answer = json.loads(result.stdout)["otherwise"]
        assert ", which replaces fair: without a change, it differs" in answer["how"]
        (waiting,) = (row for row in answer["waiting"] if row["waiting"] == "ping")
        assert waiting["after_ns"] < waiting["before_ns"]
    refused = schedlab("explain", str(run), "--attribute", "ping:colour=1")
    assert refused.returncode == 2
