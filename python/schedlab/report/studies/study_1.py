# SPDX-License-Identifier: MIT
"""What study 1's page asks: of priorities, of a lottery, and of what it proposes."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from types import SimpleNamespace
from typing import ClassVar, Literal

import polars as pl

from schedlab.base.display.numbers import NOTHING
from schedlab.report.studies.lottery import SHIPPED, THESIS, LotteryQueries
from schedlab.report.studies.timing import NEAR, SLEEPERS, Suite, TimingQueries, Why
from schedlab.report.study_tables import Measured
from schedlab.report.wording import cpus as cpus_text
from schedlab.studies.experiment import without_cost
from schedlab.studies.experiments import (
    ALL_CPUS,
    BURSTS_DELETED,
    BY_PASSES,
    BY_TEXT,
    EXPERIMENTS,
    OTHERS,
    TIMING_TESTS,
)
from schedlab.studies.figures import Figure, Source
from schedlab.studies.ideal import TIMING_TESTS as WORK

_IN_A_ROW = "s1-priority-suite"
"""The experiment that runs all tests one after another, as the study did."""
_COMPUTING = ("cpu-heavy", "starvation")
_IN_TURN = "switch"
"""The test in which the parent waits for each process before it starts the next."""
_SETTING = ("io-bound", "mixed", "starvation")
"""The tests of `prioritytest` in which each process sets a priority."""
_MORE_THAN_ITS_PART = 1.1
_NOTABLE = 0.05
"""A change of a time by more than this part is told of."""
_PARENT_STARVES = "starvation"
"""The test in which the parent starts little, and its processes compute for long."""
WhyTime = Literal[Why, "sleepers_wait_first", "not_the_same_work", "stays"]


class Queries(TimingQueries, LotteryQueries):
    """A suite is named as in the experiments: timing (table 1), priority (table 2)."""

    suites: ClassVar = {
        "timing": Suite("timing", "table 1", "rr:table-scan", 1),
        "priority": Suite("priority", "table 2", BY_PASSES, 2),
    }
    policies: ClassVar = {name: suite.policy for name, suite in suites.items()}
    rows: ClassVar = TIMING_TESTS
    not_counted: ClassVar = frozenset({("timing", SLEEPERS), ("priority", SLEEPERS)})
    """Mixed Load is a number in the study's programs."""
    other_work: ClassVar = frozenset({("priority", "io-bound")})
    """Their compiler deletes its bursts."""
    figures_on = ALL_CPUS
    lotteries_run = (THESIS, SHIPPED)
    in_a_row_name = _IN_A_ROW
    agings = (BY_PASSES, BY_TEXT)
    bursts_deleted = BURSTS_DELETED
    proposed = (BY_PASSES, "priority", "priority:proposed", "hybrid")
    """The study's priorities; ours; and what section 8 proposes."""
    notable_percent = 100 * _NOTABLE
    networks: ClassVar = {"s1-network": 1, "s1-network-2": 2}
    """Experiments of what section 9 asks for, and their numbers of CPUs."""

    def policies_of(self, experiment: str) -> tuple[str, ...]:
        """Returns the study's policies of an experiment."""
        return EXPERIMENTS[experiment].own

    def of_group(self, name: str) -> pl.DataFrame:
        """Returns the row of a group of processes, of all runs."""
        return self._group(name)

    # --- tables 1 and 2

    def printed(
        self,
        suite: str,
        test: str,
        count: int,
        quantity: str = "completion",
        source: Source = "study",
    ) -> Figure | None:
        """What the study has, or its program told when it was run again."""
        place = self.suites[suite].place
        return self.figure(place, self.rows[test], cpus_text([count]), source, quantity)

    def printed_between(self, suite: str, test: str) -> list[float]:
        """The least and the most, over the numbers of CPUs."""
        values = [printed.value for n in self.counts if (printed := self.printed(suite, test, n))]
        return [min(values), max(values)]

    def picks(self, suite: str, test: str, count: int, their_costs: bool = False) -> Measured:
        """How often a process was picked, even if it ran before: what the study's kernel counts. Priority tests in
        a row tell it themselves, of the same count of our kernel."""
        if suite == "priority" and their_costs:
            return self.in_a_row(test, count, "switches", their_costs=True)
        value, rows = pl.col("selections").sum(), self.collection.processes
        return self._of(value, suite, test, count, rows=rows, their_costs=their_costs)

    def costs_run(self, suite: str, test: str) -> str:
        """Returns the experiment on the study's costs that a test is compared with: table 2 is of tests in a row."""
        if suite == "priority":
            return self.on_their_costs(_IN_A_ROW)
        return self.experiment(suite, test, their_costs=True)

    def picks_if_not_woken(self, suite: str, test: str, count: int) -> Measured:
        """Returns the picks on the study's costs if no sleeper is woken before its time."""
        if suite == "priority":
            name = without_cost(self.on_their_costs(_IN_A_ROW), "recheck")
            return self.in_a_row(test, count, "switches", experiment=name)
        name = without_cost(self.experiment(suite, test, True), "recheck")
        value, rows = pl.col("selections").sum(), self.collection.processes
        return self.of(name, self.policies[suite], value, rows, cpus=count)

    def _parents_picks(self, suite: str, test: str) -> Measured:
        """The picks of the program that starts the processes."""
        parent_picks = pl.col("selections").filter(pl.col("role") == "root").sum()
        return self._of(parent_picks, suite, test, 1, rows=self.collection.processes)

    def why_time_off(self, suite: str, test: str, count: int, until_all_ended: bool) -> WhyTime:
        """The note that explains a time that is off theirs, or off the ideal; none if it needs
        none."""
        off_ideal = self.off_ideal(suite, test, count, until_all_ended)
        if until_all_ended:
            return "sleepers_wait_first" if off_ideal and self.waits_of_sleepers(suite) else ""
        if test == SLEEPERS:
            return "constant"
        if (suite, test) in self.other_work:
            return "not_the_same_work"
        if off_ideal and self.staying(suite, test):
            return "stays"
        return ""

    def waits_of_sleepers(self, suite: str) -> list[SimpleNamespace]:
        """A tick or more, for which the sleepers of Mixed Load wait under priorities."""
        waits = {n: self.sleepers_wait(suite, n).mean for n in self.counts if suite == "priority"}
        return [
            SimpleNamespace(ticks=wait, count=n) for n, wait in waits.items() if wait and wait >= 1
        ]

    def staying(self, suite: str, test: str) -> list[SimpleNamespace]:
        """Where no process changes its CPU, and the busiest has more than its part to do."""
        stays = []
        for count in ALL_CPUS[1:] if suite == "priority" and test in _COMPUTING else ():
            busiest = self.busiest(suite, test, count).mean
            ideal = self.ideal(suite, test, count, True)
            moved = self.number("migrations", suite, test, count).mean
            if busiest and moved == 0 and busiest > _MORE_THAN_ITS_PART * ideal:
                stays.append(SimpleNamespace(busiest=busiest, count=count, ideal=ideal))
        return stays

    def farthest_from_ideal(self, suite: str, test: str) -> SimpleNamespace | None:
        """The number of CPUs on which it takes longest, compared with the ideal; None if it was not
        run."""
        known = [
            SimpleNamespace(count=count, ticks=mean, ideal=self.ideal(suite, test, count))
            for count in self.counts
            if (mean := self.completion(suite, test, count).mean)
        ]
        return max(known, key=lambda stay: stay.ticks / stay.ideal, default=None)

    def turnarounds(self, policies: Sequence[str]) -> SimpleNamespace | None:
        """Turnarounds of processes of priority 0 and 5 in I/O-bound, on the CPUs where most
        policies were run."""
        by_count = {count: list(self._turnarounds(policies, count)) for count in self.counts}
        count = max(by_count, key=lambda name: len(by_count[name]))
        return SimpleNamespace(count=count, of=by_count[count]) if by_count[count] else None

    def _turnarounds(self, policies: Sequence[str], count: int) -> list[SimpleNamespace]:
        turnarounds = []
        for policy in policies:
            zero, five = (
                self.group_time(
                    "turnaround_mean_ns", group, "priority", "io-bound", count, policy
                ).mean
                for group in ("io-0", "io-5")
            )
            if zero and five:
                turnarounds.append(SimpleNamespace(policy=policy, zero=zero, five=five))
        return turnarounds

    def told(
        self,
        suite: str,
        test: str,
        count: int,
        until_all_ended: bool = False,
        their_costs: bool = False,
    ) -> Measured:
        """As the study ran it, priority tests are run in a row."""
        if suite != "priority" or not their_costs:
            return super().told(suite, test, count, until_all_ended, their_costs)
        name = "ticks" if self._reports_sleepers(suite, test, until_all_ended) else "complete"
        return self.in_a_row(test, count, name, their_costs=True)

    def in_a_row(
        self,
        test: str,
        count: int,
        name: str = "ticks",
        policy: str = BY_PASSES,
        their_costs: bool = False,
        experiment: str = "",
    ) -> Measured:
        """What is told of a test if all seven are run in a row: `ticks`, or when all had ended. The
        mean of the five times that it is run."""
        rows = self._told_since("test")
        if len(rows):
            in_test = (pl.col("test") == 1 + self.tests.index(test)) & (pl.col("name") == name)
            rows = rows.filter(in_test)
        value = pl.col("value").mean()
        repeated = self.on_their_costs(_IN_A_ROW) if their_costs else _IN_A_ROW
        return self.of(experiment or repeated, policy, value, rows, cpus=count)

    def without_bursts(self, count: int, their_costs: bool = False) -> Measured:
        """The time of I/O-bound by itself, without the bursts that the study's compiler deletes."""
        name = self.on_their_costs(BURSTS_DELETED) if their_costs else BURSTS_DELETED
        return self.ticks(name, BY_PASSES, "completion_ns", count)

    def off_by_aging(self, policy: str, in_a_row: bool, count: int) -> Measured:
        """By how many percent the times of table 2 are off theirs with their costs, under one of the
        two agings: the mean over the tests."""
        off = []
        for test in self.tests:
            theirs = self.printed("priority", test, count)
            if theirs is None or ("priority", test) in self.not_counted:
                continue
            ours = (
                self.in_a_row(test, count, "complete", policy, their_costs=True)
                if in_a_row
                else self.completion("priority", test, count, policy, their_costs=True)
            )
            if ours.mean is None:
                return ours
            off.append(100 * abs(ours.mean / theirs.value - 1))
        return Measured((fmean(off),))

    def why_off_on_their_costs(self, suite: str, test: str, count: int) -> str:
        """The note on a time that is off theirs with their costs, too; none if it is not."""
        starves = (suite, test) == ("priority", _PARENT_STARVES)
        return "parent_starves" if starves and self.off_study(suite, test, count, True) else ""

    def by_itself(self, test: str, name: str) -> Measured:
        """The same on one CPU if it is run alone."""
        return self._of(pl.col("value").mean(), "priority", test, 1, rows=self._told(name))

    # --- where the context switches come from, on one CPU

    def account(self, whose: str, part: str, suite: str, test: str) -> Measured:
        """Events and ticks that are a pick each, their sum, and what was counted, here or by the study."""
        result = self._account(whose, suite, test)
        return Measured((result[part],)) if result else Measured((), NOTHING)

    def _account(self, whose: str, suite: str, test: str) -> dict[str, float] | None:
        made = self._theirs(suite, test) if whose == "published" else self._ours(suite, test)
        if any(value is None for value in made):
            return None
        events, ticks, counted = (value or 0.0 for value in made)
        return {"events": events, "ticks": ticks, "sum": events + ticks, "counted": counted}

    def _theirs(self, suite: str, test: str) -> tuple[float | None, ...]:
        """Events: each start; the parent, where it waits for each process; and for each tick of a
        sleep one, as xv6 wakes all that sleep at every tick. In Mixed Load it does not tell the ticks."""
        ticks, counted = (
            self.printed(suite, test, 1, quantity)
            for quantity in ("completion", "context switches")
        )
        processes, sleeps = (
            self.number(column, suite, test, 1).mean for column in ("processes", "wakeups")
        )
        if test == SLEEPERS or not ticks or not counted or processes is None or sleeps is None:
            return (None,)
        (work,) = (w for w in WORK[self.suites[suite].tests_of] if w.row == self.rows[test])
        parent = processes if test == _IN_TURN else 0
        slept = sleeps * (work.sleeping or work.pause)
        return processes + parent + slept, ticks.value, counted.value

    def _ours(self, suite: str, test: str) -> tuple[float | None, ...]:
        """Events: each start, each wake-up, each pick of the parent, and each priority that is set,
        after which the policy picks anew. Ticks of an idle CPU pick no process."""
        means = [
            mean.mean
            for mean in (
                *(
                    self.number(column, suite, test, 1)
                    for column in ("processes", "wakeups", "completion_ns", "idle_ns")
                ),
                self._parents_picks(suite, test),
                self.picks(suite, test, 1),
            )
        ]
        if None in means:
            return (None,)
        processes, wakeups, ticks, idle, parent, counted = (mean or 0.0 for mean in means)
        set_by = processes if suite == "priority" and test in _SETTING else 0
        return processes + wakeups + parent + set_by, ticks - idle, counted

    def _accounts(self, whose: str) -> list[dict[str, float]]:
        pairs = ((suite, test) for suite in self.suites for test in self.tests)
        return [accounts for pair in pairs if (accounts := self._account(whose, *pair))]

    def accounted(self, whose: str) -> int:
        """The number of tests whose switches can be accounted for."""
        return len(self._accounts(whose))

    def accounted_well(self, whose: str) -> int:
        """The number of those tests in which the sum is near what was counted."""
        return sum(
            abs(account["sum"] - account["counted"]) <= NEAR * account["counted"]
            for account in self._accounts(whose)
        )

    # --- how it was run

    def tick_texts(self, of_program: bool = False) -> list[str]:
        """Lengths, in all runs of the study's own lottery program, or in all others."""
        programs = {
            self.original(test, costs) for test in self.lotteries for costs in (False, True)
        }
        names = (
            name
            for name, experiment in EXPERIMENTS.items()
            if experiment.study == self.study.number
        )
        return self.tick_lengths(name for name in names if (name in programs) == of_program)

    def original_command(self) -> str:
        """How one of the study's own lottery tests was run; nothing, if none was."""
        originals = {self.original(test) for test in self.lotteries}
        programs = {
            str(run.manifest["workload"])
            for run in self.collection
            if run.setup.experiment in originals
        }
        return min(programs, default="")

    def most_traced(self, suite: str, test: str) -> int:
        """The most CPUs, two or more, of which there is a trace; 0 without one."""
        experiment, policy = self.experiment(suite, test), self.policies[suite]
        several = reversed(ALL_CPUS[1:])
        return next((n for n in several if self.first_trace(experiment, policy, n)), 0)

    # --- all policies

    def policies_run(self, experiment: str) -> list[str]:
        """The policies of the study, and then all that we ship, if they were run on any number of
        CPUs."""
        names = dict.fromkeys((*EXPERIMENTS[experiment].own, *OTHERS))
        return [name for name in names if any(self.ran(experiment, name, n) for n in self.counts)]

    def another_ran(self, test: str, count: int) -> bool:
        """True if a priority test was run under any policy but the study's."""
        experiment = self.experiment("priority", test)
        return any(self.ran(experiment, name, count) for name in self.proposed[1:])

    def changes(self, before: str, after: str) -> SimpleNamespace:
        """Changes of the priority tests from one policy to another: the number of setups, of those
        that are notably shorter and longer, and those that change most."""
        all_changes = []
        for test in self.tests:
            for count in self.counts:
                old, new = (
                    self.completion("priority", test, count, policy).mean
                    for policy in (before, after)
                )
                if old and new:
                    all_changes.append(
                        SimpleNamespace(
                            part=new / old - 1, test=test, count=count, old=old, new=new
                        )
                    )
        all_changes.sort(key=lambda change: change.part)
        return SimpleNamespace(
            setups=len(all_changes),
            shorter=[change for change in all_changes if change.part < -_NOTABLE],
            longer=[change for change in reversed(all_changes) if change.part > _NOTABLE],
        )

    def shares_off_printed(self) -> Measured:
        """How many points our shares on one CPU are off the study's: mean over the tables."""
        differences = [self.off_printed_shares(test, 1) for test in self.lotteries]
        missing = next((difference for difference in differences if difference.mean is None), None)
        return missing or Measured((fmean(difference.mean or 0 for difference in differences),))

    def both_lotteries(self, count: int) -> SimpleNamespace | None:
        """How many points off the ideal, the study's and ours: mean over the tables of which both are
        known. None if there is none."""
        pairs = [
            [self.off_ideal_share(test, lottery, count).mean for lottery in self.lotteries_run]
            for test in self.lotteries
        ]
        known = [(old, new) for old, new in pairs if old is not None and new is not None]
        if not known:
            return None
        old, new = (fmean(column) for column in zip(*known, strict=True))
        return SimpleNamespace(old=old, new=new, tables=len(known))
