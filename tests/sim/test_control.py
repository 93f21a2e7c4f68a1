# SPDX-License-Identifier: MIT
"""Tests external control of a simulator: its traces are sound; the shared library."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from c_workloads import environment
from schedlab import trace
from schedlab.paths import ROOT
from simulator_command import built, simulate


@pytest.mark.parametrize("cpus", [1, 2, 7])
@pytest.mark.parametrize("policy", ["rr", "lottery", "mlfq", "priority:thesis"])
def test_traces_of_random_acts_are_sound(tmp_path: Path, policy: str, cpus: int) -> None:
    path = tmp_path / "trace.bin"
    test_environment = os.environ | environment(ROOT / "tests" / "sim" / "control_test.c", tmp_path)
    for seed in range(3):
        words = (built("sim-tests/control_test"), policy, str(cpus), str(seed), path)
        result = subprocess.run(
            words, env=test_environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert result.returncode == 0, result.stdout + result.stderr
        events = trace.read(path)
        trace.validate(events)
        forks = events.events.filter(kind=int(trace.Kind.FORK))
        assert len(forks.filter(process=0)) > 10


def test_a_process_is_killed_by_another(tmp_path: Path) -> None:
    text = "program root\n fork a\n run 3ms\n kill a\n wait\nprogram a\n sleep 1s\n run 1s\n"
    path = tmp_path / "trace.bin"
    result = simulate(tmp_path, text, "--trace", str(path), "--costs", "none")
    assert result.returncode == 0, result.stderr
    assert "time_ns 3000000\n" in result.stdout
    events = trace.read(path)
    trace.validate(events)
    exits = events.events.filter(kind=int(trace.Kind.EXIT))
    assert exits.select("process", "first").rows() == [(3, 2**32 - 1), (2, 0)]


def test_the_shared_library_shows_its_functions_alone() -> None:
    library = built("sim/libschedlab-sim.so")
    words = ("nm", "--dynamic", "--defined-only", "--format=posix", library)
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    names = {line.split()[0] for line in listed.splitlines()}
    assert {"simulator_create", "simulator_run", "simulator_fork"} <= names
    assert all(name.startswith("simulator_") for name in names)
