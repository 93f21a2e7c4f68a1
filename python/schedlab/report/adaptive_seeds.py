# SPDX-License-Identifier: MIT
"""Adds seeds in rounds until each comparison is decided."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from schedlab.analysis.comparison.statistics import unseen_rate
from schedlab.base.display.names import visible
from schedlab.base.display.numbers import format_count, percent
from schedlab.base.display.terminal import print_result, say
from schedlab.machines.spec import RunSpec
from schedlab.runs.plan import Plan
from schedlab.runs.results import write_sequential_checks
from schedlab.units import parse_time

if TYPE_CHECKING:
    from schedlab.analysis.comparison.measures import Measure
    from schedlab.analysis.comparison.suites import Suite

SEEDS_MIN = 3
"""Minimum number of seeds of a comparison that is evaluated.

With fewer seeds, differences are hardly ever significant.
"""
_SEEDS_MAX = 1000
_PRINTED_MAX, _NAMED_MAX = 10, 3
"""Maximum numbers of undecided comparisons that are printed, and of policies in each line."""


@dataclass(frozen=True)
class SeedBudget:
    """The limits for adding seeds: seeds per test, and time."""

    seeds: int = 30
    """Maximum number of seeds per test."""
    seconds: float | None = None
    """Time in seconds after which no round begins; None for no limit."""

    def __str__(self) -> str:
        """Returns the budget in the form of the command line."""
        return str(self.seeds) if self.seconds is None else f"{self.seconds:g}s"

    def next_seed_count(self, seeds: int) -> int | None:
        """Returns the number of seeds in the next round: twice `seeds`, up to the limit.

        Returns None if the limit is reached.
        """
        next_count = min(max(2 * seeds, SEEDS_MIN), self.seeds)
        return next_count if next_count > seeds else None

    def evaluations_max(self, first: int) -> int:
        """Returns the maximum number of evaluations, if the first evaluation has `first` seeds."""
        next_count = self.next_seed_count(first)
        return 1 if next_count is None else 1 + self.evaluations_max(next_count)


def parse_budget(text: str) -> SeedBudget:
    """Parses a number of seeds, or a time. Raises ValueError."""
    if text.isdecimal():
        if not SEEDS_MIN <= int(text) <= _SEEDS_MAX:
            raise ValueError(f"out of range; choose {SEEDS_MIN} to {_SEEDS_MAX} seeds")
        return SeedBudget(int(text))
    try:
        return SeedBudget(seconds=parse_time(text) / 1e9)
    except ValueError:
        raise ValueError(
            "give the largest number of seeds, such as 24, or a time, such as 10min; without a"
            " value, make it the last option"
        ) from None


@dataclass(frozen=True)
class MetricComparison:
    """A comparison: one metric of one test on one number of CPUs."""

    suite: Suite
    measure: Measure

    @property
    def remaining_policies(self) -> list[str]:
        """Returns the winner, or the policies that are tied for best; the best mean first."""
        return self.suite.best_policies(self.measure)

    @property
    def is_decided(self) -> bool:
        """Returns whether more seeds are unlikely to change which policies are best."""
        return _is_decided(self.suite, self.measure)

    def to_dict(self) -> dict[str, Any]:
        """Returns the comparison for JSON."""
        return {
            "test": self.suite.experiment,
            "cpus": self.suite.cpus,
            "machine": self.suite.machine,
            "metric": self.measure.name,
            "seeds": len(self.suite.seeds),
            "policies": self.remaining_policies,
            "decided": self.is_decided,
            "unseen_rate": unseen_rate(len(self.suite.seeds)),
        }


def add_seeds_until_decided(
    plan: Plan,
    budget: SeedBudget,
    perform: Callable[[Plan], None],
    suites: Callable[[Plan], Sequence[Suite]],
) -> tuple[Plan, list[MetricComparison]]:
    """Adds seeds to undecided tests until the budget is used up. Returns all runs and comparisons.

    `perform` executes runs, and `suites` reads the finished runs of a plan. The same command adds
    the same seeds, unless the budget is a time.
    """
    began_s = time.monotonic()
    all_suites = suites(plan)
    evaluations_max = budget.evaluations_max(
        min((len(suite.seeds) for suite in all_suites), default=budget.seeds)
    )
    write_sequential_checks(plan.folder, evaluations_max)
    all_suites = suites(plan)
    while True:
        undecided = [suite for suite in all_suites if _undecided_measures(suite)]
        added_runs = tuple(run for suite in undecided for run in _next_round(plan, suite, budget))
        if not added_runs:
            break
        if budget.seconds is not None and time.monotonic() - began_s > budget.seconds:
            say(f"schedlab: time budget reached ({budget})")
            break

        comparisons = sum(len(_undecided_measures(suite)) for suite in undecided)
        say(
            f"schedlab: adding seeds to {format_count(len(undecided), 'test')} with "
            f"{format_count(comparisons, 'undecided comparison')}: {len(added_runs):,} runs"
        )
        perform(replace(plan, runs=added_runs))
        plan = replace(plan, runs=(*plan.runs, *added_runs))
        all_suites = suites(plan)
    return plan, [
        MetricComparison(suite, measure)
        for suite in all_suites
        for measure in suite.differing_measures
    ]


def _is_decided(suite: Suite, measure: Measure) -> bool:
    """Returns whether more seeds are unlikely to change which policies are best."""
    return suite.is_settled(measure) and suite.withstands_rare_losses(measure)


def _undecided_measures(suite: Suite) -> list[Measure]:
    """Returns the suite's measures that need more seeds."""
    return [measure for measure in suite.differing_measures if not _is_decided(suite, measure)]


def _next_round(plan: Plan, suite: Suite, budget: SeedBudget) -> Iterator[RunSpec]:
    """Yields the runs of a test's next round.

    These runs cover all policies, because policies are compared seed by seed.
    """
    seeds = budget.next_seed_count(len(suite.seeds))
    suite_runs = [run for run in plan.runs if _test_of_run(run) == _test_of_suite(suite)]
    for first in {(run.policy, run.settings): run for run in reversed(suite_runs)}.values():
        run_seeds = {
            run.seed
            for run in suite_runs
            if (run.policy, run.settings) == (first.policy, first.settings)
        }
        for seed in range(min(suite.seeds), min(suite.seeds) + (seeds or 0)):
            if seed not in run_seeds:
                yield replace(first, seed=seed)


def _test_of_run(run: RunSpec) -> tuple[str, int, int, str]:
    """Returns the key of a run's test: label, CPUs, tick in ns and machine, as `_test_of_suite`
    does.
    """
    return visible(run.label or run.workload_title), run.cpus, run.tick_ns, run.machine.name


def _test_of_suite(suite: Suite) -> tuple[str, int, int, str]:
    """Returns the key of a suite's test: experiment, CPUs, tick in ns and machine."""
    return suite.experiment, suite.cpus, suite.tick_ns, suite.machine


def print_comparisons(comparisons: Sequence[MetricComparison]) -> None:
    """Prints the decided comparisons, and the first of the undecided ones."""

    if not comparisons:
        print_result("Nothing to decide: no test has several policies whose results differ.")
        return
    undecided = [comparison for comparison in comparisons if not comparison.is_decided]
    winner_count = sum(
        comparison.is_decided and len(comparison.remaining_policies) == 1
        for comparison in comparisons
    )
    tied_count = len(comparisons) - len(undecided) - winner_count
    print_result(
        f"Of {format_count(len(comparisons), 'comparison')} (one metric of a test on a number of CPUs),"
        f" {winner_count} {'has' if winner_count == 1 else 'have'} a winner; in {tied_count}, the policies tied for"
        f" best differ by significantly less than 1 %; {len(undecided)}"
        f" {'is' if len(undecided) == 1 else 'are'} undecided."
    )
    if winner_count:
        fewest = min(
            len(comparison.suite.seeds)
            for comparison in comparisons
            if comparison.is_decided and not comparison.remaining_policies[1:]
        )
        print_result(
            f"This assumes that no policy is much worse in rare seeds that did not run: {fewest}"
            f" seeds may all miss a case that occurs in {percent(unseen_rate(fewest), 0)} of"
            " seeds."
        )
    for comparison in undecided[:_PRINTED_MAX]:
        suite = comparison.suite
        more = (
            f" and {len(comparison.remaining_policies) - _NAMED_MAX} more"
            if len(comparison.remaining_policies) > _NAMED_MAX
            else ""
        )
        print_result(
            f"- {comparison.measure.title}, {suite.experiment}, {format_count(suite.cpus, 'CPU')}:"
            f" {', '.join(comparison.remaining_policies[:_NAMED_MAX])}{more} ({len(suite.seeds)} seeds)"
        )
    if len(undecided) > _PRINTED_MAX:
        print_result(f"- and {len(undecided) - _PRINTED_MAX} more")
