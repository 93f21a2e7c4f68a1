# SPDX-License-Identifier: MIT
"""Computes what a report says first: the largest significant differences, and how many comparisons are settled.

All findings are computed from the suites that the page of comparisons shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from schedlab.analysis.comparison.best import level_of, ranking
from schedlab.analysis.comparison.measures import BY_NAME, Measure
from schedlab.analysis.comparison.statistics import sample_size
from schedlab.analysis.comparison.suites import COMPARED, MARGIN, Suite
from schedlab.base.display.markdown import literal
from schedlab.base.display.numbers import SHARE, TIME, counted, duration, number_as_text, percent
from schedlab.base.toolchain.policies import in_policy_order
from schedlab.paths import COMMAND
from schedlab.report.policy_labels import policy_label
from schedlab.report.wording import prose
from schedlab.studies.experiments import EXPERIMENTS

FINDINGS = 4
"""Up to this many metrics have a finding."""
FEW_POLICIES = 3
"""Minimum number of policies of a suite for findings. Fewer policies do not show which policy suits which metric."""
_WIDELY = 0.75
"""A finding needs a policy that ran in at least this fraction of the baseline's comparisons."""
_SEEDS = (5, 10, 20, 50, 100, 200, 500, 1000)
"""Numbers of seeds that a report proposes."""
_WORDS = {2: "two", 3: "three", 4: "four", 5: "five"}
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
class Score:
    """Counts the comparisons of a metric by how a policy did."""

    policy: str
    measure: Measure
    suites: int
    """Comparisons that the policy took part in."""
    wins: int
    """Comparisons where the policy is the winner."""
    possible: int
    """Comparisons where the policy is the winner or tied for best."""

    @property
    def tied(self) -> int:
        """Comparisons where the policy is tied for best."""
        return self.possible - self.wins

    @property
    def worse(self) -> int:
        """Comparisons where the policy is worse than the best."""
        return self.suites - self.possible


def contests(compared: Sequence[Suite]) -> list[Suite]:
    """Returns the suites with enough policies and seeds for a winner."""
    return [suite for suite in compared if len(suite.policies) >= FEW_POLICIES and suite.rankings]


def score(contest: Sequence[Suite], policy: str, measure: Measure) -> Score:
    """Counts how a policy did in the comparisons of a metric."""
    suites = [
        suite for suite in contest if measure in suite.contests and policy in suite.having(measure)
    ]
    best = [suite.as_good(measure) for suite in suites]
    return Score(
        policy,
        measure,
        len(suites),
        sum(policies == [policy] for policies in best),
        sum(policy in policies for policies in best),
    )


def goals(contest: Sequence[Suite]) -> list[Measure]:
    """Returns the metrics where policies differ on any suite."""
    return [measure for measure in COMPARED if any(measure in suite.contests for suite in contest)]


def contenders(contest: Sequence[Suite]) -> list[str]:
    """Returns the policies that ran in at least half as many suites as any."""
    names = in_policy_order(policy for suite in contest for policy in suite.policies)
    ran = {name: sum(name in suite.policies for suite in contest) for name in names}
    return [name for name in names if 2 * ran[name] >= max(ran.values())]


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


def findings(compared: Sequence[Suite]) -> list[Finding]:
    """Returns up to `FINDINGS` differences, and how many comparisons are settled;
    none if nothing can be compared.

    The baseline is the first policy of the registry that ran widely. For each metric, a finding is
    of the policy that is most often the winner or tied for best: its largest significant gain over
    the baseline, and its largest significant loss on the same suite.
    """
    contest = contests(compared)
    if not any(suite.contests for suite in contest):
        return []
    return [*list(_differences(contest))[:FINDINGS], Finding(settled(contest))]


def _differences(contest: Sequence[Suite]) -> Iterator[Finding]:
    baseline, *others = contenders(contest)
    for measure in (BY_NAME[name] for name in _PHRASES):
        scores = [score(contest, policy, measure) for policy in others]
        most = max((candidate.suites for candidate in scores), default=0)
        widely = [
            candidate
            for candidate in scores
            if candidate.suites and candidate.suites >= _WIDELY * most
        ]
        gains = [
            (
                candidate.possible / candidate.suites,
                candidate.wins,
                _gain(suite, measure, candidate.policy, baseline),
                candidate,
            )
            for candidate in widely
            for suite in _largest_gain(contest, measure, candidate.policy, baseline)
        ]
        if gains:
            *_, leader = max(gains, key=lambda gain: gain[:3])
            (suite,) = _largest_gain(contest, measure, leader.policy, baseline)
            policies = (leader.policy, baseline)
            yield Finding(_difference(suite, leader, baseline), measure, suite, policies)


def _largest_gain(
    contest: Sequence[Suite], measure: Measure, policy: str, baseline: str
) -> list[Suite]:
    """Returns the suite where the policy exceeds the baseline most, or None if it is nowhere significantly better."""
    better = [suite for suite in contest if is_better(suite, measure, policy, baseline)]
    better.sort(key=lambda suite: _gain(suite, measure, policy, baseline), reverse=True)
    return better[:1]


def is_better(suite: Suite, measure: Measure, policy: str, other: str) -> bool:
    """Returns whether the policy is better by 1 % or more, and significantly so.

    The test is the same as for the suite's ranking, with the same correction for the number of
    policies.
    """
    having = suite.having(measure)
    if measure not in suite.contests or policy not in having or other not in having:
        return False
    if _gain(suite, measure, policy, other) < MARGIN:
        return False
    samples = {name: suite.samples[name, measure.name] for name in (policy, other)}
    values = {name: sample for name, (sample, _) in samples.items()}
    finest = max(resolution for _, resolution in samples.values())
    pair = ranking(values, measure.better or "lower", finest)
    return pair.beaten[other] * (len(having) - 1) < level_of(suite.evaluations_max)


def _gain(suite: Suite, measure: Measure, policy: str, other: str) -> float:
    """Returns how many times as good the policy is.

    Times below a tick count as one tick, because no user notices them.
    """
    least = suite.tick_ns if measure.quantity is TIME else 0
    mean, other_mean = (
        max(suite.means[name, measure.name].mean, least) for name in (policy, other)
    )
    if measure.quantity is TIME:
        return other_mean / mean
    return suite.ratio(other, measure) / suite.ratio(policy, measure)


def _difference(suite: Suite, leader: Score, baseline: str) -> str:
    """Returns the statement of a gain, its cost, and the suite."""
    gain = _PHRASES[leader.measure.name].format(_value(suite, leader.measure, leader.policy))
    baseline_value = _value(suite, leader.measure, baseline)
    losses = [
        (_gain(suite, measure, baseline, leader.policy), measure)
        for measure in (BY_NAME[name] for name in _PHRASES)
        if is_better(suite, measure, baseline, leader.policy)
    ]
    price = "No metric that tasks notice is significantly worse."
    if losses:
        _, measure = max(losses, key=lambda loss: loss[0])
        worse = _PHRASES[measure.name].format(_value(suite, measure, leader.policy))
        price = f"But {worse} instead of {_value(suite, measure, baseline)}."
    return (
        f"**Under {literal(policy_label(leader.policy))}, {gain} instead of {baseline_value} under"
        f" {literal(policy_label(baseline))}.** {price}"
        f" ({_capital(literal(suite_label(suite)))}. Of {counted(leader.suites, 'comparison')} of this metric,"
        f" it is the winner or tied for best in {leader.possible}.)"
    )


def suite_label(suite: Suite) -> str:
    """Returns what readers call a suite: `study 4, mixed benchmark, 6 CPU-bound, 1 CPU`."""
    known = EXPERIMENTS.get(suite.experiment)
    title = f"study {known.study}, {known.title}" if known and known.title else suite.title
    return f"{title}, {counted(suite.cpus, 'CPU')}"


def _value(suite: Suite, measure: Measure, policy: str) -> str:
    mean = suite.means[policy, measure.name].mean
    if measure.quantity is TIME:
        return duration(mean)
    if measure.quantity == SHARE:
        return percent(mean)
    return number_as_text(mean, measure.quantity)


def settled(contest: Sequence[Suite]) -> str:
    """Returns how many comparisons have a winner, and how many seeds would settle others."""
    comparisons = [(suite, measure) for suite in contest for measure in suite.contests]
    winners = sum(len(suite.as_good(measure)) == 1 for suite, measure in comparisons)
    needed = [seeds for measure in goals(contest) for seeds in undecided(contest, measure)]
    known = sorted(seeds for seeds in needed if seeds is not None)
    near = len(needed) - len(known)
    sentences = [
        f"**{winners} of {counted(len(comparisons), 'comparison')} {_have(winners)} a winner;"
        f" {len(needed)} {_have(len(needed))} policies tied for best.**"
        " A comparison is one metric on one workload with one number of CPUs."
    ]
    if known:
        seeds_run = _several_seeds(sorted({len(suite.seeds) for suite in contest}))
        rarely = (
            f"{seeds_run} are rarely enough: about" if 2 * winners < len(comparisons) else "About"
        )
        half = (seeds for seeds in _SEEDS if 2 * _within(known, seeds) >= len(known))
        enough = next(half, known[-1])
        ties = str(_within(known, enough))
        sentences.append(
            prose("seeds", about=rarely, seeds=f"{enough:,}", ties=ties, command=COMMAND)
        )
    if near:
        sentences.append(
            f"In {counted(near, 'tie')}, policies differ by less than 1 %; more seeds would not settle these."
        )
    return " ".join(sentences)


def _within(needed: Sequence[int], seeds: int) -> int:
    return sum(count <= seeds for count in needed)


def _several_seeds(seeds: Sequence[int]) -> str:
    few = [_WORDS.get(count, f"{count:,}") for count in (seeds[0], seeds[-1])]
    words = few[0] if seeds[0] == seeds[-1] else " to ".join(few)
    return f"{_capital(words)} seeds"


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def clearest_suite(contest: Sequence[Suite], *measures: Measure) -> Suite | None:
    """Returns the suite to show for these metrics, or None if no suite has all of them.

    Chooses the suite with the most policies that are worse than the best. Among several such
    suites, chooses the one with the largest ratio of the worst policy to the best.
    """
    suites = [suite for suite in contest if all(measure in suite.contests for measure in measures)]

    def distance(suite: Suite) -> tuple[int, float]:
        return (
            sum(len(suite.having(measure)) - len(suite.as_good(measure)) for measure in measures),
            max(suite.ratio(suite.order(measure)[-1], measure) for measure in measures),
        )

    return max(suites, key=distance, default=None)


# --- how many seeds would settle a comparison


def seeds_to_decide(suite: Suite, measure: Measure) -> int | None:
    """Returns the approximate number of seeds that would leave a single winner.

    Returns None if two policies are too near for any number of seeds. The estimate assumes that the
    mean and variance of the differences do not change. Each policy that is tied for best then
    differs significantly from the best with a probability of 80 %. The level is 5 %, divided by the
    number of other policies and by the number of evaluations.
    """
    best, *others = suite.as_good(measure)
    best_values = np.asarray(suite.samples[best, measure.name][0])
    level = level_of(suite.evaluations_max) / max(1, len(suite.having(measure)) - 1)
    needed = len(suite.seeds)
    for other in others:
        difference = np.asarray(suite.samples[other, measure.name][0]) - best_values
        if suite.is_near(other, measure) or not difference.mean():
            return None
        needed = max(needed, sample_size(difference.mean(), difference.std(ddof=1), level))
    return needed


def undecided(contest: Sequence[Suite], measure: Measure) -> list[int | None]:
    """Returns the numbers of seeds that would decide the undecided comparisons of this metric."""
    return [
        seeds_to_decide(suite, measure)
        for suite in contest
        if measure in suite.contests and len(suite.as_good(measure)) > 1
    ]
