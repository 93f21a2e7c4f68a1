# SPDX-License-Identifier: MIT
"""Tests that a run lasts as long as its file says, even if the policy never serves its first
process again.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from golden_stories import policies_and_presets
from played import play, simulated
from schedlab import metrics, trace
from schedlab.workload import workload_files
from schedlab.workload.text import format_workload

MS = 1_000_000
HOG = {"priority": 2, "run": "100s"}
RESERVED = {"run": "100s", "dl-runtime": "19ms", "dl-period": "20ms"}


def text(folder: Path, tasks: object) -> str:
    path = folder / "w.json"
    path.write_text(json.dumps({"global": {"duration": 0.05}, "tasks": tasks}))
    return format_workload(workload_files.read_workload_file(path), 1, MS)


def lasted(events: trace.Trace) -> int:
    """Returns the measured duration in ns. The trace ends soon after the first process."""
    summary = metrics.compute(events).summary
    assert int(summary["elapsed_ns"][0]) <= events.end_ns < 200 * MS
    return int(summary["elapsed_ns"][0])


@pytest.mark.parametrize("policy", policies_and_presets())
@pytest.mark.parametrize("cpus", [1, 2])
def test_a_simulated_run_ends_in_time(tmp_path: Path, policy: str, cpus: int) -> None:
    tasks = {"hog": {**HOG, "instance": 2}, "reserved": RESERVED}
    events = simulated(tmp_path, text(tmp_path, tasks), policy, cpus)
    assert lasted(events) == pytest.approx(50 * MS, rel=0.01)


@pytest.mark.spike
@pytest.mark.parametrize("policy", ["priority", "edf", "shinjuku"])
def test_a_run_on_the_kernel_ends_in_time(tmp_path: Path, policy: str) -> None:
    events = play(tmp_path, text(tmp_path, {"hog": HOG, "reserved": RESERVED}), policy)
    assert lasted(events) == pytest.approx(50 * MS, rel=0.01)


def test_tasks_with_deadlines_begin_together(tmp_path: Path) -> None:
    """The first one does not delay the release of the others."""
    tasks = {name: {**RESERVED, "dl-runtime": "5ms"} for name in "abc"}
    events = simulated(tmp_path, text(tmp_path, tasks), "edf")
    processes = metrics.compute(events).processes.filter(role="workload")
    forks = sorted(processes["fork_ns"].to_list())
    assert len(forks) == 3
    assert forks[-1] - forks[0] < MS
