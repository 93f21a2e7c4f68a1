# SPDX-License-Identifier: MIT
"""Tests that one program can save a run and another can continue it."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from golden_stories import policies_and_presets
from schedlab import trace
from simulator_command import built, simulate

WORKLOAD = """
channel turn 2
program root
  loop 8
    fork busy
    fork sleepy
    run 200us
  end
  kill busy
  sleep 9ticks
  policy stride
  sleep 3ticks
  loop 16
    wait
  end

program busy
  tickets 7
  run 7300us
  priority 3
  yield
  run 4ms

program sleepy
  weight 9
  loop 9
    run 370us
    sleep 2ticks
  end
  loop 3
    take turn
    run 300us
    timer beat 700us
    give turn
  end
  meet end 8
"""


def go_on(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Continues a run."""
    command: list[str | Path] = [
        built("sim/schedlab-sim"),
        "--continue",
        str(folder / "run"),
        *options,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("policy", policies_and_presets())
def test_a_run_that_was_put_aside_goes_on_as_if_it_had_not_been(
    tmp_path: Path, policy: str
) -> None:
    full_path, part = tmp_path / "whole.bin", tmp_path / "part.bin"
    for seed in (1,) if ":" in policy else (1, 2):
        machine = ("--policy", policy, "--cpus", str(3 * seed), "--seed", str(seed))
        run = simulate(tmp_path, WORKLOAD, *machine, "--trace", str(full_path))
        assert run.returncode == 0, run.stderr
        counted = dict(line.split() for line in run.stdout.splitlines())
        generator = random.Random(f"{policy}/{seed}")
        times = sorted(generator.randrange(int(counted["time_ns"])) for _ in range(3))
        stop = ("--trace", str(part), "--save", str(tmp_path / "run"), "--at")
        done = simulate(tmp_path, WORKLOAD, *machine, *stop, str(times[0]))
        assert done.returncode == 0, done.stderr
        assert f"saved at {times[0]} ns" in done.stderr
        parts = part.read_bytes()
        for time in times[1:]:
            assert go_on(tmp_path, *stop, str(time)).returncode == 0
            parts += part.read_bytes()
        done = go_on(tmp_path, "--trace", str(part))
        assert done.returncode == 0, done.stderr
        assert done.stdout == run.stdout
        assert parts + part.read_bytes() == full_path.read_bytes()
    trace.validate(trace.read(full_path))


def test_a_run_that_meets_its_limit_can_go_on(tmp_path: Path) -> None:
    limit = ("--no-trace", "--limit", "5000000")
    result = simulate(tmp_path, WORKLOAD, *limit, "--save", str(tmp_path / "run"))
    assert result.returncode == 0, result.stderr
    for _ in range(2):  # as often as wanted
        assert go_on(tmp_path, "--no-trace", "--limit", "7000000").returncode == 3
    assert go_on(tmp_path, "--no-trace").returncode == 0
    result = simulate(tmp_path, WORKLOAD, "--no-trace", "--save", str(tmp_path / "late"))
    assert result.returncode == 1
    assert "the run ended before the time of --at" in result.stderr
    assert not (tmp_path / "late").exists()


def test_another_build_is_refused(tmp_path: Path) -> None:
    options = ("--no-trace", "--save", str(tmp_path / "run"), "--at", "3000000")
    done = simulate(tmp_path, WORKLOAD, *options, program="sim-safe/schedlab-sim")
    assert done.returncode == 0, done.stderr
    done = go_on(tmp_path, "--no-trace")
    assert done.returncode == 2
    assert "another build of the simulator saved it" in done.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--no-trace", "--policy", "rr"),
        ("--no-trace", "workload.steps"),
        ("--no-trace", "--at", "5"),
        ("--no-trace", "--save", "x", "--at", "5", "--limit", "4"),
        ("--no-trace",),
        (),
    ],
)
def test_wrong_usage(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = go_on(tmp_path, *options)
    assert done.returncode == 2
    assert done.stderr
