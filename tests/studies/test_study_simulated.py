# SPDX-License-Identifier: MIT
"""Tests the studies in the simulator: the same runs as on the kernel, and the texts of their
pages.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from page_contents import cells_of, tables_of, texts_of
from schedlab.machines.spec import RunSpec
from schedlab.report import reproduction as study_run
from schedlab.report.build import page_maker
from schedlab.report.reproduction import ReproductionRequest, reproduce
from schedlab.runs.collection import Collection
from schedlab.studies import experiments, planning
from schedlab.studies.experiment import Depth
from schedlab.studies.files import EXPERIMENT_FILES, EXPERIMENTS_WITHOUT_FILE
from schedlab.studies.planning import plan
from schedlab.workload.costs import COST_MEANINGS
from schedlab.workload.delays import simulator_delays


def who(run: RunSpec) -> tuple[object, ...]:
    """Returns all facts except the machine and its options."""
    setup = (run.label, run.policy, run.settings, run.cpus, simulator_delays(run.delays))
    return (run.name, *setup, run.seed, run.tick_ns)


def has_simulated_costs(run: RunSpec) -> bool:
    """False for the effect of a cost or habit that the simulator does not have."""
    without = experiments.EXPERIMENTS[run.label].omitted_cost
    return not without or without in COST_MEANINGS


def described(run: RunSpec) -> str:
    """Returns the experiment of its file."""
    return experiments.EXPERIMENTS[run.label].repeated_experiment or run.label


@pytest.mark.parametrize("depth", ["quick", "full"])
def test_what_is_run_is_what_the_kernel_runs(tmp_path: Path, depth: Depth) -> None:
    kernel = [
        run
        for run in plan(tmp_path, depth).runs
        if described(run) not in EXPERIMENTS_WITHOUT_FILE and has_simulated_costs(run)
    ]
    simulator = plan(tmp_path, depth, memory_mib=0, machine="sim")
    simulator.check()
    alone = [run for run in simulator.runs if experiments.EXPERIMENTS[run.label].machine == "sim"]
    assert {run.tick_ns for run in alone} == {1_000_000, 10_000_000}
    assert [who(run) for run in simulator.runs if run not in alone] == [who(run) for run in kernel]
    assert {run.machine.name for run in simulator.runs} == {"sim"}
    for run in simulator.runs:
        assert run.file
        file = EXPERIMENT_FILES[described(run)]
        assert run.changes == run.file.changes == file.changes_for(depth, run.cpus)
        assert run.workload == file.workload


def test_study_runs_and_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {name: experiments.EXPERIMENTS[name] for name in ("s4-mixed-2", "s4-sleeper")}
    monkeypatch.setattr(planning, "EXPERIMENTS", small)
    monkeypatch.setattr(study_run, "make_report", lambda runs, out: out / "index.html")
    request = ReproductionRequest((4,), "quick", memory_mib=0, machine="sim")
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


def test_a_shell_waits_longer_by_study_5s_text_than_by_its_listing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the text, a woken task waits for a time slice of 50 ms of each of six tasks. By the
    listing in Linux it waits for one task; but of the six, two alternate until one ends.
    """
    small = {"s5-stress-6": experiments.EXPERIMENTS["s5-stress-6"]}
    monkeypatch.setattr(planning, "EXPERIMENTS", small)
    monkeypatch.setattr(study_run, "make_report", lambda runs, out: out / "index.html")
    request = ReproductionRequest((5,), "quick", memory_mib=0, machine="sim")
    done = reproduce(request, tmp_path / "out")
    assert done.succeeded
    page = page_maker(5)(Collection(done.runs))
    assert page is not None
    cells = cells_of(tables_of(page)["study-5-high-load"], 2)
    waits, responses = (
        {
            policy: float(cells["6", policy, "", title].text.replace(",", ""))
            for policy in ("wrr:linux", "wrr:listing")
        }
        for title in ("the shell's longest wait", "the others' longest response")
    )
    assert 250 < waits["wrr:linux"] < 300
    assert waits["wrr:listing"] <= 2
    assert responses["wrr:linux"] <= 300
    assert responses["wrr:listing"] > 1000
    assert "is not explained" in texts_of(page).partition("the shell waits up to")[2]


# --- the pages' texts
