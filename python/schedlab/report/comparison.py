# SPDX-License-Identifier: MIT
"""The page that compares all policies on all suites: the winner, or the
policies that are tied for best.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from statistics import median

import polars as pl

from schedlab.analysis.comparison.formatting import column_decimals, estimate_in_column
from schedlab.analysis.comparison.measures import Measure
from schedlab.analysis.comparison.statistics import Estimate
from schedlab.analysis.comparison.suites import COMPARED_MEASURES, Suite
from schedlab.base.display.names import slug
from schedlab.base.display.numbers import Quantity, format_count, with_fitting_unit
from schedlab.base.toolchain.policies import sort_policies
from schedlab.report import time_slices
from schedlab.report.comparison_charts import means_chart, ratio_chart, trade_off_chart
from schedlab.report.comparison_stills import (
    charts_by_metric,
    charts_by_workload,
    means_of_user_workloads,
)
from schedlab.report.findings import POLICIES_MIN, PolicyScore, count_score, rankable_suites
from schedlab.report.model import Block, Cell, Column, Page, Row, Section, Table, Text
from schedlab.report.wording import read_prose
from schedlab.runs.collection import Collection
from schedlab.units import format_time

PAGE_NAME = "comparison"
NO_VALUE = Cell("–", "muted")
_NAMED_POLICIES_MAX = 3
"""Up to this many policies that are tied for best are named in a cell."""
_RATIO_SHOWN_MAX = 1000
"""Largest ratio to the best that is shown as a number."""
_WINNER_SIGN = "•"
"""The mark of the winner and of policies that are tied for best."""


def make_page(collection: Collection, suites: Sequence[Suite]) -> Page | None:
    """Returns the page of all suites that ran under two policies or
    more, or None if there are none.

    `suites`: the suites of the collection, from suites().
    """
    if not suites:
        return None
    rankable = rankable_suites(suites)
    sections = [_best_section(rankable)] if rankable else []
    reason = time_slices.time_slice_section(collection, rankable)
    sections += [reason] if reason else []
    return Page(
        PAGE_NAME,
        "All policies compared",
        _summarize(suites, rankable),
        (
            *sections,
            _chart_section(rankable or suites),
            _tables_section(suites),
            Section("Limits", (Text(read_prose("limits"), "note"),)),
        ),
    )


def _summarize(suites: Sequence[Suite], rankable: Sequence[Suite]) -> str:
    """Returns the page's introduction: seeds, decided comparisons, and policies that are never
    worse.
    """
    seeds = sorted({len(suite.seeds) for suite in suites})
    spread = (
        f"{seeds[0]} to {seeds[-1]} seeds" if len(seeds) > 1 else format_count(seeds[0], "seed")
    )
    decided = sum(
        len(suite.best_policies(measure)) == 1
        for suite in rankable
        for measure in suite.differing_measures
    )
    total = sum(len(suite.differing_measures) for suite in rankable)
    beginning = (
        f"{format_count(len(suites), 'suite')} (a workload on a number of CPUs) with {spread} each. All"
        " policies of a suite have the same seeds."
    )
    if not total:
        return f"{beginning} There are too few policies or seeds to determine a winner."
    return (
        f"{beginning} {_never_worse_text(rankable)} A comparison is one metric on a suite of at least"
        f" {POLICIES_MIN} policies that differ. Of {total} comparisons, {decided}"
        f" {'has' if decided == 1 else 'have'} a winner; in the others, several policies are tied"
        " for best."
    )


def _never_worse_text(rankable: Sequence[Suite]) -> str:
    """Names the policies that are the winner or tied for best wherever they took part."""
    names: dict[str, bool] = {}
    for suite in rankable:
        for measure in suite.differing_measures:
            best_policies = suite.best_policies(measure)
            for policy in suite.policies_with(measure):
                names[policy] = names.get(policy, True) and policy in best_policies
    never_worse = sort_policies(policy for policy, unbeaten in names.items() if unbeaten)
    if not never_worse:
        return "No policy is the winner or tied for best in all comparisons."
    return f"Worse in no comparison: {', '.join(f'`{policy}`' for policy in never_worse)}."


# --- best policy by metric


def _best_section(rankable: Sequence[Suite]) -> Section:
    """Returns the section that names the best policies for each metric."""
    tables = (_best_counts_table(rankable), _distances_table(rankable), _winners_table(rankable))
    checks = max(suite.evaluations_max for suite in rankable)
    added = (Text(read_prose("looks", looks=str(checks))),) if checks > 1 else ()
    return Section("Best for what", (Text(read_prose("contest")), *added, *tables))


def _best_counts_table(rankable: Sequence[Suite]) -> Table:
    """Policies × metrics: in how many suites each is the winner or tied for best."""
    measures = _available_measures(rankable)
    policies = sort_policies(policy for suite in rankable for policy in suite.policies)
    scores = {
        (policy, measure): count_score(rankable, policy, measure)
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


def _score_cell(policy_score: PolicyScore) -> Cell:
    """Returns the cell that shows a score: the number of comparisons where the policy is the winner
    or tied for best.
    """
    if not policy_score.suites:
        return NO_VALUE
    alone = f" ({policy_score.wins})" if policy_score.wins else ""
    return Cell(f"{policy_score.wins_and_ties} of {policy_score.suites}{alone}")


def _distances_table(rankable: Sequence[Suite]) -> Table:
    """Policies × metrics: the median and the largest distance from the best."""
    policies_max = max(len(suite.policies) for suite in rankable)
    large_suites = [suite for suite in rankable if 2 * len(suite.policies) >= policies_max]
    policies = sort_policies(policy for suite in large_suites for policy in suite.policies)
    common_policies = [
        policy for policy in policies if all(policy in suite.policies for suite in large_suites)
    ]
    measures = _available_measures(large_suites)
    data = [
        {**_suite_columns(suite), "policy": policy, "metric": measure.name, "times_the_best": times}
        for suite in large_suites
        for measure in suite.measures
        for policy in common_policies
        if policy in suite.policies_with(measure)
        and math.isfinite(times := suite.ratio(policy, measure))
    ]
    schema = {"policy": pl.String, "metric": pl.String, "times_the_best": pl.Float64}
    frame = pl.DataFrame(data, infer_schema_length=None) if data else pl.DataFrame(schema=schema)
    return Table(
        "comparison-distance",
        "How far behind the best each policy is",
        (Column("policy", align="left"), *(Column(measure.title) for measure in measures)),
        tuple(
            (Cell(policy), *(_distance_cell(frame, policy, measure) for measure in measures))
            for policy in common_policies
        ),
        frame,
        "Ratio to the best mean of a suite: the median over suites and, in brackets, the worst."
        " Only suites with at least half of the largest number of policies count, and only"
        " policies that ran in all of these. The smallest values that count are a step of the"
        " clock, an overhead of 0.001 % and a share error of 0.1 points; smaller values are"
        " raised to these.",
    )


def _distance_cell(frame: pl.DataFrame, policy: str, measure: Measure) -> Cell:
    """Returns the cell of a policy's median and largest distance from the best."""
    distances = frame.filter((pl.col("policy") == policy) & (pl.col("metric") == measure.name))
    times = distances["times_the_best"].sort().to_list()
    if not times:
        return NO_VALUE
    worst = f"{times[-1]:,.2f}" if times[-1] < _RATIO_SHOWN_MAX else f"over {_RATIO_SHOWN_MAX:,}"
    return Cell(f"{median(times):,.2f} ({worst})")


def _winners_table(rankable: Sequence[Suite]) -> Table:
    """Suites × metrics: the winner, or the policies that are tied for best."""
    measures = _available_measures(rankable)
    rows: list[Row] = []
    sections, data = [], []
    for _, tests in groupby(rankable, key=lambda suite: suite.study):
        sections.append(len(rows))
        for suite in tests:
            rows.append(
                (*_name_cells(suite), *(_winner_cell(suite, measure) for measure in measures))
            )
            data += [row for measure in suite.measures for row in _ranking_records(suite, measure)]
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


def _name_cells(suite: Suite) -> Row:
    """Returns the first cells of a suite's row: its title and its number of CPUs."""
    return Cell(suite.title), Cell(str(suite.cpus))


def _winner_cell(suite: Suite, measure: Measure) -> Cell:
    """Returns the cell that names the winner, or the policies that are tied for best."""
    if measure not in suite.measures:
        return NO_VALUE
    if suite.has_equal_values(measure):
        return Cell("alike", "muted")
    best_policies = suite.best_policies(measure)
    if len(best_policies) == len(suite.policies_with(measure)):
        return Cell("any", "muted")
    if len(best_policies) <= _NAMED_POLICIES_MAX:
        return Cell(",\n".join(best_policies))
    return Cell(f"{best_policies[0]} + {len(best_policies) - 1}", "muted")


def _ranking_records(suite: Suite, measure: Measure) -> Iterable[dict[str, object]]:
    """Yields a record for each policy, the best first, for the data behind the table."""
    best_policies = suite.best_policies(measure)
    for index, policy in enumerate(suite.policies_by_mean(measure)):
        yield {
            **_suite_columns(suite),
            "metric": measure.name,
            "place": index + 1,
            "policy": policy,
            "tied_or_winner": policy in best_policies,
            "beaten": suite.rankings[measure.name].p_values[policy],
            "times_the_best": suite.ratio(policy, measure),
        }


def _available_measures(suites: Sequence[Suite]) -> list[Measure]:
    """Returns the measures that at least one suite has."""
    return [
        measure
        for measure in COMPARED_MEASURES
        if any(measure in suite.measures for suite in suites)
    ]


def _suite_columns(suite: Suite) -> dict[str, object]:
    """Returns the columns that identify a suite in the data behind tables."""
    return {
        "experiment": suite.experiment,
        "cpus": suite.cpus,
        "tick_ns": suite.tick_ns,
        "machine": suite.machine,
        "seeds": len(suite.seeds),
    }


# --- charts


def _chart_section(suites: Sequence[Suite]) -> Section:
    measures = _available_measures(suites)
    ratios = ratio_chart(suites, measures)
    blocks: list[Block] = [
        Text(
            "Choose a suite and a metric below each chart. A policy has the same colour in all"
            " charts. Printed pages show a chart for each workload that belongs to no study."
        ),
        replace(means_chart(suites, measures), still=means_of_user_workloads(suites, measures)),
        replace(ratios, still=charts_by_metric(ratios, suites, measures)),
    ]
    suites_with_two = [suite for suite in suites if len(suite.measures) > 1]
    if suites_with_two:
        trade_off = trade_off_chart(suites_with_two, _available_measures(suites_with_two))
        blocks.append(replace(trade_off, still=charts_by_workload(trade_off, suites_with_two)))
    return Section("Charts", tuple(blocks))


# --- tables


def _tables_section(suites: Sequence[Suite]) -> Section:
    """Returns the tables, grouped by study and test."""
    sections = []
    for study, study_suites in groupby(suites, key=lambda suite: suite.study):
        title = "Other workloads" if study is None else f"Study {study}"
        tests: dict[tuple[str, int, str], list[Suite]] = {}
        for suite in study_suites:
            tests.setdefault((suite.experiment, suite.tick_ns, suite.machine), []).append(suite)
        tables = tuple(_test_table(test, number) for number, test in enumerate(tests.values()))
        sections.append(Section(title, tables))
    meanings = [f"- *{measure.title}*: {measure.ideal}" for measure in _available_measures(suites)]
    explanation = Text(
        f"Means over the seeds with 95 % intervals. {_WINNER_SIGN} marks the winner or the policies"
        " tied for best, if others are worse. Metrics:\n\n" + "\n".join(meanings)
    )
    return Section("All means", (explanation,), tuple(sections))


def _test_table(tests: Sequence[Suite], number: int) -> Table:
    first = tests[0]
    measures = _available_measures(tests)
    units = {measure.name: _column_unit(tests, measure) for measure in measures}
    digits = {
        measure.name: column_decimals(list(_means_of_tests(tests, measure)), units[measure.name])
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
            data += list(_mean_records(suite, policy))
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
        _conditions_text(tests),
        tuple(sections[1:]),
        keys=2,
    )


def _column_unit(tests: Sequence[Suite], measure: Measure) -> Quantity:
    return with_fitting_unit(
        measure.quantity, max((mean.mean for mean in _means_of_tests(tests, measure)), default=0.0)
    )


def _means_of_tests(tests: Sequence[Suite], measure: Measure) -> Iterator[Estimate]:
    """Yields the means of a metric in all these suites."""
    for suite in tests:
        yield from (mean for (_, name), mean in suite.means.items() if name == measure.name)


def _mean_cell(suite: Suite, policy: str, measure: Measure, unit: Quantity, decimals: int) -> Cell:
    """Returns the cell of a policy's mean in a suite, marked if the policy is the winner or tied
    for best.
    """
    if policy in suite.failures:
        return Cell("failed", "failed", suite.failures[policy])
    if (policy, measure.name) not in suite.means:
        return NO_VALUE
    text = estimate_in_column(suite.means[policy, measure.name], unit, decimals)
    if measure.name not in suite.rankings:
        return Cell(text)
    best_policies = suite.best_policies(measure)
    is_decided = len(best_policies) < len(suite.policies_with(measure))
    return Cell(f"{_WINNER_SIGN} {text}" if is_decided and policy in best_policies else text)


def _mean_records(suite: Suite, policy: str) -> Iterable[dict[str, object]]:
    """Yields a record for each metric of a policy, for the data behind the table."""
    for measure in COMPARED_MEASURES:
        mean = suite.means.get((policy, measure.name))
        if mean or policy in suite.failures:
            yield {
                **_suite_columns(suite),
                "policy": policy,
                "metric": measure.name,
                "column": measure.column,
                "mean": mean.mean if mean else None,
                "low": mean.low if mean else None,
                "high": mean.high if mean else None,
                "failed": suite.failures.get(policy, ""),
            }


def _conditions_text(tests: Sequence[Suite]) -> str:
    """Returns the caption's sentence on the machine, the tick and the seeds."""
    counts = sorted({len(suite.seeds) for suite in tests})
    words = " or ".join(map(str, counts))
    seeds = "1 seed: no interval" if counts == [1] else f"{words} seeds"
    return f"{tests[0].machine}, tick {format_time(tests[0].tick_ns)}, {seeds}."
