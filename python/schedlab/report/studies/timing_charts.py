# SPDX-License-Identifier: MIT
"""Study 1's figures 1 and 2, and the completion of all seven tests, over the number of CPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from schedlab.report.charts import lines
from schedlab.report.model import Chart
from schedlab.report.studies.timing_runs import PRIORITIES, ROUND_ROBIN, Suite, TimingRuns, figure
from schedlab.report.studies.timing_tables import tells_another_time
from schedlab.report.study_tables import Numbers, run_rows
from schedlab.studies.experiments import ALL_CPUS, TIMING_TESTS
from schedlab.studies.ideal import ideal_completion

SUITES = (ROUND_ROBIN, PRIORITIES)
_FIGURE_1 = ("io-bound", "starvation")
_OTHER_WORK = "io-bound"
"""The test that is another one in each suite."""
_Rows = list[dict[str, str | float | None]]


def completion_charts(runs: TimingRuns, tests: Sequence[str]) -> Iterator[Chart]:
    """A chart a test, of both suites; two, where the suites differ. None of what was not run."""
    for test in tests:
        parts = [(each,) for each in SUITES] if test == _OTHER_WORK else [SUITES]
        for suites in parts:
            chart = _completion(runs, test, suites)
            if chart is not None:
                yield chart


def figure_1(runs: TimingRuns) -> list[Chart]:
    """Completion of the two tests that the figure draws."""
    return list(completion_charts(runs, _FIGURE_1))


def not_in_figure_1(runs: TimingRuns) -> list[Chart]:
    """Completion of the other five."""
    return list(completion_charts(runs, [test for test in TIMING_TESTS if test not in _FIGURE_1]))


def _completion(runs: TimingRuns, test: str, suites: Sequence[Suite]) -> Chart | None:
    measured: _Rows = []
    printed: _Rows = []
    for suite in suites:
        measured += _measured(runs, suite, test, suite.policy, runs.completion)
        if not tells_another_time(_table(suite), test):
            printed += _printed(suite, test, suite.policy, "completion")
    if not measured:
        return None
    ideal = [
        {"cpus": cpus, "value": ideal_completion(_table(suites[0]), TIMING_TESTS[test], cpus)}
        for cpus in ALL_CPUS
    ]
    which = f", {suites[0].policy}" if len(suites) == 1 else ""
    figure_number = "The study's figure 1: " if test in _FIGURE_1 else ""
    return lines(
        f"study-1-completion-{test}{'-' + suites[0].name if which else ''}",
        _frame(measured),
        title=f"{figure_number}{TIMING_TESTS[test]}{which}",
        caption="Ticks from the first fork to the last exit. "
        + ("The study does not tell when all had ended." if not printed else ""),
        x="cpus",
        y="value",
        x_title="CPUs",
        y_title="completion (ticks)",
        ideal=pl.DataFrame(ideal),
        published=_frame(printed) if printed else None,
    )


def figure_2(runs: TimingRuns) -> Chart | None:
    """Context switches of the tests that the figure draws."""
    measured: _Rows = []
    printed: _Rows = []
    for suite in SUITES:
        for test in ("io-bound", "mixed"):
            series = f"{TIMING_TESTS[test]}, {suite.policy}"
            measured += _measured(runs, suite, test, series, runs.picks)
            printed += _printed(suite, test, series, "context switches")
    if not measured:
        return None
    return lines(
        "study-1-figure-2",
        _frame(measured),
        title="The study's figure 2: context switches",
        caption="Picks, as the study counts them. Its kernel wakes whoever sleeps at every tick.",
        x="cpus",
        y="value",
        x_title="CPUs",
        y_title="context switches",
        policies=False,
        published=_frame(printed),
    )


def _measured(runs: TimingRuns, suite: Suite, test: str, series: str, numbers: Numbers) -> _Rows:
    return [
        row
        for cpus in ALL_CPUS
        for row in run_rows(runs.setup(suite, test, cpus), numbers, policy=series, cpus=cpus)
    ]


def _printed(suite: Suite, test: str, series: str, quantity: str) -> _Rows:
    found = [(cpus, figure(suite, TIMING_TESTS[test], cpus, quantity)) for cpus in ALL_CPUS]
    return [
        {"policy": series, "cpus": cpus, "value": each.value}
        for cpus, each in found
        if each is not None
    ]


def _frame(rows: _Rows) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"policy": pl.String, "cpus": pl.Int64, "value": pl.Float64})


def _table(suite: Suite) -> int:
    return int(suite.place.split()[1])
