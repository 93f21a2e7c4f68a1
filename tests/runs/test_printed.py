# SPDX-License-Identifier: MIT
"""Tests that a benchmark's printed figures appear in the table of a run, and in its JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from printed_by_benchmarks import OUTPUTS, sysbench
from schedlab.commands.metric_tables import print_figures
from schedlab.machines.folder import CONSOLE_FILE
from schedlab.machines.outcome import Outcome
from schedlab.runs.plan_execution import Finished, results_as_json
from schedlab.runs.results import read_printed_figures
from schedlab.studies.linux_experiments import FAIR_CLASS
from test_run import BASE

COMMAND = "sysbench cpu --threads=1 run"


def console(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / CONSOLE_FILE).write_text(f"[    1.2] booted\n{text}\n[   20.0] power off\n")
    return folder


def test_figures_are_read_from_the_console(tmp_path: Path) -> None:
    folder = console(tmp_path, sysbench(FAIR_CLASS, 1))
    assert read_printed_figures(folder, COMMAND)["events_per_second"] == 1002
    assert read_printed_figures(folder, "cpu-bound -n 2") == {}
    assert read_printed_figures(console(tmp_path, "Segmentation fault"), COMMAND) == {}
    assert read_printed_figures(tmp_path / "none", COMMAND) == {}


@pytest.mark.parametrize(("status", "expected_value"), [("success", 1002), ("failed", None)])
def test_programs_get_values_printed_by_successful_runs(
    tmp_path: Path, status: str, expected_value: float | None
) -> None:
    folder = console(tmp_path, sysbench(FAIR_CLASS, 1))
    run = replace(BASE, workload=COMMAND)
    output = json.loads(results_as_json([Finished(run, folder, Outcome(status), {}, None)]))
    assert output["runs"][0]["printed"].get("events_per_second") == expected_value


def test_table_has_a_row_per_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hackbench = next(OUTPUTS.glob("hackbench*.txt")).read_text()
    columns = [
        ("rr", read_printed_figures(console(tmp_path / "a", sysbench(FAIR_CLASS, 1)), COMMAND)),
        ("mlfq", read_printed_figures(console(tmp_path / "b", hackbench), "hackbench -g 2")),
    ]
    print_figures(columns)
    lines = {
        line.split()[0]: line.split()[1:]
        for line in capsys.readouterr().out.splitlines()
        if line.strip()
    }
    assert lines["events_per_second"] == ["1,002", "–"]
    assert lines["tasks"][0] == "–" and float(lines["tasks"][1]) > 0
    print_figures([])
    assert capsys.readouterr().out == ""
