# SPDX-License-Identifier: MIT
"""Study 1's tables 1 and 2 beside ours: completion and context switches on one to five CPUs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from schedlab.report.model import Column, Table
from schedlab.report.studies.texts import measured_table
from schedlab.report.studies.timing_reasons import TimingReasons
from schedlab.report.studies.timing_runs import PRIORITIES, Suite, TimingRuns, figure
from schedlab.report.study_tables import Comparison, Kind, Line, Numbers, compared_table
from schedlab.report.wording import cpus as cpus_text
from schedlab.studies.experiments import ALL_CPUS, TIMING_TESTS
from schedlab.studies.ideal import ideal_completion, ideal_told

TOLD = "completion, ticks"
PICKS = "context switches"
NEAR = 0.05
"""Ours is near the ideal if it is off by a twentieth of it at most, or by a tick."""


def near(ideal: float) -> float | None:
    """Ticks that ours may be off; None where less than a tick is ideal."""
    return max(1.0, NEAR * ideal) if ideal >= 1 else None


def suite_table(runs: TimingRuns, suite: Suite, reasons: TimingReasons, caption: str) -> Table:
    """One of the two tables."""
    number = int(suite.place.split()[1])
    title = {1: "round-robin", 2: "priorities"}[number]
    return compared_table(
        f"study-1-table-{number}",
        f"The study's table {number}: {title}",
        ("test", "CPUs"),
        list(_lines(runs, suite, number, reasons)),
        caption,
    )


def tells_another_time(table: int, test: str) -> bool:
    """Is what the study tells not when all have ended?"""
    row = TIMING_TESTS[test]
    return ideal_told(table, row, 1) != ideal_completion(table, row, 1)


def told(runs: TimingRuns, table: int, test: str) -> Numbers:
    """The number that stands in the table: from the trace, unless the program alone knows it."""
    return runs.told if tells_another_time(table, test) else runs.completion


def _lines(runs: TimingRuns, suite: Suite, table: int, reasons: TimingReasons) -> Iterator[Line]:
    for test in TIMING_TESTS:
        for cpus in ALL_CPUS:
            yield _told_line(runs, suite, test, cpus, reasons)
        if tells_another_time(table, test):
            for cpus in ALL_CPUS:
                yield _whole_line(runs, suite, table, test, cpus, reasons)


def told_comparison(runs: TimingRuns, suite: Suite, test: str, cpus: int) -> Comparison:
    """The time that stands in a suite's table, beside ours."""
    table, row = int(suite.place.split()[1]), TIMING_TESTS[test]
    ideal = ideal_told(table, row, cpus)
    return Comparison(
        study=figure(suite, row, cpus),
        here=runs.measured(told(runs, table, test), suite, test, cpus),
        ideal=ideal,
        rerun=figure(suite, row, cpus, source="rerun"),
        near=near(ideal),
        differs="percent",
    )


def _told_line(
    runs: TimingRuns, suite: Suite, test: str, cpus: int, reasons: TimingReasons
) -> Line:
    row = TIMING_TESTS[test]
    ticks = told_comparison(runs, suite, test, cpus)
    off_ideal = ticks.cell("here").tone == "bad"
    notes: dict[Kind, str] = {"here": reasons.told(test, cpus, is_off(ticks), off_ideal)}
    picks = Comparison(
        study=figure(suite, row, cpus, "context switches"),
        here=runs.measured(runs.picks, suite, test, cpus),
        rerun=figure(suite, row, cpus, "context switches", "rerun"),
        decimals=0,
    )
    return Line((row, str(cpus)), {TOLD: replace(ticks, notes=notes), PICKS: picks})


def in_a_row_table(runs: TimingRuns) -> Table | None:
    """What the tests tell if all seven are run one after another; None if nobody did that."""
    rows = {
        row: [runs.in_a_row(test, cpus) for cpus in ALL_CPUS] for test, row in TIMING_TESTS.items()
    }
    found = {row: [each for each in cells if each] for row, cells in rows.items()}
    if not any(found.values()):
        return None
    return measured_table(
        "study-1-in-a-row",
        "All tests in a row: ticks that each tells",
        "test",
        [(Column(cpus_text([cpus])), 1) for cpus in ALL_CPUS],
        found,
        f"Under `{PRIORITIES.policy}`. Whole ticks, by the kernel's clock.",
    )


def _whole_line(
    runs: TimingRuns, suite: Suite, table: int, test: str, cpus: int, reasons: TimingReasons
) -> Line:
    row = TIMING_TESTS[test]
    ideal = ideal_completion(table, row, cpus)
    ticks = Comparison(
        here=runs.measured(runs.completion, suite, test, cpus), ideal=ideal, near=near(ideal)
    )
    notes: dict[Kind, str] = {"here": reasons.whole(ticks.cell("here").tone == "bad")}
    return Line((f"{row}, until all have ended", str(cpus)), {TOLD: replace(ticks, notes=notes)})


def is_off(comparison: Comparison) -> bool:
    """Does ours differ from theirs by more than a tick, and a twentieth?"""
    mean = comparison.here.mean if comparison.here else None
    theirs = comparison.study
    if mean is None or theirs is None or not theirs.finished:
        return False
    return abs(mean - theirs.value) > max(1.0, NEAR * theirs.value)
