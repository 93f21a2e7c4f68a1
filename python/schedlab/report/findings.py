# SPDX-License-Identifier: MIT
"""Computes what a report says first: the largest significant differences, and how many comparisons are settled.

All of it is computed from the suites that the page of comparisons shows.
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
from schedlab.studies.experiments import EXPERIMENTS

FINDINGS = 4
"""Up to this many metrics have a finding."""
FEW_POLICIES = 3
"""A suite with fewer policies does not say which policy is best for what."""
_WIDELY = 0.75
"""A finding is of a policy that ran in this part of the comparisons of the one that ran in most."""
_SEEDS = (5, 10, 20, 50, 100, 200, 500, 1000)
"""Numbers of seeds that a report proposes."""
_WORDS = {2: "two", 3: "three", 4: "four", 5: "five"}
_PHRASES = {
    "wakeup-99th": "99 % of woken tasks run within {}",
    "response": "a new task first runs after {} on average",
    "turnaround": "a task ends after {} on average",
    "share-error": "shares differ from the promised ones by {} at most",
    "wakeup-median": "half of all woken tasks run within {}",
    "completion": "all tasks have ended after {}",
    "throughput": "the throughput is {}",
}
"""What a user notices, by metric; the metrics with findings come first in this order."""


@dataclass(frozen=True)
class Score:
    """What is known of a policy and a goal."""

    policy: str
    measure: Measure
    suites: int
    """Comparisons in which the policy took part."""
    wins: int
    """Those in which it is the winner."""
    possible: int
    """Those in which it is the winner or tied for best."""

    @property
    def tied(self) -> int:
        """Comparisons in which it is tied for best."""
        return self.possible - self.wins

    @property
    def worse(self) -> int:
        """Comparisons in which it is worse than the best."""
        return self.suites - self.possible


def contests(found: Sequence[Suite]) -> list[Suite]:
    """Returns the suites that can say which policy is best: of several policies, and with several seeds."""
    return [each for each in found if len(each.policies) >= FEW_POLICIES and each.rankings]


def score(contest: Sequence[Suite], policy: str, measure: Measure) -> Score:
    """Counts how a policy did in the comparisons of a metric."""
    there = [
        each for each in contest if measure in each.contests and policy in each.having(measure)
    ]
    good = [each.as_good(measure) for each in there]
    return Score(
        policy,
        measure,
        len(there),
        sum(each == [policy] for each in good),
        sum(policy in each for each in good),
    )


def goals(contest: Sequence[Suite]) -> list[Measure]:
    """Returns the metrics in which policies differ anywhere."""
    return [each for each in COMPARED if any(each in suite.contests for suite in contest)]


def contenders(contest: Sequence[Suite]) -> list[str]:
    """Returns the policies that ran in at least half as many suites as any."""
    names = in_policy_order(policy for suite in contest for policy in suite.policies)
    ran = {name: sum(name in suite.policies for suite in contest) for name in names}
    return [name for name in names if 2 * ran[name] >= max(ran.values())]


@dataclass(frozen=True)
class Finding:
    """A statement of the first page, in Markdown; and what it compares, if it is of a metric."""

    text: str
    measure: Measure | None = None
    suite: Suite | None = None
    policies: tuple[str, ...] = ()
    """The policy that is better, and the baseline."""


def findings(found: Sequence[Suite]) -> list[Finding]:
    """Returns up to `FINDINGS` differences, and how many comparisons are settled; none if nothing can be compared.

    A difference is between a policy and the baseline, the first policy of the registry that ran widely. Of each
    metric it is the policy that is most often the winner or tied for best, where its gain is the largest of those
    that are significant; beside it stands the largest significant loss on the same suite.
    """
    contest = contests(found)
    if not any(suite.contests for suite in contest):
        return []
    return [*list(_differences(contest))[:FINDINGS], Finding(settled(contest))]


def _differences(contest: Sequence[Suite]) -> Iterator[Finding]:
    baseline, *others = contenders(contest)
    for measure in (BY_NAME[name] for name in _PHRASES):
        scores = [score(contest, policy, measure) for policy in others]
        most = max((each.suites for each in scores), default=0)
        scores = [each for each in scores if each.suites and each.suites >= _WIDELY * most]
        gains = [
            (own.possible / own.suites, own.wins, _gain(suite, measure, own.policy, baseline), own)
            for own in scores
            for suite in _largest_gain(contest, measure, own.policy, baseline)
        ]
        if gains:
            *_, own = max(gains, key=lambda gain: gain[:3])
            (suite,) = _largest_gain(contest, measure, own.policy, baseline)
            policies = (own.policy, baseline)
            yield Finding(_difference(suite, own, baseline), measure, suite, policies)


def _largest_gain(
    contest: Sequence[Suite], measure: Measure, policy: str, baseline: str
) -> list[Suite]:
    """Returns the suite where the policy is better than the baseline by most; none if it is nowhere significantly
    better."""
    better = [suite for suite in contest if is_better(suite, measure, policy, baseline)]
    better.sort(key=lambda suite: _gain(suite, measure, policy, baseline), reverse=True)
    return better[:1]


def is_better(suite: Suite, measure: Measure, policy: str, other: str) -> bool:
    """Returns whether the policy is better by 1 % or more, and significantly so.

    The test is that of the suite's ranking, and corrected for as many policies.
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
    return pair.beaten[other] * (len(having) - 1) < level_of(suite.looks)


def _gain(suite: Suite, measure: Measure, policy: str, other: str) -> float:
    """Returns how many times as good the policy is; times below a tick count as one, as no user notices them."""
    least = suite.tick_ns if measure.quantity is TIME else 0
    own, others = (max(suite.means[name, measure.name].mean, least) for name in (policy, other))
    if measure.quantity is TIME:
        return others / own
    return suite.ratio(other, measure) / suite.ratio(policy, measure)


def _difference(suite: Suite, own: Score, baseline: str) -> str:
    """Returns the statement of a gain, of what it costs, and where."""
    gain = _PHRASES[own.measure.name].format(_value(suite, own.measure, own.policy))
    instead = _value(suite, own.measure, baseline)
    losses = [
        (_gain(suite, measure, baseline, own.policy), measure)
        for measure in (BY_NAME[name] for name in _PHRASES)
        if is_better(suite, measure, baseline, own.policy)
    ]
    price = "No metric that tasks notice is significantly worse."
    if losses:
        _, measure = max(losses, key=lambda loss: loss[0])
        worse = _PHRASES[measure.name].format(_value(suite, measure, own.policy))
        price = f"But {worse} instead of {_value(suite, measure, baseline)}."
    return (
        f"**Under {literal(policy_label(own.policy))}, {gain} instead of {instead} under"
        f" {literal(policy_label(baseline))}.** {price}"
        f" ({_capital(literal(suite_label(suite)))}. Of {counted(own.suites, 'comparison')} of this metric,"
        f" it is the winner or tied for best in {own.possible}.)"
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
    asked = [(suite, measure) for suite in contest for measure in suite.contests]
    winners = sum(len(suite.as_good(measure)) == 1 for suite, measure in asked)
    needed = [each for measure in goals(contest) for each in undecided(contest, measure)]
    known = sorted(each for each in needed if each is not None)
    near = len(needed) - len(known)
    told = [
        f"**{winners} of {counted(len(asked), 'comparison')} {_have(winners)} a winner;"
        f" {len(needed)} {_have(len(needed))} policies tied for best.**"
        " A comparison is one metric on one workload with one number of CPUs."
    ]
    if known:
        seeds = _several_seeds(sorted({len(suite.seeds) for suite in contest}))
        rarely = f"{seeds} are rarely enough: about" if 2 * winners < len(asked) else "About"
        half = (each for each in _SEEDS if 2 * _within(known, each) >= len(known))
        enough = next(half, known[-1])
        told.append(
            f"{rarely} {enough:,} seeds would settle {_within(known, enough)} of the ties"
            f" (`{COMMAND} reproduce --decide`)."
        )
    if near:
        told.append(
            f"In {counted(near, 'tie')}, policies are less than 1 % apart, which no seeds settle."
        )
    return " ".join(told)


def _within(needed: Sequence[int], seeds: int) -> int:
    return sum(each <= seeds for each in needed)


def _several_seeds(seeds: Sequence[int]) -> str:
    few = [_WORDS.get(count, f"{count:,}") for count in (seeds[0], seeds[-1])]
    words = few[0] if seeds[0] == seeds[-1] else " to ".join(few)
    return f"{_capital(words)} seeds"


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def telling(contest: Sequence[Suite], *measures: Measure) -> Suite | None:
    """Returns the suite that says most of these metrics, or None if none has all: that in which the most policies are
    worse; of several, that in which the worst is furthest from the best."""
    there = [each for each in contest if all(measure in each.contests for measure in measures)]

    def says(suite: Suite) -> tuple[int, float]:
        return (
            sum(len(suite.having(each)) - len(suite.as_good(each)) for each in measures),
            max(suite.ratio(suite.order(each)[-1], each) for each in measures),
        )

    return max(there, key=says, default=None)


# --- how many seeds would settle a comparison


def seeds_to_decide(suite: Suite, measure: Measure) -> int | None:
    """Returns about how many seeds would leave one policy in a contest that has several, or None if two of them are
    so near that no number would.

    If differences stay as large and as scattered as they are, each of those that may be the best is told from the
    best with a probability of 80 %, at 5 % divided by the number of policies besides the best, and by that of looks.
    """
    best, *others = suite.as_good(measure)
    own = np.asarray(suite.samples[best, measure.name][0])
    level = level_of(suite.looks) / max(1, len(suite.having(measure)) - 1)
    needed = len(suite.seeds)
    for other in others:
        difference = np.asarray(suite.samples[other, measure.name][0]) - own
        if suite.is_near(other, measure) or not difference.mean():
            return None
        needed = max(needed, sample_size(difference.mean(), difference.std(ddof=1), level))
    return needed


def undecided(contest: Sequence[Suite], measure: Measure) -> list[int | None]:
    """Returns what each contest of this metric needs that has several policies left."""
    there = [each for each in contest if measure in each.contests]
    return [seeds_to_decide(each, measure) for each in there if len(each.as_good(measure)) > 1]
