# SPDX-License-Identifier: MIT
"""Tests that the Python API does what the command line does, and nothing that only a command
needs."""

from __future__ import annotations

import asyncio
import gc
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import schedlab as lab
from conftest import ROOT, Command, without_progress
from schedlab import api
from schedlab.errors import SchedlabError

FORMATS = ROOT / "tests" / "formats" / "0.1.0"
WORKLOAD = str(FORMATS / "workload.json")

pytestmark = pytest.mark.xdist_group("api")


@pytest.fixture(scope="module")
def runs() -> lab.Runs:
    return lab.run(WORKLOAD, ["rr", "mlfq"], seeds=2)


def test_all_names_are_public_and_described() -> None:
    names = {*api.__all__, "open", "score"}
    assert names <= {*dir(lab)}
    for name in names:
        assert inspect.getdoc(getattr(lab, name)), name


def test_a_run_is_that_of_the_command_line(
    runs: lab.Runs, schedlab: Command, tmp_path: Path
) -> None:
    what = ("--workload", WORKLOAD, "--policy", "rr,mlfq", "--cpus", "1", "--runs", "2")
    result = schedlab("run", *what, "--machine", "sim", "--out", str(tmp_path / "runs"))
    assert result.returncode == 0, result.stderr
    other = lab.open_runs(tmp_path / "runs")
    mine = {(run.setup.policy, run.manifest["seed"]): run for run in runs}
    for other_run in other:
        same = mine.pop((other_run.setup.policy, other_run.manifest["seed"]))
        assert (other_run.folder / "trace.bin").read_bytes() == (
            same.folder / "trace.bin"
        ).read_bytes()
    assert not mine


def test_tables_say_what_was_run(runs: lab.Runs) -> None:
    assert (len(runs), runs.failed) == (4, {})
    assert runs.summary.select("policy", "seed").rows() == [
        ("rr", 1), ("rr", 2), ("mlfq", 1), ("mlfq", 2),
    ]  # fmt: skip
    assert set(runs.groups["group"]) == {"batch", "typist"}
    assert runs.processes.height >= 4 * 3
    assert runs.cpus.height == 4
    assert "4 runs, 0 failed" in runs._repr_html_()
    assert "<table" in runs._repr_html_()


def test_conclusions_are_drawn(runs: lab.Runs, tmp_path: Path) -> None:
    compared = lab.compare(FORMATS / "run" / "rr-1cpu-seed1", runs.runs[0].folder)
    assert not any(fact.differs for fact in compared.facts if fact.name == "policy")
    explained = lab.explain(runs[0], "typist", worst=1)
    (longest,) = explained.longest
    assert sum(share.duration_ns for share in longest.shares) == longest.wait.duration_ns
    counted = lab.query(runs, "SELECT count(*) AS n FROM runs")
    assert counted["n"].item() == 4
    assert runs.report(tmp_path / "report", ["markdown"]).is_file()


def test_a_recording_is_replayed_as_it_was(runs: lab.Runs) -> None:
    again = lab.replay(runs[0].folder)
    (mine,) = runs.summary.filter(policy="rr", seed=1)["turnaround_mean_ns"].to_list()
    assert again.summary["turnaround_mean_ns"].item() == pytest.approx(mine, rel=0.02)
    assert lab.replay(runs[0].folder, "stride").summary["policy"].item() == "stride"


def test_a_sweep_keeps_what_is_finished(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(f"workloads: {WORKLOAD}\npolicies: [rr]\nseeds: [1, 2]\n")
    tables = lab.run_sweep(file, tmp_path / "out", workers=1)
    assert tables["runs"].height == 2
    again = lab.run_sweep(file, tmp_path / "out", workers=1)
    assert again["runs"].equals(tables["runs"])


def test_lists_have_what_ships() -> None:
    policies = lab.policies()
    assert {"rr", "cfs"} <= set(policies["name"])
    assert "slice=1" in policies.filter(name="rr")["tunables"].item().to_list()
    assert "mixed" in set(lab.workloads()["name"])


@pytest.mark.parametrize(
    "call",
    [
        lambda: lab.run("nothing-there"),
        lambda: lab.run(WORKLOAD, "no-such-policy"),
        lambda: lab.run(WORKLOAD, "not a policy"),
        lambda: lab.run(WORKLOAD, settings={"no-such": 1}),
        lambda: lab.run(WORKLOAD, cpus=99_999),
        lambda: lab.run(WORKLOAD, tick_ns=1),
        lambda: lab.run(WORKLOAD, memory_mib=64),
        lambda: lab.run(WORKLOAD, machine="spike", costs="none"),
        lambda: lab.open("/nowhere"),
        lambda: lab.open_runs("/nowhere"),
        lambda: lab.replay("/nowhere"),
        lambda: lab.write_report("/nowhere", "/nowhere/else"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_an_error_of_ours(call: object) -> None:
    assert callable(call)
    with pytest.raises(SchedlabError):
        call()


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    done = lab.run(str(ROOT / "tests" / "api" / "notes.json"), seeds=2)
    assert capfd.readouterr() == ("", "")
    assert any("unknown key" in note for note in done.notes)


def test_it_works_within_a_loop_as_in_a_notebook() -> None:
    async def cell() -> lab.Runs:
        return lab.run(WORKLOAD)

    assert len(asyncio.run(cell())) == 1


def test_runs_without_a_folder_go_with_their_object() -> None:
    done = lab.run(WORKLOAD)
    folder = done[0].folder
    assert folder.is_dir()
    del done
    assert not folder.exists()


def test_one_of_several_runs_keeps_its_files() -> None:
    run = lab.run("hog", "rr", machine="sim")[0]
    gc.collect()
    assert len(run.trace)
    folder = run.folder
    del run
    gc.collect()
    assert not folder.exists()


def test_a_script_needs_no_guard(tmp_path: Path) -> None:
    """Worker processes do not run the script again."""
    script = tmp_path / "script.py"
    script.write_text(
        "import schedlab\n"
        f"runs = schedlab.run({WORKLOAD!r})\n"
        f"print(runs.report({str(tmp_path / 'report')!r}))\n"
    )
    start = ROOT / "python" / "start.py"
    result = subprocess.run(
        [sys.executable, "-I", "-X", "utf8", start, "schedlab", "python", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (result.returncode, without_progress(result.stderr)) == (0, "")
    assert result.stdout == f"{tmp_path / 'report' / 'index.html'}\n"
