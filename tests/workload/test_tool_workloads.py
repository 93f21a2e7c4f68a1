# SPDX-License-Identifier: MIT
"""Tests the workloads that imitate benchmarks: against the tools in the Linux guest, and by their work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import schedlab
from conftest import Command
from linux_guests import need_guests
from schedlab.analysis.tables import open_run
from schedlab.paths import ROOT

FOLDER = ROOT / "workloads" / "files" / "tools"
TICK_NS = 4_000_000


def simulated(name: str, policy: str = "rr", **changes: str) -> schedlab.Runs:
    file = str(FOLDER / f"{name}.json")
    return schedlab.run(file, policy, tick_ns=TICK_NS, costs="none", changes=changes)


def test_hackbench_receives_all_messages() -> None:
    """40,000 messages of 2 µs: each computes for 1 µs at the sender and at the receiver."""
    runs = simulated("hackbench")
    processes = runs.groups.select("group", "processes", "finished").rows()
    assert sorted(processes) == [("receiver", 20, 20), ("sender", 20, 20)]
    assert runs.groups["running_ns"].to_list() == [40_000_000, 40_000_000]


def test_schbench_workers_wait_for_messages() -> None:
    """With one worker per CPU, each round takes the 10 ms of the message thread."""
    runs = simulated("schbench", **{"tasks.worker.instance": "1", "tasks.worker.run": "2000"})
    worker = next(row for row in runs.groups.to_dicts() if row["group"] == "worker")
    # The first round may begin before the worker waits.
    assert worker["running_ns"] == pytest.approx(200 * 2_000_000, abs=2 * 2_000_000)
    assert worker["wakeups"] == pytest.approx(200, abs=2)


def test_sysbench_threads_never_contend_for_a_lock() -> None:
    """Each thread has locks of its own, as the events' order gives them in sysbench."""
    runs = schedlab.run(str(FOLDER / "sysbench-threads.json"), "rr", tick_ns=TICK_NS)
    assert runs.summary["blocks"].item() == 0
    assert runs.summary["yields"].item() > 10_000


@pytest.mark.spike
@pytest.mark.long
@pytest.mark.parametrize("name", sorted(file.stem for file in FOLDER.glob("*.json")))
def test_the_kernel_runs_them(name: str) -> None:
    runs = schedlab.run(str(FOLDER / f"{name}.json"), "eevdf", machine="spike")
    assert not runs.failed


TOOLS = {
    "hackbench": "hackbench --pipe -g 1 -l 100",
    "sysbench-cpu": "sysbench cpu --threads=4 --time=2 run",
    "sysbench-threads": "sysbench threads --threads=4 --thread-locks=8 --thread-yields=1000"
    " --time=2 run",
    "rt-app": f"echo '{json.dumps(json.loads((FOLDER / 'rt-app.json').read_text()))}' >f; rt-app f",
}
SWITCHES = {"hackbench": 0.1, "sysbench-cpu": 0.1, "sysbench-threads": 0.2}
"""The largest relative difference of switches per second that docs/workload-files.md allows for."""


@pytest.mark.long
@pytest.mark.linux
@pytest.mark.xdist_group("linux_boot")
@pytest.mark.parametrize("name", TOOLS)
def test_they_behave_like_their_tools(name: str, schedlab: Command, tmp_path: Path) -> None:
    """Both run under Linux's fair class in the repeatable guest."""
    need_guests()
    made = {}
    for what, workload in (("file", str(FOLDER / f"{name}.json")), ("tool", TOOLS[name])):
        result = schedlab(
            *("run", "--machine", "linux", "--policy", "fair", "--cpus", "1", "--json"),
            *("--workload", workload, "--out", str(tmp_path / what)),
            timeout=900,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        (made[what],) = json.loads(result.stdout)["runs"]
    if name == "rt-app":
        shares = [shares_of(Path(run["folder"])) for run in made.values()]
        assert shares[0] == pytest.approx(shares[1], abs=0.02)
    else:
        rates = [switches_per_second(run["metrics"]["summary"]) for run in made.values()]
        assert rates[0] == pytest.approx(rates[1], rel=SWITCHES[name])


def switches_per_second(summary: dict[str, Any]) -> float:
    return float(summary["context_switches"]) / float(summary["elapsed_ns"]) * 1e9


def shares_of(folder: Path) -> dict[str, float]:
    """Returns the CPU shares of the file's three threads, of the time that they have together."""
    processes = open_run(folder).processes
    times = {
        name: float(processes.filter(processes["name"] == name)["running_ns"].sum())
        for name in ("audio", "video", "hog")
    }
    return {name: time / sum(times.values()) for name, time in times.items()}
