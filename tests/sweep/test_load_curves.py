# SPDX-License-Identifier: MIT
"""Tests load curves: omitted and drawn points, the theoretical curve, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from conftest import ROOT, Command
from schedlab.metrics.steady import COLUMNS, steady
from schedlab.sweep.load_curves import (
    priority_effects,
    read_scenes,
    read_stored_jobs,
    theoretical_rows,
)
from schedlab.workload import workload_files
from schedlab.workload.model import WorkloadFile

TICK_NS = 1_000_000


def processes(turnaround: list[int], running: list[int]) -> pl.DataFrame:
    fork = np.arange(len(turnaround)) * 1000
    pid = fork // 1000 + 3
    table = {"pid": pid, "fork_ns": fork, "exit_ns": fork + turnaround, "running_ns": running,
             "response_ns": [stay_time // 2 for stay_time in turnaround]}  # fmt: skip
    return pl.DataFrame(table)


def test_the_warm_up_is_left_out_and_slowdown_is_by_the_work() -> None:
    stay = [10**9] * 100 + [200] * 450 + [400] * 450
    steady_values = steady(processes(stay, [100] * 1000))
    assert tuple(steady_values) == COLUMNS
    assert steady_values["steady_jobs"] == 900
    assert steady_values["steady_turnaround_mean_ns"] == 300
    assert steady_values["steady_slowdown_mean"] == 3
    assert steady_values["steady_slowdown_p95"] == steady_values["steady_slowdown_p99"] == 4
    assert (steady_values["steady_response_mean_ns"], steady_values["steady_response_p99_ns"]) == (
        150,
        200,
    )
    assert steady_values["steady_slowdown_p999"] is None  # of 900, none exceeds it
    means = [2.0] * 10 + [4.0] * 10
    assert steady_values["steady_slowdown_error"] == pytest.approx(
        2.093 * np.std(means, ddof=1) / np.sqrt(20)
    )


def file_with(
    tmp_path: Path, load: float, more: dict[str, object] | None = None, **tasks: object
) -> WorkloadFile:
    path = tmp_path / "load.json"
    gaps = {"distribution": "exponential", "mean": 1}
    content = {
        name: {"arrivals": gaps, "loop": 1, "run": run} | (more or {})
        for name, run in tasks.items()
    }
    path.write_text(json.dumps({"load": load, "tasks": content}))
    return workload_files.read_workload_file(path)


def test_theory_is_of_the_file(tmp_path: Path) -> None:
    drawn = {"distribution": "exponential", "mean": 10_000}
    rows_by_series = {
        row["series"]: row
        for row in theoretical_rows(file_with(tmp_path, 0.5, a=drawn), None, TICK_NS, 1)
    }
    assert rows_by_series["first come, first served"]["steady_turnaround_mean_ns"] == pytest.approx(
        2e7
    )
    assert rows_by_series["processor sharing"]["steady_slowdown_mean"] == pytest.approx(2)
    assert 1e7 < rows_by_series["shortest remaining first"]["steady_turnaround_mean_ns"] < 2e7
    (two,) = theoretical_rows(file_with(tmp_path, 0.7, a=drawn), None, TICK_NS, 2)
    assert two["steady_turnaround_mean_ns"] == pytest.approx(1e7 / (1 - 0.7**2))
    mixed = theoretical_rows(file_with(tmp_path, 0.5, a=1_000, b=3_000), None, TICK_NS, 1)
    assert mixed[0]["steady_turnaround_mean_ns"] == pytest.approx(2e6 + 0.5 / 2e6 * 5e12 / 2 / 0.5)
    (first_come, shared) = theoretical_rows(
        file_with(tmp_path, 0.5, a=1_000, b=3_000), "a", TICK_NS, 1
    )
    assert first_come["steady_turnaround_mean_ns"] == pytest.approx(
        1e6 + 0.5 / 2e6 * 5e12 / 2 / 0.5
    )
    assert shared["steady_turnaround_mean_ns"] == pytest.approx(2e6)
    assert theoretical_rows(file_with(tmp_path, 0.5, a=1_000, b=3_000), "c", TICK_NS, 1) == []


def test_policies_with_priorities_have_one_queue_per_priority(tmp_path: Path) -> None:
    """The jobs' priorities are random: half of the jobs have each."""
    priority = {"values": [2, 7]}
    file = file_with(tmp_path, 0.8, {"priority": priority}, a=1_000)
    lines = {
        row["series"]: row for row in theoretical_rows(file, None, TICK_NS, 1, {"preempt", "wait"})
    }
    first = lines["first come, first served"]["steady_turnaround_mean_ns"]
    waiting = lines["priorities, non-preemptive"]["steady_turnaround_mean_ns"]
    preemptive = lines["priorities, preemptive"]["steady_turnaround_mean_ns"]
    assert waiting == pytest.approx(1e6 * (1 + 0.4 * (1 / 0.6 + 1 / (0.6 * 0.2)) / 2))
    assert preemptive == pytest.approx(1e6 * (1 + 0.2 / 0.6 + 1 / 0.6 + 0.4 / (0.6 * 0.2)) / 2)
    assert waiting == pytest.approx(first), "equal work: what one class gains the other loses"
    assert (
        len(theoretical_rows(file, None, TICK_NS, 1, priority_effects(["rr", "priority:thesis"])))
        == 2
    )
    assert priority_effects(["rr", "priority:thesis", "hybrid"]) == {"none", "preempt"}
    one = file_with(tmp_path, 0.8, a=1_000)
    assert len(theoretical_rows(one, None, TICK_NS, 1, {"preempt"})) == 2


def test_shapes_have_separate_curves(schedlab: Command, tmp_path: Path) -> None:
    """This holds regardless of the others' CPUs; there is no theoretical curve for shapes."""
    file = ROOT / "workloads" / "files" / "open" / "exponential.json"
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text(
        f"workloads: {{file: {file}, with: {{tasks.job.instance: 40}}}}\n"
        "policies: rr\nseeds: 1..2\nshapes: [fast-and-slow, even.json]\n"
    )
    (tmp_path / "even.json").write_text('{"format": 1, "cpus": 8}')
    arguments = ("sweep", str(sweep), "--load", "0.3", "--jobs", "1")
    result = schedlab(*arguments, "--out", str(tmp_path / "curves"))
    assert result.returncode == 0, result.stderr
    both = list(read_scenes(tmp_path / "curves", None, read_stored_jobs(tmp_path / "curves")))
    for curve_set, shape in zip(both, ("(even.json ", "(fast-and-slow)"), strict=True):
        assert curve_set.title.partition("CPUs ")[2].startswith(shape)
    assert [(len(curve_set.runs), curve_set.theory.is_empty()) for curve_set in both] == [
        (2, True)
    ] * 2
