# SPDX-License-Identifier: MIT
"""What studies 1 and 2 ask of their suites of seven tests, `timingtests` and `prioritytest`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import polars as pl

from schedlab.report.studies import queries
from schedlab.report.studies.queries import first, in_ticks
from schedlab.report.study_tables import Measured
from schedlab.studies import select
from schedlab.studies.agreement import is_near
from schedlab.studies.experiment import on_their_costs
from schedlab.studies.experiments import TIMING_TESTS
from schedlab.studies.figures import Figure
from schedlab.studies.ideal import ideal_completion, ideal_printed

NEAR = 0.05
"""A time is near the ideal if it is off by a twentieth of it at most, or by a tick."""
SLEEPERS = "mixed"
"""The test whose figure may be the least time of a sleeper, instead of when all have ended."""
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
    """Our policy that is like the one measured there."""
    tests_of: int = 1
    """The table of study 1 whose tests these are."""
    reports_sleepers: bool = True
    """Is the figure of SLEEPERS the least time of those that sleep?"""


class TimingQueries(queries.Queries):
    """A test is named as our program names it; times are in ticks."""

    suites: ClassVar[Mapping[str, Suite]]
    tests = tuple(TIMING_TESTS)
    rows: ClassVar[Mapping[str, str]]
    """What the study calls its tests."""
    figures_on: ClassVar[tuple[int, ...]]
    """Numbers of CPUs of which the study has figures."""
    not_counted: ClassVar[frozenset[tuple[str, str]]] = frozenset()
    """Tests, with their suites, whose figures no scheduler made: that ours agree is chance."""
    other_work: ClassVar[frozenset[tuple[str, str]]] = frozenset()
    """The same of tests that do other work here than theirs, unless they are run with their costs."""
    near_percent = 100 * NEAR

    def experiment(self, suite: str, test: str, their_costs: bool = False) -> str:
        """The label of its runs; `their_costs`: of those with the costs of the study's machine."""
        name = f"s{self.study.number}-{self.suites[suite].name}-{test}"
        return on_their_costs(name) if their_costs else name

    def experiments(self, suite: str) -> list[str]:
        """The experiments of all its tests."""
        return [self.experiment(suite, test) for test in self.tests]

    def suite_ran(self, suite: str) -> bool:
        """Any of its tests?"""
        return any(self.ran(experiment) for experiment in self.experiments(suite))

    def printed(self, suite: str, test: str, count: int) -> Figure | None:
        """What the study has for the time."""
        raise NotImplementedError

    # --- what was measured

    def _of(
        self,
        value: pl.Expr,
        suite: str,
        test: str,
        count: int,
        policy: str = "",
        rows: pl.DataFrame | None = None,
        their_costs: bool = False,
    ) -> Measured:
        policy_name = policy or self.suites[suite].policy
        return self.of(
            self.experiment(suite, test, their_costs), policy_name, value, rows, cpus=count
        )

    def number(self, column: str, suite: str, test: str, count: int) -> Measured:
        """A column of the runs' summary; a time, in ticks."""
        return self._of(_in_ticks(column), suite, test, count)

    def completion(
        self, suite: str, test: str, count: int, policy: str = "", their_costs: bool = False
    ) -> Measured:
        """The time from the first fork of the workload to its last exit."""
        value = _in_ticks("completion_ns")
        return self._of(value, suite, test, count, policy, their_costs=their_costs)

    def processes(self, suite: str, test: str, count: int) -> Measured:
        """How many there were."""
        return self.number("processes", suite, test, count)

    def told(
        self,
        suite: str,
        test: str,
        count: int,
        until_all_ended: bool = False,
        their_costs: bool = False,
    ) -> Measured:
        """What the study tells: by the trace, unless the program alone knows it. `until_all_ended`: until all
        have ended, in any case."""
        if not self._reports_sleepers(suite, test, until_all_ended):
            return self.completion(suite, test, count, their_costs=their_costs)
        value, rows = pl.col("value").mean(), self._told("ticks")
        return self._of(value, suite, test, count, rows=rows, their_costs=their_costs)

    def _reports_sleepers(self, suite: str, test: str, until_all_ended: bool) -> bool:
        return test == SLEEPERS and self.suites[suite].reports_sleepers and not until_all_ended

    def group_time(
        self, column: str, group: str, suite: str, test: str, count: int, policy: str = ""
    ) -> Measured:
        """The time of a group of processes."""
        return self._of(_in_ticks(column), suite, test, count, policy, self._group(group))

    def sleepers_wait(self, suite: str, count: int) -> Measured:
        """The longest time for which those that are to sleep wait in Mixed Load."""
        return self.group_time("waiting_max_ns", "mix-io", suite, SLEEPERS, count)

    def busiest(self, suite: str, test: str, count: int) -> Measured:
        """The running time of the CPU that ran processes longest."""
        most = in_ticks(pl.col("running_ns").max())
        return self._of(most, suite, test, count, rows=self.collection.cpus)

    # --- how it compares

    def ideal(self, suite: str, test: str, count: int, until_all_ended: bool = False) -> float:
        """The ideal of the figure that the study tells."""
        least = (
            ideal_printed
            if self._reports_sleepers(suite, test, until_all_ended)
            else ideal_completion
        )
        return least(self.suites[suite].tests_of, TIMING_TESTS[test], count)

    def near(self, ideal: float) -> float | None:
        """How far from it a time may be; None where less than a tick is ideal."""
        return max(1.0, NEAR * ideal) if ideal >= 1 else None

    def off_study(self, suite: str, test: str, count: int, their_costs: bool = False) -> bool:
        """Is ours not near theirs?"""
        mean = self.told(suite, test, count, their_costs=their_costs).mean
        theirs = self.printed(suite, test, count)
        return bool(theirs and theirs.finished and mean is not None and not is_near(theirs, mean))

    def off_ideal(self, suite: str, test: str, count: int, until_all_ended: bool) -> bool:
        """Is ours not near what is ideal?"""
        ideal, mean = (
            self.ideal(suite, test, count, until_all_ended),
            self.told(suite, test, count, until_all_ended).mean,
        )
        near = self.near(ideal)
        return mean is not None and near is not None and abs(mean - ideal) > near

    def is_counted(self, suite: str, test: str, count: int) -> bool:
        """Returns True if agreement with the study's time means something: a scheduler made it, and it gave no
        constant."""
        return (suite, test) not in self.not_counted and not self.gave_a_constant(
            self.printed(suite, test, count)
        )

    # --- ticks

    def tick_ms(self) -> float:
        """The tick of the studies' machine, by their own account."""
        (tick,) = select(study=2, place="section 2", quantity="tick")
        return tick.value


def _in_ticks(column: str) -> pl.Expr:
    """A column of one row; a time, in ticks."""
    return in_ticks(first(column)) if column.endswith("_ns") else first(column)
