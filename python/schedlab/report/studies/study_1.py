# SPDX-License-Identifier: MIT
"""Queries of study 1's page: priorities, a lottery, and the study's proposals."""

from collections.abc import Sequence
from statistics import fmean
from types import SimpleNamespace
from typing import ClassVar, Literal

import polars as pl

from schedlab.analysis.comparison.statistics import UNBOUNDED
from schedlab.base.display.numbers import NO_VALUE
from schedlab.report.proposals import find_outcomes
from schedlab.report.studies.lottery import SHIPPED, THESIS, LotteryQueries
from schedlab.report.studies.queries import in_ticks
from schedlab.report.studies.timing import NEAR, SLEEPERS, Suite, TimingQueries, Why
from schedlab.report.study_tables import Measurement
from schedlab.report.wording import cpus_text as cpus_text
from schedlab.studies.experiment import name_without_cost
from schedlab.studies.experiments import (
    ALL_CPUS,
    BALANCED_PRIORITY,
    DEFAULT_POLICIES,
    EXPERIMENTS,
    IO_WITHOUT_BURSTS,
    MIXED_EQUAL,
    PRIORITY_AS_CODED,
    PRIORITY_AS_DESCRIBED,
    STARVE_BURSTS,
    TIMING_TESTS,
)
from schedlab.studies.figures import Figure, Source
from schedlab.studies.ideal_times import ITERATIONS_PER_TICK
from schedlab.studies.ideal_times import TIMING_TESTS as WORK

_SEQUENCE_EXPERIMENT = "s1-priority-suite"
"""The experiment that runs all tests in sequence, as the study did."""
_COMPUTING_TESTS = ("cpu-heavy", "starvation")
_SWITCHING_TEST = "switch"
"""The test whose parent waits for each task before it starts the next."""
_PRIORITY_SETTING_TESTS = ("io-bound", "mixed", "starvation")
"""The tests of `prioritytest` whose tasks each set a priority."""
_IMBALANCE_RATIO = 1.1
_BURN_NS = 10
"""Nanoseconds of an iteration of workload_burn() on Spike."""
_NOTABLE_FRACTION = 0.05
"""Relative change of a time above which it is reported."""
_STARVING_PARENT_TEST = "starvation"
"""The test whose parent starts few tasks that compute for a long time."""
WhyTime = Literal[Why, "sleepers_wait_first", "sleeper_stays", "not_the_same_work", "stays"]


class Queries(TimingQueries, LotteryQueries):
    """Queries by suite: timing (table 1) or priority (table 2), as in the names of experiments."""

    suites: ClassVar = {
        "timing": Suite("timing", "table 1", "rr:table-scan", 1),
        "priority": Suite("priority", "table 2", PRIORITY_AS_CODED, 2),
    }
    policies: ClassVar = {name: suite.policy for name, suite in suites.items()}
    rows: ClassVar = TIMING_TESTS
    not_counted: ClassVar = frozenset({("timing", SLEEPERS), ("priority", SLEEPERS)})
    """The study's programs report a constant for Mixed Load."""
    other_work: ClassVar = frozenset({("priority", "io-bound")})
    """The study's compiler deletes the bursts of this test."""
    lotteries_run = (THESIS, SHIPPED)
    in_a_row_name = _SEQUENCE_EXPERIMENT
    agings = (PRIORITY_AS_CODED, PRIORITY_AS_DESCRIBED)
    bursts_deleted = IO_WITHOUT_BURSTS
    proposed = (PRIORITY_AS_CODED, "priority", "priority:proposed", "hybrid")
    """The study's priorities, the built-in ones, and the proposals of section 8."""
    notable_percent = 100 * _NOTABLE_FRACTION
    networks: ClassVar = {"s1-network": 1, "s1-network-2": 2}
    """Experiments of section 9, and their numbers of CPUs."""
    iteration_ns: ClassVar = {
        "table 1": 1e7 / ITERATIONS_PER_TICK,
        "one CPU": _BURN_NS * STARVE_BURSTS[1] / 5000,
        "five CPUs": _BURN_NS * STARVE_BURSTS[5] / 5000,
    }
    """The duration of an iteration of the study's programs, by table 1 and by table 6's calibrated bursts."""
    generators: ClassVar = {
        "a linear congruential generator": "lottery:thesis generator=3",
        "the program's xorshift": "lottery:thesis",
        "a Mersenne Twister": "lottery:thesis generator=4",
    }
    """The generators of the text, of the program and of the proposal, and the policies that have them."""
    real_time = "s1-real-time"
    """The experiment with tasks that have deadlines."""

    def missed(self, task: str, policy: str) -> Measurement:
        """Returns the share of a task's deadlines that it misses, in percent."""
        value = pl.col("miss_share").first() * 100
        return self.of(self.real_time, policy, value, self._group(task), within=UNBOUNDED)

    def fairness_with(self, generator: str, count: int) -> Measurement:
        """Returns the fairness of shares by tickets with one of the generators."""
        policy = self.generators[generator]
        return self.of("proposal-critical", policy, pl.col("fairness_share").first(), cpus=count)

    def selection_overhead(self) -> dict[str, float]:
        """Returns by how many percent each test of fewer levels makes a decision cheaper; empty without runs."""
        outcomes = (
            outcome
            for outcome in find_outcomes(self.collection)
            if (outcome.proposal.study, outcome.proposal.name)
            == (self.study.number, "fewer-queues")
        )
        return {
            _difference_of_test(outcome.test.shows): -100 * change.change / change.before.mean
            for outcome in outcomes
            if (change := outcome.change)
        }

    def of_group(self, name: str) -> pl.DataFrame:
        """Returns the rows of a group of tasks, of all runs."""
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
        """Returns the published figure, or the figure from a rerun of the study's program."""
        place = self.suites[suite].place
        return self.figure(place, self.rows[test], cpus_text([count]), source, quantity)

    def printed_between(self, suite: str, test: str) -> list[float]:
        """Returns the minimum and the maximum over the numbers of CPUs."""
        values = [printed.value for n in self.counts if (printed := self.printed(suite, test, n))]
        return [min(values), max(values)]

    def picks(
        self, suite: str, test: str, count: int, with_study_costs: bool = False
    ) -> Measurement:
        """Returns the number of picks, including those of the task that ran
        before, as the study's kernel counts.

        For priority tests in sequence, the programs report the same count of schedlab's kernel.
        """
        if suite == "priority" and with_study_costs:
            return self.in_sequence(test, count, "switches", with_study_costs=True)
        value, rows = pl.col("selections").sum(), self.collection.processes
        return self._of(value, suite, test, count, rows=rows, with_study_costs=with_study_costs)

    def costs_run(self, suite: str, test: str) -> str:
        """Returns the experiment with the study costs that a test is compared with.

        For table 2, this is the sequence of all tests.
        """
        if suite == "priority":
            return self.experiment_with_study_costs(_SEQUENCE_EXPERIMENT)
        return self.experiment(suite, test, with_study_costs=True)

    def picks_without(self, habit: str, suite: str, test: str, count: int) -> Measurement:
        """Returns the number of picks with the study costs, without one of the habits of the study's kernel."""
        if suite == "priority":
            name = name_without_cost(self.experiment_with_study_costs(_SEQUENCE_EXPERIMENT), habit)
            return self.in_sequence(test, count, "switches", experiment=name)
        name = name_without_cost(self.experiment(suite, test, True), habit)
        value, rows = pl.col("selections").sum(), self.collection.processes
        return self.of(name, self.policies[suite], value, rows, cpus=count)

    def _effect_value(
        self, metric: str, experiment: str, policy: str, test: str, count: int
    ) -> Measurement:
        """Returns a metric of an experiment. The sequence of all tests reports it for each test."""
        if experiment.startswith(_SEQUENCE_EXPERIMENT):
            name = "complete" if metric == "completion" else "switches"
            return self.in_sequence(test, count, name, policy, experiment=experiment)
        return super()._effect_value(metric, experiment, policy, test, count)

    def _parents_picks(self, suite: str, test: str) -> Measurement:
        """Returns the picks of the program that starts the tasks."""
        parent_picks = pl.col("selections").filter(pl.col("role") == "root").sum()
        return self._of(parent_picks, suite, test, 1, rows=self.collection.processes)

    def why_time_off(self, suite: str, test: str, count: int, until_all_ended: bool) -> WhyTime:
        """Returns the note on a time that differs from the published time or
        the ideal; "" if none is needed.
        """
        off_ideal = self.off_ideal(suite, test, count, until_all_ended)
        if until_all_ended:
            if not off_ideal or not self.waits_of_sleepers(suite):
                return ""
            return "sleepers_wait_first" if count == 1 else "sleeper_stays"
        if test == SLEEPERS:
            return "constant"
        if (suite, test) in self.other_work:
            return "not_the_same_work"
        if off_ideal and self.imbalances(suite, test):
            return "stays"
        return ""

    def waits_of_sleepers(self, suite: str) -> list[SimpleNamespace]:
        """Returns the waits of Mixed Load's sleepers under priorities, if at
        least one tick, with the CPUs.
        """
        waits = {n: self.sleepers_wait(suite, n).mean for n in self.counts if suite == "priority"}
        return [
            SimpleNamespace(ticks=wait, count=n) for n, wait in waits.items() if wait and wait >= 1
        ]

    def shorter_than_sleep(self, suite: str) -> list[SimpleNamespace]:
        """Returns the shortest turnarounds of Mixed Load's computing tasks that end before its sleepers,
        in ticks, with the CPUs.

        A sleep can be up to a tick shorter than 50 ticks.
        """
        rows, shorter = self._processes("group", "mix-cpu"), []
        least = in_ticks(pl.col("turnaround_ns").min())
        for count in self.counts:
            mean = self._of(least, suite, SLEEPERS, count, rows=rows).mean
            if mean is not None and mean < self.ideal(suite, SLEEPERS, count) - 1:
                shorter.append(SimpleNamespace(ticks=mean, count=count))
        return shorter

    def equal_mixed(self) -> Measurement:
        """Returns how long Mixed Load takes on one CPU if all tasks have the same priority."""
        return self.ticks(MIXED_EQUAL, PRIORITY_AS_CODED, "completion_ns", 1)

    def balanced_times(self, test: str) -> list[SimpleNamespace]:
        """Returns the times with and without balancing where they differ, with the CPUs."""
        times = []
        for count in ALL_CPUS[1:]:
            balanced = self.completion("priority", test, count, BALANCED_PRIORITY).mean
            stays = self.completion("priority", test, count).mean
            if balanced and stays and stays > _IMBALANCE_RATIO * balanced:
                times.append(SimpleNamespace(count=count, balanced=balanced, stays=stays))
        return times

    def imbalances(self, suite: str, test: str) -> list[SimpleNamespace]:
        """Returns the numbers of CPUs where no task migrates, the busiest CPU exceeds its share, and
        balancing makes the test faster.
        """
        stays = []
        differ = {time.count for time in self.balanced_times(test)}
        for count in sorted(differ) if suite == "priority" and test in _COMPUTING_TESTS else ():
            busiest = self.busiest(suite, test, count).mean
            ideal = self.ideal(suite, test, count, True)
            moved = self.number("migrations", suite, test, count).mean
            if busiest and moved == 0 and busiest > _IMBALANCE_RATIO * ideal:
                stays.append(SimpleNamespace(busiest=busiest, count=count, ideal=ideal))
        return stays

    def farthest_from_ideal(self, suite: str, test: str) -> SimpleNamespace | None:
        """Returns the number of CPUs with the largest ratio to the
        ideal; None if it was not run.
        """
        measured_times = [
            SimpleNamespace(count=count, ticks=mean, ideal=self.ideal(suite, test, count))
            for count in self.counts
            if (mean := self.completion(suite, test, count).mean)
        ]
        return max(measured_times, key=lambda time: time.ticks / time.ideal, default=None)

    def turnarounds(self, policies: Sequence[str], cpus: int = 0) -> SimpleNamespace | None:
        """Returns turnarounds of priorities 0 and 5 in I/O-bound, by default on the
        CPUs that most policies ran on.
        """
        counts = [cpus] if cpus else self.counts
        by_count = {count: list(self._turnarounds(policies, count)) for count in counts}
        count = max(by_count, key=lambda name: len(by_count[name]))
        return SimpleNamespace(count=count, of=by_count[count]) if by_count[count] else None

    def _turnarounds(self, policies: Sequence[str], count: int) -> list[SimpleNamespace]:
        """Returns the mean turnarounds of priorities 0 and 5 in ticks under each policy, on `count`
        CPUs.
        """
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

    def reported_time(
        self,
        suite: str,
        test: str,
        count: int,
        until_all_ended: bool = False,
        with_study_costs: bool = False,
    ) -> Measurement:
        """Returns the time that the study reports.

        With the study costs, priority tests run in sequence.
        """
        if suite != "priority" or not with_study_costs:
            return super().reported_time(suite, test, count, until_all_ended, with_study_costs)
        name = "ticks" if self._reports_sleepers(suite, test, until_all_ended) else "complete"
        return self.in_sequence(test, count, name, with_study_costs=True)

    def in_sequence(
        self,
        test: str,
        count: int,
        name: str = "ticks",
        policy: str = PRIORITY_AS_CODED,
        with_study_costs: bool = False,
        experiment: str = "",
    ) -> Measurement:
        """Returns a value that the sequence of all seven tests reports for
        a test: `ticks`, or `complete`.

        The value is the mean of the test's five repetitions.
        """
        rows = self._with_last("test")
        if len(rows):
            in_test = (pl.col("test") == 1 + self.tests.index(test)) & (pl.col("name") == name)
            rows = rows.filter(in_test)
        value = pl.col("value").mean()
        repeated = (
            self.experiment_with_study_costs(_SEQUENCE_EXPERIMENT)
            if with_study_costs
            else _SEQUENCE_EXPERIMENT
        )
        return self.of(experiment or repeated, policy, value, rows, cpus=count)

    def without_bursts(self, count: int, with_study_costs: bool = False) -> Measurement:
        """Returns the time of I/O-bound alone, without the bursts
        that the study's compiler deletes.
        """
        name = (
            self.experiment_with_study_costs(IO_WITHOUT_BURSTS)
            if with_study_costs
            else IO_WITHOUT_BURSTS
        )
        return self.ticks(name, PRIORITY_AS_CODED, "completion_ns", count)

    def off_by_aging(self, policy: str, in_a_row: bool, count: int) -> Measurement:
        """Returns the mean difference of table 2's times from the published ones, in percent.

        The runs have the study costs and one of the two ways of aging.
        """
        affected = []
        for test in self.tests:
            theirs = self.printed("priority", test, count)
            if theirs is None or ("priority", test) in self.not_counted:
                continue
            ours = (
                self.in_sequence(test, count, "complete", policy, with_study_costs=True)
                if in_a_row
                else self.completion("priority", test, count, policy, with_study_costs=True)
            )
            if ours.mean is None:
                return ours
            affected.append(100 * abs(ours.mean / theirs.value - 1))
        return Measurement((fmean(affected),))

    def why_off_on_their_costs(self, suite: str, test: str, count: int) -> str:
        """Returns the note on a time that differs even with the study costs; otherwise ""."""
        starves = (suite, test) == ("priority", _STARVING_PARENT_TEST)
        return "parent_starves" if starves and self.off_study(suite, test, count, True) else ""

    def run_alone(self, test: str, name: str) -> Measurement:
        """Returns a reported value of a test that runs alone on one CPU."""
        return self._of(
            pl.col("value").mean(), "priority", test, 1, rows=self._values_reported_as(name)
        )

    # --- sources of the context switches, on one CPU

    def switch_account(self, whose: str, part: str, suite: str, test: str) -> Measurement:
        """Returns a part of the account of context switches, measured or published.

        `part`: `events` and `ticks` with one pick each, their `sum`, or the `counted` switches.
        """
        result = self._switch_account(whose, suite, test)
        return Measurement((result[part],)) if result else Measurement((), NO_VALUE)

    def _switch_account(self, whose: str, suite: str, test: str) -> dict[str, float] | None:
        """Returns the account of a test's context switches, published or measured; None if it is
        not known.
        """
        made = (
            self._published_switch_sources(suite, test)
            if whose == "published"
            else self._measured_switch_sources(suite, test)
        )
        if any(value is None for value in made):
            return None
        events, ticks, counted = (value or 0.0 for value in made)
        return {"events": events, "ticks": ticks, "sum": events + ticks, "counted": counted}

    def _published_switch_sources(self, suite: str, test: str) -> tuple[float | None, ...]:
        """Returns the study's events, ticks and counted switches; (None,) if unknown.

        Events are each start, the parent's waits for tasks, and one pick per tick of a sleep, since
        xv6 wakes all sleepers at every tick. Mixed Load does not report ticks.
        """
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
        parent = processes if test == _SWITCHING_TEST else 0
        slept = sleeps * (work.sleep_ticks or work.pause_ticks)
        return processes + parent + slept, ticks.value, counted.value

    def _measured_switch_sources(self, suite: str, test: str) -> tuple[float | None, ...]:
        """Returns the measured events, busy ticks and counted picks; (None,) if unknown.

        Events are starts, wake-ups, picks of the parent, and each change of a priority, after which
        the policy picks again. An idle CPU's ticks pick no task.
        """
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
        set_by = processes if suite == "priority" and test in _PRIORITY_SETTING_TESTS else 0
        return processes + wakeups + parent + set_by, ticks - idle, counted

    def _switch_accounts(self, whose: str) -> list[dict[str, float]]:
        """Returns the accounts of all tests with known sources of context switches."""
        pairs = ((suite, test) for suite in self.suites for test in self.tests)
        return [accounts for pair in pairs if (accounts := self._switch_account(whose, *pair))]

    def accounted_tests(self, whose: str) -> int:
        """Returns the number of tests with known sources of context switches."""
        return len(self._switch_accounts(whose))

    def well_accounted_tests(self, whose: str) -> int:
        """Returns the number of tests whose known sources of context switches add up to about the count."""
        return sum(
            abs(account["sum"] - account["counted"]) <= NEAR * account["counted"]
            for account in self._switch_accounts(whose)
        )

    # --- runs

    def tick_texts(self, of_program: bool = False) -> list[str]:
        """Returns the tick lengths of the runs of the study's own lottery program.

        If not `of_program`: of all other runs of this study.
        """
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
        """Returns the command of one of the study's lottery tests; "" if none was run."""
        originals = {self.original(test) for test in self.lotteries}
        programs = {
            str(run.manifest["workload"])
            for run in self.collection
            if run.setup.experiment in originals
        }
        return min(programs, default="")

    def most_traced(self, suite: str, test: str) -> int:
        """Returns the largest number of CPUs, from two, with a trace; 0 without one."""
        experiment, policy = self.experiment(suite, test), self.policies[suite]
        several = reversed(ALL_CPUS[1:])
        return next((n for n in several if self.first_trace(experiment, policy, n)), 0)

    # --- all policies

    def policies_run(self, experiment: str) -> list[str]:
        """Returns the study's policies, then the built-in ones, that ran on any number of CPUs."""
        names = dict.fromkeys((*EXPERIMENTS[experiment].study_policies, *DEFAULT_POLICIES))
        return [name for name in names if any(self.ran(experiment, name, n) for n in self.counts)]

    def other_policy_ran(self, test: str, count: int) -> bool:
        """True if a priority test ran under a policy other than the study's."""
        experiment = self.experiment("priority", test)
        return any(self.ran(experiment, name, count) for name in self.proposed[1:])

    def changes(self, before: str, after: str) -> SimpleNamespace:
        """Compares the times of the priority tests under two policies.

        The result has `setups`, the number of compared configurations, and `shorter` and `longer`,
        the notable changes in decreasing order.
        """
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
            shorter=[change for change in all_changes if change.part < -_NOTABLE_FRACTION],
            longer=[change for change in reversed(all_changes) if change.part > _NOTABLE_FRACTION],
        )

    def shares_off_printed(self) -> Measurement:
        """Returns the mean difference of measured and published shares on one CPU, in points."""
        differences = [self.off_printed_shares(test, 1) for test in self.lotteries]
        missing = next((difference for difference in differences if difference.mean is None), None)
        return missing or Measurement((fmean(difference.mean or 0 for difference in differences),))

    def both_lotteries(self, count: int) -> SimpleNamespace | None:
        """Returns the mean distance from the ideal of the study's and
        the built-in lottery, in points.

        Covers the tables where both are known. Returns None if there are none.
        """
        distances = [
            [self.off_ideal_share(test, lottery, count).mean for lottery in self.lotteries_run]
            for test in self.lotteries
        ]
        known = [(old, new) for old, new in distances if old is not None and new is not None]
        if not known:
            return None
        old, new = (fmean(column) for column in zip(*known, strict=True))
        return SimpleNamespace(old=old, new=new, tables=len(known))


def _difference_of_test(shows: str) -> str:
    """Returns how a test of a proposal differs from its first test, which has all of the proposal."""
    for prefix in ("the same: ", "the same, "):
        if shows.startswith(prefix):
            return shows.removeprefix(prefix)
    return "both"
