# SPDX-License-Identifier: MIT
"""Tests load curves: omitted and drawn points, the theoretical curve, and refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from conftest import ROOT, Command
from schedlab.errors import WrongUsage
from schedlab.metrics.steady import COLUMNS, steady
from schedlab.sweep.load_curves import (
    expand_loads,
    load_charts,
    priority_effects,
    read_scenes,
    read_stored_jobs,
)
from schedlab.sweep.theory import theoretical_rows
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


def test_loads_may_be_listed_or_reach_from_one_to_another() -> None:
    assert expand_loads("0.5") == "0.5"
    assert expand_loads("0.3,0.6") == "0.3,0.6"
    assert expand_loads("0.1-0.9+0.2") == "0.1,0.3,0.5,0.7,0.9"
    ten = expand_loads("0.1-0.95").split(",")
    assert (len(ten), ten[0], ten[-1]) == (10, "0.1", "0.95")
    for wrong in ("0.9-0.1", "much", "0.1-0.9+0", "-1"):
        with pytest.raises(WrongUsage, match="load="):
            expand_loads(wrong)
    with pytest.raises(WrongUsage, match="the step is too small"):
        expand_loads("0.1-0.9+0")
    with pytest.raises(WrongUsage, match=r"write 0\.3-0\.9"):
        expand_loads("0.9-0.3")


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


def test_curves_are_drawn(schedlab: Command, tmp_path: Path) -> None:
    out = tmp_path / "curves"
    file = ROOT / "workloads" / "files" / "open" / "exponential.json"
    arguments = (
        "sweep",
        "--workload",
        str(file),
        "--with",
        "tasks.job.instance=300",
        "--load",
        "0.3,0.6",
        "--jobs",
        "1",
    )
    result = schedlab(*arguments, "--policy", "rr,mlfq", "--seeds", "1,2", "--out", str(out))
    assert result.returncode == 0, result.stderr
    assert "slowdown" in result.stdout
    assert "8 runs" in result.stdout
    assert (out / "load-slowdown-mean.svg").read_text().startswith("<svg")
    (scene,) = read_scenes(out, None, ())
    assert scene.runs.group_by("load", "setup").len()["len"].to_list() == [2] * 4
    drawn = dict(load_charts(scene))
    assert "slowdown-p999" not in drawn  # of 300 jobs
    of = ("turnaround", "slowdown", "response")
    assert {f"{stem}-{part}" for stem in of for part in ("mean", "median", "p95", "p99")} <= set(
        drawn
    )
    idle = replace(scene, runs=scene.runs.with_columns(steady_response_median_ns=pl.lit(0.0)))
    assert drawn.keys() - dict(load_charts(idle)) == {"response-median"}
    group = schedlab(
        *arguments, "--policy", "rr,mlfq", "--seeds", "1,2", "--out", str(out), "--group", "none"
    )
    assert group.returncode == 2
    assert "none has processes of the group none" in group.stderr
    again = ("sweep", "--from", str(out), "--load", "0.3", "--chart", str(tmp_path / "again.svg"))
    shown = schedlab(*again)
    assert shown.returncode == 0, shown.stderr
    assert [line.split()[:2] for line in shown.stdout.splitlines() if "±" in line] == [
        ["0.3", "mlfq"],
        ["0.3", "rr"],
    ]
    picture = (tmp_path / "again-turnaround-mean.svg").read_text()
    assert "processor sharing" in picture, "the data set keeps what theory needs"
    assert (schedlab(*again[:3], "--load", "0.9")).returncode == 2


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
