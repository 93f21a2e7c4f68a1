# SPDX-License-Identifier: MIT
"""What a report says first: which policy for which goal, as far as the comparisons tell. All of it is counted from the
tests that the page of comparisons shows; there is no second reckoning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from schedlab.analysis.comparison.best import level_of
from schedlab.analysis.comparison.measures import Measure
from schedlab.analysis.comparison.statistics import sample_size
from schedlab.analysis.comparison.suites import COMPARED, Suite
from schedlab.base.display.markdown import code
from schedlab.base.display.numbers import counted
from schedlab.base.toolchain.policies import in_policy_order
from schedlab.report.wording import listed

FINDINGS = 5
FEW_POLICIES = 3
"""A suite with fewer policies does not say which policy is best for what."""
_NAMED = 3
"""Up to this many policies are named in a sentence."""
_WIDELY = 0.75
"""A policy is ranked in words if it ran in this part of the tests of the one that ran in most: others met other
tests."""
"""So probably as many seeds would tell a difference of the size that was seen."""


@dataclass(frozen=True)
class Score:
    """What is known of a policy and a goal."""

    policy: str
    measure: Measure
    suites: int
    """Contests in which the policy took part."""
    wins: int
    """Those of which it alone is not out."""
    possible: int
    """Those of which it is not out."""

    @property
    def out(self) -> int:
        return self.suites - self.possible


def contests(found: Sequence[Suite]) -> list[Suite]:
    """Returns the suites that can say which policy is best: of several policies, and with several seeds."""
    return [each for each in found if len(each.policies) >= FEW_POLICIES and each.rankings]


def score(contest: Sequence[Suite], policy: str, measure: Measure) -> Score:
    """Counts how a policy did in the contests of a metric."""
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
    """A sentence of the first page, in Markdown; and where it is seen best, if it is of a goal."""

    text: str
    measure: Measure | None = None
    suite: Suite | None = None
    """The contest of this goal in which the most policies are out."""

    @property
    def extremes(self) -> tuple[str, ...]:
        """Returns the best and the worst policy of that contest."""
        if self.suite is None or self.measure is None:
            return ()
        order = self.suite.order(self.measure)
        return order[0], order[-1]


def findings(found: Sequence[Suite]) -> list[Finding]:
    """Returns up to `FINDINGS`, the most general first; none if nothing is told.

    Besides the first, each is of a goal: those come first in which the most policies are out.
    """
    contest = contests(found)
    asked = sum(len(suite.contests) for suite in contest)
    if not asked:
        return []
    told = sum(len(suite.as_good(each)) == 1 for suite in contest for each in suite.contests)
    names = contenders(contest)
    scores = {each: [score(contest, name, each) for name in names] for each in goals(contest)}
    scores = {each: own for each, own in scores.items() if any(one.suites for one in own)}
    order = sorted(scores, key=lambda each: -sum(one.out for one in scores[each]))
    first = (
        f"**{_general(contest, names)}** Of {counted(asked, 'contest')} (a goal, on a test and a number of"
        f" CPUs), {told} {'has' if told == 1 else 'have'} one winner."
    )
    of_goals = (
        Finding(_of_goal(each, scores[each]), each, telling(contest, each)) for each in order
    )
    return [Finding(first), *of_goals][:FINDINGS]


def telling(contest: Sequence[Suite], *measures: Measure) -> Suite | None:
    """Returns the suite that says most of these metrics, or None if none has all: that in which the most policies are
    out; of several, that in which the worst is furthest from the best."""
    there = [each for each in contest if all(measure in each.contests for measure in measures)]

    def says(suite: Suite) -> tuple[int, float]:
        return (
            sum(len(suite.having(each)) - len(suite.as_good(each)) for each in measures),
            max(suite.ratio(suite.order(each)[-1], each) for each in measures),
        )

    return max(there, key=says, default=None)


def _general(contest: Sequence[Suite], names: Sequence[str]) -> str:
    never = [
        name for name in names if not any(score(contest, name, each).out for each in goals(contest))
    ]
    if never:
        return f"{listed([code(name) for name in never])} may be the best at everything."
    return "No policy is best at everything."


def _of_goal(measure: Measure, scores: Sequence[Score]) -> str:
    most = max(each.suites for each in scores)
    there = [each for each in scores if each.suites >= _WIDELY * most]
    best = max(each.possible / each.suites for each in there)
    worst = min(each.possible / each.suites for each in there)
    leaders = [each for each in there if each.possible / each.suites == best]
    losers = [each for each in there if each.possible / each.suites == worst]
    title = f"**{measure.title[:1].upper()}{measure.title[1:]}:**"
    if best == worst:
        return f"{title} no policy is out more often than another."
    if max(each.suites for each in there) == 1:
        rest = len(there) - len(leaders)
        others = f"{counted(rest, 'other')} {_is(rest)} worse by more than chance"
        return f"{title} {_only(leaders)}; {others}."
    return (
        f"{title} {_several(leaders, _share)} may be the best most often;"
        f" {_several(losers, _share)} least often."
    )


def _only(leaders: Sequence[Score]) -> str:
    """Of a single test."""
    if len(leaders) == 1:
        return f"{code(leaders[0].policy)} is best"
    return f"the best is one of {_several(leaders, lambda each: code(each.policy))}"


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _several(those: Sequence[Score], name: Callable[[Score], str]) -> str:
    """The first of them, and how many there are besides."""
    named = [name(each) for each in those[:_NAMED]]
    more = len(those) - len(named)
    return listed([*named, *([counted(more, "other")] if more else [])])


def _share(each: Score) -> str:
    alone = f", alone in {each.wins}" if each.wins else ""
    return f"{code(each.policy)} ({each.possible} of {each.suites}{alone})"


# --- how many seeds would tell


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
