# SPDX-License-Identifier: MIT
"""Tests clocks and run times that start near their wrap, with submissions and the labs'
solutions."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import ROOT
from schedlab.courses.grading.grading import grader
from schedlab.courses.grading.lab import Lab, read
from schedlab.courses.submissions import sandbox
from schedlab.errors import FileRefused
from wrapping_policy import passes

pytestmark = pytest.mark.xdist_group("grading")

SHARES = ROOT / "labs" / "shares"
TRUSTED = bool(sandbox.missing_requirement())


def lab_with(solution: str, tests: int, folder: Path) -> Lab:
    """Returns the lab of shares with another solution and only its first `tests` tests."""
    shutil.copytree(SHARES, folder)
    (folder / "solution.c").write_text(solution)
    lab = read(folder)
    return replace(lab, tests=lab.tests[:tests])


def with_run_time_of_32_bits() -> str:
    text = (SHARES / "solution.c").read_text()
    assert "    uint64_t began;" in text
    return text.replace("    uint64_t began;", "    uint32_t began;")


def by_run_duration() -> str:
    text = (SHARES / "solution.c").read_text()
    old = "state->pass += (task->run_time - state->began) * ONE"
    assert old in text
    return text.replace(old, "state->pass = task->run_time * ONE")


def test_run_times_of_32_bits_lose_points_and_64_bits_none(tmp_path: Path) -> None:
    lab = read(SHARES)
    some = replace(lab, tests=lab.tests[:2])
    wraps, sound = tmp_path / "wraps.c", tmp_path / "sound.c"
    wraps.write_text(with_run_time_of_32_bits())
    sound.write_text(by_run_duration())
    with grader(some, TRUSTED) as ready:
        lost = ready.grade(wraps)
        assert [test.lost_points for test in lost.tests] == [False, True]
        assert "run times at 98,784 s" in lost.tests[1].describe_losses()
        assert ready.grade(sound).points == some.points


def test_a_lab_whose_solution_wraps_is_refused(tmp_path: Path) -> None:
    by_order = lab_with(with_run_time_of_32_bits(), 3, tmp_path / "order")
    by_order = replace(by_order, tests=by_order.tests[2:])
    below_zero = passes(tmp_path / "passes.c", True).read_text().replace("policies/", "")
    by_share = lab_with(below_zero, 1, tmp_path / "share")
    for lab, why in (
        (by_order, "its decisions differ in in-order only where run times wrap"),
        (by_share, "solution fails in one-cpu: share of a is 0.00"),
    ):
        with pytest.raises(FileRefused) as refused, grader(lab, TRUSTED):
            pass
        assert why in str(refused.value)
