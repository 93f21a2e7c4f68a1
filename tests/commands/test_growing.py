# SPDX-License-Identifier: MIT
"""A report while runs go on: when it is made, what it says, and that nothing of its maker is left."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kept_runs import MS, keep_figures, keep_simulated
from processes import is_running
from schedlab.commands import growing
from schedlab.commands.growing import GrowingReport
from schedlab.machines.run import Run
from schedlab.report.build import write_report
from schedlab.runs.collection import read
from schedlab.runs.plan import Plan
from schedlab.studies.planning import in_turns, plan
from schedlab.toolchain.policies import PolicyChoice

BASE = Run("work", PolicyChoice("rr"), (), 1, "spike", 1, MS, 60_000 * MS, 512)


def plan_in(folder: Path, seeds: int) -> Plan:
    return Plan(folder, tuple(replace(BASE, seed=seed) for seed in range(1, seeds + 1)))


def report_of(wanted: Plan, first: int) -> GrowingReport:
    return GrowingReport(wanted, wanted.folder / "report", first, lambda run: "study 3")


def end(report: GrowingReport, run: Run) -> None:
    keep_simulated(report.wanted.folder / run.name, run.seed)
    report.ended(run)


def maker(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Another program instead of the one that makes reports."""
    command = [sys.executable, "-c", program]
    monkeypatch.setattr(growing, "module_command", lambda module: command)


def wait(report: GrowingReport) -> None:
    assert report._process
    report._process.wait(60)


def test_a_report_says_that_it_is_not_complete_and_the_last_one_takes_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = plan_in(tmp_path / "out", 8)
    index = wanted.folder / "report" / "index.html"
    with report_of(wanted, 2) as report:
        first, second, third, *_ = wanted.runs
        end(report, first)
        assert report._process is None
        end(report, second)
        wait(report)
        end(report, third)
        assert f"a first report is there, and grows: {index}" in capsys.readouterr().err
    page = index.read_text()
    assert "<strong>Not complete yet:</strong> made after 2 of 8 runs" in page
    assert "study 3 2 of 8" in page
    assert "growing.js" in page
    assert not list(index.parent.glob("files/*.svg"))
    assert "play/" not in (index.parent / "runs.html").read_text()
    write_report(read([wanted.folder]), index.parent)
    assert "Not complete yet" not in index.read_text()
    assert not (index.parent / "growing.js").exists()
    assert (index.parent / "made.js").read_text() == 'window.reportMade?.("");\n'


def test_it_is_made_again_when_there_are_three_times_as_many_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "started"
    maker(monkeypatch, f"import json, sys; open({str(started)!r}, 'a').write("
          "f'{len(json.load(sys.stdin)[\"runs\"])} ')")  # fmt: skip
    wanted = plan_in(tmp_path / "out", 40)
    with report_of(wanted, 4) as report:
        for run in wanted.runs:
            report.ended(run)
            if report._process:
                wait(report)
    assert started.read_text().split() == ["4", "12"], "36 are so many that the last one is near"


def test_runs_that_were_there_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maker(monkeypatch, "")
    wanted = plan_in(tmp_path / "out", 8)
    for run in wanted.runs[:3]:
        keep_figures(wanted.folder, seed=run.seed)
    with report_of(wanted, 4) as report:
        report.ended(wanted.runs[3])
        assert report._process


def test_nothing_is_left_of_one_that_is_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker(monkeypatch, "import time; time.sleep(60)")
    wanted = plan_in(tmp_path / "out", 8)
    with report_of(wanted, 1) as report:
        report.ended(wanted.runs[0])
        assert report._process
        assert is_running(report._process.pid)
    assert not is_running(report._process.pid)


def test_one_that_fails_is_told_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    maker(monkeypatch, "raise SystemExit('the disk is full')")
    wanted = plan_in(tmp_path / "out", 8)
    with report_of(wanted, 1) as report:
        report.ended(wanted.runs[0])
        wait(report)
        report.ended(wanted.runs[1])
    assert "no report could be made yet: the disk is full" in capsys.readouterr().err


def test_a_machine_in_the_hosts_time_is_left_alone(tmp_path: Path) -> None:
    wanted = plan_in(tmp_path / "out", 8)
    with report_of(wanted, 1) as report:
        report.ended(replace(wanted.runs[0], machine="qemu"))
        assert report._process is None


def test_the_tests_under_the_most_policies_come_first_with_all_their_seeds(tmp_path: Path) -> None:
    runs = plan(tmp_path, "quick").runs
    turns = in_turns(runs)
    assert sorted((*turns.first, *turns.tried, *turns.rest), key=runs.index) == list(runs)
    assert {run.label for run in turns.first} == {"s3-cpu", "s3-io", "s3-mixed", "s3-inversion"}
    assert len(turns.first) == 4 * 11 * 3
    others = {run.label for run in runs} - {run.label for run in turns.first}
    assert sorted(run.label for run in turns.tried) == sorted(others)
