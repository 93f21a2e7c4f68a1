# SPDX-License-Identifier: MIT
"""Tests that the playground's modules give a lab's visible tests the verdicts of `./schedlab grade`."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright._impl._driver import compute_driver_executable

from conftest import ROOT
from schedlab.base.toolchain.build import build
from schedlab.courses.grading import verdict as grading_verdict
from schedlab.courses.grading.grading import Grader, grader
from schedlab.courses.grading.lab import (
    FIGURES,
    SOLUTION_FILE,
    START_FILE,
    Lab,
    LabTest,
    built_in_labs,
    find_lab,
    parse_test,
)
from schedlab.courses.grading.lab_testing import write_mistake
from schedlab.courses.grading.page_data import expectation_data, page_data, visible_test_data
from schedlab.courses.reasons import REASONS
from schedlab.courses.submissions.compiling import CompiledPolicy, compile_policy
from schedlab.courses.submissions.trial import INITIAL_TIMES_NS

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("grading")]

GRADER = ROOT / "page" / "playground" / "lab_grade.js"
SCRIPT = Path(__file__).with_name("graded_by_page.js")
SIMULATOR = "build/page/apart.wasm"
NOT_JUDGED = {"kernel", "instructions"}
"""Kinds of expectations that the page does not judge."""
UNKNOWN = {
    "energy_proxy", "finished", "ideal_share", "idle", "job_response_max", "jobs", "lateness_max",
    "lateness_mean", "miss_share", "misses", "other_running", "overhead_with_idle_share",
    "processes", "root_running", "scheduler_cycles", "scheduler_entries", "share_error_points",
    "switches_from_idle", "switches_to_idle", "tardiness_mean", "throughput_per_million_cycles",
    "throughput_per_second",
}  # fmt: skip
"""Figures that the page does not know."""
Case = tuple[str, CompiledPolicy, Sequence[dict[str, Any]]]
"""The policy's name, the policy, and the tests as the page has them."""


def graded_by_page(cases: Sequence[Case], folder: Path) -> list[list[dict[str, Any]]]:
    """Returns the page's verdicts: of each case, of each test."""
    build(SIMULATOR)
    file = folder / "cases.json"
    given = [
        {"policy": name, "module": base64.b64encode(policy.module).decode(), "tests": tests}
        for name, policy, tests in cases
    ]
    file.write_text(json.dumps({"reasons": dict(REASONS), "cases": given}))
    node, _ = compute_driver_executable()
    result = subprocess.run(
        [node, "--input-type=module", "-e", SCRIPT.read_text(), GRADER, ROOT / SIMULATOR, file],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    verdicts: list[list[dict[str, Any]]] = json.loads(result.stdout)
    return verdicts


def assert_equal(
    verdicts: Sequence[grading_verdict.TestVerdict],
    by_page: Sequence[dict[str, Any]],
    tests: Sequence[Any],
) -> int:
    """Compares points and reasons; returns the number of expectations that lost points."""
    lost = 0
    for verdict, paged, test in zip(verdicts, by_page, tests, strict=True):
        judged = [
            (result, expectation)
            for result, expectation in zip(paged["results"], test["expectations"], strict=True)
            if expectation["kind"] != "kernel"
        ]
        for (result, expectation), scored in zip(judged, verdict.expectations, strict=True):
            what = (verdict.name, expectation["title"])
            if result is None:
                known = expectation["kind"] not in NOT_JUDGED
                assert not known or expectation["figure"] in UNKNOWN, what
                continue
            assert expectation["figure"] not in UNKNOWN, what
            assert result["points"] == pytest.approx(float(scored.points)), what
            if not verdict.run_failure:
                assert result["why"] == scored.why, what
            lost += bool(scored.why)
        assert bool(paged["fault"]) == bool(verdict.run_failure), verdict.name
    return lost


def sources(lab: Lab, folder: Path) -> Iterator[Path]:
    """Yields the lab's start file, its solution, and the solution with each usual mistake."""
    yield lab.folder / START_FILE
    yield lab.folder / SOLUTION_FILE
    for patch in sorted((lab.folder / "wrong").glob("*.patch")):
        path = folder / patch.stem
        path.mkdir()
        yield write_mistake(patch, path)


def visible(lab: Lab) -> Lab:
    """Returns the lab's visible tests, without expectations about the kernel."""
    tests = (
        replace(test, expectations=tuple(e for e in test.expectations if e.kind != "kernel"))
        for test in lab.tests
        if not test.hidden
    )
    return replace(lab, tests=tuple(tests))


LONG = [name for name in built_in_labs() if name != "inversion"]


@pytest.mark.parametrize(
    "name", ["inversion", *(pytest.param(name, marks=pytest.mark.long) for name in LONG)]
)
def test_verdicts_of_all_sources_are_those_of_grade(name: str, tmp_path: Path) -> None:
    """Covers the start file, the solution and all usual mistakes."""
    lab = visible(find_lab(name))
    (data,) = page_data([name])["labs"]
    tests = [test for test in data["tests"] if not test["hidden"]]
    with grader(lab, trusted=True, solution_checked=True) as ready:
        policies = [compile_policy(lab.form, path, trusted=True) for path in sources(lab, tmp_path)]
        expected = [run_all(ready, policy) for policy in policies]
    cases = [(data["policy"], policy, tests) for policy in policies]
    losses = [
        assert_equal(verdicts, paged, tests)
        for verdicts, paged in zip(expected, graded_by_page(cases, tmp_path), strict=True)
    ]
    assert losses[0] > 0
    assert losses[1] == 0


def run_all(ready: Grader, policy: CompiledPolicy) -> list[grading_verdict.TestVerdict]:
    return [ready.run_test(test, policy) for test in ready.lab.tests]


WORKLOADS: dict[str, dict[str, Any]] = {
    "sleeps": {
        "workload": {
            "tasks": {
                "a": {"loop": 3, "run": "4ticks", "sleep": "2500us"},
                "b": {"loop": 5, "run": "1300us", "sleep": "1ms", "delay": "700us"},
                "c": {"instance": 2, "loop": 1, "lock": "l", "run": "3ticks", "unlock": "l"},
            }
        }
    },
    "several-cpus": {
        "workload": {
            "global": {"duration": 0.1},
            "tasks": {
                "a": {"instance": 5, "loop": -1, "run": "7ms"},
                "b": {"instance": 2, "loop": -1, "run": "900us", "yield": "", "sleep": "3ms"},
            },
        },
        "cpus": 3,
        "costs": "kernel",
        "set": {"slice": 2},
    },
    "never-runs": {
        "workload": {
            "global": {"duration": 0.01},
            "tasks": {"a": {"instance": 30, "loop": -1, "run": "1s"}, "b": {"loop": 1, "run": "1ms"}},
        },
    },
}  # fmt: skip
GROUPS = ("", "a", "b", "nobody")


def table() -> list[LabTest]:
    """Returns tests with each figure of each group, which no run can meet, and with each law."""
    impossible = [
        {"figure": figure, "at_most": "0ms" if is_time else -1, "points": 1}
        | ({"of": group} if group else {})
        for figure, is_time in FIGURES.items()
        for group in GROUPS
    ]
    others = [
        {"law": "ends", "points": 1},
        {"law": "work-conserving", "points": 2},
        {"order": "solution", "points": 7},
        {"order": "solution", "credit": "all", "points": 3},
        *({"levels": group, "are": [0, 1], "points": 1} for group in GROUPS[1:]),
    ]
    made = [
        replace(parse_test({**workload, "expect": [*others, *impossible]}), name=name)
        for name, workload in WORKLOADS.items()
    ]
    return [
        replace(test, policy_clock_ns=clock, policy_run_time_ns=run_time)
        for test, (clock, run_time) in zip(made, INITIAL_TIMES_NS, strict=False)
    ]


def test_figures_have_the_values_of_grade(tmp_path: Path) -> None:
    """Compares all figures, through the reasons of lost points."""
    lab = replace(find_lab("round-robin"), tests=tuple(table()))
    wrong = lab.folder / "wrong" / "last-first.patch"
    policy = compile_policy(lab.form, write_mistake(wrong, tmp_path), trusted=True)
    with grader(lab, trusted=True, solution_checked=True) as ready:
        verdicts = run_all(ready, policy)
        tests = [
            visible_test_data(test, ready.solution_run(test))
            | {"name": test.name, "expectations": list(map(expectation_data, test.expectations))}
            for test in ready.lab.tests
        ]
    ((*by_page,),) = graded_by_page([("turns", policy, tests)], tmp_path)
    lost = assert_equal(verdicts, by_page, tests)
    known = len(FIGURES) - len(UNKNOWN)
    assert lost > len(WORKLOADS) * known * 2
    assert set(FIGURES) > UNKNOWN


def test_a_run_that_fails_has_no_points(tmp_path: Path) -> None:
    """The words differ: the page counts basic blocks instead of instructions."""
    lab = visible(find_lab("round-robin"))
    pick = "    return task_list_take_first_on(&STATE_OF(queue, struct turns_queue)->line, cpu);\n"
    source = lab.solution.read_text()
    assert pick in source
    (data,) = page_data(["round-robin"])["labs"]
    tests = [test for test in data["tests"] if not test["hidden"]][:1]
    policies = []
    for number, text in enumerate(
        ("if (queue->now > 0)\n        return NULL;\n", "__builtin_trap();\n")
    ):
        path = tmp_path / f"{number}.c"
        path.write_text(source.replace(pick, f"    {text}{pick}"))
        policies.append(compile_policy(lab.form, path, trusted=True))
    with grader(replace(lab, tests=lab.tests[:1]), trusted=True, solution_checked=True) as ready:
        expected = [run_all(ready, policy) for policy in policies]
    by_page = graded_by_page([("turns", policy, tests) for policy in policies], tmp_path)
    for verdicts, paged in zip(expected, by_page, strict=True):
        assert verdicts[0].run_failure
        assert_equal(verdicts, paged, tests)
        assert paged[0]["fault"]["text"]


def test_a_hidden_test_has_only_its_name_and_points() -> None:
    (data,) = page_data(["round-robin"])["labs"]
    hidden = [test for test in data["tests"] if test["hidden"]]
    assert hidden == [
        {"name": "sleepers", "hidden": True, "points": 6},
        {"name": "pushed-off", "hidden": True, "points": 2},
    ]
    solution = (ROOT / "labs" / "round-robin" / SOLUTION_FILE).read_text()
    assert solution not in json.dumps(data)
