# SPDX-License-Identifier: MIT
"""Queries of studies 1 and 2 about their suites of seven tests,
`timingtests` and `prioritytest`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import polars as pl

from schedlab.base.display.markdown import code
from schedlab.report.studies import queries
from schedlab.report.studies.queries import first, in_ticks
from schedlab.report.study_tables import Measurement
from schedlab.studies import select
from schedlab.studies.agreement import is_near
from schedlab.studies.causes import Cause, Effects, cause_of
from schedlab.studies.experiment import name_with_study_costs
from schedlab.studies.experiments import TIMING_TESTS
from schedlab.studies.figures import Figure
from schedlab.studies.ideal_times import ideal_completion, ideal_reported

NEAR = 0.05
"""Tolerance of a time relative to the ideal. The tolerance is at least one tick."""
SLEEPERS = "mixed"
"""The test with a figure that may be the shortest time of a sleeper, not the completion time."""
Why = Literal["", "constant"]
"""A footnote of notes_1 and page_2."""


@dataclass(frozen=True)
class Suite:
    """Seven tests, as they were run for one table or list."""

    name: str
    """`timing` or `priority`: part of the experiments' names."""
    place: str
    """The place of the figures in the study."""
    policy: str
    """The corresponding policy of schedlab."""
    tests_of: int = 1
    """The table of study 1 with these tests."""
    reports_sleepers: bool = True
    """True if the figure of SLEEPERS is the shortest time of a sleeper."""


class TimingQueries(queries.Queries):
    """Looks up measured times of a study's timing tests, in ticks.

    Tests have the names that the test program gives them.
    """

    suites: ClassVar[Mapping[str, Suite]]
    tests = tuple(TIMING_TESTS)
    rows: ClassVar[Mapping[str, str]]
    """The study's names of its tests."""
    not_counted: ClassVar[frozenset[tuple[str, str]]] = frozenset()
    """Suites and tests with figures that do not depend on a scheduler,
    so that agreement means nothing.
    """
    other_work: ClassVar[frozenset[tuple[str, str]]] = frozenset()
    """Suites and tests with different work than the study's, unless
    they run with the study costs.
    """
    near_percent = 100 * NEAR

    def experiment(self, suite: str, test: str, with_study_costs: bool = False) -> str:
        """Returns the label of a test's runs. `with_study_costs`: with the study costs."""
        name = f"s{self.study.number}-{self.suites[suite].name}-{test}"
        return name_with_study_costs(name) if with_study_costs else name

    def experiments(self, suite: str) -> list[str]:
        """Returns the experiments of all tests of a suite."""
        return [self.experiment(suite, test) for test in self.tests]

    def suite_ran(self, suite: str) -> bool:
        """Returns whether any test of a suite was run."""
        return any(self.ran(experiment) for experiment in self.experiments(suite))

    def printed(self, suite: str, test: str, count: int) -> Figure | None:
        """Returns the published time."""
        raise NotImplementedError

    # --- measured

    def _of(
        self,
        value: pl.Expr,
        suite: str,
        test: str,
        count: int,
        policy: str = "",
        rows: pl.DataFrame | None = None,
        with_study_costs: bool = False,
    ) -> Measurement:
        policy_name = policy or self.suites[suite].policy
        return self.of(
            self.experiment(suite, test, with_study_costs), policy_name, value, rows, cpus=count
        )

    def number(self, column: str, suite: str, test: str, count: int) -> Measurement:
        """Returns a column of the runs' summary. Times are in ticks."""
        return self._of(_in_ticks(column), suite, test, count)

    def completion(
        self, suite: str, test: str, count: int, policy: str = "", with_study_costs: bool = False
    ) -> Measurement:
        """Returns the time from the workload's first fork to its last exit."""
        value = _in_ticks("completion_ns")
        return self._of(value, suite, test, count, policy, with_study_costs=with_study_costs)

    def processes(self, suite: str, test: str, count: int) -> Measurement:
        """Returns the number of tasks."""
        return self.number("processes", suite, test, count)

    def reported_time(
        self,
        suite: str,
        test: str,
        count: int,
        until_all_ended: bool = False,
        with_study_costs: bool = False,
    ) -> Measurement:
        """Returns the time that the study reports: from the trace, or
        from the program if only it knows.

        `until_all_ended`: the completion time in any case.
        """
        if not self._reports_sleepers(suite, test, until_all_ended):
            return self.completion(suite, test, count, with_study_costs=with_study_costs)
        value, rows = pl.col("value").mean(), self._values_reported_as("ticks")
        return self._of(value, suite, test, count, rows=rows, with_study_costs=with_study_costs)

    def _reports_sleepers(self, suite: str, test: str, until_all_ended: bool) -> bool:
        """True if the test reports the sleepers' time instead of the completion."""
        return test == SLEEPERS and self.suites[suite].reports_sleepers and not until_all_ended

    def group_time(
        self, column: str, group: str, suite: str, test: str, count: int, policy: str = ""
    ) -> Measurement:
        """Returns a time of a group of tasks."""
        return self._of(_in_ticks(column), suite, test, count, policy, self._group(group))

    def sleepers_wait(self, suite: str, count: int) -> Measurement:
        """Returns the longest wait of Mixed Load's sleepers."""
        return self.group_time("waiting_max_ns", "mix-io", suite, SLEEPERS, count)

    def busiest(self, suite: str, test: str, count: int) -> Measurement:
        """Returns the running time of the CPU that ran tasks longest."""
        largest = in_ticks(pl.col("running_ns").max())
        return self._of(largest, suite, test, count, rows=self.collection.cpus)

    # --- causes

    def effects_on(self, figure: Figure | None) -> Effects:
        """Returns the measured effects of the cause that explains a published figure.

        Columns without both runs are left out.
        """
        cause = cause_of(figure) if figure else None
        if cause is None:
            return {}
        if cause.name not in self._effects:
            self._effects[cause.name] = self._measure_effects(cause)
        return self._effects[cause.name]

    @cached_property
    def _effects(self) -> dict[str, Effects]:
        """A cache of effects by cause, since several figures have the same cause."""
        return {}

    def _measure_effects(self, cause: Cause) -> Effects:
        (row,) = cause.rows
        (test,) = (test for test, title in self.rows.items() if title == row)
        effects = {}
        for column in cause.effects:
            first_word = column.partition(" ")[0]
            count = int(first_word) if first_word.isdecimal() else self.cpus
            before, after = (
                self._of_cause(cause, run, test, count).mean
                for run in (cause.counterpart, cause.experiment)
            )
            if before is not None and after is not None:
                effects[column] = before, after
        return effects

    def _of_cause(self, cause: Cause, run: str, test: str, count: int) -> Measurement:
        """Returns what one of a cause's two runs measured, an experiment and possibly a policy."""
        experiment, _, policy = run.partition(" ")
        (suite,) = (suite for suite in self.suites.values() if suite.place in cause.places)
        return self._effect_value(cause.metric, experiment, policy or suite.policy, test, count)

    def _effect_value(
        self, metric: str, experiment: str, policy: str, test: str, count: int
    ) -> Measurement:
        """Returns a metric of an experiment that runs only this test."""
        if metric == "completion":
            return self.ticks(experiment, policy, "completion_ns", count)
        value, rows = pl.col("selections").sum(), self.collection.processes
        return self.of(experiment, policy, value, rows, cpus=count)

    # --- study costs

    def habits_text(self) -> str:
        """Returns what else differs in runs with study costs, as items for a sentence."""
        return "; ".join(f"{code(name)}: {text}" for name, text in self._costs.habits.items())

    # --- comparison

    def ideal(self, suite: str, test: str, count: int, until_all_ended: bool = False) -> float:
        """Returns the ideal of the figure that the study reports."""
        lower_bound = (
            ideal_reported
            if self._reports_sleepers(suite, test, until_all_ended)
            else ideal_completion
        )
        return lower_bound(self.suites[suite].tests_of, TIMING_TESTS[test], count)

    def near(self, ideal: float) -> float | None:
        """Returns the tolerance of a time around the ideal; None if
        the ideal is less than a tick.
        """
        return max(1.0, NEAR * ideal) if ideal >= 1 else None

    def off_study(self, suite: str, test: str, count: int, with_study_costs: bool = False) -> bool:
        """Returns whether the measured time is not near the published time."""
        mean = self.reported_time(suite, test, count, with_study_costs=with_study_costs).mean
        theirs = self.printed(suite, test, count)
        return bool(theirs and theirs.is_number and mean is not None and not is_near(theirs, mean))

    def off_ideal(self, suite: str, test: str, count: int, until_all_ended: bool) -> bool:
        """Returns whether the measured time is not near the ideal."""
        ideal, mean = (
            self.ideal(suite, test, count, until_all_ended),
            self.reported_time(suite, test, count, until_all_ended).mean,
        )
        near = self.near(ideal)
        return mean is not None and near is not None and abs(mean - ideal) > near

    def is_counted(self, suite: str, test: str, count: int) -> bool:
        """Returns True if agreement with the published time is meaningful.

        Agreement has no meaning if the time does not depend on a scheduler, or if a study cost was
        derived from it.
        """
        return (suite, test) not in self.not_counted and not self.determined_a_cost(
            self.printed(suite, test, count)
        )

    # --- ticks

    def tick_ms(self) -> float:
        """Returns the length of a tick of the studies' machine in ms, as published."""
        (tick,) = select(study=2, place="section 2", quantity="tick")
        return tick.value


def _in_ticks(column: str) -> pl.Expr:
    """Returns the value of a column in a table of one row; times (`…_ns`) are converted to ticks."""
    return in_ticks(first(column)) if column.endswith("_ns") else first(column)
