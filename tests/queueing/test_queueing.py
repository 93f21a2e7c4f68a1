# SPDX-License-Identifier: MIT
"""Tests theory and simulator against each other: runs without costs, of random jobs."""

from __future__ import annotations

import heapq
import json
import math
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pytest

from schedlab import metrics
from schedlab.analysis import queueing as means
from schedlab.base.toolchain.policies import known_policies
from schedlab.sweep.load_curves import theoretical_rows
from schedlab.workload import workload_files
from schedlab.workload.text import format_workload
from simulator_command import simulate

TICK_NS = 10_000
MEAN = 1_000_000
"""Mean work in ns: a hundred ticks, so that round-robin approximates processor sharing."""
JOBS = 10_000
Json = dict[str, object]


def jobs(folder: Path, tasks: Json, load: float, *options: str, cpus: int = 1) -> pl.DataFrame:
    """Returns the jobs in order of arrival, without the warm-up, with `stay` and `run`."""
    path = folder / "open.json"
    path.write_text(json.dumps({"load": load, "tasks": tasks}))
    text = format_workload(workload_files.read_workload_file(path), 1, TICK_NS, cpus)
    common = (
        "--costs",
        "none",
        "--cpus",
        str(cpus),
        "--tick",
        str(TICK_NS),
        "--limit",
        str(10**12),
    )
    trace = folder / "trace.bin"
    result = simulate(folder, text, *common, "--trace", str(trace), *options)
    assert result.returncode == 0, result.stderr
    process_table = (
        metrics.measure(trace).processes.filter(pl.col("role") == "workload").sort("fork_ns")
    )
    stay = pl.col("exit_ns") - pl.col("fork_ns")
    return process_table.with_columns(stay=stay)[JOBS // 10 :]


def task(work: object, jobs: int = JOBS, **more: object) -> Json:
    gaps = {"distribution": "exponential", "mean": 1}
    return {"instance": jobs, "arrivals": gaps, "loop": 1, "run": work, **more}


def close(samples: pl.Series, expected: float) -> bool:
    """Returns True if the mean is as expected, within its 99.9 % interval from the means of ten
    batches (Student). At these loads the intervals have their nominal coverage: of 40 seeds none
    failed.
    """
    batches = [batch.mean() for batch in np.array_split(samples.to_numpy().astype(float), 10)]
    error = np.std(batches, ddof=1) / math.sqrt(len(batches))
    assert error < 0.2 * expected
    return bool(abs(np.mean(batches) - expected) < 4.78 * error)


WORKS = {
    "exponential": ({"distribution": "exponential", "mean": 1000}, 2.0),
    "constant": ({"distribution": "constant", "mean": 1000}, 1.0),
    "two values": ({"distribution": "values", "values": [500, 5500], "weights": [9, 1]}, 3.25),
}


@pytest.mark.parametrize("name", WORKS)
def test_first_come_is_as_pollaczek_and_khinchine_have_it(tmp_path: Path, name: str) -> None:
    drawn, square = WORKS[name]
    job_table = jobs(tmp_path, {"job": task(drawn)}, 0.5, "--policy", "rr", "--set", "slice=1000")
    work = means.Work(MEAN, square * MEAN**2)
    assert close(job_table["stay"], means.first_come_response(0.5 / MEAN, work))


def test_round_robin_of_short_slices_is_processor_sharing(tmp_path: Path) -> None:
    drawn, _ = WORKS["two values"]
    job_table = jobs(tmp_path, {"job": task(drawn)}, 0.5, "--policy", "rr", "--set", "slice=1")
    assert close(job_table["stay"], means.processor_sharing_response(0.5 / MEAN, MEAN))
    slowdown = job_table["stay"] / job_table["running_ns"]
    assert close(slowdown, means.processor_sharing_slowdown(0.5 / MEAN, MEAN))


def test_strict_priorities_are_as_cobham_and_white_have_them(tmp_path: Path) -> None:
    drawn, _ = WORKS["exponential"]
    tasks: Json = {
        "first": task(drawn, JOBS // 2, priority=1),
        "second": task(drawn, JOBS // 2, priority=9),
    }
    options = ("--policy", "priority", "--set", "aging_interval=0,slice=1000")
    job_table = jobs(tmp_path, tasks, 0.6, *options)
    file = workload_files.read_workload_file(tmp_path / "open.json")
    rule = known_policies()["priority"].priorities
    for group, factor in (("first", 1 / 0.7), ("second", 1 / 0.7 + 0.6 / (0.7 * 0.4))):
        line = theoretical_rows(file, group, TICK_NS, 1, {rule})[-1]
        assert line["series"] == "priorities, preemptive"
        assert line["steady_turnaround_mean_ns"] == pytest.approx(factor * MEAN)
        assert close(job_table.filter(pl.col("group") == group)["stay"], factor * MEAN)


def test_priorities_that_wait_are_as_cobham_has_them() -> None:
    """Compares with a simulation of the discipline alone: every built-in policy lets a higher
    priority preempt.
    """
    random = Random(3)
    arrivals, when = [], 0.0
    for _ in range(50_000):
        when += random.expovariate(0.5)
        first = random.random() < 0.6
        arrivals.append((when, not first, 0.5 if first else random.expovariate(1 / 2)))
    stays: dict[bool, list[float]] = {False: [], True: []}
    waiting: list[tuple[bool, float, float]] = []
    now, come = 0.0, 0
    while come < len(arrivals) or waiting:
        if not waiting:
            now = max(now, arrivals[come][0])
        while come < len(arrivals) and arrivals[come][0] <= now:
            at, low, work = arrivals[come]
            heapq.heappush(waiting, (low, at, work))
            come += 1
        low, at, work = heapq.heappop(waiting)
        now += work
        stays[low].append(now - at)
    classes = [(0.3, means.Work(0.5, 0.25)), (0.2, means.Work(2, 8))]
    for low, delay, (_, of) in zip(
        stays, means.priority_delays(classes, False), classes, strict=True
    ):
        assert close(pl.Series(stays[low]), delay.response_time(of.mean))


def test_formulas_agree_on_common_cases() -> None:
    work = means.Work(1, 2)
    assert means.several_servers_response(0.7, 1, 1) == pytest.approx(
        means.first_come_response(0.7, work)
    )
    assert means.several_servers_response(0.7, 1, 1) == pytest.approx(
        means.processor_sharing_response(0.7, 1)
    )
    assert means.several_servers_response(1.4, 1, 2) == pytest.approx(1 / (1 - 0.7**2))
    for preemptive in (False, True):
        (delay,) = means.priority_delays([(0.7, work)], preemptive)
        assert delay.response_time(1) == pytest.approx(1 / 0.3)
    overloaded = [
        means.priority_delays([(0.5, work), (rate, work)], False)[0].wait for rate in (0.5, 9)
    ]
    assert overloaded[0] == pytest.approx(overloaded[1])  # the server is busy, but not overloaded
    classes = [(0.3, means.Work(1, 2)), (0.2, means.Work(2, 5))]
    shared = sum(
        rate * service.mean for rate, service in classes
    )  # Kleinrock's conservation law, 1965
    waits = [delay.wait for delay in means.priority_delays(classes, False)]
    residual = sum(rate * service.square for rate, service in classes) / 2
    conserved = sum(
        rate * service.mean * wait for (rate, service), wait in zip(classes, waits, strict=True)
    )
    assert conserved == pytest.approx(shared * residual / (1 - shared))
    for overload in (
        means.first_come_response(1, work),
        means.processor_sharing_response(1, 1),
        means.several_servers_response(2, 1, 2),
        means.shortest_remaining_response(1.1, lambda part: -math.log(1 - part)),
    ):
        assert math.isinf(overload)


def test_one_line_for_two_cpus_is_as_erlang_has_it(tmp_path: Path) -> None:
    """The preset has one queue for all CPUs; with a queue per CPU the mean would be 50 % longer."""
    drawn, _ = WORKS["exponential"]
    options = ("--policy", "rr:table-scan", "--set", "slice=1000")
    job_table = jobs(tmp_path, {"job": task(drawn)}, 0.5, *options, cpus=2)
    assert close(job_table["stay"], means.several_servers_response(1 / MEAN, MEAN, 2))


def test_first_come_with_several_servers_is_as_erlang_has_it() -> None:
    random = Random(1)
    when, arrivals = 0.0, []
    for _ in range(50_000):
        when += random.expovariate(2.4)
        arrivals.append(round(when * 1e9))
    work = [round(random.expovariate(1) * 1e9) for _ in arrivals]
    ends = means.first_come_end_times(arrivals, work, 3)
    stay = pl.Series([end - at for end, at in zip(ends, arrivals, strict=True)])
    assert close(stay, 1e9 * means.several_servers_response(2.4, 1, 3))


def test_shortest_remaining_is_as_schrage_and_miller_have_it(tmp_path: Path) -> None:
    drawn, _ = WORKS["exponential"]
    workload_tasks: Json = {"job": task(drawn) | {"dl-runtime": "work"}}
    job_table = jobs(tmp_path, workload_tasks, 0.8, "--policy", "srpt")
    expected = means.shortest_remaining_response(
        0.8 / MEAN, lambda part: -MEAN * math.log(1 - part)
    )
    assert close(job_table["stay"], expected)
    assert expected < means.processor_sharing_response(0.8 / MEAN, MEAN)
