# SPDX-License-Identifier: MIT
"""Tests bursts of whole ticks in the order of textbooks, and in the kernel's: `--costs
textbook`.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from random import Random

import polars as pl
import pytest

from schedlab import metrics
from schedlab.workload.text import format_workload
from schedlab.workload.workload_files import read_workload_file
from simulator_command import simulate

TICK_NS = 1_000_000


def ends(folder: Path, jobs: list[tuple[int, int]], slice_ticks: int, costs: str) -> list[int]:
    """Returns the tick when each job ends. Jobs arrive at a tick and take whole ticks. Round-robin,
    one CPU.
    """
    lines = [f" arrive job{index} {when}ticks" for index, (when, _) in enumerate(jobs)]
    programs = [f"program job{index}\n run {takes}ticks" for index, (_, takes) in enumerate(jobs)]
    text = "\n".join(["program root", " mark begin", *lines, " wait all", " mark end", *programs])
    trace = folder / "trace.bin"
    options = ("--policy", "rr", "--set", f"slice={slice_ticks}", "--costs", costs)
    result = simulate(folder, text + "\n", *options, "--trace", str(trace))
    assert result.returncode == 0, result.stderr
    processes = metrics.measure(trace).processes.filter(pl.col("role") == "workload").sort("pid")
    return [end // TICK_NS for end in processes["exit_ns"].to_list()]


def textbook(jobs: list[tuple[int, int]], slice_ticks: int) -> list[int]:
    """Computes the same by hand: at a tick, arrivals are queued before a job whose slice has ended;
    a job without remaining work has ended.
    """
    left = [takes for _, takes in jobs]
    end_ticks = [0] * len(jobs)
    ready: deque[int] = deque()
    running, used, tick = -1, 0, 0
    while not all(end_ticks):
        if running >= 0:
            left[running] -= 1
            used += 1
            if left[running] == 0:
                end_ticks[running], running = tick, -1
        ready.extend(index for index, (when, _) in enumerate(jobs) if when == tick)
        if running >= 0 and used == slice_ticks:
            ready.append(running)
            running = -1
        if running < 0 and ready:
            running, used = ready.popleft(), 0
        tick += 1
    return end_ticks


@pytest.mark.parametrize(("costs", "expected"), [("textbook", [2, 4, 6]), ("none", [6, 6, 6])])
def test_a_burst_that_ends_with_its_slice(tmp_path: Path, costs: str, expected: list[int]) -> None:
    assert ends(tmp_path, [(0, 2)] * 3, 2, costs) == expected


def test_full_tick_bursts_end_as_in_textbooks(tmp_path: Path) -> None:
    random = Random(1)
    for slice_ticks in (1, 2, 3, 5):
        for _ in range(5):
            times = sorted(random.randrange(30) for _ in range(12))
            jobs = [(when, random.randrange(1, 7)) for when in times]
            end_ticks = ends(tmp_path, jobs, slice_ticks, "textbook")
            assert end_ticks == textbook(jobs, slice_ticks), (jobs, slice_ticks)


@pytest.mark.parametrize(
    ("preempted_last", "expected"),
    [(0, {"C": 5, "A": 17, "B": 18}), (1, {"C": 5, "B": 16, "A": 18})],
)
def test_a_preempted_task_keeps_or_loses_its_place(
    tmp_path: Path, preempted_last: int, expected: dict[str, int]
) -> None:
    """C preempts A at 3 ms. Either A resumes its remaining 2 ms, or B runs for its whole slice of 5
    ms.
    """
    file = tmp_path / "workload.json"
    file.write_text(
        """{"tasks": {"A": {"priority": 2, "loop": 1, "run": "10ms"},
                      "B": {"priority": 2, "loop": 1, "run": "6ms"},
                      "C": {"priority": 1, "delay": "3ms", "loop": 1, "run": "2ms"}}}"""
    )
    trace = tmp_path / "trace.bin"
    options = ("--policy", "priority", "--set", f"slice=5,preempted_last={preempted_last}")
    text = format_workload(read_workload_file(file), 1, TICK_NS, 1)
    result = simulate(tmp_path, text, *options, "--costs", "textbook", "--trace", str(trace))
    assert result.returncode == 0, result.stderr
    run_metrics = metrics.measure(trace)
    begin = run_metrics.summary["begin_ns"].item()
    rows = (
        run_metrics.processes.filter(pl.col("role") == "workload").select("group", "exit_ns").rows()
    )
    assert {name: (end - begin) // TICK_NS for name, end in rows} == expected
