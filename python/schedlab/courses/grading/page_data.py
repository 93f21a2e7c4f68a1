# SPDX-License-Identifier: MIT
"""Writes labs as data for the playground, which grades by their visible tests in the browser.

A hidden test has only its name and points. The solution's source is left out: its decisions in the visible tests are
enough to judge an order.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

from schedlab.courses.grading.graded_run import GradedRun
from schedlab.courses.grading.grading import grader
from schedlab.courses.grading.judging import describe_initial_times
from schedlab.courses.grading.lab import START_FILE, TEXT_FILE, Expectation, Lab, LabTest, find_lab
from schedlab.courses.grading.lab_testing import without_kernel_expectations
from schedlab.courses.grading.verdict import as_number
from schedlab.courses.reasons import REASONS
from schedlab.courses.submissions.compiling import sources_of
from schedlab.errors import FileRefused, WrongUsage
from schedlab.trace import Trace
from schedlab.trace.divergence import list_picks
from schedlab.workload.text import format_workload


def page_data(names: Iterable[str]) -> dict[str, Any]:
    """Returns these labs, each named by its folder or, for a built-in one, by its name.

    Runs their solutions, which are trusted. Raises WrongUsage, FileRefused for faults of a lab, and
    NotGraded for faults of the host.
    """
    labs = [find_lab(name) for name in names]
    for one, other in pairwise(sorted(labs, key=_lab_name)):
        if _lab_name(one) == _lab_name(other):
            raise WrongUsage(
                f"two labs have folders called {_lab_name(one)}; rename one, because the"
                " page remembers progress by name"
            )
    return {"reasons": dict(REASONS), "labs": [lab_data(lab) for lab in labs]}


def _lab_name(lab: Lab) -> str:
    return lab.folder.resolve().name


def lab_data(lab: Lab) -> dict[str, Any]:
    """Returns a lab: its text, its start file, and its tests with the solution's decisions."""
    text, start = (_read_text(lab, name) for name in (TEXT_FILE, START_FILE))
    visible = tuple(test for test in lab.tests if not test.hidden)
    with grader(
        without_kernel_expectations(replace(lab, tests=visible)), trusted=True
    ) as lab_grader:
        tests = {
            test.name: visible_test_data(test, lab_grader.solution_run(test))
            for test in lab_grader.lab.tests
        }
    for test in visible:
        tests[test.name]["expectations"] = list(map(expectation_data, test.expectations))
    headers = [
        path.name for name, path in sources_of(lab.form).items() if name.startswith("policies/")
    ]
    return {
        "name": _lab_name(lab),
        "title": lab.title,
        "policy": lab.form.policy,
        "symbol": lab.form.symbol,
        "headers": headers,
        "text": text,
        "start": start,
        "tests": [
            {
                "name": test.name,
                "hidden": test.hidden,
                "points": as_number(test.points),
                **tests.get(test.name, {}),
            }
            for test in lab.tests
        ],
    }


def _read_text(lab: Lab, name: str) -> str:
    try:
        return (lab.folder / name).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise FileRefused(
            f"{lab.folder / name}: {reason}; write this file in UTF-8, because the page shows it"
        ) from None


def visible_test_data(test: LabTest, solution_run: GradedRun) -> dict[str, Any]:
    """Returns how a test runs, and the solution's decisions in it."""
    with_zero_run_times = replace(test, policy_run_time_ns=0)
    return {
        "says": test.title,
        "cpus": test.cpus,
        "seed": str(test.seed),
        "tick_ns": test.tick_ns,
        "limit_ns": test.limit_ns,
        "costs": test.costs,
        "settings": dict(test.settings),
        "text": format_workload(test.workload, test.seed, test.tick_ns, test.cpus),
        "clock": str(test.policy_clock_ns),
        "run_time": str(test.policy_run_time_ns),
        "clock_words": describe_initial_times(with_zero_run_times),
        "run_time_words": describe_initial_times(test),
        "right": {
            "picks": [_encode_picks(solution_run.trace, cpu) for cpu in range(test.cpus)],
            "groups": {
                str(pick.pid): pick.group
                for cpu in range(test.cpus)
                for pick in list_picks(solution_run.trace, cpu)
            },
            "workload": sorted(solution_run.group_by_pid()),
        },
    }


def _encode_picks(trace: Trace, cpu: int) -> list[int]:
    """Returns the PID of each pick and the time since the pick before (ns), in turn."""
    encoded_picks: list[int] = []
    previous_ns = 0
    for pick in list_picks(trace, cpu):
        encoded_picks += (pick.pid, pick.time_ns - previous_ns)
        previous_ns = pick.time_ns
    return encoded_picks


def expectation_data(expected: Expectation) -> dict[str, Any]:
    """Returns an expectation with its words."""
    is_figure = expected.kind == "figure"
    least, most = expected.at_least, expected.at_most
    return {
        "kind": expected.kind,
        "title": expected.title,
        "points": as_number(expected.points),
        "law": expected.invariant,
        "figure": expected.figure,
        "of": expected.group,
        "is_time": is_figure and expected.is_time,
        "at_least": least,
        "at_most": most,
        "at_least_words": expected.format_value(least) if is_figure and least is not None else "",
        "at_most_words": expected.format_value(most) if is_figure and most is not None else "",
        "levels": list(expected.levels),
        "all_or_nothing": expected.all_or_nothing,
    }
