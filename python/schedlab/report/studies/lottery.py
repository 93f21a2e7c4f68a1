# SPDX-License-Identifier: MIT
"""What study 1 asks of its six lottery tests: tables 3 to 8."""

from __future__ import annotations

import math
from itertools import groupby
from statistics import fmean
from types import SimpleNamespace
from typing import ClassVar, Literal

import polars as pl

from schedlab.analysis.comparison.statistics import Within
from schedlab.report.studies import queries
from schedlab.report.studies.queries import first, in_ticks
from schedlab.report.study_tables import Measured
from schedlab.report.wording import cpus as cpus_text
from schedlab.studies.agreement import NEAR_POINTS, is_near
from schedlab.studies.experiment import on_their_costs
from schedlab.studies.experiments import ALL_CPUS, COUNTED
from schedlab.studies.figures import Figure, Source
from schedlab.studies.ideal import LOTTERY_GROUPS, ideal_group_shares, unmeetable
from schedlab.studies.shares import BOUND, TESTS

THESIS, SHIPPED = "lottery:thesis", "lottery"
_PERCENT: Within = (0, 100)
_IDLE_POINTS = 10
"""So much more idle than need be is told of."""
_LEAST_POINTS = 0.1
"""A share so near to its ideal is near, whatever chance allows."""
_LAYOUT, _NO_WORK, _PROGRAM = "low", "starve", "mixed"
"""Tests with a reason of their own."""
Why = Literal[
    "",
    "chance",
    "laid_out",
    "work_had_ended",
]
"""A footnote of notes_1."""


class LotteryQueries(queries.Queries):
    """A test is named as our program names it; a group, as in our runs; shares are in percent."""

    lotteries: ClassVar = {test.name: test for test in TESTS}
    counts = ALL_CPUS

    def competition(self, test: str) -> str:
        """The experiment in which all processes compete from one moment on."""
        return f"s1-lottery-{test}"

    def original(self, test: str, their_costs: bool = False) -> str:
        """The experiment that does what the study's program does; `their_costs`: with the costs of
        the study's machine."""
        name = f"s1-lottery-original-{test}"
        return on_their_costs(name) if their_costs else name

    def lottery_ran(self) -> bool:
        """Any of the tests?"""
        return any(
            self.ran(name)
            for test in self.lotteries
            for name in (self.competition(test), self.original(test))
        )

    # --- what the study has

    def share_printed(
        self, test: str, group: str, count: int, source: Source = "study"
    ) -> Figure | None:
        """The printed share of the selections."""
        lottery = self.lotteries[test]
        return self.figure(
            f"table {lottery.table}", lottery.rows[group], cpus_text([count]), source
        )

    def expected(self, test: str, group: str) -> Figure | None:
        """What it holds to be fair, on any number of CPUs."""
        lottery = self.lotteries[test]
        return self.figure(f"table {lottery.table}", lottery.rows[group], "expected")

    def most_off_expected(self, count: int) -> float:
        """How many points its shares are off what it expects, at most."""
        pairs = (
            (self.share_printed(test, group, count), self.expected(test, group))
            for test, lottery in self.lotteries.items()
            for group in lottery.rows
        )
        return max(abs(got.value - should.value) for got, should in pairs if got and should)

    def unmeetable(self, test: str) -> dict[int, list[str]]:
        """The groups whose expectation cannot be met, for each number of CPUs on which there are
        any."""
        unmeetable_by_count = {
            count: list(unmeetable(self.lotteries[test].table, count)) for count in self.counts
        }
        return {count: rows for count, rows in unmeetable_by_count.items() if rows}

    def ideals_off_expected(self, test: str, group: str) -> list[SimpleNamespace]:
        """Where the group's expectation cannot be met: the ideal, and on how many CPUs."""
        lottery = self.lotteries[test]
        off = [
            (count, unmeetable_groups[lottery.rows[group]][1])
            for count in self.counts
            if lottery.rows[group] in (unmeetable_groups := unmeetable(lottery.table, count))
        ]
        return [
            SimpleNamespace(ideal=ideal, counts=[count for count, _ in same])
            for ideal, same in groupby(off, key=lambda pair: pair[1])
        ]

    # --- what was measured

    def picked(self, test: str, group: str, count: int, their_costs: bool = False) -> Measured:
        """The share of the selections, by the study's own program under its own lottery."""
        return self._picked(test, group, THESIS, count, their_costs)

    def picked_if_counted(self, group: str, count: int) -> Measured:
        """The same in the test of three processes, where one that runs counts at the next one's
        fork."""
        return self._picked(_LAYOUT, group, COUNTED, count)

    def _picked(
        self, test: str, group: str, policy: str, count: int, their_costs: bool = False
    ) -> Measured:
        selections = pl.col("selections")
        group_selections = selections.filter(pl.col("group") == group).first()
        value, rows = 100 * group_selections / selections.sum(), self.collection.groups
        experiment = self.original(test, their_costs)
        return self.of(experiment, policy, value, rows, _PERCENT, count)

    def share(self, test: str, group: str, policy: str, count: int) -> Measured:
        """The share of the CPU time, while all compete."""
        value, rows = 100 * first("share"), self._group(group)
        return self.of(self.competition(test), policy, value, rows, _PERCENT, count)

    def counted(self, column: str, test: str, group: str, count: int) -> Measured:
        """A column of a group, in runs of the study's program: `finished`, `selections`."""
        return self._of_original(first(column), test, group, count)

    def _of_original(self, value: pl.Expr, test: str, group: str, count: int) -> Measured:
        return self.of(self.original(test), THESIS, value, self._group(group), cpus=count)

    def _mean(self, column: str, test: str, group: str, count: int) -> float | None:
        return self.counted(column, test, group, count).mean

    def picks_each(self, test: str, group: str, count: int) -> Measured:
        """How often each process of a group was picked."""
        return self._of_original(first("selections") / first("processes"), test, group, count)

    def ideal_share(self, test: str, group: str, policy: str, count: int) -> float:
        """The ideal share by tickets and demands; where these differ, by what the processes of
        these very runs asked for, if that is known."""
        value, rows = 100 * first("ideal_share"), self._group(group)
        policy_share = self.of(self.competition(test), policy, value, rows, cpus=count).mean
        if policy_share is None or self.all_compute(test):
            return self.ideal_group_share(test, group, count)
        return policy_share

    def ideal_group_share(self, test: str, group: str, count: int) -> float:
        """The ideal share of a group, by tickets and demands."""
        lottery = self.lotteries[test]
        return 100 * ideal_group_shares(lottery.table, count)[lottery.rows[group]]

    def all_compute(self, test: str) -> bool:
        """Do all its processes ask for a CPU all the time?"""
        return all(group.demand == 1 for group in LOTTERY_GROUPS[self.lotteries[test].table])

    def by_demands(self, test: str, policy: str, count: int) -> bool:
        """Is the ideal that of runs?"""
        return (
            not self.all_compute(test)
            and self.off_ideal_share(test, policy, count).mean is not None
        )

    def _draws(self, experiment: str, policy: str, count: int) -> tuple[float, ...]:
        """The draws of each run: each tick of each CPU."""
        ticks = in_ticks(first("elapsed_ns"))
        return self.of(experiment, policy, first("cpus") * ticks, cpus=count).values

    def near_share(self, test: str, group: str, policy: str, count: int) -> float | None:
        """How many points a fair lottery's mean may be off by chance, if each tick of each CPU were a
        draw (docs/policies.md)."""
        draws = self._draws(self.competition(test), policy, count)
        part = self.ideal_share(test, group, policy, count) / 100
        return max(_bound(part, sum(draws)), _LEAST_POINTS) if draws else None

    def off_ideal_share(self, test: str, policy: str, count: int) -> Measured:
        """How many points the shares are off the ideal, by what processes asked for: mean over the
        groups."""
        value, rows = pl.col("share_error_points").abs().mean(), self.collection.groups
        return self.of(self.competition(test), policy, value, rows, cpus=count)

    def off_printed_shares(self, test: str, count: int, their_costs: bool = False) -> Measured:
        """How many points our shares of selections are off the study's: mean over the groups."""
        pairs = [
            (self.picked(test, group, count, their_costs), self.share_printed(test, group, count))
            for group in self.lotteries[test].rows
        ]
        missing = next((ours for ours, _ in pairs if ours.mean is None), None)
        off = (abs((ours.mean or 0) - theirs.value) for ours, theirs in pairs if theirs)
        return missing or Measured((fmean(off),))

    def by_chance(self, test: str, policy: str, count: int) -> Measured:
        """What `off_ideal_share` would come to if each tick of each CPU were an independent draw.

        The mean of |x| of a normal x is √(2 ÷ π) standard deviations.
        """
        draws = self._draws(self.competition(test), policy, count)
        if not draws:
            return Measured()
        parts = ideal_group_shares(self.lotteries[test].table, count).values()
        errors = [math.sqrt(2 / math.pi * part * (1 - part) / fmean(draws)) for part in parts]
        return Measured((100 * fmean(errors),))

    def idle(self, experiment: str, count: int) -> Measured:
        """Percent of the CPUs' time under the study's lottery in which they had nothing to run."""
        cpu_time_ns = first("cpus") * first("elapsed_ns")
        return self.of(experiment, THESIS, 100 * first("idle_ns") / cpu_time_ns, cpus=count)

    # --- what comes out

    def idle_without_need(self, test: str) -> SimpleNamespace | None:
        """The greatest number of CPUs that the study's lottery leaves idle while all want to
        compute, and the idle part that the processes could not use. None if it leaves none idle."""
        if not self.all_compute(test):
            return None
        processes, without_need = self.members(test), None
        for count in self.counts:
            idle = self.idle(self.competition(test), count).mean
            least = 100 * max(0.0, 1 - processes / count)
            if idle and idle > _IDLE_POINTS + least:
                without_need = SimpleNamespace(count=count, idle=idle, least=least)
        return without_need

    def members(self, test: str) -> int:
        """How many processes a test has."""
        return sum(group.processes for group in LOTTERY_GROUPS[self.lotteries[test].table])

    def worst_of_shipped(self, test: str) -> int:
        """The number of CPUs on which ours is farthest off the ideal; 0 if it was not run."""
        off = {n: self.off_ideal_share(test, SHIPPED, n).mean for n in self.counts}
        known = {count: points for count, points in off.items() if points is not None}
        return max(known, key=lambda count: (known[count], count), default=0)

    def off_printed(
        self, test: str, group: str, count: int, their_costs: bool = False
    ) -> bool | None:
        """Is our share of the selections off theirs? None: it is not known."""
        ours = self.picked(test, group, count, their_costs).mean
        theirs = self.share_printed(test, group, count)
        if ours is None or theirs is None:
            return None
        return not is_near(theirs, ours)

    def why_off(self, test: str, group: str, count: int, their_costs: bool = False) -> Why:
        """Returns the note with a reason of this test for a share that is off the printed one, or nothing."""
        if not self.off_printed(test, group, count, their_costs):
            return ""
        if self.off_printed(test, group, count, their_costs=True) is False:
            return ""
        if test == _NO_WORK:
            return "work_had_ended" if self.ended(test, count) else ""
        if count == 1:
            return "chance" if self.off_by_chance(test, group) else ""
        return "laid_out" if test == _LAYOUT and self.picked_if_counted("A", count) else ""

    def printed_as_counted(self, count: int) -> bool:
        """Are A and C picked as printed, if a process that runs counts at the next one's fork?"""
        return all(
            abs(printed - counted) <= NEAR_POINTS for printed, _, counted in self._layouts(count)
        )

    def printed_between_layouts(self, count: int) -> bool:
        """Do the printed shares of A and C lie between those that they have if a process that runs
        counts, and if it does not?"""
        return all(min(pair) <= printed <= max(pair) for printed, *pair in self._layouts(count))

    def _layouts(self, count: int) -> list[tuple[float, float, float]]:
        """Of A and C: the printed share, and those of the two layouts."""
        return [
            (
                _number(self.share_printed(_LAYOUT, group, count)),
                _number(self.picked(_LAYOUT, group, count)),
                _number(self.picked_if_counted(group, count)),
            )
            for group in "AC"
        ]

    def printed_sum(self, test: str, count: int) -> float:
        """Percent to which a printed column of shares adds up."""
        printed = (self.share_printed(test, row, count) for row in self.lotteries[test].rows)
        return sum(map(_number, printed))

    def chance_of_share(self, test: str, group: str) -> SimpleNamespace | None:
        """The points that chance allows on one CPU, with as many draws as ours had."""
        setup = self.setup(self.original(test), THESIS, 1)
        part = self.picked(test, group, 1).mean
        counts = [self._mean("selections", test, row, 1) for row in self.lotteries[test].rows]
        if setup is None or part is None or None in counts:
            return None
        draws, runs = sum(row_count for row_count in counts if row_count), len(setup.runs)
        return SimpleNamespace(draws=draws, runs=runs, points=_bound(part / 100, draws * runs))

    def off_by_chance(self, test: str, group: str) -> bool:
        """Could it be no more than that?"""
        theirs, chance = self.share_printed(test, group, 1), self.chance_of_share(test, group)
        ours = self.picked(test, group, 1).mean
        if chance is None or theirs is None or ours is None:
            return False
        return bool(abs(ours - theirs.value) <= chance.points)

    def ended(self, test: str, count: int) -> list[SimpleNamespace]:
        """Groups of which processes had done their work before the window ended."""
        groups = []
        for group in self.lotteries[test].rows:
            finished, processes, picked = (
                self._mean(column, test, group, count)
                for column in ("finished", "processes", "selections")
            )
            if finished and processes and picked:
                groups.append(
                    SimpleNamespace(
                        group=group, finished=finished, of=processes, each=picked / processes
                    )
                )
        return groups


def _number(of: Figure | Measured | None) -> float:
    """Not a number if there is none."""
    value = of.mean if isinstance(of, Measured) else of.value if of else None
    return math.nan if value is None else value


def _bound(part: float, draws: float) -> float:
    """Points that a mean share may be off by chance."""
    return 100 * BOUND * math.sqrt(part * (1 - part) / draws)
