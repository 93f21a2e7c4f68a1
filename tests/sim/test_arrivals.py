# SPDX-License-Identifier: MIT
"""Tests that processes arrive at their times under every scheduler."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

from played import play
from schedlab import metrics, trace
from schedlab.analysis.queueing import first_come_end_times
from schedlab.errors import WrongUsage
from schedlab.metrics.model import Metrics
from schedlab.workload import workload_files
from schedlab.workload.model import WorkloadFile
from schedlab.workload.text import format_workload
from simulator_command import simulate

TICK_NS = 1_000_000
FIRST_COME = ("--policy", "rr", "--set", "slice=1000")
"""First come, first served: no slice ends before the work."""


def read(tmp_path: Path, content: object) -> WorkloadFile:
    path = tmp_path / "open.json"
    path.write_text(json.dumps(content))
    return workload_files.read_workload_file(path)


def open_job(instances: int, **task: object) -> dict[str, object]:
    gaps = {"distribution": "exponential", "mean": 12_500}
    return {"instance": instances, "arrivals": gaps, "loop": 1, "run": 10_000, **task}


def open_load(instances: int, **task: object) -> dict[str, object]:
    return {"tasks": {"job": open_job(instances, **task)}}


def measured(tmp_path: Path, text: str, *options: str) -> Metrics:
    """Returns the measurements of the simulator without costs."""
    path = tmp_path / "trace.bin"
    result = simulate(tmp_path, text, "--costs", "none", "--trace", str(path), *options)
    assert result.returncode == 0, result.stderr
    return metrics.measure(path)


def jobs(run_metrics: Metrics) -> pl.DataFrame:
    return run_metrics.processes.filter(pl.col("role") == "workload").sort("fork_ns", "pid")


@pytest.mark.parametrize("seed", [1, 2])
def test_jobs_follow_the_lindley_recursion(tmp_path: Path, seed: int) -> None:
    work = {"from": 0, "to": "20ms", "step": "1ns"}
    text = format_workload(read(tmp_path, open_load(2_000, run=work)), seed, TICK_NS)
    job_table = jobs(measured(tmp_path, text, *FIRST_COME))
    when = [int(time) for time in re.findall(r"arrive \S+ (\d+)ns", text)]
    run_times = [int(time) for time in re.findall(r"  run (\d+)ns", text)]
    assert job_table["fork_ns"].to_list() == when
    assert job_table["exit_ns"].to_list() == first_come_end_times(when, run_times)


def test_an_alarm_that_has_passed_is_due_now(tmp_path: Path) -> None:
    """The CPU that is notified may have been idle for long; its clock advances all the same. No job
    waits for longer than one time slice of each job that arrived before it.
    """
    short = open_job(20_000, run=0.5, arrivals={"distribution": "exponential", "mean": 0.6})
    long_ones = open_job(100, run=500, arrivals={"distribution": "exponential", "mean": 200})
    text = format_workload(
        read(tmp_path, {"tasks": {"short": short, "long": long_ones}}), 1, TICK_NS
    )
    job_table = jobs(
        measured(tmp_path, text, "--policy", "shinjuku", "--set", "quantum_us=5", "--cpus", "8")
    )
    assert job_table["exit_ns"].null_count() == 0
    response = job_table.select(pl.col("first_run_ns") - pl.col("fork_ns")).to_series()
    assert (response < 10 * 5_000).all()


def test_hogs_make_no_arrival_late(tmp_path: Path) -> None:
    hogs = {"instance": 4, "loop": 1, "run": "1s"}
    content = {"tasks": {"hog": hogs, "job": open_job(50, run=100)}}
    text = format_workload(read(tmp_path, content), 1, TICK_NS)
    for policy in ("rr", "mlfq", "lottery", "priority"):
        job_table = jobs(measured(tmp_path, text, "--policy", policy)).filter(
            pl.col("group") == "job"
        )
        when = [int(time) for time in re.findall(r"arrive \S+ (\d+)ns", text)]
        assert job_table["fork_ns"].to_list() == when


URGENT = """
program root
  mark begin
  fork hog
  arrive job 1500us
  arrive job 2500us
  wait all
  mark end
program hog
  priority 5
  group hog
  run 10ms
program job
  priority 1
  cpus 0
  group job
  run 100us
"""


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_job_has_its_attributes_when_the_policy_first_sees_it(tmp_path: Path, cpus: int) -> None:
    job_table = jobs(measured(tmp_path, URGENT, "--policy", "priority", "--cpus", str(cpus)))
    job = job_table.filter(pl.col("group") == "job")
    assert job["first_run_ns"].to_list() == job["fork_ns"].to_list() == [1_500_000, 2_500_000]


def test_late_arrivals_are_counted_and_reported(tmp_path: Path) -> None:
    text = (
        "program root\n mark begin\n run 5ms\n arrive job 1ms\n arrive job 4990us\n arrive job 6ms"
    )
    run_metrics = measured(tmp_path, f"{text}\n wait all\n mark end\nprogram job\n run 1ms\n")
    assert run_metrics.values.filter(pl.col("name") == "late")["value"].to_list() == [
        4_000_000,
        10_000,
    ]
    assert run_metrics.said.row(0)[:2] == ("arrivals that came late", 1)
    assert run_metrics.said["last"][0] == "4.00 ms on the mean, 4.00 ms at most"
    assert jobs(run_metrics)["fork_ns"].to_list() == [5_000_000, 5_000_000, 6_000_000]


def with_device() -> dict[str, object]:
    gaps = {"distribution": "exponential", "mean": 5_000}
    server = {"instance": 2, "priority": 1, "loop": 20, "take": "net", "run": 1_000}
    hog = {"instance": 2, "loop": 1, "run": "400ms"}
    device = {"instance": 40, "arrivals": gaps, "give": "net"}
    return {"tasks": {"server": server, "hog": hog}, "devices": {"card": device}}


def test_requests_come_by_a_devices_interrupts(tmp_path: Path) -> None:
    text = format_workload(read(tmp_path, with_device()), 1, TICK_NS)
    when = [int(time) for time in re.findall(r"deliver of:net (\d+)ns", text)]
    assert len(when) == 40
    run_metrics = measured(tmp_path, text, "--policy", "priority")
    events = trace.read(tmp_path / "trace.bin").events
    served = jobs(run_metrics).filter(pl.col("group") == "server")["pid"]
    woken = events.filter(
        (pl.col("kind") == trace.Kind.WAKEUP) & pl.col("process").is_in(served.to_list())
    )
    assert set(woken["first"]) == {0}  # by interrupts
    assert set(woken["time_ns"]) <= set(when)
    assert len(woken) > 25  # the others came while both servers worked
    assert served.len() == 2
    assert run_metrics.said.is_empty()


def test_what_is_no_device_is_refused(tmp_path: Path) -> None:
    content = with_device()
    for wrong in ({"give": "net"}, {"arrivals": {"times": [1]}}, {"give": "net", "run": 1}):
        with pytest.raises(WrongUsage, match=r"devices\.card"):
            read(tmp_path, {**content, "devices": {"card": wrong}})
    with pytest.raises(WrongUsage, match="no `starter` with it"):
        read(tmp_path, {**content, "starter": {"start": "server"}})


@pytest.mark.spike
def test_hogs_make_no_arrival_late_on_the_kernel(tmp_path: Path) -> None:
    """The attributes are not late either: the policy knows them at the fork."""
    text = "program root\n mark begin\n fork hog\n fork hog\n"
    text += "".join(f" arrive job {700 * (index + 1)}us\n" for index in range(20))
    text += " wait all\n mark end\nprogram hog\n run 30ms\n"
    text += "program job\n priority 1\n period 30ms\n group job\n run 100us\n"
    run_metrics = metrics.compute(play(tmp_path, text, "priority"))
    late = run_metrics.values.filter(pl.col("name") == "late")["value"].to_list()
    job = jobs(run_metrics).filter(pl.col("group") == "job")
    assert len(late) == len(job) == 20
    assert max(late) < 100_000
    assert run_metrics.said.is_empty()
    assert max((job["first_run_ns"] - job["fork_ns"]).to_list()) < 30_000


def test_what_starts_arriving_processes_takes_the_first_cpu(tmp_path: Path) -> None:
    """With jobs alone or next to a process that computes, the work ends later by its time."""
    job = {"instance": 20, "arrivals": {"distribution": "constant", "mean": 5_000}, "loop": 1}
    hog = {"loop": 1, "run": 200_000}
    for tasks, expected_ms in (
        ({"job": {**job, "run": 1_000}, "hog": hog}, 200 + 20 * (1 + 2)),
        ({"job": {**job, "run": 4_000}}, 5 + 20 * (4 + 2)),  # the CPU is never idle
    ):
        text = format_workload(read(tmp_path, {"tasks": tasks}), 1, TICK_NS)
        run_metrics = measured(tmp_path, text, *FIRST_COME, "--costs", "none,arrival=2000000")
        assert jobs(run_metrics)["exit_ns"].max() == expected_ms * 1_000_000
