# SPDX-License-Identifier: MIT
"""Tests `./schedlab branch`: branches of one run, on the real kernel."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import ROOT, Command
from refused import refusal
from schedlab import trace
from schedlab.base.files.atomic import file_hash
from schedlab.base.host.isolated import module_command
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.errors import SchedlabError, WrongUsage
from schedlab.machines import machine_named
from schedlab.machines.folder import CONSOLE_FILE, TRACE_FILE, WORKLOAD_FILE
from schedlab.runs import branch_runs, results
from schedlab.runs.branches import (
    BranchChanges,
    BranchSource,
    open_branch_source,
    parse_branch_point,
)
from schedlab.runs.collection import read_collection
from schedlab.trace import Kind, Trace

pytestmark = [pytest.mark.spike, pytest.mark.xdist_group("branch")]

AT = 50_000_000
FILES = sorted(path.name for path in (ROOT / "workloads" / "files").glob("*.json"))


@pytest.fixture(scope="module")
def run_folder(schedlab: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a run."""
    out = tmp_path_factory.mktemp("kept")
    result = schedlab(
        *("run", "--workload", "cpu-bound -n 4", "--policy", "lottery", "--set", "slice=3"),
        *("--cpus", "2", "--out", str(out)),
    )
    assert result.returncode == 0, result.stderr
    return results.find_run(out)


def branch(schedlab: Command, run: Path, out: Path, *options: str) -> dict[str, Any]:
    """Returns the output of `./schedlab branch --json`, plus standard error as "messages"."""
    result = schedlab("branch", str(run), "--json", "--out", str(out), *options)
    assert result.returncode == 0, result.stderr
    content: dict[str, Any] = json.loads(result.stdout)
    content["messages"] = result.stderr
    return content


def events(folder: Path) -> Trace:
    run_trace = trace.read(folder / TRACE_FILE)
    trace.validate(run_trace)
    return run_trace


def test_branches_are_runs(schedlab: Command, run_folder: Path, tmp_path: Path) -> None:
    """The manifest of a branch says which run it branches from."""
    out = tmp_path / "out"
    options = ("--policy", "rr,stride", "--set", "slice=7")
    planned = branch(schedlab, run_folder, out, "--at", "50ms", *options, "--dry-run")
    assert planned["runs"] == 3 and not out.exists()
    output = branch(schedlab, run_folder, out, "--at", "50ms", *options)
    assert output["unchanged_is_the_run"] is True
    assert "schedlab:" not in output["messages"]  # only slow hosts print progress
    names = ["unchanged", "rr-slice=7", "stride-slice=7"]
    assert [Path(run["folder"]).name for run in output["runs"]] == names
    assert sorted(path.name for path in out.iterdir()) == sorted(names)
    for name in (TRACE_FILE, CONSOLE_FILE):
        assert (out / "unchanged" / name).read_bytes() == (run_folder / name).read_bytes()
    runs = read_collection([out])
    assert [run.manifest["policy"] for run in runs] == ["rr", "stride", "lottery"]
    assert all(run.succeeded for run in runs)
    pasts = [run.trace().events.filter(pl.col("time_ns") < AT) for run in runs]
    assert pasts[0].height > 100
    assert all(past.equals(pasts[0]) for past in pasts)
    for branch_run in output["runs"]:
        full_summary, since = (
            branch_run["metrics"]["summary"],
            branch_run["metrics_since"]["summary"],
        )
        assert since["elapsed_ns"] < full_summary["elapsed_ns"]
    for name in names:
        folder = out / name
        assert {path.name for path in folder.iterdir()} == {
            *(
                TRACE_FILE,
                CONSOLE_FILE,
                results.MANIFEST_FILE,
                results.METRICS_FOLDER,
                "made.sha256",
            ),
        }
    manifest = results.read_manifest(out / "rr-slice=7")
    assert manifest["branch"] == "from 50ms on: rr, slice=7"
    assert manifest["branch_of"] == {
        "run": run_folder.name,
        "trace_sha256": file_hash(run_folder / TRACE_FILE),
        "at_ns": AT,
        "policy": "lottery",
        "tunables": {"slice": 3},
        "seed": 1,
        "told": ["sched_status rr", "sched_tunables slice=7"],
    }
    assert (manifest["policy"], manifest["tunables"]) == ("rr", {"slice": 7})
    assert manifest["boot_arguments"] == results.read_manifest(run_folder)["boot_arguments"]
    assert "branch" not in results.read_manifest(out / "unchanged")


def test_a_moment_is_a_record_too(schedlab: Command, run_folder: Path, tmp_path: Path) -> None:
    output = branch(schedlab, run_folder, tmp_path, "--at", "switch:100", "--policy", "rr")
    switch = events(run_folder).events.filter(pl.col("kind") == Kind.SWITCH).row(99, named=True)
    assert output["at_ns"] == switch["time_ns"] + 1
    assert "switch:100 was at" in output["messages"]
    branch_switches = events(tmp_path / "rr").events.filter(pl.col("kind") == Kind.SWITCH)
    assert branch_switches.row(99, named=True) == switch


def test_the_policy_at_the_moment_counts(run_folder: Path) -> None:
    """The workload may also have switched the policy before the branch point."""
    run_history = open_branch_source(run_folder)
    assert run_history.policy_at(AT) == (PolicyChoice("lottery"), (("slice", 3),))
    assert run_history.branch_spec(BranchChanges(settings=(("slice", 5),)), AT).settings == (
        ("slice", 5),
    )
    assert run_history.branch_spec(BranchChanges(PolicyChoice("rr")), AT).settings == ()


def test_a_workload_file_goes_on(schedlab: Command, tmp_path: Path) -> None:
    result = schedlab(
        *("run", "--workload", f"workloads/files/{FILES[0]}", "--cpus", "1", "--limit", "500ms"),
        *("--out", str(tmp_path / "run")),
        cwd=ROOT,
    )
    assert result.returncode in (0, 1), result.stderr
    run = results.find_run(tmp_path / "run")
    last = events(run).end_ns
    result = schedlab(
        *("branch", str(run), "--at", f"{last // 2}ns", "--set", "slice=2", "--json"),
        *("--out", str(tmp_path / "out")),
    )
    unchanged = tmp_path / "out" / "unchanged"
    differ = [
        name
        for name in (TRACE_FILE, CONSOLE_FILE)
        if file_hash(run / name) != file_hash(unchanged / name)
    ]
    assert differ == [], result.stderr
    assert json.loads(result.stdout)["unchanged_is_the_run"] is True
    assert (tmp_path / "out" / "slice=2" / WORKLOAD_FILE).read_bytes() == (
        run / WORKLOAD_FILE
    ).read_bytes()


WRONG = [
    ("", "--at"),
    ("--at 50ms", "nothing to change"),
    ("--at 50ms --policy nobody", "'nobody'"),
    ("--at 50ms --policy rr:nobody", "'nobody'"),
    ("--at 50ms --set slize=1", "'slize'"),
    ("--at 50ms --set slice=0", "lottery"),
    ("--at 50ms --set slice=1 --set slice=2", "more than once"),
    ("--at 50ms --attribute cpu:tickets=0", "tickets"),
    ("--at 50ms --attribute cpu:colour=1", "'colour'"),
    ("--at 50ms --attribute tickets=1", "form"),
    ("--at 50ms --attribute 9999:tickets=1", "9999"),
    ("--at 50ms --seeds x", "ranges"),
    ("--at 1ns --policy rr", "outside of the run"),
    ("--at 60s --policy rr", "outside of the run"),
    ("--at soon --policy rr", "unit"),
    ("--at lunch:1 --policy rr", "lunch"),
    ("--at switch:0 --policy rr", "records"),
    ("--at switch:99999999 --policy rr", "records"),
]


def test_wrong_usage_writes_nothing(run_folder: Path, tmp_path: Path) -> None:
    for options, word in WRONG:
        message = refusal(
            "branch", str(run_folder), "--out", str(tmp_path / "out"), *options.split()
        )
        assert word in message, options
    assert not (tmp_path / "out").exists()
    (tmp_path / "rr").mkdir()
    valid_options = ("--at", "50ms", "--policy", "rr", "--out", str(tmp_path))
    assert "rr" in refusal("branch", str(run_folder), *valid_options)
    assert "no run" in refusal("branch", str(tmp_path), *valid_options)
    assert [path.name for path in tmp_path.iterdir()] == ["rr"]


def copied(run_folder: Path, path: Path, **changes: Any) -> Path:
    """Returns a copy of a run's folder with a changed manifest."""
    path.mkdir()
    for name in (TRACE_FILE, CONSOLE_FILE):
        (path / name).write_bytes((run_folder / name).read_bytes())
    manifest = {**json.loads((run_folder / results.MANIFEST_FILE).read_text()), **changes}
    (path / results.MANIFEST_FILE).write_text(json.dumps(manifest))
    return path


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"machine": "sim"}, "spike"),
        ({"branch": "from 1s on: rr"}, "itself a branch"),
        ({"boot_arguments": "policy=rr"}, "version"),
        ({"branch_of": {"policy": "rr"}}, "branch_of"),
    ],
)
def test_what_has_no_branches_is_refused(
    run_folder: Path, tmp_path: Path, changes: dict[str, Any], word: str
) -> None:
    path = copied(run_folder, tmp_path / "run", **changes)
    assert word in refusal("branch", str(path), "--at", "50ms", "--policy", "rr", "--out", "out")


def test_diverged_past_is_reported(schedlab: Command, run_folder: Path, tmp_path: Path) -> None:
    """The message names the kernel that made the run, if it was another kernel."""
    path = copied(run_folder, tmp_path / "run", kernel_sha256="0123456789abcdef")
    (path / CONSOLE_FILE).write_text("another console")
    options = ("--at", "50ms", "--policy", "rr", "--out", str(tmp_path / "out"))
    result = schedlab("branch", str(path), *options)
    assert result.returncode == 0
    assert f"unchanged differs from {path}" in result.stderr
    assert "another kernel (0123456789ab, now" in result.stderr
    assert "From 50ms on" in result.stdout


def test_what_the_kernel_refuses_fails_its_branch_alone(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def commands(_: BranchSource, future: BranchChanges, at_ns: int) -> str:
        return "sched_status nonsense\n" if future.policy else ""

    monkeypatch.setattr(BranchSource, "commands", commands)
    futures = [BranchChanges(), BranchChanges(PolicyChoice("rr"))]
    unchanged, refused = branch_runs.perform_branches(
        open_branch_source(run_folder), AT, futures, tmp_path
    )
    assert unchanged.outcome.succeeded
    assert refused.outcome.status == "refused"
    assert "the kernel refuses, error 160: sched_status nonsense" in refused.outcome.message
    assert not results.has_succeeded(results.read_manifest(refused.folder))


def test_unreached_moment_leaves_nothing(run_folder: Path, tmp_path: Path) -> None:
    """The trace reaches the branch point, but the rerun diverges before it."""
    futures = [BranchChanges(), BranchChanges(PolicyChoice("rr"))]
    with pytest.raises(SchedlabError, match="did not reach the moment of its branches"):
        branch_runs.perform_branches(
            open_branch_source(run_folder), 10**12, futures, tmp_path / "out"
        )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing(run_folder: Path, tmp_path: Path, number: int) -> None:
    """The manifest describes a long run, while the trace comes from another run."""
    run_history = open_branch_source(run_folder)
    endless = replace(
        run_history.run, workload="cpu-bound -n 2 -i 1000000000000", limit_ns=86_400_000_000_000
    )
    long = replace(run_history, run=endless)
    arguments = machine_named("spike").arguments(long.run)
    facts = {"workload": endless.workload, "limit_ns": endless.limit_ns}
    place = copied(run_folder, tmp_path / "run", boot_arguments=arguments, **facts)
    command_arguments = (
        "branch",
        str(place),
        "--at",
        "50ms",
        "--policy",
        "rr",
        "--out",
        str(tmp_path / "out"),
    )
    process = subprocess.Popen(
        module_command("schedlab", *command_arguments),
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    trace_pattern = f".unfinished-rr-*/{TRACE_FILE}"
    for _ in range(3000):
        if any(path.stat().st_size for path in (tmp_path / "out").glob(trace_pattern)):
            break
        time.sleep(0.01)
    else:
        pytest.fail("no branch has begun")
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert b"interrupted; no results are kept" in stderr
    assert not (tmp_path / "out").exists()


def test_moments_are_within_the_run(run_folder: Path) -> None:
    run_trace = events(run_folder)
    assert parse_branch_point(f"{run_trace.end_ns}ns", run_trace) == (run_trace.end_ns, "")
    with pytest.raises(WrongUsage, match="whose programs ran from"):
        parse_branch_point(f"{run_trace.end_ns + 1}ns", run_trace)
