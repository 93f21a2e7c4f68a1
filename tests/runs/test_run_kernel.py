# SPDX-License-Identifier: MIT
"""Tests runs of the real kernel through the command line, from arguments to results on disk."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from built_once import build_once
from conftest import Command
from schedlab.base.host.isolated import module_command
from schedlab.base.toolchain.build import DISK_IMAGE, KERNEL_PROGRAM
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.machines.spec import RunSpec
from schedlab.machines.spike import Spike
from schedlab.runs.plan import Plan, all_combinations
from schedlab.runs.plan_execution import copy_software, execute_plan
from schedlab.runs.progress import Durations, ProgressBoard

SMALL = "mixed -n 1 -i 1000000"


def run(schedlab: Command, out: Path, *arguments: str, status: int = 0) -> dict[str, Any]:
    """Returns the output of `./schedlab run --json`, with its messages under "messages"."""
    result = schedlab("run", "--json", "--out", str(out), *arguments, timeout=600)
    assert result.returncode == status, result.stderr
    content: dict[str, Any] = json.loads(result.stdout)
    content["messages"] = result.stderr
    return content


def traces(out: Path) -> dict[str, str]:
    """Returns the hash of each run's trace."""
    return {
        path.parent.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(out.glob("*/trace.bin"))
    }


@contextmanager
def busy_host(processes: int) -> Iterator[None]:
    """Other processes compete for the host's CPUs."""
    burners = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)
    ]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


@pytest.mark.spike
def test_the_same_arguments_and_seed_give_the_same_traces(
    schedlab: Command, tmp_path: Path
) -> None:
    arguments = (
        "--workload",
        SMALL,
        "--policy",
        "rr,rr:table-scan",
        "--cpus",
        "1,4",
        "--runs",
        "2",
    )
    first, second = tmp_path / "a", tmp_path / "another place" / "b"
    run(schedlab, first, *arguments)
    with busy_host(3):
        run(schedlab, second, *arguments)
    assert len(traces(first)) == 8
    assert traces(first) == traces(second)
    assert len(set(traces(first).values())) == 8


@pytest.mark.spike
def test_results_are_complete_and_describe_the_run(schedlab: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    content = run(
        schedlab,
        out,
        *("--workload", SMALL, "--cpus", "1-4", "--seed", "7", "--set", "slice=3", "--tick", "2ms"),
    )
    assert [run["manifest"]["cpus"] for run in content["runs"]] == [1, 2, 3, 4]
    for content_run in content["runs"]:
        folder, manifest = Path(content_run["folder"]), content_run["manifest"]
        assert folder.parent == out
        assert json.loads((folder / "manifest.json").read_text()) == manifest
        assert manifest["status"] == "success"
        assert (manifest["seed"], manifest["tick_ns"], manifest["tunables"]) == (
            *(7, 2_000_000),
            {"slice": 3},
        )
        assert manifest["machine"] == "spike"
        assert manifest["machine_version"]
        assert content_run["metrics"]
        assert (folder / "metrics" / "tables.json").is_file()
        assert "policy rr" in (folder / "console.log").read_text()
    assert not list(out.glob(".*"))


@pytest.mark.spike
def test_a_guest_that_does_not_end_is_ended_at_its_limit(schedlab: Command, tmp_path: Path) -> None:
    content = run(
        schedlab,
        tmp_path / "o",
        *("--workload", "sleep 1000000", "--cpus", "2", "--limit", "50ms"),
        status=1,
    )
    (content_run,) = content["runs"]
    assert content_run["manifest"]["status"] == "limit"
    assert "reached its time limit" in content["messages"]
    assert (Path(content_run["folder"]) / "trace.bin").stat().st_size > 64


@pytest.mark.spike
def test_missing_program_fails_the_run(schedlab: Command, tmp_path: Path) -> None:
    arguments = ("--workload", "/nonesuch", "--cpus", "1,2")
    content = run(schedlab, tmp_path / "o", *arguments, status=1)
    assert [run["manifest"]["status"] for run in content["runs"]] == ["failed", "failed"]
    assert "nonesuch" in content["messages"]


@pytest.mark.qemu
def test_qemu_runs_the_same_workload(schedlab: Command, tmp_path: Path) -> None:
    result = schedlab(
        *("run", "--machine", "qemu", "--workload", SMALL, "--cpus", "1,2"),
        *("--out", str(tmp_path / "o")),
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    assert "not repeatable" in result.stdout
    assert len(traces(tmp_path / "o")) == 2


@pytest.mark.qemu
def test_boot_gives_a_shell_and_names_the_exit() -> None:
    with subprocess.Popen(
        module_command("schedlab", "boot", "--cpus", "2"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as machine:
        guard = threading.Timer(120, machine.kill)
        guard.start()
        assert "policy rr\n" in (first := read_until(machine, b"$ "))
        assert first.startswith("To leave: Ctrl-A, then X.\n")
        type_in(machine, b"echo one two | wc\n")
        assert "1 2 8" in " ".join(read_until(machine, b"$ ").split())
        type_in(machine, b"poweroff\n")
        assert machine.wait() == 0
        guard.cancel()


def read_until(machine: subprocess.Popen[bytes], end: bytes) -> str:
    """Returns the output up to `end`, or all of it."""
    assert machine.stdout
    text = b""
    while not text.endswith(end) and (byte := machine.stdout.read(1)):
        text += byte
    return text.decode()


def type_in(machine: subprocess.Popen[bytes], text: bytes) -> None:
    assert machine.stdin
    machine.stdin.write(text)
    machine.stdin.flush()


@pytest.mark.spike
def test_panic_is_reported_with_the_kernel_message(tmp_path: Path) -> None:
    build_once("kernel", "image")
    (base,) = all_combinations(tmp_path / "o", SMALL_RUN, (PolicyChoice("rr"),), (2,), 1).runs
    with (
        copy_software({"kernel": KERNEL_PROGRAM, "disk": DISK_IMAGE}, {}) as copies,
        ProgressBoard((base,), 1, Durations(tmp_path / "durations")) as board,
    ):
        (finished_run,) = execute_plan(
            Plan(tmp_path / "o", (replace(base, machine=Panicking()),)), copies, 1, board
        )
    assert finished_run.outcome.status == "panic"
    assert "panic: CPU" in finished_run.outcome.message
    assert "injected" in finished_run.outcome.message
    assert (finished_run.folder / "trace.bin").stat().st_size > 64


class Panicking(Spike):
    """A machine whose kernel panics on purpose."""

    def arguments(self, run: RunSpec) -> str:
        return f"inject=panic inject_at=20ms {super().arguments(run)}"


SMALL_RUN = RunSpec("mixed", PolicyChoice("rr"), (), 1, Spike(), 1, 10**6, 10**10, 512)
