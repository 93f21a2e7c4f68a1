# SPDX-License-Identifier: MIT
"""Tests the reproduction of studies: the plan, resuming it, and the results' texts."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from refused import refusal
from schedlab.base.files.replacement import write_list
from schedlab.base.toolchain.build import BUILT_FILES
from schedlab.base.toolchain.policies import read_catalogue
from schedlab.errors import WrongUsage
from schedlab.machines.spec import Release
from schedlab.paths import ROOT
from schedlab.report import reproduction as study_run
from schedlab.report.files import REPORT_FILE
from schedlab.report.reproduction import ReproductionRequest, reproduce
from schedlab.runs import collection, perform, worker
from schedlab.runs.collection import Collection
from schedlab.runs.perform import check_policies
from schedlab.runs.plan import Plan
from schedlab.runs.progress import Durations, ProgressBoard
from schedlab.studies import planning
from schedlab.studies.experiment import Depth, Experiment, PolicyGroup, RunGrid
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.studies.planning import plan
from script_machine import ScriptMachine

# --- the plan


@pytest.mark.parametrize("depth", ["quick", "full"])
def test_runs_of_a_plan_have_unique_names(tmp_path: Path, depth: Depth) -> None:
    runs = plan(tmp_path, depth).runs
    assert len({run.name for run in runs}) == len(runs) > 800
    assert max(len(run.name) for run in runs) < 200
    assert {run.machine.name for run in runs} == {"spike"}
    for run in runs:
        assert "/" not in run.name


@pytest.mark.parametrize("depth", ["quick", "full"])
def test_policies_of_a_plan_exist_and_know_their_settings(tmp_path: Path, depth: Depth) -> None:
    study_plan = plan(tmp_path, depth)
    study_plan.check()
    check_policies(read_catalogue(), study_plan)


def test_pages_and_help_state_the_number_of_runs() -> None:
    """Checks README.md, docs/studies.md and `./schedlab run --help`."""
    counts = {}
    for depth in ("quick", "full"):
        plans = study_run.plan_machines(
            ("spike",), ReproductionRequest((), depth), Path("/nowhere")
        )
        counts[depth] = f"{sum(len(plan.runs) for plan in plans.values()):,}"
    boots = sum(
        len(plan(Path("/nowhere"), "full", machine=m).runs) for m in ("linux", "linux-free")
    )
    readme, page = (ROOT / name for name in ("README.md", "docs/studies.md"))
    assert f"{counts['quick']} runs, and one report" in readme.read_text()
    assert f"{counts['full']} runs, and {boots} boots of Linux" in readme.read_text()
    assert f"Quick has {counts['quick']} runs" in page.read_text()
    assert f"Full has {counts['full']} runs and {boots} boots of Linux" in page.read_text()
    assert (
        f"boots Linux {boots} times" in (ROOT / "python/schedlab/commands/reproduce.py").read_text()
    )


# --- small runs, with a stand-in for the machine

TINY = (
    Experiment(
        "tiny-cpu",
        1,
        "tiny",
        "cpu-bound -n 2 -i 20000",
        ("rr:table-scan",),
        quick=(PolicyGroup(("rr:table-scan", "priority aging_interval=0"), RunGrid((1, 2), 1)),),
        full=(PolicyGroup(("rr",), RunGrid((1,), 1)),),
        scales_with_tick=False,
    ),
    Experiment(
        "tiny-mixed",
        4,
        "tiny",
        "study4 mixed -c 2 -i 2",
        ("mlfq",),
        quick=(PolicyGroup(("mlfq",), RunGrid((1,), 2)),),
        full=(),
    ),
)
"""Six quick runs."""


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Collection, Path]]:
    """Returns experiments that take a moment; the report is only recorded."""
    monkeypatch.setattr(
        planning, "EXPERIMENTS", {experiment.name: experiment for experiment in TINY}
    )
    monkeypatch.setattr(study_run, "plan_proposal_tests", lambda folder, *_: Plan(folder, ()))
    reports: list[tuple[Collection, Path]] = []

    def write_report(runs: Collection, out: Path) -> Path:
        reports.append((runs, out))
        out.mkdir(exist_ok=True)
        (out / "index.html").write_text(f"{len(runs)} runs")
        (out / REPORT_FILE).write_text(json.dumps({"findings": ["**Turnaround:** `rr` is best."]}))
        write_list(out)
        return out / "index.html"

    monkeypatch.setattr(study_run, "make_report", write_report)
    return reports


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine implemented by a shell script, which records each start in the given file.

    It fails while there is a file `fail-N` next to the given file, where N is the number of CPUs.
    """
    started = tmp_path / "started"
    started.touch()
    script = f'echo "$1" >>"{started}"; echo >trace.bin; test ! -e "{tmp_path}/fail-$1"'
    monkeypatch.setattr(planning, "machine_named", lambda name: ScriptMachine(script, name=name))
    monkeypatch.setattr(worker, "evaluate_run", lambda folder, outcome, *, store: (None, outcome))
    monkeypatch.setattr(perform, "ProgressBoard", board_without_memory(tmp_path))
    return started


def board_without_memory(folder: Path) -> Callable[..., ProgressBoard]:
    return lambda runs, slots, overall: ProgressBoard(
        runs, slots, Durations(folder / "durations.json"), overall
    )


def starts(started: Path) -> int:
    """Returns the number of starts since the last call."""
    count = len(started.read_text().splitlines())
    started.write_text("")
    return count


QUICK = ReproductionRequest((), "quick")


def test_what_is_finished_is_not_run_again(
    tmp_path: Path, tiny: list[tuple[Collection, Path]], machine: Path
) -> None:
    out = tmp_path / "out"
    first = reproduce(QUICK, out)
    assert first.succeeded
    assert starts(machine) == 6
    traces = {run.folder: (run.folder / "trace.bin").stat().st_mtime_ns for run in first.runs}
    again = reproduce(QUICK, out)
    assert starts(machine) == 0
    assert [run.folder for run in again.runs] == [run.folder for run in first.runs]
    assert {f: (f / "trace.bin").stat().st_mtime_ns for f in traces} == traces
    assert [(len(runs), place) for runs, place in tiny] == [(6, out / "report")] * 2


def test_what_failed_is_run_again_and_replaced(
    tmp_path: Path, tiny: list[tuple[Collection, Path]], machine: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "fail-2").touch()
    first = reproduce(QUICK, tmp_path / "out")
    assert starts(machine) == 6
    assert not first.succeeded
    assert Counter(run.status for run in first.runs) == {"success": 4, "failed": 2}
    assert len(tiny[0][0]) == 6, "the report has the failed ones, too"
    stderr = capsys.readouterr().err
    assert "tiny-cpu, priority aging_interval=0, 2 CPUs, seed 1: the workload failed" in stderr
    (tmp_path / "fail-2").unlink()
    second = reproduce(QUICK, tmp_path / "out")
    assert starts(machine) == 2
    assert second.succeeded
    assert "2 runs, in" in capsys.readouterr().err
    assert len(list((tmp_path / "out").glob("*/manifest.json"))) == 6


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ("kernel", "made with another kernel: "),
        ("disk", "made with another disk image: "),
        ("tick", "made with another boot arguments: "),
        ("memory", "made with another memory: 512, now 64"),
        ("version", "made with another machine's version: 1, now 2"),
    ],
)
def test_runs_of_another_make_are_refused(
    tmp_path: Path, machine: Path, monkeypatch: pytest.MonkeyPatch, changed: str, named: str
) -> None:
    reproduce(ReproductionRequest((4,), "quick"), tmp_path / "out")
    starts(machine)
    request = QUICK
    if changed in ("kernel", "disk"):
        other = tmp_path / "other"
        other.write_text("other")
        monkeypatch.setitem(BUILT_FILES, changed, other)
    elif changed == "version":
        release = Release("/bin/sh", "2", "test")
        monkeypatch.setattr(ScriptMachine, "release", lambda self: release)
    elif changed == "tick":
        request = replace(QUICK, tick_ns=2_000_000)
    else:
        request = replace(QUICK, memory_mib=64)
    with pytest.raises(WrongUsage, match="name another folder") as refused:
        reproduce(request, tmp_path / "out")
    assert named in str(refused.value)
    assert "tiny-mixed-mlfq-1cpu-seed1" in str(refused.value)
    assert starts(machine) == 0


@pytest.mark.usefixtures("tiny")
def test_a_place_for_the_report_that_is_taken_is_refused_before_the_work(
    tmp_path: Path, machine: Path
) -> None:
    (tmp_path / "out" / "report").mkdir(parents=True)
    (tmp_path / "out" / "report" / "mine").touch()
    with pytest.raises(WrongUsage, match="would be replaced, but"):
        reproduce(QUICK, tmp_path / "out")
    assert starts(machine) == 0


def test_interruption_names_the_command_to_resume(
    tmp_path: Path, tiny: list[tuple[Collection, Path]], machine: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """The first run on two CPUs is interrupted."""
    script = f'echo >trace.bin; test "$1" = 1 || {{ kill -INT {os.getpid()}; sleep 60; }}'
    monkeypatch.setattr(planning, "machine_named", lambda name: ScriptMachine(script, name=name))
    monkeypatch.setattr(perform, "count_host_cpus", lambda: 1)
    out = tmp_path / "a folder"
    request = ReproductionRequest((1, 4), "quick", seed=7, memory_mib=64)
    with pytest.raises(SystemExit) as ended:
        reproduce(request, out)
    assert ended.value.code == 128 + signal.SIGINT
    assert tiny == []
    stderr = capsys.readouterr().err
    finished = len(list(out.glob("*/manifest.json")))
    assert 1 <= finished < 6
    assert f"interrupted; {finished} of 6 runs are finished" in stderr
    command = f"./schedlab reproduce study-1 study-4 --quick --seed 7 --memory 64 --out '{out}'"
    assert command in stderr


# --- the command line


# --- one small study on the real machine


@pytest.mark.long
@pytest.mark.spike
def test_a_study_on_spike(tmp_path: Path, tiny: list[tuple[Collection, Path]]) -> None:
    """Its runs have metrics and reported values, and the same ones again after some are lost."""
    out = tmp_path / "out"
    done = reproduce(QUICK, out)
    assert done.succeeded
    assert done.report.read_text() == "6 runs"
    runs = done.runs
    assert runs.one("tiny-cpu", "rr:table-scan", 2) is not None
    (strict,) = runs.select(experiment="tiny-cpu", policy="priority", cpus=2)
    assert strict.setup.policy_title == "priority aging_interval=0"
    assert runs.summary["completion_ns"].null_count() == 0
    finished_rows = runs.values.filter(runs.values["name"] == "finished")
    assert Counter(finished_rows["experiment"]) == {"tiny-mixed": 2 * 4}
    lost = done.runs.runs[0].folder
    before = (lost / "trace.bin").read_bytes()
    shutil.rmtree(lost)
    assert reproduce(QUICK, out).succeeded
    assert (lost / "trace.bin").read_bytes() == before
    assert len(collection.read_collection([out])) == 6


# --- study 5, on Linux as well


def test_experiments_are_run_on_their_machine_and_no_other(tmp_path: Path) -> None:
    for machine in ("spike", "sim", "linux", "linux-free"):
        runs = plan(tmp_path, "full", (5,), memory_mib=512, machine=machine).runs
        assert runs
        machines = {EXPERIMENTS[run.label].machine for run in runs}
        assert machines == {"spike": {None}, "sim": {None, "sim"}}.get(machine, {machine})
        assert {run.machine.name for run in runs} == {machine}
    on_linux = plan(tmp_path, "quick", (5,), tick_ns=2_000_000, machine="linux").runs
    assert {run.tick_ns for run in on_linux} == {4_000_000}
    assert not plan(tmp_path, "full", (1, 2, 3, 4), machine="linux").runs


# --- some experiments alone


def test_an_experiment_is_reproduced_alone(tmp_path: Path) -> None:
    """It is selected by its label, which may belong to a proposal's test."""
    labels = ("s4-scan-6", "proposal-late")
    _, study_plan = study_run.make_plans(
        ReproductionRequest((), "quick", experiments=labels), tmp_path
    )
    assert {run.label for run in study_plan.runs} == set(labels)
    assert ReproductionRequest((), "quick", experiments=labels).machines == ("spike",)
    on_linux = ReproductionRequest((), "quick", experiments=("s5-linux-sysbench",))
    assert set(on_linux.machines) == {"spike", "linux", "linux-free"}


def test_an_unknown_experiment_is_refused() -> None:
    assert "did you mean 's3-cpu'?" in refusal("reproduce", "s3-cpy", "--dry-run")
