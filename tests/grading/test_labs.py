# SPDX-License-Identifier: MIT
"""Tests that each lab's solution has all points, and that each usual mistake loses the stated
ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from schedlab.courses.grading.grading import Grader, grader
from schedlab.courses.grading.lab import (
    SOLUTION_FILE,
    START_FILE,
    TEXT_FILE,
    Lab,
    built_in_labs_folder,
    find_lab,
    read,
    read_mistakes,
)
from schedlab.courses.grading.lab_testing import without_kernel_expectations, write_mistake
from schedlab.courses.submissions import sandbox, wasm_policy
from schedlab.courses.submissions.compiling import compile_policy
from schedlab.courses.submissions.trial import INITIAL_TIMES_NS
from schedlab.errors import FileRefused
from submissions import LAB, small_lab

pytestmark = pytest.mark.xdist_group("grading")

NAMES = sorted(path.parent.name for path in built_in_labs_folder().glob("*/lab.json"))


@pytest.fixture(scope="module", params=NAMES)
def ready(request: pytest.FixtureRequest) -> Iterator[Grader]:
    with grader(
        without_kernel_expectations(find_lab(request.param)),
        trusted=bool(sandbox.missing_requirement()),
    ) as made:
        yield made


def kernel_points(lab: Lab) -> dict[str, int]:
    """Returns, per test, the points for equal behaviour on the kernel and the simulator."""
    return {
        test.name: sum(
            int(expectation.points)
            for expectation in test.expectations
            if expectation.kind == "kernel"
        )
        for test in find_lab(lab.folder.name).tests
    }


def test_the_solution_has_all_points_and_the_beginning_has_not(ready: Grader) -> None:
    assert ready.grade(ready.lab.folder / SOLUTION_FILE).to_dict()["points"] == ready.lab.points
    start_verdict = ready.grade(ready.lab.folder / START_FILE)
    assert not start_verdict.refused
    assert start_verdict.points < start_verdict.max_points / 2
    assert (ready.lab.folder / TEXT_FILE).read_text().startswith(f"# {ready.lab.title}\n")


def test_usual_mistakes_lose_what_they_are_to_lose(ready: Grader, tmp_path: Path) -> None:
    expected = read_mistakes(ready.lab.folder)
    wrong = ready.lab.folder / "wrong"
    assert sorted(expected) == sorted(patch.stem for patch in wrong.glob("*.patch"))
    assert expected
    for name, points in expected.items():
        verdict = ready.grade(write_mistake(wrong / f"{name}.patch", tmp_path))
        assert verdict.points < verdict.max_points, name
        assert not verdict.refused, f"{name}: {verdict.refused}"
        with_kernel = {
            test.name: float(test.points)
            + (0 if test.run_failure else kernel_points(ready.lab)[test.name])
            for test in verdict.tests
        }
        assert with_kernel == pytest.approx(points, abs=0.005), name


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"points": 8', '"points": -1', "lab.json:5: tests.small.expect.1.points: -1: expected"),
        ('"order": "solution"', '"order": "mine"', "expected one of solution"),
        ('"law": "ends"', '"law": "ends", "order": "solution"', "one of law, order"),
        ('"law": "ends"', '"figure": "share"', "at_least"),
        ('"2ticks"', '"for ever"', "expected a time"),
        ('"policy": "turns"', '"policy": "Turns!"', "a name of a-z"),
        ("task_list.h", "../labs/x.h", "such as task_list.h"),
        ('{"tasks"', '"../../README.md", "was": {"tasks"', "unknown"),
        ('"title": "Small", ', "", "`title` in it"),
    ],
)
def test_a_lab_that_is_wrong_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    folder = small_lab(tmp_path / "wrong")
    assert old in LAB
    (folder / "lab.json").write_text(LAB.replace(old, new, 1))
    with pytest.raises(FileRefused) as refused:
        read(folder)
    assert words in str(refused.value)
    assert "lab.json:" in str(refused.value)


@pytest.mark.parametrize("name", NAMES)
def test_a_solution_decides_the_same_from_every_clock_and_run_time(
    name: str, tmp_path: Path
) -> None:
    """Traces use the simulator's times, which always start at the same value."""
    lab = find_lab(name)
    compiled = compile_policy(lab.form, lab.solution, trusted=bool(sandbox.missing_requirement()))
    for test in lab.tests:
        traces = set()
        for clock_ns, run_time_ns in INITIAL_TIMES_NS:
            trial = replace(test, policy_clock_ns=clock_ns, policy_run_time_ns=run_time_ns)
            traces.add(wasm_policy.run(trial, compiled, tmp_path / "trace.bin").trace.read_bytes())
        assert len(traces) == 1, test.name
