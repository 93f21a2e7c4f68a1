# SPDX-License-Identifier: MIT
"""Tests the simulator: its C tests, its command, and the package's reading of its traces."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from c_workloads import environment
from schedlab import metrics, trace
from schedlab.paths import ROOT
from simulator_command import built, simulate

SOURCES = sorted((ROOT / "tests" / "sim").glob("*_test.c"))

MIX = """
program root
  group root
  mark begin
  tickets 30
  fork worker
  tickets 20
  fork worker
  tickets 10
  fork worker
  fork sleeper
  wait            # for the sleeper: workers are cut off
  mark end

program worker
  group cpu
  run 1000000s

program sleeper
  group sleeper
  loop 200
    run 400us
    sleep 3ticks
  end
"""


def counts(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """Returns the counts that the command printed."""
    return {name: int(value) for name, value in map(str.split, done.stdout.splitlines())}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_c_program(tmp_path: Path, source: Path) -> None:
    """The program ends with status 0; its output explains a failure."""
    program = built(f"sim-tests/{source.stem}")
    test_environment = environment(source, tmp_path)
    result = subprocess.run(
        [program],
        env=os.environ | test_environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("policy", ["lottery", "rr", "mlfq:four-quanta", "stride"])
@pytest.mark.parametrize("program", ["sim/schedlab-sim", "sim-safe/schedlab-sim"])
def test_trace_is_sound_and_measured(tmp_path: Path, policy: str, program: str) -> None:
    path = tmp_path / "trace.bin"
    options = ("--policy", policy, "--cpus", "2", "--trace", str(path))
    result = simulate(tmp_path, MIX, *options, program=program)
    assert result.returncode == 0, result.stderr
    events = trace.read(path)
    trace.validate(events)
    assert events.header.cpus == 2
    assert not events.truncated
    assert len(events.events) == counts(result)["records"]
    assert counts(result)["decisions"] == switches_and_repeats(events)
    measured = metrics.compute(events)
    names = dict(measured.processes.select("pid", "name").iter_rows())
    assert names[2] == "root"
    assert set(names.values()) == {"init", "root", "worker", "sleeper"}
    assert measured.summary["policy"].to_list() == [policy]


def switches_and_repeats(events: trace.Trace) -> int:
    """Returns how often a CPU left the scheduler for a process."""
    kinds = events.events.filter(kind=int(trace.Kind.SCHEDULER_EXIT))
    return len(kinds) - len(kinds.filter(process=0))


def test_same_seed_same_trace(tmp_path: Path) -> None:
    def bytes_of(seed: str, program: str = "sim/schedlab-sim") -> bytes:
        path = tmp_path / "trace.bin"
        options = ("--policy", "lottery", "--cpus", "3", "--seed", seed, "--trace", str(path))
        assert simulate(tmp_path, MIX, *options, program=program).returncode == 0
        return path.read_bytes()

    first = bytes_of("1")
    assert bytes_of("1") == first
    assert bytes_of("1", "sim-safe/schedlab-sim") == first
    assert bytes_of("2") != first


def test_init_bequeaths_no_history(tmp_path: Path) -> None:
    """init waits while the machine boots. A policy that counts sleep does not see this wait,
    because the kernel's init is urgent. Otherwise ule would let the first child run for 13 ms.
    """
    path = tmp_path / "trace.bin"
    program = "program root\n fork child\n fork child\n wait\n wait\nprogram child\n run 5ms\n"
    machine = ("--policy", "ule", "--costs", "none,boot=20000000")
    assert simulate(tmp_path, program, *machine, "--trace", str(path)).returncode == 0
    events = trace.read(path)
    switches = events.rows(trace.Kind.SWITCH)
    switch_rows = zip(events.at("time_ns", switches), events.at("process", switches), strict=True)
    ran = [(int(time) // 1_000_000, int(pid)) for time, pid in switch_rows if pid > 2]
    assert ran == [(20, 3), (21, 4), (26, 3)]


def test_limit(tmp_path: Path) -> None:
    path = tmp_path / "trace.bin"
    result = simulate(tmp_path, MIX, "--limit", "5500000", "--trace", str(path))
    assert result.returncode == 3
    assert "the limit of 5500000 ns was reached" in result.stderr
    assert counts(result)["time_ns"] == 5500000
    events = trace.read(path)
    trace.validate(events)
    assert events.events["time_ns"].max() == 5500000


@pytest.mark.parametrize(
    ("text", "options", "status", "words"),
    [
        ("program a\n take c\n", ["--no-trace"], 1, "all processes wait"),
        ("program a\n exit 4\n", ["--no-trace"], 1, "ended with status 4"),
        ("program a\n", [], 2, "--trace and --no-trace: give exactly one of them"),
        ("program a\n", ["--no-trace", "--cpus", "two"], 2, "--cpus two: expected a number"),
        (
            "program a\n",
            ["--no-trace", "--cpus", "1025"],
            2,
            "1025 CPUs: out of range; use 1 to 1024",
        ),
        ("program a\n", ["--no-trace", "--policy", "fifo"], 2, "policy fifo: no such policy"),
        ("program a\n", ["--no-trace", "--set", "slice=0"], 2, "tunable slice=0"),
        (
            "program a\n",
            ["--no-trace", "--costs", "free"],
            2,
            "cost free: expected kernel, none or textbook",
        ),
        ("program a\n", ["--no-trace", "--colour"], 2, "colour"),
        ("program a\n", ["--no-trace", *("--set", "slice=1") * 2], 2, "--set: given twice"),
        ("program a\n policy fifo\n", ["--no-trace"], 1, "policy fifo: no such policy"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, text: str, options: list[str], status: int, words: str
) -> None:
    result = simulate(tmp_path, text, *options)
    assert result.returncode == status
    assert words in result.stderr
