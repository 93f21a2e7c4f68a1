# SPDX-License-Identifier: MIT
"""Tests the kernel with interleaved CPUs. They alternate after every few instructions and
stop where locks are taken and released, in a random order that depends only on the seed.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from built_once import build_once
from conftest import Command
from guest_machine import sound_trace
from schedlab.base.toolchain.build import DISK_IMAGE, KERNEL_PROGRAM
from schedlab.errors import MachineUnfit
from schedlab.machines import Boot
from schedlab.machines.folder import TRACE_FILE
from schedlab.machines.spike import (
    DEFAULT_TURN,
    INTERLEAVE_VARIABLE,
    build_driver,
    driver_command,
    requested_interleaving,
)
from schedlab.metrics import measure

pytestmark = pytest.mark.spike

ROUND = "5000"
"""Instructions; CPUs are at most this far apart, except where they stop."""

PROGRAMS = [
    (3, "mlfq", "mixed"),
    (4, "priority", "mixed"),
    (4, "rr:table-scan", "mixed"),
    (4, "rr", "test-stress"),
    (4, "rr", "test-channels"),
    (2, "rr", "test-time"),
    (4, "rr", "test-workload"),
    (3, "rr", "test-exec"),
    (3, "rr", "test-proc"),
    (4, "rr", "test-pipes"),
]

DEAR_PROGRAMS = [
    "test-scheduler",
    *(
        pytest.param(program, marks=pytest.mark.long)
        for program in ("test-switching", "test-processes", "test-files")
    ),
]
"""A seed takes 8 CPU seconds of the first program, and 13 to 60 of the others."""


def execute(
    folder: Path, cpus: int, policy: str, program: str, turn: str, interleaving: str = ""
) -> tuple[int, str, bytes]:
    """Returns the status, the console and the trace of a run."""
    build_once("kernel", "image")
    words = f'policy={policy} tick=1ms limit=200s trace={TRACE_FILE} run="{program}"'
    result = subprocess.run(
        driver_command(
            str(build_driver()),
            Boot(KERNEL_PROGRAM, DISK_IMAGE, cpus, 512, words),
            turn,
            interleaving,
        ),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=600,
        check=False,
    )
    return result.returncode, result.stdout, (folder / TRACE_FILE).read_bytes()


def interleaved(
    folder: Path, cpus: int, policy: str, program: str, seed: int
) -> tuple[int, str, bytes]:
    return execute(folder, cpus, policy, program, ROUND, str(seed))


@pytest.mark.parametrize("turn", ["100", "300", "1300"])
@pytest.mark.parametrize(("cpus", "program"), [(5, "prioritytest mixed"), (2, "test-stress")])
def test_programs_end_well_in_turns_of_any_length(
    tmp_path: Path, cpus: int, program: str, turn: str
) -> None:
    """Two CPUs whose loops alternate in step may keep each other from a lock forever."""
    status, console, _ = execute(tmp_path, cpus, "rr", program, turn)
    assert status == 0, console
    sound_trace(tmp_path / TRACE_FILE)


@pytest.mark.parametrize(("cpus", "policy", "program"), PROGRAMS)
def test_programs_end_well(
    tmp_path: Path, pytestconfig: pytest.Config, cpus: int, policy: str, program: str
) -> None:
    """`--interleavings 1000` tries this many seeds, for manual use after a change of the
    kernel. A single seed differs per program.
    """
    first = PROGRAMS.index((cpus, policy, program))
    for seed in range(first, first + pytestconfig.getoption("--interleavings")):
        status, console, _ = interleaved(tmp_path, cpus, policy, program, seed)
        assert status == 0, f"--interleave={seed}: {console}"
        sound_trace(tmp_path / TRACE_FILE)


@pytest.mark.parametrize("program", DEAR_PROGRAMS)
def test_dear_programs_end_well(tmp_path: Path, program: str) -> None:
    status, console, _ = interleaved(tmp_path, 4, "rr", program, 1)
    assert status == 0, console
    sound_trace(tmp_path / TRACE_FILE)


def latest_start(folder: Path, seed: str) -> int:
    """Returns the longest wait of a woken process for its CPU, in nanoseconds."""
    folder.mkdir()
    status, console, _ = execute(folder, 4, "rr", "mixed -n 4", ROUND, seed)
    assert status == 0, console
    return int(measure(folder / TRACE_FILE).summary["wakeup_latency_max_ns"].item())


def test_cpus_that_are_called_come_late(tmp_path: Path) -> None:
    """Then a woken process may be late by more than a tick; locks alone delay it by less."""
    assert latest_start(tmp_path / "known", "") < 200_000
    assert max(latest_start(tmp_path / str(seed), str(seed)) for seed in range(1, 4)) > 1_200_000


def test_seed_determines_the_run(tmp_path: Path) -> None:
    first, again, other = (interleaved(tmp_path, 3, "rr", "mixed", seed) for seed in (7, 7, 8))
    assert first == again
    assert first[2] != other[2]


@pytest.mark.parametrize("given", ["-1", "1e3", " 7", "٧", str(2**64), "0" * 5000])
def test_a_seed_that_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv(INTERLEAVE_VARIABLE, str(2**64 - 1))
    assert requested_interleaving() == str(2**64 - 1)
    monkeypatch.setenv(INTERLEAVE_VARIABLE, given)
    with pytest.raises(MachineUnfit, match=f"^{INTERLEAVE_VARIABLE}={given}: not a valid seed"):
        requested_interleaving()


def test_a_run_is_interleaved_and_branched(tmp_path: Path, schedlab: Command) -> None:
    """Its manifest records the interleaving; a branch without changes equals the run."""
    seed = {INTERLEAVE_VARIABLE: "7"}
    runs = tmp_path / "runs"
    setup = ("--workload", "mixed", "--policy", "rr", "--cpus", "2")
    result = schedlab("run", *setup, "--out", str(runs), environment=seed)
    assert result.returncode == 0, result.stderr
    run = runs / "rr-2cpu-seed1"
    version = json.loads((run / "manifest.json").read_text())["machine_version"]
    assert version.endswith(f", turns of {DEFAULT_TURN}, interleaved by 7")
    change = ("--at", "20ms", "--policy", "mlfq", "--out", str(tmp_path / "branches"))
    result = schedlab("branch", str(run), *change, environment=seed)
    assert result.returncode == 0, result.stderr
    assert f"unchanged is {run}, byte for byte" in " ".join(result.stdout.split())
