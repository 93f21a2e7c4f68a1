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
from schedlab.studies.experiments import TIMING_TESTS
from schedlab.studies.figures import Figure
from schedlab.studies.ideal import ideal_completion, ideal_told

NEAR = 0.05
"""A time is near another if it is off by a twentieth of it at most, or by a tick."""
FORKING = ("switch", "creation", "short")
"""Tests in which processes do next to nothing."""
SLEEPERS = "mixed"
"""The test whose figure may be the least time of a sleeper, instead of when all have ended."""
Why = Literal["", "constant", "forks", "sleeps_and_forks", "few_forks"]
"""A macro of notes.md."""


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
    tells_sleepers: bool = True
    """Is the figure of SLEEPERS the least time of those that sleep?"""


class TimingQueries(queries.Queries):
    """A test is named as our program names it; times are in ticks."""

    suites: ClassVar[Mapping[str, Suite]]
    tests = tuple(TIMING_TESTS)
    rows: ClassVar[Mapping[str, str]]
    """What the study calls its tests."""
    figures_on: ClassVar[tuple[int, ...]]
    """Numbers of CPUs of which the study has figures."""
    near_percent = 100 * NEAR

    def experiment(self, suite: str, test: str) -> str:
        """The label of its runs."""
        return f"s{self.study.number}-{self.suites[suite].name}-{test}"

    def experiments(self, suite: str) -> list[str]:
        """The experiments of all its tests."""
        return [self.experiment(suite, test) for test in self.tests]

    def suite_ran(self, suite: str) -> bool:
        """Any of its tests?"""
        return any(self.ran(each) for each in self.experiments(suite))

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
    ) -> Measured:
        own = policy or self.suites[suite].policy
        return self.of(self.experiment(suite, test), own, value, rows, cpus=count)

    def number(self, column: str, suite: str, test: str, count: int) -> Measured:
        """A column of the runs' summary; a time, in ticks."""
        return self._of(_in_ticks(column), suite, test, count)

    def completion(self, suite: str, test: str, count: int, policy: str = "") -> Measured:
        """The time from the first fork of the workload to its last exit."""
        return self._of(_in_ticks("completion_ns"), suite, test, count, policy)

    def processes(self, suite: str, test: str, count: int) -> Measured:
        """How many there were."""
        return self.number("processes", suite, test, count)

    def told(self, suite: str, test: str, count: int, whole: bool = False) -> Measured:
        """What the study tells: by the trace, unless the program alone knows it. `whole`: until all
        have ended, in any case."""
        if not self._tells_sleepers(suite, test, whole):
            return self.completion(suite, test, count)
        return self._of(pl.col("value").mean(), suite, test, count, rows=self._told("ticks"))

    def _tells_sleepers(self, suite: str, test: str, whole: bool) -> bool:
        return test == SLEEPERS and self.suites[suite].tells_sleepers and not whole

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

    def ideal(self, suite: str, test: str, count: int, whole: bool = False) -> float:
        """The ideal of the figure that the study tells."""
        least = ideal_told if self._tells_sleepers(suite, test, whole) else ideal_completion
        return least(self.suites[suite].tests_of, TIMING_TESTS[test], count)

    def near(self, ideal: float) -> float | None:
        """How far from it a time may be; None where less than a tick is ideal."""
        return max(1.0, NEAR * ideal) if ideal >= 1 else None

    def off_study(self, suite: str, test: str, count: int) -> bool:
        """Is ours not near theirs?"""
        mean, theirs = self.told(suite, test, count).mean, self.printed(suite, test, count)
        if mean is None or theirs is None or not theirs.finished:
            return False
        return abs(mean - theirs.value) > max(1.0, NEAR * theirs.value)

    def off_ideal(self, suite: str, test: str, count: int, whole: bool) -> bool:
        """Is ours not near what is ideal?"""
        ideal, mean = (
            self.ideal(suite, test, count, whole),
            self.told(suite, test, count, whole).mean,
        )
        near = self.near(ideal)
        return mean is not None and near is not None and abs(mean - ideal) > near

    def _why_off_study(self, suite: str, test: str, count: int) -> Why:
        """The note that explains a time that is off theirs; none if it is not."""
        if not self.off_study(suite, test, count):
            return ""
        if test in FORKING:
            return "forks"
        return "sleeps_and_forks" if test == "io-bound" else "few_forks"

    def _compared(self) -> list[tuple[str, str, int]]:
        """Times of which there is a figure and a measurement."""
        return [
            (suite, test, count)
            for suite in self.suites
            for test in self.tests
            for count in self.figures_on
            if self.told(suite, test, count).mean is not None
        ]

    def compared(self) -> int:
        """How many there are."""
        return len(self._compared())

    def some_compared(self) -> bool:
        """Is there any?"""
        return bool(self._compared())

    def near_theirs(self) -> int:
        """How many of them are near theirs."""
        return sum(not self.off_study(*each) for each in self._compared())

    # --- ticks

    def tick_ms(self) -> float:
        """The tick of the studies' machine, by their own account."""
        (tick,) = select(study=2, place="section 2", quantity="tick")
        return tick.value

    def us_for_each(self, suite: str, test: str, count: int, less: float = 0) -> Measured:
        """Completion, less so many ticks, for each process, in µs."""
        own = first("completion_ns") - less * first("tick_ns")
        return self._of(own / first("processes") / 1000, suite, test, count)


def _in_ticks(column: str) -> pl.Expr:
    """A column of one row; a time, in ticks."""
    return in_ticks(first(column)) if column.endswith("_ns") else first(column)
