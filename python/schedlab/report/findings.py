# SPDX-License-Identifier: MIT
"""Computes what a report says first: the largest significant differences, and how many comparisons are settled.

All findings are computed from the suites that the page of comparisons shows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from schedlab.analysis.comparison.best import level_per_evaluation, rank_policies
from schedlab.analysis.comparison.measures import MEASURES_BY_NAME, Measure
from schedlab.analysis.comparison.statistics import sample_size
from schedlab.analysis.comparison.suites import COMPARED_MEASURES, EQUALLY_GOOD_RATIO, Suite
from schedlab.base.display.markdown import literal
from schedlab.base.display.numbers import (
    SHARE,
    TIME,
    duration,
    format_count,
    number_as_text,
    percent,
)
from schedlab.base.toolchain.policies import sort_policies
from schedlab.paths import COMMAND_NAME
from schedlab.report.wording import policy_label, read_prose
from schedlab.studies.experiments import EXPERIMENTS

FINDINGS_MAX = 4
"""Up to this many metrics have a finding."""
POLICIES_MIN = 3
"""Minimum number of policies of a suite for findings. Fewer policies do not show which policy suits which metric."""
_WIDE_FRACTION = 0.75
"""A finding needs a policy that ran in at least this fraction of the baseline's comparisons."""
_SEED_COUNTS = (5, 10, 20, 50, 100, 200, 500, 1000)
"""Numbers of seeds that a report proposes."""
_NUMBER_WORDS = {2: "two", 3: "three", 4: "four", 5: "five"}
_PHRASES = {
    "wakeup-99th": "99 % of woken tasks run within {}",
    "response": "a new task first runs after {} on average",
    "turnaround": "a task ends after {} on average",
    "share-error": "shares differ from their ideal by {} at most",
    "wakeup-median": "half of all woken tasks run within {}",
    "completion": "all tasks have ended after {}",
    "throughput": "the throughput is {}",
}
"""What a user notices, by metric; the metrics with findings come first in this order."""


@dataclass(frozen=True)
class PolicyScore:
    """Counts the comparisons of a metric by how a policy did."""

    policy: str
    measure: Measure
    suites: int
    """Comparisons that the policy took part in."""
    wins: int
    """Comparisons where the policy is the winner."""
    wins_and_ties: int
    """Comparisons where the policy is the winner or tied for best."""

    @property
    def tied(self) -> int:
        """Comparisons where the policy is tied for best."""
        return self.wins_and_ties - self.wins

    @property
    def worse(self) -> int:
        """Comparisons where the policy is worse than the best."""
        return self.suites - self.wins_and_ties


def rankable_suites(compared: Sequence[Suite]) -> list[Suite]:
    """Returns the suites with enough policies and seeds for a winner."""
    return [suite for suite in compared if len(suite.policies) >= POLICIES_MIN and suite.rankings]


def count_score(rankable: Sequence[Suite], policy: str, measure: Measure) -> PolicyScore:
    """Counts how a policy did in the comparisons of a metric."""
    suites = [
        suite
        for suite in rankable
        if measure in suite.differing_measures and policy in suite.policies_with(measure)
    ]
    best = [suite.best_policies(measure) for suite in suites]
    return PolicyScore(
        policy,
        measure,
        len(suites),
        sum(policies == [policy] for policies in best),
        sum(policy in policies for policies in best),
    )


def goal_measures(rankable: Sequence[Suite]) -> list[Measure]:
    """Returns the metrics where policies differ on any suite."""
    return [
        measure
        for measure in COMPARED_MEASURES
        if any(measure in suite.differing_measures for suite in rankable)
    ]


def widely_run_policies(rankable: Sequence[Suite]) -> list[str]:
    """Returns the policies that ran in at least half as many suites as any."""
    names = sort_policies(policy for suite in rankable for policy in suite.policies)
    suite_counts = {name: sum(name in suite.policies for suite in rankable) for name in names}
    return [name for name in names if 2 * suite_counts[name] >= max(suite_counts.values())]


@dataclass(frozen=True)
class Finding:
    """A statement of the first page, in Markdown.

    If the statement is about a metric, the finding also names the compared policies and suite.
    """

    text: str
    measure: Measure | None = None
    suite: Suite | None = None
    policies: tuple[str, ...] = ()
    """The policy that is better, and the baseline."""


def compute_findings(compared: Sequence[Suite]) -> list[Finding]:
    """Returns up to `FINDINGS_MAX` differences, and how many comparisons are settled;
    none if nothing can be compared.

    The baseline is the first policy of the registry that ran widely. For each metric, a finding is
    of the policy that is most often the winner or tied for best: its largest significant gain over
    the baseline, and its largest significant loss on the same suite.
    """
    rankable = rankable_suites(compared)
    if not any(suite.differing_measures for suite in rankable):
        return []
    return [*list(_difference_findings(rankable))[:FINDINGS_MAX], Finding(settled_text(rankable))]


def _difference_findings(rankable: Sequence[Suite]) -> Iterator[Finding]:
    """Yields the findings on differences: a gain of the leading policy, and its cost, for each
    metric.
    """
    baseline, *others = widely_run_policies(rankable)
    for measure in (MEASURES_BY_NAME[name] for name in _PHRASES):
        scores = [count_score(rankable, policy, measure) for policy in others]
        suites_max = max((candidate.suites for candidate in scores), default=0)
        wide_scores = [
            candidate
            for candidate in scores
            if candidate.suites and candidate.suites >= _WIDE_FRACTION * suites_max
        ]
        gains = [
            (
                candidate.wins_and_ties / candidate.suites,
                candidate.wins,
                _gain_ratio(suite, measure, candidate.policy, baseline),
                candidate,
            )
            for candidate in wide_scores
            for suite in _largest_gain(rankable, measure, candidate.policy, baseline)
        ]
        if gains:
            *_, leader = max(gains, key=lambda gain: gain[:3])
            (suite,) = _largest_gain(rankable, measure, leader.policy, baseline)
            policies = (leader.policy, baseline)
            yield Finding(_difference_text(suite, leader, baseline), measure, suite, policies)


def _largest_gain(
    rankable: Sequence[Suite], measure: Measure, policy: str, baseline: str
) -> list[Suite]:
    """Returns the suite where the policy exceeds the baseline most, or None if it is nowhere significantly better."""
    better = [suite for suite in rankable if is_better(suite, measure, policy, baseline)]
    better.sort(key=lambda suite: _gain_ratio(suite, measure, policy, baseline), reverse=True)
    return better[:1]


def is_better(suite: Suite, measure: Measure, policy: str, other: str) -> bool:
    """Returns whether the policy is better by 1 % or more, and significantly so.

    The test is the same as for the suite's ranking, with the same correction for the number of
    policies.
    """
    measured_policies = suite.policies_with(measure)
    if (
        measure not in suite.differing_measures
        or policy not in measured_policies
        or other not in measured_policies
    ):
        return False
    if _gain_ratio(suite, measure, policy, other) < EQUALLY_GOOD_RATIO:
        return False
    samples = {name: suite.samples[name, measure.name] for name in (policy, other)}
    values = {name: sample for name, (sample, _) in samples.items()}
    finest = max(resolution for _, resolution in samples.values())
    pair_ranking = rank_policies(values, measure.better or "lower", finest)
    return pair_ranking.p_values[other] * (len(measured_policies) - 1) < level_per_evaluation(
        suite.evaluations_max
    )


def _gain_ratio(suite: Suite, measure: Measure, policy: str, other: str) -> float:
    """Returns how many times as good the policy is.

    Times below a tick count as one tick, because no user notices them.
    """
    smallest_mean = suite.tick_ns if measure.quantity is TIME else 0
    mean, other_mean = (
        max(suite.means[name, measure.name].mean, smallest_mean) for name in (policy, other)
    )
    if measure.quantity is TIME:
        return other_mean / mean
    return suite.ratio(other, measure) / suite.ratio(policy, measure)


def _difference_text(suite: Suite, leader: PolicyScore, baseline: str) -> str:
    """Returns the statement of a gain, its cost, and the suite."""
    gain = _PHRASES[leader.measure.name].format(_mean_text(suite, leader.measure, leader.policy))
    baseline_value = _mean_text(suite, leader.measure, baseline)
    losses = [
        (_gain_ratio(suite, measure, baseline, leader.policy), measure)
        for measure in (MEASURES_BY_NAME[name] for name in _PHRASES)
        if is_better(suite, measure, baseline, leader.policy)
    ]
    cost_text = "No metric that tasks notice is significantly worse."
    if losses:
        _, measure = max(losses, key=lambda loss: loss[0])
        loss_text = _PHRASES[measure.name].format(_mean_text(suite, measure, leader.policy))
        cost_text = f"But {loss_text} instead of {_mean_text(suite, measure, baseline)}."
    return (
        f"**Under {literal(policy_label(leader.policy))}, {gain} instead of {baseline_value} under"
        f" {literal(policy_label(baseline))}.** {cost_text}"
        f" ({_capitalize(literal(suite_label(suite)))}. Of {format_count(leader.suites, 'comparison')} of this metric,"
        f" it is the winner or tied for best in {leader.wins_and_ties}.)"
    )


def suite_label(suite: Suite) -> str:
    """Returns what readers call a suite: `study 4, mixed benchmark, 6 CPU-bound, 1 CPU`."""
    entry = EXPERIMENTS.get(suite.experiment)
    title = f"study {entry.study}, {entry.title}" if entry and entry.title else suite.title
    return f"{title}, {format_count(suite.cpus, 'CPU')}"


def _mean_text(suite: Suite, measure: Measure, policy: str) -> str:
    mean = suite.means[policy, measure.name].mean
    if measure.quantity is TIME:
        return duration(mean)
    if measure.quantity == SHARE:
        return percent(mean)
    return number_as_text(mean, measure.quantity)


def settled_text(rankable: Sequence[Suite]) -> str:
    """Returns how many comparisons have a winner, and how many seeds would settle others."""
    comparisons = [(suite, measure) for suite in rankable for measure in suite.differing_measures]
    winners = sum(len(suite.best_policies(measure)) == 1 for suite, measure in comparisons)
    seeds_needed = [
        seeds for measure in goal_measures(rankable) for seeds in seeds_for_ties(rankable, measure)
    ]
    known_seeds = sorted(seeds for seeds in seeds_needed if seeds is not None)
    near_ties = len(seeds_needed) - len(known_seeds)
    sentences = [
        f"**{winners} of {format_count(len(comparisons), 'comparison')} {_verb_have(winners)} a winner;"
        f" {len(seeds_needed)} {_verb_have(len(seeds_needed))} policies tied for best.**"
        " A comparison is one metric on one workload with one number of CPUs."
    ]
    if known_seeds:
        seed_count_text = _seed_count_text(sorted({len(suite.seeds) for suite in rankable}))
        rarely = (
            f"{seed_count_text} are rarely enough: about"
            if 2 * winners < len(comparisons)
            else "About"
        )
        sufficient_counts = (
            seeds
            for seeds in _SEED_COUNTS
            if 2 * _count_within(known_seeds, seeds) >= len(known_seeds)
        )
        sufficient_seeds = next(sufficient_counts, known_seeds[-1])
        settled_ties = str(_count_within(known_seeds, sufficient_seeds))
        sentences.append(
            read_prose(
                "seeds",
                about=rarely,
                seeds=f"{sufficient_seeds:,}",
                settled_ties=settled_ties,
                command=COMMAND_NAME,
            )
        )
    if near_ties:
        sentences.append(
            f"In {format_count(near_ties, 'tie')}, policies differ by less than 1 %; more seeds would not settle these."
        )
    return " ".join(sentences)


def _count_within(needed: Sequence[int], seeds: int) -> int:
    """Returns how many comparisons need at most this number of seeds."""
    return sum(count <= seeds for count in needed)


def _seed_count_text(seeds: Sequence[int]) -> str:
    """Returns a number or a range of seeds in words."""
    few = [_NUMBER_WORDS.get(count, f"{count:,}") for count in (seeds[0], seeds[-1])]
    words = few[0] if seeds[0] == seeds[-1] else " to ".join(few)
    return f"{_capitalize(words)} seeds"


def _capitalize(words: str) -> str:
    """Returns the words with a capital first letter."""
    return words[:1].upper() + words[1:]


def _verb_have(number: int) -> str:
    """Returns `has` or `have`, for a sentence about this number of comparisons."""
    return "has" if number == 1 else "have"


def clearest_suite(rankable: Sequence[Suite], *measures: Measure) -> Suite | None:
    """Returns the suite to show for these metrics, or None if no suite has all of them.

    Chooses the suite with the most policies that are worse than the best. Among several such
    suites, chooses the one with the largest ratio of the worst policy to the best.
    """
    suites = [
        suite
        for suite in rankable
        if all(measure in suite.differing_measures for measure in measures)
    ]

    def suite_key(suite: Suite) -> tuple[int, float]:
        """Returns the sort key of a suite: policies that are worse than the best, and the largest
        ratio.
        """
        return (
            sum(
                len(suite.policies_with(measure)) - len(suite.best_policies(measure))
                for measure in measures
            ),
            max(suite.ratio(suite.policies_by_mean(measure)[-1], measure) for measure in measures),
        )

    return max(suites, key=suite_key, default=None)


# --- how many seeds would settle a comparison


def seeds_to_decide(suite: Suite, measure: Measure) -> int | None:
    """Returns the approximate number of seeds that would leave a single winner.

    Returns None if two policies are too near for any number of seeds. The estimate assumes that the
    mean and variance of the differences do not change. With
    this number, a test shows with a probability of 80 % that a policy that is now tied for best
    is worse. The test's level is 5 %, divided by the number of other policies and of evaluations.
    """
    best, *others = suite.best_policies(measure)
    best_values = np.asarray(suite.samples[best, measure.name][0])
    level = level_per_evaluation(suite.evaluations_max) / max(
        1, len(suite.policies_with(measure)) - 1
    )
    seeds_needed = len(suite.seeds)
    for other in others:
        difference = np.asarray(suite.samples[other, measure.name][0]) - best_values
        if suite.is_near(other, measure) or not difference.mean():
            return None
        seeds_needed = max(
            seeds_needed, sample_size(difference.mean(), difference.std(ddof=1), level)
        )
    return seeds_needed


def seeds_for_ties(rankable: Sequence[Suite], measure: Measure) -> list[int | None]:
    """Returns the numbers of seeds that would decide the undecided comparisons of this metric."""
    return [
        seeds_to_decide(suite, measure)
        for suite in rankable
        if measure in suite.differing_measures and len(suite.best_policies(measure)) > 1
    ]
