# SPDX-License-Identifier: MIT
"""Tests the studies in the simulator: the same runs as on the kernel, and the texts of their
pages.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from schedlab.machines.spec import RunSpec
from schedlab.report import reproduction as study_run
from schedlab.report.reproduction import Request, reproduce
from schedlab.studies import experiments, planning
from schedlab.studies.experiment import Depth
from schedlab.studies.files import FILES, WITHOUT
from schedlab.studies.planning import plan
from schedlab.workload.costs import COSTS
from schedlab.workload.delays import in_simulator


def who(run: RunSpec) -> tuple[object, ...]:
    """Returns all facts except the machine and its options."""
    setup = (run.label, run.policy, run.settings, run.cpus, in_simulator(run.delays))
    return (run.name, *setup, run.seed, run.tick_ns)


def has_simulated_costs(run: RunSpec) -> bool:
    """False for the effect of a cost or habit that the simulator does not have."""
    without = experiments.EXPERIMENTS[run.label].without
    return not without or without in COSTS


def described(run: RunSpec) -> str:
    """Returns the experiment of its file."""
    return experiments.EXPERIMENTS[run.label].repeats or run.label


@pytest.mark.parametrize("depth", ["quick", "full"])
def test_what_is_run_is_what_the_kernel_runs(tmp_path: Path, depth: Depth) -> None:
    kernel = [
        run
        for run in plan(tmp_path, depth).runs
        if described(run) not in WITHOUT and has_simulated_costs(run)
    ]
    simulator = plan(tmp_path, depth, memory_mib=0, machine="sim")
    simulator.check()
    alone = [run for run in simulator.runs if experiments.EXPERIMENTS[run.label].machine == "sim"]
    assert {run.tick_ns for run in alone} == {1_000_000, 10_000_000}
    assert [who(run) for run in simulator.runs if run not in alone] == [who(run) for run in kernel]
    assert {run.machine.name for run in simulator.runs} == {"sim"}
    for run in simulator.runs:
        assert run.file
        file = FILES[described(run)]
        assert run.changes == run.file.changes == file.changed(depth, run.cpus)
        assert run.workload == file.workload


def test_study_runs_and_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {name: experiments.EXPERIMENTS[name] for name in ("s4-mixed-2", "s4-sleeper")}
    monkeypatch.setattr(planning, "EXPERIMENTS", small)
    monkeypatch.setattr(study_run, "make_report", lambda runs, out: out / "index.html")
    request = Request((4,), "quick", memory_mib=0, machine="sim")
    done = reproduce(request, tmp_path / "out")
    assert done.succeeded
    assert len(done.runs) == 8
    traces = {run.folder: (run.folder / "trace.bin").stat().st_mtime_ns for run in done.runs}
    again = reproduce(request, tmp_path / "out")
    assert {
        run.folder: (run.folder / "trace.bin").stat().st_mtime_ns for run in again.runs
    } == traces
    (mixed, *_) = (run for run in done.runs if run.setup.experiment == "s4-mixed-2")
    assert mixed.manifest["with"] == {"tasks.cpu.instance": "2"}
    assert mixed.metrics().groups.filter(group="cpu")["processes"].to_list() == [2]


# --- the pages' texts
