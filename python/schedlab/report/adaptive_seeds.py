# SPDX-License-Identifier: MIT
"""Adds seeds in rounds until each comparison is decided."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from schedlab.analysis.comparison.statistics import unseen_rate
from schedlab.base.display.names import visible
from schedlab.base.display.numbers import counted, percent
from schedlab.base.display.terminal import print_result, say
from schedlab.machines.spec import RunSpec
from schedlab.runs.plan import Plan
from schedlab.runs.results import write_sequential_checks
from schedlab.units import parse_time

if TYPE_CHECKING:
    from schedlab.analysis.comparison.measures import Measure
    from schedlab.analysis.comparison.suites import Suite

FEWEST_SEEDS = 3
"""Minimum number of seeds of a comparison that is evaluated.

With fewer seeds, differences are hardly ever significant.
"""
_SEEDS_MAX = 1000
_SHOWN, _NAMED = 10, 3
"""Maximum numbers of undecided comparisons that are printed, and of policies in each line."""


@dataclass(frozen=True)
class Budget:
    """The limit for added seeds."""

    seeds: int = 30
    """Maximum number of seeds per test."""
    seconds: float | None = None
    """Time in seconds after which no round begins; None for no limit."""

    def __str__(self) -> str:
        """Returns the budget in the form of the command line."""
        return str(self.seeds) if self.seconds is None else f"{self.seconds:g}s"

    def after(self, seeds: int) -> int | None:
        """Returns the number of seeds in the next round: twice `seeds`, up to the limit.

        Returns None if the limit is reached.
        """
        after = min(max(2 * seeds, FEWEST_SEEDS), self.seeds)
        return after if after > seeds else None

    def evaluations_max(self, first: int) -> int:
        """Returns the maximum number of evaluations, if the first evaluation has `first` seeds."""
        after = self.after(first)
        return 1 if after is None else 1 + self.evaluations_max(after)


def parse_budget(text: str) -> Budget:
    """Parses a number of seeds, or a time. Raises ValueError."""
    if text.isdecimal():
        if not FEWEST_SEEDS <= int(text) <= _SEEDS_MAX:
            raise ValueError(f"out of range; choose {FEWEST_SEEDS} to {_SEEDS_MAX} seeds")
        return Budget(int(text))
    try:
        return Budget(seconds=parse_time(text) / 1e9)
    except ValueError:
        raise ValueError(
            "give the largest number of seeds, such as 24, or a time, such as 10min; without a"
            " value, make it the last option"
        ) from None


@dataclass(frozen=True)
class Contest:
    """A comparison: one metric of one test on one number of CPUs."""

    suite: Suite
    measure: Measure

    @property
    def left(self) -> list[str]:
        """The winner, or the policies that are tied for best; the best mean first."""
        return self.suite.as_good(self.measure)

    @property
    def decided(self) -> bool:
        return _is_decided(self.suite, self.measure)

    def to_dict(self) -> dict[str, Any]:
        """Returns the comparison for JSON."""
        return {
            "test": self.suite.experiment,
            "cpus": self.suite.cpus,
            "machine": self.suite.machine,
            "metric": self.measure.name,
            "seeds": len(self.suite.seeds),
            "policies": self.left,
            "decided": self.decided,
            "unseen_rate": unseen_rate(len(self.suite.seeds)),
        }


def decide(
    plan: Plan,
    budget: Budget,
    perform: Callable[[Plan], None],
    suites: Callable[[Plan], Sequence[Suite]],
) -> tuple[Plan, list[Contest]]:
    """Adds seeds to undecided tests until the budget is used up. Returns all runs and comparisons.

    `perform` executes runs, and `suites` reads the finished runs of a plan. The same command adds
    the same seeds, unless the budget is a time.
    """
    began = time.monotonic()
    all_suites = suites(plan)
    checks = budget.evaluations_max(
        min((len(suite.seeds) for suite in all_suites), default=budget.seeds)
    )
    write_sequential_checks(plan.folder, checks)
    all_suites = suites(plan)
    while True:
        undecided = [suite for suite in all_suites if _open(suite)]
        added = tuple(run for suite in undecided for run in _more(plan, suite, budget))
        if not added:
            break
        if budget.seconds is not None and time.monotonic() - began > budget.seconds:
            say(f"schedlab: time budget reached ({budget})")
            break

        contests = sum(len(_open(suite)) for suite in undecided)
        say(
            f"schedlab: adding seeds to {counted(len(undecided), 'test')} with "
            f"{counted(contests, 'undecided comparison')}: {len(added):,} runs"
        )
        perform(replace(plan, runs=added))
        plan = replace(plan, runs=(*plan.runs, *added))
        all_suites = suites(plan)
    return plan, [Contest(suite, measure) for suite in all_suites for measure in suite.contests]


def _is_decided(suite: Suite, measure: Measure) -> bool:
    return suite.settled(measure) and suite.withstands_rare_losses(measure)


def _open(suite: Suite) -> list[Measure]:
    return [measure for measure in suite.contests if not _is_decided(suite, measure)]


def _more(plan: Plan, suite: Suite, budget: Budget) -> Iterator[RunSpec]:
    """Yields the runs of a test's next round.

    These runs cover all policies, because policies are compared seed by seed.
    """
    seeds = budget.after(len(suite.seeds))
    suite_runs = [run for run in plan.runs if _key(run) == _key_of(suite)]
    for first in {(run.policy, run.settings): run for run in reversed(suite_runs)}.values():
        run_seeds = {
            run.seed
            for run in suite_runs
            if (run.policy, run.settings) == (first.policy, first.settings)
        }
        for seed in range(min(suite.seeds), min(suite.seeds) + (seeds or 0)):
            if seed not in run_seeds:
                yield replace(first, seed=seed)


def _key(run: RunSpec) -> tuple[str, int, int, str]:
    return visible(run.label or run.workload_title), run.cpus, run.tick_ns, run.machine.name


def _key_of(suite: Suite) -> tuple[str, int, int, str]:
    return suite.experiment, suite.cpus, suite.tick_ns, suite.machine


def print_decided(contests: Sequence[Contest]) -> None:
    """Prints the decided comparisons, and the first of the undecided ones."""

    if not contests:
        print_result("Nothing to decide: no test has several policies whose results differ.")
        return
    undecided = [contest for contest in contests if not contest.decided]
    best = sum(contest.decided and len(contest.left) == 1 for contest in contests)
    alike = len(contests) - len(undecided) - best
    print_result(
        f"Of {counted(len(contests), 'comparison')} (one metric of a test on a number of CPUs),"
        f" {best} {'has' if best == 1 else 'have'} a winner; in {alike}, the policies tied for"
        f" best differ by significantly less than 1 %; {len(undecided)}"
        f" {'is' if len(undecided) == 1 else 'are'} undecided."
    )
    if best:
        fewest = min(
            len(contest.suite.seeds)
            for contest in contests
            if contest.decided and not contest.left[1:]
        )
        print_result(
            f"This assumes that no policy is much worse in rare seeds that did not run: {fewest}"
            f" seeds may all miss a case that occurs in {percent(unseen_rate(fewest), 0)} of"
            " seeds."
        )
    for contest in undecided[:_SHOWN]:
        suite = contest.suite
        more = f" and {len(contest.left) - _NAMED} more" if len(contest.left) > _NAMED else ""
        print_result(
            f"- {contest.measure.title}, {suite.experiment}, {counted(suite.cpus, 'CPU')}:"
            f" {', '.join(contest.left[:_NAMED])}{more} ({len(suite.seeds)} seeds)"
        )
    if len(undecided) > _SHOWN:
        print_result(f"- and {len(undecided) - _SHOWN} more")
