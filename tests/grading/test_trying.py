# SPDX-License-Identifier: MIT
"""Tests mutants of a lab's solution: which exist, which tests notice them, how survivors are
shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from schedlab.courses.grading.grading import grader
from schedlab.courses.grading.lab import find_lab, parse_test, read
from schedlab.courses.grading.lab_testing import try_lab
from schedlab.courses.grading.mutants import make_mutants
from schedlab.courses.submissions import sandbox
from submissions import small_lab
from test_labs import NAMES

pytestmark = pytest.mark.xdist_group("grading")

SOURCE = """
/* if (a < b) in a comment, and 1 in an enum, are no code */
enum { ONE = 1 };
POLICY_FUNCTION int64_t first(int64_t a, int64_t b)
{
    if (a < b && "<")
        call(a);
    return a == 2 ? a : b;
}
POLICY_FUNCTION uint64_t only_shown(int64_t a)
{
    return a + 1;
}
POLICY_DEFINITION policy_x = {
    .preempts = first,
    .time_slice = only_shown,
};
"""


def test_mutants_change_one_decision() -> None:
    mutants = make_mutants(SOURCE)
    assert {mutant.line for mutant in mutants} == {6, 7, 8, 15}
    assert len({mutant.source for mutant in mutants}) == len(mutants)
    changes = {mutant.after for mutant in mutants}
    assert changes >= {
        'if (a <= b && "<")',
        'if (a < b || "<")',
        "if (a < b )",
        'if ("<")',
        'if (!(a < b && "<"))',
        "{ if (false) call(a); }",
        "return a == 3 ? a : b;",
        "return a == 2 ? b : a;",
        "return (true || (a == 2)) ? a : b;",
        "",
    }
    for mutant in mutants:
        assert mutant.before in " ".join(SOURCE.split())
        assert mutant.source.count("\n") == SOURCE.count("\n")


def test_survivor_has_a_test_that_kills_it(tmp_path: Path) -> None:
    folder = small_lab(tmp_path / "small")
    text = (folder / "lab.json").read_text()
    (folder / "lab.json").write_text(text.replace('"expect"', '"set": {"slice": 2}, "expect"'))
    lab = read(folder)
    tried = try_lab(lab, bool(sandbox.missing_requirement()), 2, 3, lambda *_: None)
    assert [mutant.status for mutant in tried.mutants] == ["survived", "killed"]
    assert not tried.passed
    survivor = tried.unkilled[0]
    assert survivor.example
    assert survivor.difference
    better = replace(lab, tests=(*lab.tests, parse_test(survivor.example)))
    source = tmp_path / "mutant.c"
    source.write_text(survivor.mutant.source)
    with grader(better, trusted=bool(sandbox.missing_requirement())) as made:
        assert made.grade(lab.solution).points == better.points
        verdict = made.grade(source)
    assert [test.lost_points for test in verdict.tests] == [False, True]


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_all_mutants_and_mistakes_lose_points(name: str) -> None:
    tried = try_lab(find_lab(name), bool(sandbox.missing_requirement()), 2, None, lambda *_: None)
    counts = {status: tried.count(status) for status in ("killed", "equivalent", "survived")}
    print(f"{name}: {len(tried.mutants)} mutants {counts}, {len(tried.mistakes)} mistakes")
    assert len(tried.mutants) >= 30
    assert tried.mistakes
    assert tried.passed, [survivor.to_dict() for survivor in tried.unkilled]
