# SPDX-License-Identifier: MIT
"""Labs that are ready: the solution has all points, and each usual mistake loses what it is to lose."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from schedlab.errors import FileRefused, WrongUsage
from schedlab.grading.grading import Grader, grader
from schedlab.grading.lab import SOLUTION, START, TEXT, Lab, find_lab, labs_folder, mistakes, read
from schedlab.submissions import sandbox
from submissions import LAB, small_lab

pytestmark = pytest.mark.xdist_group("grading")

NAMES = sorted(each.parent.name for each in labs_folder().glob("*/lab.json"))


def without_kernel(lab: Lab) -> Lab:
    """The same lab with those tests alone that need no machine."""
    tests = tuple(
        replace(
            test, expectations=tuple(each for each in test.expectations if each.kind != "kernel")
        )
        for test in lab.tests
    )
    return replace(lab, tests=tests)


@pytest.fixture(scope="module", params=NAMES)
def ready(request: pytest.FixtureRequest) -> Iterator[Grader]:
    with grader(without_kernel(find_lab(request.param)), trusted=bool(sandbox.lacking())) as made:
        yield made


def kernel_points(lab: Lab) -> dict[str, int]:
    """What a test gives for the kernel alone, which a policy has that does the same in both."""
    return {
        test.name: sum(int(each.points) for each in test.expectations if each.kind == "kernel")
        for test in find_lab(lab.folder.name).tests
    }


def test_the_solution_has_all_points_and_the_beginning_has_not(ready: Grader) -> None:
    assert ready.grade(ready.lab.folder / SOLUTION).to_dict()["points"] == ready.lab.points
    begun = ready.grade(ready.lab.folder / START)
    assert not begun.refused
    assert begun.points < begun.most / 2
    assert (ready.lab.folder / TEXT).read_text().startswith(f"# {ready.lab.title}\n")


def made_wrong(patch: Path, folder: Path) -> Path:
    """The lab's solution with a mistake, in a new folder."""
    folder.mkdir()
    source = Path(shutil.copy(patch.parent.parent / SOLUTION, folder))
    # A folder within a checkout would be taken for a part of it.
    outside = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    apply = ["git", "apply", "--unidiff-zero", str(patch)]
    subprocess.run(apply, cwd=folder, env=outside, check=True)
    return source


def test_usual_mistakes_lose_what_they_are_to_lose(ready: Grader, tmp_path: Path) -> None:
    expected = mistakes(ready.lab.folder)
    wrong = ready.lab.folder / "wrong"
    assert sorted(expected) == sorted(each.stem for each in wrong.glob("*.patch"))
    assert expected
    for name, points in expected.items():
        verdict = ready.grade(made_wrong(wrong / f"{name}.patch", tmp_path / name))
        assert not verdict.refused, f"{name}: {verdict.refused}"
        with_kernel = {
            test.name: float(test.points)
            + (0 if test.broken else kernel_points(ready.lab)[test.name])
            for test in verdict.tests
        }
        assert with_kernel == pytest.approx(points, abs=0.005), name


@cache
def verdicts_of_many(folder: Path) -> set[str]:
    lab = read(small_lab(folder / "again"))
    with grader(lab, trusted=bool(sandbox.lacking())) as made:
        source = lab.folder / "mine.c"
        source.write_text(lab.solution.read_text().replace("ticks >= slice", "ticks > slice"))
        return {json.dumps(made.grade(source).to_dict()) for _ in range(3)}


def test_the_same_submission_has_the_same_verdict(tmp_path: Path) -> None:
    assert len(verdicts_of_many(tmp_path)) == 1


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


def test_a_workload_outside_of_the_lab_is_refused(tmp_path: Path) -> None:
    folder = small_lab(tmp_path / "wrong")
    begin, end = LAB.index('{"tasks"'), LAB.index(',\n        "expect"')
    (folder / "lab.json").write_text(f'{LAB[:begin]}"../../x.json"{LAB[end:]}')
    with pytest.raises(FileRefused, match=r"in the lab's folder"):
        read(folder)


def test_there_is_no_such_lab() -> None:
    with pytest.raises(WrongUsage, match=r"round-robin"):
        find_lab("nowhere")
