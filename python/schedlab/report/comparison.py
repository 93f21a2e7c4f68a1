# SPDX-License-Identifier: MIT
"""The page that compares all policies on all suites: the winner, or the
policies that are tied for best.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from statistics import median

import polars as pl

from schedlab.analysis.comparison.formatting import column_decimals, in_column
from schedlab.analysis.comparison.measures import Measure
from schedlab.analysis.comparison.statistics import Estimate
from schedlab.analysis.comparison.suites import COMPARED, Suite
from schedlab.base.display.names import slug
from schedlab.base.display.numbers import Quantity, counted, fitting
from schedlab.base.toolchain.policies import in_policy_order
from schedlab.report import time_slices
from schedlab.report.comparison_charts import chooser, relative, trade_off
from schedlab.report.comparison_stills import (
    charts_by_metric,
    charts_by_workload,
    means_of_user_workloads,
)
from schedlab.report.findings import FEW_POLICIES, Score, contests, score
from schedlab.report.model import Block, Cell, Column, Page, Row, Section, Table, Text
from schedlab.report.wording import prose
from schedlab.runs.collection import Collection
from schedlab.units import format_time

NAME = "comparison"
NOTHING = Cell("–", "muted")
_NAMED = 3
"""Up to this many policies that are tied for best are named in a cell."""
_FAR = 1000
"""Largest ratio to the best that is shown as a number."""
_MARK = "•"
"""The mark of the winner and of policies that are tied for best."""


def page(collection: Collection, suites: Sequence[Suite]) -> Page | None:
    """Returns the page of all suites that ran under two policies or
    more, or None if there are none.

    `suites`: the suites of the collection, from suites().
    """
    if not suites:
        return None
    contest = contests(suites)
    sections = [_best_section(contest)] if contest else []
    reason = time_slices.section(collection, contest)
    sections += [reason] if reason else []
    return Page(
        NAME,
        "All policies compared",
        _lead(suites, contest),
        (
            *sections,
            _pictures(contest or suites),
            _tables(suites),
            Section("Limits", (Text(prose("limits"), "note"),)),
        ),
    )


def _lead(suites: Sequence[Suite], contest: Sequence[Suite]) -> str:
    seeds = sorted({len(suite.seeds) for suite in suites})
    spread = f"{seeds[0]} to {seeds[-1]} seeds" if len(seeds) > 1 else counted(seeds[0], "seed")
    decided = sum(
        len(suite.as_good(measure)) == 1 for suite in contest for measure in suite.contests
    )
    total = sum(len(suite.contests) for suite in contest)
    beginning = (
        f"{counted(len(suites), 'suite')} (a workload on a number of CPUs) with {spread} each. All"
        " policies of a suite have the same seeds."
    )
    if not total:
        return f"{beginning} There are too few policies or seeds to determine a winner."
    return (
        f"{beginning} {_never_worse(contest)} A comparison is one metric on a suite of at least"
        f" {FEW_POLICIES} policies that differ. Of {total} comparisons, {decided}"
        f" {'has' if decided == 1 else 'have'} a winner; in the others, several policies are tied"
        " for best."
    )


def _never_worse(contest: Sequence[Suite]) -> str:
    """Names the policies that are the winner or tied for best wherever they took part."""
    names: dict[str, bool] = {}
    for suite in contest:
        for measure in suite.contests:
            good = suite.as_good(measure)
            for policy in suite.having(measure):
                names[policy] = names.get(policy, True) and policy in good
    never = in_policy_order(policy for policy, unbeaten in names.items() if unbeaten)
    if not never:
        return "No policy is the winner or tied for best in all comparisons."
    return f"Worse in no comparison: {', '.join(f'`{policy}`' for policy in never)}."


# --- best policy by metric


def _best_section(contest: Sequence[Suite]) -> Section:
    tables = (_digest(contest), _distances(contest), _winners(contest))
    checks = max(suite.evaluations_max for suite in contest)
    added = (Text(prose("looks", looks=str(checks))),) if checks > 1 else ()
    return Section("Best for what", (Text(prose("contest")), *added, *tables))


def _digest(contest: Sequence[Suite]) -> Table:
    """Policies × metrics: in how many suites each is the winner or tied for best."""
    measures = _measures(contest)
    policies = in_policy_order(policy for suite in contest for policy in suite.policies)
    scores = {
        (policy, measure): score(contest, policy, measure)
        for policy in policies
        for measure in measures
    }
    data = pl.DataFrame(
        [
            {
                "policy": policy,
                "metric": measure.name,
                "suites": metric.suites,
                "winner": metric.wins,
                "tied": metric.tied,
            }
            for (policy, measure), metric in scores.items()
        ]
    )
    return Table(
        "comparison-best-of",
        "How often each policy is the winner or tied for best",
        (Column("policy", align="left"), *(Column(measure.title) for measure in measures)),
        tuple(
            (Cell(policy), *(_score_cell(scores[policy, measure]) for measure in measures))
            for policy in policies
        ),
        data,
        "Number of suites where the policy is the winner or tied for best, of all suites that it"
        " ran and where policies differ in the metric. In brackets: where it is the winner.",
    )


def _score_cell(policy_score: Score) -> Cell:
    if not policy_score.suites:
        return NOTHING
    alone = f" ({policy_score.wins})" if policy_score.wins else ""
    return Cell(f"{policy_score.possible} of {policy_score.suites}{alone}")


def _distances(contest: Sequence[Suite]) -> Table:
    """Policies × metrics: the median and the largest distance from the best."""
    most = max(len(suite.policies) for suite in contest)
    wide = [suite for suite in contest if 2 * len(suite.policies) >= most]
    policies = in_policy_order(policy for suite in wide for policy in suite.policies)
    everywhere = [policy for policy in policies if all(policy in suite.policies for suite in wide)]
    measures = _measures(wide)
    data = [
        {**_identity(suite), "policy": policy, "metric": measure.name, "times_the_best": times}
        for suite in wide
        for measure in suite.measures
        for policy in everywhere
        if policy in suite.having(measure) and math.isfinite(times := suite.ratio(policy, measure))
    ]
    schema = {"policy": pl.String, "metric": pl.String, "times_the_best": pl.Float64}
    frame = pl.DataFrame(data, infer_schema_length=None) if data else pl.DataFrame(schema=schema)
    return Table(
        "comparison-distance",
        "How far behind the best each policy is",
        (Column("policy", align="left"), *(Column(measure.title) for measure in measures)),
        tuple(
            (Cell(policy), *(_distance_cell(frame, policy, measure) for measure in measures))
            for policy in everywhere
        ),
        frame,
        "Ratio to the best mean of a suite: the median over suites and, in brackets, the worst."
        " Only suites with at least half of the largest number of policies count, and only"
        " policies that ran in all of these. The smallest values that count are a step of the"
        " clock, an overhead of 0.001 % and a share error of 0.1 points; smaller values are"
        " raised to these.",
    )


def _distance_cell(frame: pl.DataFrame, policy: str, measure: Measure) -> Cell:
    distances = frame.filter((pl.col("policy") == policy) & (pl.col("metric") == measure.name))
    times = distances["times_the_best"].sort().to_list()
    if not times:
        return NOTHING
    worst = f"{times[-1]:,.2f}" if times[-1] < _FAR else f"over {_FAR:,}"
    return Cell(f"{median(times):,.2f} ({worst})")


def _winners(contest: Sequence[Suite]) -> Table:
    """Suites × metrics: the winner, or the policies that are tied for best."""
    measures = _measures(contest)
    rows: list[Row] = []
    sections, data = [], []
    for _, tests in groupby(contest, key=lambda suite: suite.study):
        sections.append(len(rows))
        for suite in tests:
            rows.append((*_names(suite), *(_winner_cell(suite, measure) for measure in measures)))
            data += [row for measure in suite.measures for row in _ranked(suite, measure)]
    return Table(
        "comparison-best",
        "The winner of each suite, or the policies tied for best",
        (
            Column("suite", align="left"),
            Column("CPUs"),
            *(Column(measure.title, align="left") for measure in measures),
        ),
        tuple(rows),
        pl.DataFrame(data),
        "The policy with the best mean comes first; in grey: the number of others that are tied"
        " for best. *Any*: all are tied. *Alike*: all have the same values. The tables below have"
        " means and intervals. In this table's file, `beaten` is the corrected p-value of the"
        " hypothesis that no other policy is better.",
        tuple(sections[1:]),
        keys=2,
    )


def _names(suite: Suite) -> Row:
    return Cell(suite.title), Cell(str(suite.cpus))


def _winner_cell(suite: Suite, measure: Measure) -> Cell:
    if measure not in suite.measures:
        return NOTHING
    if suite.alike(measure):
        return Cell("alike", "muted")
    good = suite.as_good(measure)
    if len(good) == len(suite.having(measure)):
        return Cell("any", "muted")
    if len(good) <= _NAMED:
        return Cell(",\n".join(good))
    return Cell(f"{good[0]} + {len(good) - 1}", "muted")


def _ranked(suite: Suite, measure: Measure) -> Iterable[dict[str, object]]:
    good = suite.as_good(measure)
    for place, policy in enumerate(suite.order(measure)):
        yield {
            **_identity(suite),
            "metric": measure.name,
            "place": place + 1,
            "policy": policy,
            "tied_or_winner": policy in good,
            "beaten": suite.rankings[measure.name].beaten[policy],
            "times_the_best": suite.ratio(policy, measure),
        }


def _measures(suites: Sequence[Suite]) -> list[Measure]:
    """Returns the measures that at least one suite has."""
    return [measure for measure in COMPARED if any(measure in suite.measures for suite in suites)]


def _identity(suite: Suite) -> dict[str, object]:
    return {
        "experiment": suite.experiment,
        "cpus": suite.cpus,
        "tick_ns": suite.tick_ns,
        "machine": suite.machine,
        "seeds": len(suite.seeds),
    }


# --- charts


def _pictures(suites: Sequence[Suite]) -> Section:
    measures = _measures(suites)
    behind = relative(suites, measures)
    blocks: list[Block] = [
        Text(
            "Choose a suite and a metric below each chart. A policy has the same colour in all"
            " charts. Printed pages show a chart for each workload that belongs to no study."
        ),
        replace(chooser(suites, measures), still=means_of_user_workloads(suites, measures)),
        replace(behind, still=charts_by_metric(behind, suites, measures)),
    ]
    both = [suite for suite in suites if len(suite.measures) > 1]
    if both:
        two = trade_off(both, _measures(both))
        blocks.append(replace(two, still=charts_by_workload(two, both)))
    return Section("Charts", tuple(blocks))


# --- tables


def _tables(suites: Sequence[Suite]) -> Section:
    """Returns the tables, grouped by study and test."""
    sections = []
    for study, of_study in groupby(suites, key=lambda suite: suite.study):
        title = "Other workloads" if study is None else f"Study {study}"
        tests: dict[tuple[str, int, str], list[Suite]] = {}
        for suite in of_study:
            tests.setdefault((suite.experiment, suite.tick_ns, suite.machine), []).append(suite)
        tables = tuple(_test_table(test, number) for number, test in enumerate(tests.values()))
        sections.append(Section(title, tables))
    meanings = [f"- *{measure.title}*: {measure.ideal}" for measure in _measures(suites)]
    how = Text(
        f"Means over the seeds with 95 % intervals. {_MARK} marks the winner or the policies"
        " tied for best, if others are worse. Metrics:\n\n" + "\n".join(meanings)
    )
    return Section("All means", (how,), tuple(sections))


def _test_table(tests: Sequence[Suite], number: int) -> Table:
    """Returns the table of one test on all numbers of CPUs."""
    first = tests[0]
    measures = _measures(tests)
    units = {measure.name: _unit(tests, measure) for measure in measures}
    digits = {
        measure.name: column_decimals(list(_of(tests, measure)), units[measure.name])
        for measure in measures
    }
    rows: list[Row] = []
    sections, data = [], []
    for suite in tests:
        sections.append(len(rows))
        for policy in suite.policies:
            cells = [
                _mean_cell(suite, policy, measure, units[measure.name], digits[measure.name])
                for measure in measures
            ]
            rows.append((Cell(str(suite.cpus)), Cell(policy), *cells))
            data += list(_long(suite, policy))
    return Table(
        f"comparison-{slug(first.experiment)}" + ("" if first.study else f"-{number}"),
        first.title,
        (
            Column("CPUs"),
            Column("policy", align="left"),
            *(
                Column(
                    measure.title
                    + (f", {units[measure.name].unit}" if units[measure.name].unit else "")
                )
                for measure in measures
            ),
        ),
        tuple(rows),
        pl.DataFrame(data, infer_schema_length=None),
        _conditions(tests),
        tuple(sections[1:]),
        keys=2,
    )


def _unit(tests: Sequence[Suite], measure: Measure) -> Quantity:
    """Returns one unit for the whole column."""
    return fitting(measure.quantity, max((mean.mean for mean in _of(tests, measure)), default=0.0))


def _of(tests: Sequence[Suite], measure: Measure) -> Iterator[Estimate]:
    for suite in tests:
        yield from (mean for (_, name), mean in suite.means.items() if name == measure.name)


def _mean_cell(suite: Suite, policy: str, measure: Measure, unit: Quantity, decimals: int) -> Cell:
    if policy in suite.failed:
        return Cell("failed", "failed", suite.failed[policy])
    if (policy, measure.name) not in suite.means:
        return NOTHING
    text = in_column(suite.means[policy, measure.name], unit, decimals)
    if measure.name not in suite.rankings:
        return Cell(text)
    good = suite.as_good(measure)
    is_decided = len(good) < len(suite.having(measure))
    return Cell(f"{_MARK} {text}" if is_decided and policy in good else text)


def _long(suite: Suite, policy: str) -> Iterable[dict[str, object]]:
    for measure in COMPARED:
        mean = suite.means.get((policy, measure.name))
        if mean or policy in suite.failed:
            yield {
                **_identity(suite),
                "policy": policy,
                "metric": measure.name,
                "column": measure.column,
                "mean": mean.mean if mean else None,
                "low": mean.low if mean else None,
                "high": mean.high if mean else None,
                "failed": suite.failed.get(policy, ""),
            }


def _conditions(tests: Sequence[Suite]) -> str:
    counts = sorted({len(suite.seeds) for suite in tests})
    words = " or ".join(map(str, counts))
    seeds = "1 seed: no interval" if counts == [1] else f"{words} seeds"
    return f"{tests[0].machine}, tick {format_time(tests[0].tick_ns)}, {seeds}."
