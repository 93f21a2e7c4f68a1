# SPDX-License-Identifier: MIT
"""Tests schedulability analysis against published cases, slow algorithms, and the simulator."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from built_once import build_once
from schedlab import metrics
from schedlab.analysis.schedulability import (
    Overload,
    PeriodicTask,
    busy_period,
    find_overload,
    interval_demand,
    periodic_tasks,
    response_times,
    utilisation,
    utilisation_bound,
)
from schedlab.commands.cli import cli
from schedlab.workload import workload_files
from schedlab_tools.benchmarks.deadlines import ends_in_schedlab, horizon, random_set, simulated

ADMITS_ALL = ("--policy", "edf", "--set", "limit=1000")


def tasks_of(*times: tuple[int, int, int]) -> tuple[PeriodicTask, ...]:
    """Returns tasks with runtime, deadline and period, in decreasing order of priority."""
    return tuple(
        PeriodicTask(str(index), *task_times, priority=index)
        for index, task_times in enumerate(times)
    )


def test_responses_are_those_of_joseph_and_pandya() -> None:
    assert response_times(tasks_of((3, 7, 7), (3, 12, 12), (5, 20, 20))) == (3, 6, 20)
    assert response_times(tasks_of((5, 10, 10), (6, 14, 14))) == (5, None)


def test_the_bound_of_liu_and_layland() -> None:
    assert [utilisation_bound(count) for count in (0, 1)] == [1, 1]
    assert utilisation_bound(2) == pytest.approx(0.8284, abs=1e-4)
    assert utilisation_bound(10**6) == pytest.approx(math.log(2), abs=1e-5)


def test_demand_counts_jobs_that_are_due() -> None:
    tasks = tasks_of((2, 4, 5), (3, 7, 10))
    assert [interval_demand(tasks, at) for at in (3, 4, 7, 9, 17)] == [0, 2, 5, 7, 12]
    assert busy_period(tasks) == 5
    assert find_overload(tasks) is None
    assert find_overload(tasks_of((2, 3, 5), (3, 4, 10))) == Overload(4, 5)


def test_overloads_are_those_that_a_search_through_all_deadlines_finds() -> None:
    """The search covers the hyperperiod of all periods and deadlines."""
    source = random.Random(1)
    seen = set()
    for _ in range(400):
        periods = [source.choice((4, 5, 6, 8, 10, 12)) for _ in range(3)]
        runtimes = [source.randint(1, period // 2) for period in periods]
        deadlines = [source.randint(*bounds) for bounds in zip(runtimes, periods, strict=True)]
        tasks = tasks_of(*zip(runtimes, deadlines, periods, strict=True))
        if utilisation(tasks) > 1:
            continue
        all_of_it = 2 * math.lcm(*periods)
        bad = [index for index in range(1, all_of_it) if interval_demand(tasks, index) > index]
        result = find_overload(tasks)
        assert (result is not None) == bool(bad)
        assert result is None or (
            result.interval in bad and interval_demand(tasks, result.interval) == result.demand
        )
        seen.add(result is None)
    assert seen == {True, False}


def test_what_theory_admits_misses_nothing_in_the_simulator() -> None:
    """The longest response is at most that of jobs released together."""
    build_once("simulator")
    admitted = 0
    for seed in range(15):
        tasks = random_set(seed, random.Random(seed).uniform(0.4, 0.98))
        if find_overload(tasks):
            continue
        admitted += 1
        trace = simulated(tasks, ADMITS_ALL)
        jobs = metrics.jobs(trace)
        assert (jobs["lateness_ns"] <= 0).all(), seed
        assert len(jobs) == sum(-(-horizon(tasks) // task.period) for task in tasks)
        assert len(ends_in_schedlab(tasks, trace)) == len(jobs)
    assert admitted >= 5


def _times(task: PeriodicTask) -> tuple[int, int, int]:
    return task.runtime, task.deadline, task.period


def test_workload_file_names_required_programs(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    reserved = {"dl-runtime": 2000, "dl-period": 10_000, "dl-deadline": 50_000, "run": 1000}
    tasks = {"a": {**reserved, "instance": 2, "priority": 1}, "b": {"run": 1}}
    path.write_text(json.dumps({"tasks": tasks}))
    reserved_task = PeriodicTask("a", 2_000_000, 10_000_000, 10_000_000, 1, "a")
    assert periodic_tasks(workload_files.read_workload_file(path)) == (reserved_task, reserved_task)


def test_analyse_prints_bounds_and_measurements() -> None:
    result = CliRunner().invoke(cli, ["analyse", "deadlines", "--policy", "edf,rr", "--json"])
    assert result.exit_code == 0, result.output
    output = json.loads(result.stdout)
    assert output["meets"] is True
    assert output["responses"] == [5_000_000, None]
    by_policy = {run["policy"]: run["tasks"] for run in output["runs"]}
    assert [task["misses"] for task in by_policy["edf"]] == [0, 0]
    assert all(task["jobs"] >= 50 for task in by_policy["rr"])


BURNS_AND_WELLINGS = ((80, 40), (40, 10), (20, 5))
"""Period and runtime (ms) of each task: they need the whole CPU."""
SILBERSCHATZ = ((50, 25), (80, 35))
ALONE = ((50, 20),)
NO_AGING = ("--policy", "priority", "--set", "aging_interval=0")
ALL_OF_A_CPU = ("--set", "edf.limit=100")


def analysed(folder: Path, tasks: tuple[tuple[int, int], ...], *options: str) -> dict[str, Any]:
    """Returns the analysis of tasks that compute for their whole runtime, for 2 s. Shorter
    periods have higher priority.
    """
    periods = sorted(period for period, _ in tasks)
    members = {
        f"task{period}": {
            "priority": 1 + periods.index(period),
            "dl-runtime": f"{runtime}ms",
            "dl-period": f"{period}ms",
            "taskgroup": f"/group{period}",
            "run": f"{runtime}ms",
            "timer": {"ref": "unique", "period": f"{period}ms", "mode": "absolute"},
        }
        for period, runtime in tasks
    }
    groups = {
        f"/group{period}": {"quota": f"{runtime}ms", "period": f"{period}ms"}
        for period, runtime in tasks
    }
    path = folder / "w.json"
    path.write_text(json.dumps({"global": {"duration": 2}, "groups": groups, "tasks": members}))
    result = CliRunner().invoke(cli, ["analyse", str(path), "--json", *options])
    assert result.exit_code == 0, result.output
    analysis: dict[str, Any] = json.loads(result.stdout)
    return analysis


def longest_ms(analysis: dict[str, Any]) -> list[float]:
    """Returns the longest response of each task under the only policy, in milliseconds."""
    return [round(task["job_response_max_ns"] / 1e6, 3) for task in analysis["runs"][0]["tasks"]]


def misses(analysis: dict[str, Any]) -> list[int]:
    return [task["misses"] for task in analysis["runs"][0]["tasks"]]


def test_fixed_priorities_respond_as_burns_and_wellings_compute(tmp_path: Path) -> None:
    """The first task completes exactly when all three release new jobs."""
    analysis = analysed(tmp_path, BURNS_AND_WELLINGS, *NO_AGING)
    assert longest_ms(analysis) == [80, 15, 5]
    assert analysis["responses"] == [80_000_000, 15_000_000, 5_000_000]
    assert misses(analysis) == [0, 0, 0]


def test_edf_uses_a_full_cpu(tmp_path: Path) -> None:
    analysis = analysed(tmp_path, BURNS_AND_WELLINGS, "--policy", "edf", *ALL_OF_A_CPU)
    assert analysis["meets"] is True
    assert misses(analysis) == [0, 0, 0]


def test_rates_miss_and_deadlines_meet_what_silberschatz_draws(tmp_path: Path) -> None:
    rates = analysed(tmp_path, SILBERSCHATZ, *NO_AGING)
    assert rates["responses"] == [25_000_000, None]
    assert longest_ms(rates) == [25, 85]
    assert misses(rates)[1] > 0
    deadlines = analysed(tmp_path, SILBERSCHATZ, "--policy", "edf")
    assert deadlines["meets"] is True
    assert longest_ms(deadlines) == [35, 65]
    assert misses(deadlines) == [0, 0]


@pytest.mark.parametrize(
    ("policy", "costs"),
    [
        ("edf", "none"),
        ("edf:global", "textbook"),
        ("hsfq", "none"),
        ("hsfq:ticks", "textbook"),
        ("eevdf", "textbook"),
    ],
)
def test_work_that_ends_with_its_budget_has_ended(tmp_path: Path, policy: str, costs: str) -> None:
    """The response equals the work, without the wait for the next period."""
    analysis = analysed(tmp_path, ALONE, "--policy", policy, "--costs", costs)
    assert longest_ms(analysis) == [20]
    assert analysis["runs"][0]["tasks"][0]["jobs"] == 40


@pytest.mark.parametrize(
    ("policy", "options", "most_ms"),
    [
        ("edf", ("--costs", "kernel"), 20.1),
        ("edf:global", ("--costs", "kernel,tick=50000,switch=20000,wakeup=5000"), 21.5),
        ("edf", ("--machine", "spike"), 20.1),
    ],
)
def test_what_the_machine_takes_is_not_charged_to_the_budget(
    tmp_path: Path, policy: str, options: tuple[str, ...], most_ms: float
) -> None:
    analysis = analysed(tmp_path, ALONE, "--policy", policy, *options)
    (task,) = analysis["runs"][0]["tasks"]
    assert (task["misses"], task["jobs"]) == (0, 40)
    assert 20 <= longest_ms(analysis)[0] <= most_ms
