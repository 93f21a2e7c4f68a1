# SPDX-License-Identifier: MIT
"""What a report says first: which policy for which goal, as far as the comparisons tell, in a picture and in words. All
of it is counted from the tests that the page of comparisons shows; there is no second reckoning."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from schedlab.comparison.measures import Measure
from schedlab.report.charts.parts import chart_of
from schedlab.report.charts.theme import BLUE, WIDTH, in_policy_order
from schedlab.report.model import Chart
from schedlab.report.suites import COMPARED, Suite
from schedlab.report.wording import counted, listed

FINDINGS = 5
FEW_POLICIES = 3
"""A suite with fewer policies does not say which policy is best for what."""
_NAMED = 3
"""Up to this many policies are named in a sentence."""
_POWER = 0.8
"""So probably as many seeds would tell a difference of the size that was seen."""
_ALPHA = 0.05
_ROW = 36
_BAR = 0.86
"""Of the width of a column."""
_GAP, _RIGHT = 0.15, 2.4
"""Columns: before what stands at the right, and all of that."""
_THICK = 11
"""Pixels."""


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


def findings(found: Sequence[Suite]) -> list[str]:
    """Returns up to `FINDINGS` sentences in Markdown, the most general first; none if nothing is told.

    Besides the first, each is of a goal: those come first in which the most policies are out.
    """
    contest = contests(found)
    asked = sum(len(suite.contests) for suite in contest)
    if not asked:
        return []
    told = sum(len(suite.as_good(each)) == 1 for suite in contest for each in suite.contests)
    names = contenders(contest)
    scores = {each: [score(contest, name, each) for name in names] for each in goals(contest)}
    order = sorted(scores, key=lambda each: -sum(one.out for one in scores[each]))
    first = (
        f"**{_general(contest, names)}** Of {counted(asked, 'contest')} (a goal, on a test and a number of"
        f" CPUs), {told} {'has' if told == 1 else 'have'} one winner."
    )
    return [first, *(_of_goal(each, scores[each]) for each in order)][:FINDINGS]


def _general(contest: Sequence[Suite], names: Sequence[str]) -> str:
    never = [
        name for name in names if not any(score(contest, name, each).out for each in goals(contest))
    ]
    if never:
        return f"{listed([f'`{name}`' for name in never])} may be the best at everything."
    return "No policy is best at everything."


def _of_goal(measure: Measure, scores: Sequence[Score]) -> str:
    there = [each for each in scores if each.suites]
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
        f"{title} most often among the best {_is(len(leaders))} {_several(leaders, _share)};"
        f" least often {_several(losers, _share)}."
    )


def _only(leaders: Sequence[Score]) -> str:
    """Of a single test."""
    if len(leaders) == 1:
        return f"`{leaders[0].policy}` is best"
    return f"the best is one of {_several(leaders, lambda each: f'`{each.policy}`')}"


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _several(those: Sequence[Score], name: Callable[[Score], str]) -> str:
    """The first of them, and how many there are besides."""
    named = [name(each) for each in those[:_NAMED]]
    more = len(those) - len(named)
    return listed([*named, *([counted(more, "other")] if more else [])])


def _share(each: Score) -> str:
    alone = f", alone in {each.wins}" if each.wins else ""
    return f"`{each.policy}` ({each.possible} of {each.suites}{alone})"


# --- how many seeds would tell


def seeds_to_decide(suite: Suite, measure: Measure) -> int | None:
    """Returns about how many seeds would leave one policy in a contest that has several, or None if two of them are
    so near that no number would.

    If differences stay as large and as scattered as they are, each of those that may be the best is told from the
    best with a probability of 80 %, at 5 % divided by the number of policies besides the best (the usual size of a
    sample for paired differences: Student 1908; Neyman and Pearson 1933).
    """
    best, *others = suite.as_good(measure)
    own = np.asarray(suite.samples[best, measure.name][0])
    normal = NormalDist()
    rivals = max(1, len(suite.having(measure)) - 1)
    factor = normal.inv_cdf(1 - _ALPHA / rivals) + normal.inv_cdf(_POWER)
    needed = len(suite.seeds)
    for other in others:
        difference = np.asarray(suite.samples[other, measure.name][0]) - own
        if suite.is_near(other, measure) or not difference.mean():
            return None
        needed = max(needed, math.ceil((factor * difference.std(ddof=1) / difference.mean()) ** 2))
    return needed


def undecided(contest: Sequence[Suite], measure: Measure) -> list[int | None]:
    """Returns what each contest of this metric needs that has several policies left."""
    there = [each for each in contest if measure in each.contests]
    return [seeds_to_decide(each, measure) for each in there if len(each.as_good(measure)) > 1]


def _needs(contest: Sequence[Suite], measure: Measure) -> tuple[str, str]:
    """Two short lines: how many contests are open, and what would decide them."""
    needed = undecided(contest, measure)
    known = [each for each in needed if each is not None]
    near = len(needed) - len(known)
    if not needed:
        return "all decided", ""
    half = math.ceil(len(known) / 2)
    seeds = f"{sorted(known)[half - 1]:,} seeds tell {half} of {len(known)}" if known else ""
    return f"{len(needed)} open, {near} by less than 1 %", seeds


# --- the strip


def strip(found: Sequence[Suite]) -> Chart | None:
    """Returns goals × policies, or None if nothing can be told: how often each policy may be the best, and how often
    it alone is."""
    contest = contests(found)
    measures = goals(contest)
    if not measures:
        return None
    names = contenders(contest)
    rows = [
        {
            "goal": measure.title,
            "policy": name,
            "place": place,
            "suites": one.suites,
            "alone": one.wins,
            "may_be_best": one.possible,
            "out": one.out,
            "open": _needs(contest, measure)[0],
            "seeds_needed": _needs(contest, measure)[1],
        }
        for measure in measures
        for place, name in enumerate(names)
        for one in (score(contest, name, measure),)
        if one.suites
    ]
    data = pl.DataFrame(rows)
    return Chart(
        "goals",
        "Which policy for what",
        _drawn(data, names, [each.title for each in measures]),
        data.drop("place"),
        "Each bar is as long as the part of all tests in which the policy may be the best: full where it"
        " alone is left, hatched where others are, too; empty where another policy is better by more than"
        " chance. At the right: tests with several left, and with about how many seeds half of those would"
        " have one whose policies are more than 1 % apart, if seeds stay as scattered as they are."
        " [All policies compared](#comparison) has each test.",
        " ".join(
            f"{row['goal']}: {row['policy']} may be the best in {row['may_be_best']} of {row['suites']}."
            for row in rows
        ),
    )


def _drawn(data: pl.DataFrame, names: Sequence[str], titles: Sequence[str]) -> Any:
    bars = data.select(
        "goal",
        "policy",
        "suites",
        "alone",
        "may_be_best",
        begin="place",
        sure=pl.col("place") + _BAR * pl.col("alone") / pl.col("suites"),
        end=pl.col("place") + _BAR * pl.col("may_be_best") / pl.col("suites"),
        whole=pl.col("place") + _BAR,
    )
    hatches = [
        {"goal": row["goal"], "at": at}
        for row in bars.iter_rows(named=True)
        for at in np.arange(row["sure"] + 0.02, row["end"], 0.035)
    ]
    labels = "[" + ", ".join(f"'{name}'" for name in names) + "][floor(datum.value)]"
    x = alt.X(
        "begin:Q",
        title=None,
        scale=alt.Scale(domain=[0, len(names) + _RIGHT], nice=False),
        axis=alt.Axis(
            orient="top",
            values=[place + _BAR / 2 for place in range(len(names))],
            labelExpr=labels,
            grid=False,
            ticks=False,
            domain=False,
        ),
    )
    y = alt.Y(
        "goal:N",
        title=None,
        sort=list(titles),
        scale=alt.Scale(domain=list(titles), paddingInner=0.35),
        axis=alt.Axis(ticks=False, domain=False, labelLimit=220),
    )
    base = chart_of(bars).encode(
        y,
        tooltip=[
            alt.Tooltip("policy:N"),
            alt.Tooltip("goal:N"),
            alt.Tooltip("may_be_best:Q", title="may be the best in"),
            alt.Tooltip("alone:Q", title="alone in"),
            alt.Tooltip("suites:Q", title="of tests"),
        ],
    )
    bar: dict[str, Any] = {"size": _THICK, "yOffset": -_THICK // 2, "color": BLUE}
    layers = [
        base.mark_bar(**bar, fillOpacity=0.08).encode(x, alt.X2("whole:Q")),
        base.mark_bar(**bar, fillOpacity=0.18).encode(x, alt.X2("end:Q")),
        base.mark_bar(**bar).encode(x, alt.X2("sure:Q")),
    ]
    if hatches:
        lines = chart_of(pl.DataFrame(hatches)).mark_tick(**bar, thickness=1.5)
        layers.insert(2, lines.encode(alt.X("at:Q"), y))
    numbers = (
        base.mark_text(align="left", dx=1, dy=9, fontSize=11)
        .encode(x, text=alt.Text("words:N"))
        .transform_calculate(words="datum.may_be_best + ' of ' + datum.suites")
    )
    needs = (
        data.group_by("goal", maintain_order=True).first().select("goal", "open", "seeds_needed")
    )
    right = chart_of(needs.with_columns(at=pl.lit(len(names) + _GAP))).encode(alt.X("at:Q"), y)
    words = (
        right.mark_text(align="left", fontSize=11, dy=dy).encode(text=alt.Text(f"{name}:N"))
        for name, dy in (("open", -5), ("seeds_needed", 9))
    )
    return alt.layer(*layers, numbers, *words).properties(width=WIDTH, height=_ROW * len(titles))
