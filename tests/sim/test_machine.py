# SPDX-License-Identifier: MIT
"""Tests the simulator as a machine of `./schedlab run`: its run directory equals the kernel's."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, Command
from schedlab import trace
from schedlab.base.files.atomic import file_hash
from schedlab.base.files.replacement import LIST_NAME
from schedlab.errors import WrongUsage
from schedlab.metrics import load_table
from schedlab.workload import workload_files
from schedlab.workload.binary_steps import encode_workload_text
from schedlab.workload.loading import make_disk
from schedlab.workload.text import format_workload
from simulator_command import built, simulate

FILES = ROOT / "workloads" / "files"


def written(folder: Path, content: object) -> str:
    """A workload file with this content."""
    path = folder / "w.json"
    path.write_text(json.dumps(content))
    return str(path)


def run(schedlab: Command, out: Path, workload: str, *options: str) -> list[dict[str, Any]]:
    """Runs on the simulator; returns the command's output for each run."""
    arguments = ("run", "--machine", "sim", "--workload", workload, "--out", str(out), "--json")
    result = schedlab(*arguments, *options)
    assert result.returncode == 0, result.stderr
    runs: list[dict[str, Any]] = json.loads(result.stdout)["runs"]
    return runs


def groups(run: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The metrics of each group."""
    rows = load_table(Path(run["folder"]) / "metrics", "groups").to_dicts()
    return {row["group"]: row for row in rows}


def test_a_run_leaves_a_folder_that_every_command_takes(schedlab: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    tasks = {"cpu": {"instance": 3, "loop": 1, "run": 20_000}}
    workload = written(tmp_path, {"tasks": tasks})
    options = ("--policy", "rr,rr:table-scan", "--cpus", "1", "--set", "slice=4", "--seed", "7")
    runs = run(schedlab, out, workload, *options)
    assert [run["manifest"]["policy"] for run in runs] == ["rr", "rr:table-scan"]
    for output_run in runs:
        folder = Path(output_run["folder"])
        names = {path.name for path in folder.iterdir()}
        assert names == {
            *("console.log", "manifest.json", "metrics", "trace.bin", "workload.steps"),
            *("workload.json", LIST_NAME),
        }
        manifest = output_run["manifest"]
        assert manifest["status"] == "success"
        assert manifest["machine"] == "sim"
        assert manifest["repeatable"] is True
        assert manifest["tunables"] == {"slice": 4}
        assert manifest["seed"] == 7
        assert manifest["simulator_sha256"] == file_hash(built("sim/schedlab-sim"))
        assert manifest["workload_sha256"] == file_hash(Path(workload))
        assert "kernel_sha256" not in manifest
        cpu = groups(output_run)["cpu"]
        assert cpu["processes"] == cpu["finished"] == 3
        assert cpu["running_ns"] == pytest.approx(60e6, rel=0.02)
        # In time slices of 4 ms, the first of three finishes its 20 ms when the others have done 16
        # each.
        assert 52e6 <= cpu["turnaround_mean_ns"] <= 61e6
        assert cpu["turnaround_max_ns"] == pytest.approx(60e6, rel=0.02)
        trace.validate(trace.read(folder / "trace.bin"))
    assert schedlab("trace", runs[0]["folder"]).returncode == 0
    assert schedlab("compare", runs[0]["folder"], runs[1]["folder"]).returncode == 0
    assert schedlab("report", str(out)).returncode == 0


@pytest.mark.spike
def test_the_kernel_runs_the_same_file(schedlab: Command, tmp_path: Path) -> None:
    """The file runs with the same seed, values and label; its directory is next to the
    simulator's.
    """
    gaps = {"distribution": "exponential", "mean": 3000}
    task = {"instance": 5, "arrivals": gaps, "loop": 2, "run": 4000, "sleep": "2ticks"}
    workload = written(tmp_path, {"tasks": {"cpu": {**task, "tickets": 5}}})
    options = ("--policy", "rr,lottery", "--cpus", "1", "--seed", "4", "--json")
    runs_by_machine: dict[str, list[dict[str, Any]]] = {}
    for machine in ("sim", "spike"):
        arguments = (
            "run",
            "--machine",
            machine,
            "--workload",
            workload,
            "--out",
            str(tmp_path / machine),
        )
        result = schedlab(*arguments, *options, "--with", "tasks.cpu.instance=8")
        assert result.returncode == 0, result.stderr
        runs_by_machine[machine] = json.loads(result.stdout)["runs"]
    for simulated_run, kernel_run in zip(*runs_by_machine.values(), strict=True):
        one, other = Path(simulated_run["folder"]), Path(kernel_run["folder"])
        assert one.name == other.name
        assert (one / "workload.steps").read_bytes() == (other / "workload.steps").read_bytes()
        assert sorted(path.name for path in other.iterdir()) == sorted(
            path.name for path in one.iterdir()
        )
        manifest = kernel_run["manifest"]
        assert manifest["workload_sha256"] == file_hash(Path(workload))
        assert manifest["workload"] == simulated_run["manifest"]["workload"]
        assert manifest["with"] == {"tasks.cpu.instance": "8"}
        assert manifest["boot_arguments"].endswith('run="play /workload"')
        assert {"kernel_sha256", "disk_sha256"} <= manifest.keys()
        assert not {"simulator_sha256", "mkfs_sha256", "costs"} & manifest.keys()
        assert groups(kernel_run)["cpu"]["finished"] == 8
    result = schedlab("compare", str(tmp_path / "spike"), str(tmp_path / "sim"))
    assert result.returncode == 0
    assert "spike → sim" in " ".join(result.stdout.split())  # a title has as many lines as it needs


def test_too_small_disk_is_reported(tmp_path: Path) -> None:
    """Before anything is booted."""
    workload = encode_workload_text("program root\n" + "  run 1ms\n" * 200_000)
    mkfs, disk = built("mkfs"), tmp_path / "disk.img"
    subprocess.run([mkfs, tmp_path / "small.img", "300"], check=True)
    with pytest.raises(WrongUsage, match=r"the disk is too small; use .machine='sim'."):
        make_disk(tmp_path / "small.img", workload, mkfs, tmp_path)
    assert not disk.exists()


def test_a_run_can_be_repeated_by_hand(schedlab: Command, tmp_path: Path) -> None:
    (single_run,) = run(
        schedlab,
        tmp_path / "out",
        str(FILES / "timing-cpu-heavy.json"),
        "--cpus",
        "2",
        "--policy",
        "mlfq",
    )
    folder = Path(single_run["folder"])
    before = (folder / "trace.bin").read_bytes()
    (folder / "trace.bin").unlink()
    command = [str(built("sim/schedlab-sim")), *single_run["manifest"]["boot_arguments"].split()]
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, timeout=60, check=True)
    assert (folder / "trace.bin").read_bytes() == before


@pytest.mark.parametrize(("policy", "cpus"), [("lottery", "1"), ("priority", "5")])
def test_all_events_are_what_the_simulator_reads(tmp_path: Path, policy: str, cpus: str) -> None:
    file = workload_files.read_workload_file(ROOT / "tests" / "sim" / "all-events.json")
    options = ("--policy", policy, "--cpus", cpus, "--trace", str(tmp_path / "trace.bin"))
    program = "sim-safe/schedlab-sim"
    result = simulate(tmp_path, format_workload(file, 1, 1_000_000), *options, program=program)
    assert result.returncode == 0, result.stderr
    # init, root, 2 + 3 + 1 + 2 + 3 + 1 + 1 tasks, and a child for each round of the waker
    assert "\nforks 415\n" in result.stdout
    trace.validate(trace.read(tmp_path / "trace.bin"))


def test_failures_are_reported(schedlab: Command, tmp_path: Path) -> None:
    arguments = ("run", "--machine", "sim", "--cpus", "1", "--workload")
    endless = written(tmp_path, {"tasks": {"a": {"run": 1000}}})
    result = schedlab(*arguments, endless, "--out", str(tmp_path / "o1"), "--limit", "20ms")
    assert result.returncode == 1
    assert "reached its time limit" in result.stderr
    stuck = written(tmp_path, {"tasks": {"a": {"loop": 1, "suspend": ""}}})
    result = schedlab(*arguments, stuck, "--out", str(tmp_path / "o2"))
    assert result.returncode == 1
    assert "nothing can wake one" in result.stderr
    manifests = [
        json.loads(path.read_text()) for path in sorted(tmp_path.glob("o*/*/manifest.json"))
    ]
    assert [manifest["status"] for manifest in manifests] == ["limit", "failed"]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--workload", "no.json"), "no.json"),
        (("--workload", "mixed", "--with", "tasks.cpu.instance=2"), "--with"),
        (("--workload", "FILE", "--memory", "32"), "--memory 41"),
        (
            ("--workload", "FILE", "--machine", "qemu", "--with", "tasks.cpu.instance=70000"),
            "--machine sim",
        ),
        (("--machine", "sim", "--workload", "FILE", "--memory", "64"), "--memory"),
        (("--workload", "mixed", "--cpus", "1025"), "1 to 1024"),
    ],
    ids=str,
)
def test_wrong_usage_names_the_cure(
    schedlab: Command, tmp_path: Path, options: tuple[str, ...], word: str
) -> None:
    out = tmp_path / "out"
    file = str(FILES / "study4-mixed.json")
    words = [file if option == "FILE" else option for option in options]
    result = schedlab("run", "--out", str(out), *words)
    assert result.returncode == 2, result.stderr
    assert word in result.stderr
    assert not out.exists()
