# SPDX-License-Identifier: MIT
"""Tests that random workloads take as long on the kernel, on Spike, as in the simulator with the
kernel's costs.

Both machines are deterministic. But a few microseconds that one of them attributes elsewhere can
decide whether a process ends before or after a tick. That shifts the result by a time slice or a
round of slices. So the test compares means and prints each figure. tests/agreement compares each
group of the studies' workloads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest

from guest_machine import TICK_NS
from played import play, simulated
from schedlab import metrics, trace
from schedlab.workload import workload_files
from schedlab.workload.random_workloads import random_workload
from schedlab.workload.text import format_workload

pytestmark = pytest.mark.spike

POLICIES = ("rr", "priority", "mlfq", "stride")
NEARNESS = 0.02


def turnarounds(events: trace.Trace) -> dict[str, float]:
    """Returns the mean of each group in ns. All processes must have ended."""
    processes = metrics.compute(events).processes.filter(pl.col("role") == "workload")
    assert processes["turnaround_ns"].null_count() == 0
    means = processes.group_by("group").agg(pl.col("turnaround_ns").mean()).sort("group")
    return dict(means.iter_rows())


class Group(NamedTuple):
    """A group's mean turnaround on both machines, in ns."""

    name: str
    kernel: float
    simulator: float

    def is_near(self) -> bool:
        return abs(self.simulator - self.kernel) <= max(NEARNESS * self.kernel, TICK_NS)


def both(folder: Path, file: Path, policy: str, cpus: int, seed: int = 1) -> Iterator[Group]:
    """Runs the workload on both machines, and prints each group's times."""
    text = format_workload(workload_files.read_workload_file(file), seed, TICK_NS)
    kernel_times = turnarounds(play(folder, text, policy, cpus))
    simulated_times = turnarounds(simulated(folder, text, policy, cpus))
    assert simulated_times.keys() == kernel_times.keys()
    for group, time in kernel_times.items():
        print(
            f"{file.stem}, {policy}, {cpus} CPUs, {group}: kernel {time / 1e6:.3f} ms, simulator"
            f" {simulated_times[group] / 1e6:.3f} ms, {simulated_times[group] / time - 1:+.2%}"
        )
        yield Group(group, time, simulated_times[group])


@pytest.mark.parametrize("policy", POLICIES)
def test_random_workloads(tmp_path: Path, policy: str) -> None:
    """The means over all groups agree to 2 %."""
    groups: list[Group] = []
    for seed, cpus in ((1, 1), (2, 2), (3, 3)):
        file = tmp_path / f"random-{seed}.json"
        file.write_text(json.dumps(random_workload(seed)))
        groups += both(tmp_path, file, policy, cpus)
    kernel_total = sum(group.kernel for group in groups)
    simulated_total = sum(group.simulator for group in groups)
    near = sum(group.is_near() for group in groups)
    print(
        f"{policy}: {simulated_total / kernel_total - 1:+.2%}; {near} of {len(groups)} groups to 2 % or a tick"
    )
    assert simulated_total == pytest.approx(kernel_total, rel=NEARNESS)
