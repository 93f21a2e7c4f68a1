# SPDX-License-Identifier: MIT
"""Tests studies whose experiments are workload files: their directory contains everything
about them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from schedlab.report.reproduction import ReproductionRequest, simulator_only_runs
from schedlab.report.studies.study_6 import RunCourse
from schedlab.studies.simulated import _simulated_of_study
from schedlab.studies.study import Study

MS = 1_000_000
GOOD = "- {name: a, title: b, workload: tickets/rates, tick: 10ms, policies: [rr, stride slice=2]}"


def in_folder(tmp_path: Path, yaml_text: str) -> Study:
    folder = tmp_path / "9"
    folder.mkdir()
    (folder / "experiments.yaml").write_text(yaml_text)
    return Study(folder)


def test_experiment_matches_its_folder(tmp_path: Path) -> None:
    (entry,) = _simulated_of_study(in_folder(tmp_path, GOOD))
    assert (entry.experiment.name, entry.experiment.study) == ("s9-a", 9)
    assert entry.experiment.machine == "sim"
    assert entry.experiment.tick_ns == 10 * MS
    assert [share.seeds for share in entry.experiment.grid_by_policy("quick").values()] == [3, 3]
    assert list(entry.experiment.grid_by_policy("full")) == ["rr", "stride slice=2"]


def test_the_default_has_them(tmp_path: Path) -> None:
    """They are listed next to the kernel's runs, once each."""
    runs = simulator_only_runs(ReproductionRequest((), "quick"), tmp_path)
    assert {run.machine.name for run in runs} == {"sim"}
    assert {run.label.partition("-")[0] for run in runs} == {"s1", "s3", "s4", "s5", "s6"}
    assert not simulator_only_runs(ReproductionRequest((2,), "quick"), tmp_path)


def course() -> RunCourse:
    """Two processes alternate every 10 ms; the third runs at the same time as one of them, on
    another CPU.
    """
    turns = [(1 + turn % 2, "ab"[turn % 2], 10 * turn, 10 * turn + 10) for turn in range(10)]
    rows = [*turns, (3, "b", 25, 45)]
    running = pl.DataFrame(
        [(pid, group, begin * MS, end * MS) for pid, group, begin, end in rows],
        schema=["pid", "group", "begin_ns", "end_ns"],
        orient="row",
    )
    return RunCourse(100 * MS, running.sort("begin_ns"), pl.DataFrame())


def test_what_a_group_had_until_a_time() -> None:
    at = np.array([0.0, 5, 15, 30, 40, 100]) * MS
    assert (course().of_group("a", at) / MS).tolist() == [0, 5, 10, 20, 20, 50]
    assert (course().of_group("b", at) / MS).tolist() == [0, 0, 5, 15, 35, 70]
    assert course().of_group("c", at).tolist() == [0] * 6


def test_what_lies_between_two_marks_of_a_process() -> None:
    """Marks of two processes do not pair up, nor do marks with a third one between them."""
    rows = [(1, 10, 3), (2, 12, 3), (1, 15, 1), (1, 20, 3), (2, 30, 1), (1, 31, 4), (1, 40, 1)]
    notes = pl.DataFrame(rows, schema=["pid", "time_ns", "number"], orient="row")
    course = RunCourse(100, pl.DataFrame(), notes)
    assert course.mark_delays(3, 1).tolist() == [5, 18]
    assert course.mark_delays(1, 1).tolist() == []
