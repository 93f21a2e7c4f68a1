# SPDX-License-Identifier: MIT
"""Generates two tables of docs/score.md: the scores of the built-in policies, and the spread of each objective."""

import math
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from schedlab.analysis.comparison.statistics import Estimate
from schedlab.base.toolchain.policies import PolicyChoice, known_policies
from schedlab.courses.scoring.score_card import ScoreCard, make_card, read_values
from schedlab.courses.scoring.workload_sets import SHOWN_KEY, Level, WorkloadSet, read_set
from schedlab.paths import ROOT
from schedlab.runs import perform
from schedlab.runs.collection import Collection, read_collection
from schedlab.runs.plan import Plan
from schedlab_tools.documents.marked_parts import with_marked

DOCUMENT = ROOT / "docs" / "score.md"
PART, SPREAD = "cards", "spread"
"""The names of the marked parts."""
LEVEL = "quick"
Cards = Mapping[str, ScoreCard]
"""Score cards by policy."""


def tables() -> tuple[str, str]:
    """Returns both parts: all policies, the best first; and the worst and best of each objective, by CPUs.

    The runs take about two CPU minutes.
    """
    workload_set = read_set()
    level = workload_set.levels[LEVEL]
    choices = [PolicyChoice(name) for name in known_policies()]
    runs = tuple(run for policy in choices for run in workload_set.runs(SHOWN_KEY, level, policy))
    with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
        plan = Plan(Path(scratch) / "runs", runs)
        plan.check()
        perform.perform(plan, with_metrics=True)
        measured = read_collection([plan.folder])
        by_cpus = {
            cpus: _cards_of_runs(
                workload_set,
                replace(level, cpus=(cpus,)),
                Collection(run for run in measured if run.setup.cpus == cpus),
            )
            for cpus in level.cpus
        }
        return _scores_table(
            workload_set, level, _cards_of_runs(workload_set, level, measured)
        ), _spread_table(workload_set, level, by_cpus)


def _cards_of_runs(workload_set: WorkloadSet, level: Level, runs: Collection) -> Cards:
    """Returns the score cards of these runs."""
    measured = read_values(workload_set, level, runs)
    return {name: make_card(workload_set, level, measured, name) for name in known_policies()}


def _scores_table(workload_set: WorkloadSet, level: Level, cards: Cards) -> str:
    """Returns the table of scores, the best policy first."""
    names = [objective.name for objective in workload_set.objectives_of(level)]
    rows = [
        [
            f"`{name}`",
            *(_factor(figure.log_improvement) for figure in policy_card.figures),
            f"{policy_card.score or 0:.2f}",
        ]
        for name, policy_card in sorted(cards.items(), key=lambda row: -(row[1].score or 0))
    ]
    return _table(["", *names, "score"], rows)


def _spread_table(workload_set: WorkloadSet, level: Level, by_cpus: Mapping[int, Cards]) -> str:
    """Returns the table of the worst and the best policy by objective."""
    rows = [
        [objective.name, *(_range(cards, index) for cards in by_cpus.values())]
        for index, objective in enumerate(workload_set.objectives_of(level))
    ]
    return _table(["", *(f"{cpus} CPU{'s' if cpus > 1 else ''}" for cpus in level.cpus)], rows)


def _range(cards: Cards, index: int) -> str:
    """Returns the worst and the best policy, and how many differ significantly from the reference."""
    intervals = {
        name: better
        for name, policy_card in cards.items()
        if (better := policy_card.figures[index].log_improvement)
    }
    worst, best = (end(intervals, key=lambda name: intervals[name].mean) for end in (min, max))
    differ = sum(not _is_alike(interval) for interval in intervals.values())
    return (
        f"`{worst}` {math.exp(intervals[worst].mean):.2f} – `{best}` {math.exp(intervals[best].mean):.2f}"
        f" ({differ})"
    )


def _is_alike(gain: Estimate) -> bool:
    """True if the difference from the reference is not significant."""
    return gain.low <= 0 <= gain.high


def _factor(better: Estimate | None) -> str:
    """Returns an improvement factor as text; a dash for None."""
    if better is None:
        return "–"
    return f"{'≈ ' if _is_alike(better) else ''}{math.exp(better.mean):.2f}"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n\n"


def text() -> str:
    """Returns the document with both parts regenerated."""
    worth, spread = tables()
    old_text = DOCUMENT.read_text("utf-8")
    return with_marked(with_marked(old_text, PART, worth), SPREAD, spread)
