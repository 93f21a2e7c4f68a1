# SPDX-License-Identifier: MIT
"""Queries about study 1's six lottery tests: tables 3 to 8."""

import math
from itertools import groupby
from statistics import fmean
from types import SimpleNamespace
from typing import ClassVar, Literal

import polars as pl

from schedlab.analysis.comparison.statistics import ValueRange
from schedlab.report.studies import queries
from schedlab.report.studies.queries import first, in_ticks
from schedlab.report.study_tables import Measurement
from schedlab.report.wording import cpus_text as cpus_text
from schedlab.studies.agreement import NEAR_POINTS, is_near
from schedlab.studies.experiment import name_with_study_costs
from schedlab.studies.experiments import ALL_CPUS, LOTTERY_COUNTING_RUNNING, STARVE_ENDLESS
from schedlab.studies.figures import Figure, Source
from schedlab.studies.ideal_times import ideal_group_shares, unmeetable_expectations
from schedlab.studies.lottery_tests import TESTS_BY_NAME
from schedlab.studies.shares import STANDARD_ERRORS_MAX

THESIS, SHIPPED = "lottery:thesis", "lottery"
_PERCENT: ValueRange = (0, 100)
_NOTABLE_IDLE_PERCENT = 10
"""Minimum of avoidable idle time that is reported, in percentage points."""
_TOLERANCE_MIN_POINTS = 0.1
"""Smallest tolerance of a share in percentage points, even if chance permits less."""
_LAYOUT_TEST, _WORKLESS_TEST, _PROGRAM_TEST = "low", "starve", "mixed"
"""Tests with a specific explanation of differences."""
FootnoteName = Literal[
    "",
    "chance",
    "laid_out",
    "work_had_ended",
]
"""A footnote of notes_1."""


class LotteryQueries(queries.Queries):
    """Queries by test and group, with the names of schedlab's program. Shares are in percent."""

    lotteries: ClassVar = TESTS_BY_NAME
    counts = ALL_CPUS

    def competition(self, test: str) -> str:
        """Returns the experiment where all tasks compete from the same moment on."""
        return f"s1-lottery-{test}"

    def original(self, test: str, with_study_costs: bool = False) -> str:
        """Returns the experiment that behaves like the study's program.

        `with_study_costs`: with the study costs.
        """
        name = f"s1-lottery-original-{test}"
        return name_with_study_costs(name) if with_study_costs else name

    def lottery_ran(self) -> bool:
        """Returns whether any of the tests was run."""
        return any(
            self.ran(name)
            for test in self.lotteries
            for name in (self.competition(test), self.original(test))
        )

    # --- published

    def share_printed(
        self, test: str, group: str, count: int, source: Source = "study"
    ) -> Figure | None:
        """Returns the published share of the selections."""
        lottery = self.lotteries[test]
        return self.figure(
            f"table {lottery.table}", lottery.rows[group], cpus_text([count]), source
        )

    def expected(self, test: str, group: str) -> Figure | None:
        """Returns the share that the study considers fair, on any number of CPUs."""
        lottery = self.lotteries[test]
        return self.figure(f"table {lottery.table}", lottery.rows[group], "expected")

    def most_off_expected(self, count: int) -> float:
        """Returns the largest difference of a published share from the expected one, in points."""
        shares_and_expected = (
            (self.share_printed(test, group, count), self.expected(test, group))
            for test, lottery in self.lotteries.items()
            for group in lottery.rows
        )
        return max(
            abs(published.value - expected.value)
            for published, expected in shares_and_expected
            if published and expected
        )

    def unmeetable(self, test: str) -> dict[int, list[str]]:
        """Returns the groups with an unattainable expected share, by number of CPUs.

        Empty entries are omitted.
        """
        unmeetable_by_count = {
            count: list(unmeetable_expectations(self.lotteries[test].table, count))
            for count in self.counts
        }
        return {count: rows for count, rows in unmeetable_by_count.items() if rows}

    def ideals_off_expected(self, test: str, group: str) -> list[SimpleNamespace]:
        """Returns the ideals that differ from the group's unattainable expected
        share, with the numbers of CPUs.
        """
        lottery = self.lotteries[test]
        unmeetable_ideals = [
            (count, unmeetable_groups[lottery.rows[group]][1])
            for count in self.counts
            if lottery.rows[group]
            in (unmeetable_groups := unmeetable_expectations(lottery.table, count))
        ]
        return [
            SimpleNamespace(ideal=ideal, counts=[count for count, _ in same])
            for ideal, same in groupby(unmeetable_ideals, key=lambda pair: pair[1])
        ]

    # --- measured

    def picked(
        self, test: str, group: str, count: int, with_study_costs: bool = False
    ) -> Measurement:
        """Returns how often the study's lottery drew a task of this group, in percent of all draws."""
        return self._picked(self.original(test, with_study_costs), group, THESIS, count)

    def picked_if_counted(self, group: str, count: int) -> Measurement:
        """Returns the share of the selections in the test of three tasks, if a running task counts
        at the next task's fork.
        """
        return self._picked(self.original(_LAYOUT_TEST), group, LOTTERY_COUNTING_RUNNING, count)

    def _picked(self, experiment: str, group: str, policy: str, count: int) -> Measurement:
        """Returns the share of the selections in an experiment under a policy, in percent."""
        selections = pl.col("selections")
        group_selections = selections.filter(pl.col("group") == group).first()
        value, rows = 100 * group_selections / selections.sum(), self.collection.groups
        return self.of(experiment, policy, value, rows, _PERCENT, count)

    def picked_if_none_ended(self, group: str, count: int) -> Measurement:
        """Returns that share in the test whose tasks end, if they had endless work."""
        return self._picked(STARVE_ENDLESS, group, THESIS, count)

    def share(self, test: str, group: str, policy: str, count: int) -> Measurement:
        """Returns the share of CPU time while all tasks compete."""
        value, rows = 100 * first("share"), self._group(group)
        return self.of(self.competition(test), policy, value, rows, _PERCENT, count)

    def counted(self, column: str, test: str, group: str, count: int) -> Measurement:
        """Returns a column of a group in runs of the study's program: `finished`, `selections`."""
        return self._of_original(first(column), test, group, count)

    def _of_original(self, value: pl.Expr, test: str, group: str, count: int) -> Measurement:
        """Returns a value of a group's rows in the run of the study's program."""
        return self.of(self.original(test), THESIS, value, self._group(group), cpus=count)

    def _mean(self, column: str, test: str, group: str, count: int) -> float | None:
        """Returns the mean of a column of a group, or None if it was not measured."""
        return self.counted(column, test, group, count).mean

    def picks_per_task(self, test: str, group: str, count: int) -> Measurement:
        """Returns the mean number of picks of a task of a group."""
        return self._of_original(first("selections") / first("processes"), test, group, count)

    def ideal_share(self, test: str, group: str, policy: str, count: int) -> float:
        """Returns the ideal share by tickets and demands.

        If the tasks do not compute all the time, uses the measured demands
        of the runs, if these are known.
        """
        value, rows = 100 * first("ideal_share"), self._group(group)
        policy_share = self.of(self.competition(test), policy, value, rows, cpus=count).mean
        if policy_share is None or self.all_compute(test):
            return self.ideal_group_share(test, group, count)
        return policy_share

    def ideal_group_share(self, test: str, group: str, count: int) -> float:
        """Returns the ideal share of a group, by tickets and demands."""
        lottery = self.lotteries[test]
        return 100 * ideal_group_shares(lottery.table, count)[lottery.rows[group]]

    def all_compute(self, test: str) -> bool:
        """Returns whether all tasks of the test demand a CPU all the time."""
        return all(group.demand == 1 for group in self.lotteries[test].groups)

    def by_demands(self, test: str, policy: str, count: int) -> bool:
        """Returns whether `ideal_share` uses the measured demands of runs."""
        return (
            not self.all_compute(test)
            and self.off_ideal_share(test, policy, count).mean is not None
        )

    def _draws(self, experiment: str, policy: str, count: int) -> tuple[float, ...]:
        """Returns the number of draws in each run: one per tick and CPU."""
        ticks = in_ticks(first("elapsed_ns"))
        return self.of(experiment, policy, first("cpus") * ticks, cpus=count).values

    def near_share(self, test: str, group: str, policy: str, count: int) -> float | None:
        """Returns the tolerance of a fair lottery's mean share in points,
        if each tick of a CPU is a draw.

        The bound is in docs/policies.md.
        """
        draws = self._draws(self.competition(test), policy, count)
        share = self.ideal_share(test, group, policy, count) / 100
        return max(_chance_bound(share, sum(draws)), _TOLERANCE_MIN_POINTS) if draws else None

    def off_ideal_share(self, test: str, policy: str, count: int) -> Measurement:
        """Returns the mean deviation of the groups' shares from the ideal
        by measured demands, in points.
        """
        value, rows = pl.col("share_error_points").abs().mean(), self.collection.groups
        return self.of(self.competition(test), policy, value, rows, cpus=count)

    def off_printed_shares(
        self, test: str, count: int, with_study_costs: bool = False
    ) -> Measurement:
        """Returns the mean difference of measured and published
        shares of the selections, in points.
        """
        pairs = [
            (
                self.picked(test, group, count, with_study_costs),
                self.share_printed(test, group, count),
            )
            for group in self.lotteries[test].rows
        ]
        missing = next((measured for measured, _ in pairs if measured.mean is None), None)
        differences = (
            abs((measured.mean or 0) - published.value)
            for measured, published in pairs
            if published
        )
        return missing or Measurement((fmean(differences),))

    def by_chance(self, test: str, policy: str, count: int) -> Measurement:
        """Returns the expected `off_ideal_share` if each tick of each CPU were an independent draw.

        The mean of |x| of a normal x is √(2 ÷ π) standard deviations.
        """
        draws = self._draws(self.competition(test), policy, count)
        if not draws:
            return Measurement()
        shares = ideal_group_shares(self.lotteries[test].table, count).values()
        errors = [math.sqrt(2 / math.pi * part * (1 - part) / fmean(draws)) for part in shares]
        return Measurement((100 * fmean(errors),))

    def idle(self, experiment: str, count: int) -> Measurement:
        """Returns the percentage of CPU time without a task to run, under the study's lottery."""
        cpu_time_ns = first("cpus") * first("elapsed_ns")
        return self.of(experiment, THESIS, 100 * first("idle_ns") / cpu_time_ns, cpus=count)

    # --- results

    def idle_without_need(self, test: str) -> SimpleNamespace | None:
        """Returns the largest number of CPUs where the study's lottery
        leaves CPUs idle without need.

        The result has `count`, the `idle` percentage, and the unavoidable part `unavoidable_percent`. Returns
        None if no CPU is idle without need.
        """
        if not self.all_compute(test):
            return None
        processes, without_need = self.members(test), None
        for count in self.counts:
            idle = self.idle(self.competition(test), count).mean
            unavoidable_percent = 100 * max(0.0, 1 - processes / count)
            if idle and idle > _NOTABLE_IDLE_PERCENT + unavoidable_percent:
                without_need = SimpleNamespace(count=count, idle=idle, least=unavoidable_percent)
        return without_need

    def members(self, test: str) -> int:
        """Returns the number of tasks of a test."""
        return sum(group.processes for group in self.lotteries[test].groups)

    def worst_of_shipped(self, test: str) -> int:
        """Returns the number of CPUs where the built-in lottery is farthest from
        the ideal; 0 if it was not run.
        """
        errors = {n: self.off_ideal_share(test, SHIPPED, n).mean for n in self.counts}
        known_errors = {count: points for count, points in errors.items() if points is not None}
        return max(known_errors, key=lambda count: (known_errors[count], count), default=0)

    def off_printed(
        self, test: str, group: str, count: int, with_study_costs: bool = False
    ) -> bool | None:
        """Returns whether the measured share of the selections differs from the
        published one; None if unknown.
        """
        measured = self.picked(test, group, count, with_study_costs).mean
        published = self.share_printed(test, group, count)
        if measured is None or published is None:
            return None
        return not is_near(published, measured)

    def why_off(
        self, test: str, group: str, count: int, with_study_costs: bool = False
    ) -> FootnoteName:
        """Returns the note that explains a share's difference from the
        published one in this test, or "".
        """
        if not self.off_printed(test, group, count, with_study_costs):
            return ""
        if self.off_printed(test, group, count, with_study_costs=True) is False:
            return ""
        if test == _WORKLESS_TEST:
            return "work_had_ended" if self.lacks_work(group, count) else ""
        if count == 1:
            return "chance" if self.off_by_chance(test, group) else ""
        return "laid_out" if test == _LAYOUT_TEST and self.picked_if_counted("A", count) else ""

    def lacking_work(self) -> list[int]:
        """Returns the numbers of CPUs where some group's share lacks work."""
        groups = self.lotteries[_WORKLESS_TEST].rows
        return [n for n in self.counts if any(self.lacks_work(group, n) for group in groups)]

    def lacks_work(self, group: str, count: int) -> bool:
        """True if the group's share would be different if its tasks never ran out of work."""
        share_if_ended, share_if_endless = (
            measured.mean
            for measured in (
                self.picked(_WORKLESS_TEST, group, count),
                self.picked_if_none_ended(group, count),
            )
        )
        return (
            share_if_ended is not None
            and share_if_endless is not None
            and abs(share_if_ended - share_if_endless) > NEAR_POINTS
        )

    def printed_as_counted(self, count: int) -> bool:
        """True if A and C are picked as published, if a task that runs during the next fork counts."""
        return all(
            abs(printed - counted) <= NEAR_POINTS for printed, _, counted in self._layouts(count)
        )

    def printed_between_layouts(self, count: int) -> bool:
        """Returns whether the published shares of A and C lie between
        those of the two ways of counting.
        """
        return all(min(pair) <= printed <= max(pair) for printed, *pair in self._layouts(count))

    def _layouts(self, count: int) -> list[tuple[float, float, float]]:
        """Returns the shares of A and C: published, and measured by both ways of counting."""
        return [
            (
                _number_or_nan(self.share_printed(_LAYOUT_TEST, group, count)),
                _number_or_nan(self.picked(_LAYOUT_TEST, group, count)),
                _number_or_nan(self.picked_if_counted(group, count)),
            )
            for group in "AC"
        ]

    def printed_sum(self, test: str, count: int) -> float:
        """Returns the sum of a published column of shares, in percent."""
        printed = (self.share_printed(test, row, count) for row in self.lotteries[test].rows)
        return sum(map(_number_or_nan, printed))

    def chance_of_share(self, test: str, group: str) -> SimpleNamespace | None:
        """Returns the points that chance permits on one CPU, with the measured number of draws."""
        setup = self.setup(self.original(test), THESIS, 1)
        share = self.picked(test, group, 1).mean
        counts = [self._mean("selections", test, row, 1) for row in self.lotteries[test].rows]
        if setup is None or share is None or None in counts:
            return None
        draws, runs = sum(row_count for row_count in counts if row_count), len(setup.runs)
        return SimpleNamespace(
            draws=draws, runs=runs, points=_chance_bound(share / 100, draws * runs)
        )

    def off_by_chance(self, test: str, group: str) -> bool:
        """Returns whether chance explains the difference from the published share."""
        published, chance = self.share_printed(test, group, 1), self.chance_of_share(test, group)
        measured = self.picked(test, group, 1).mean
        if chance is None or published is None or measured is None:
            return False
        return bool(abs(measured - published.value) <= chance.points)

    def ended(self, test: str, count: int) -> list[SimpleNamespace]:
        """Returns the groups with tasks that finished before the window ended."""
        groups = []
        for group in self.lotteries[test].rows:
            finished, processes, picked = (
                self._mean(column, test, group, count)
                for column in ("finished", "processes", "selections")
            )
            if finished and processes and picked:
                groups.append(
                    SimpleNamespace(
                        group=group,
                        finished=finished,
                        of=processes,
                        picks_per_task=picked / processes,
                    )
                )
        return groups


def _number_or_nan(of: Figure | Measurement | None) -> float:
    """Returns the value or mean; NaN for None."""
    value = of.mean if isinstance(of, Measurement) else of.value if of else None
    return math.nan if value is None else value


def _chance_bound(part: float, draws: float) -> float:
    """Returns how far chance may change a mean share, in points."""
    return 100 * STANDARD_ERRORS_MAX * math.sqrt(part * (1 - part) / draws)
