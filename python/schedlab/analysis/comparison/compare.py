# SPDX-License-Identifier: MIT
"""Compares two sets of runs: how their configurations differ, and which metrics changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal

import numpy as np
import polars as pl

from schedlab.analysis.comparison.measures import (
    GROUP_MEASURES,
    MEASURES,
    TAIL_METRICS,
    Measure,
    measure_values,
    reported_value_measure,
)
from schedlab.analysis.comparison.setups import (
    DIMENSIONS,
    ComparedProperty,
    are_partners,
    compare_facts,
    configuration_key,
    configurations_by_key,
    differing_dimensions,
    no_match_message,
)
from schedlab.analysis.comparison.statistics import (
    CONFIDENCE,
    ROUNDING_NOISE,
    Difference,
    correct_p_values,
    difference,
    sample_size,
    smallest_p_value,
)
from schedlab.base.display.numbers import POINTS
from schedlab.errors import WrongUsage, format_parameter
from schedlab.metrics.registry import REPORTED_PREFIX
from schedlab.runs.collection import Collection, ConfigurationRuns, StoredRun

DEFAULT_THRESHOLD = 0.01
"""Default threshold: smaller relative changes of the mean do not matter."""
_THRESHOLD_POINTS = 0.1
"""Threshold for metrics in percentage points."""

Verdict = Literal[
    "same",
    "better",
    "worse",
    "changed",
    "slight",
    "perhaps",
    "chance",
    "one seed",
    "not repeatable",
]
"""`changed`: significant, in a metric without a direction. `slight`: significant or of one seed,
but below the threshold. `perhaps`: significant only without the correction for several metrics.
`one seed`: exact for this seed, unknown for others. `not repeatable`: one run per side, on a
machine with varying runs.
"""


@dataclass(frozen=True)
class MetricChange:
    """One metric of a matched configuration, of the whole workload (group None) or of a group."""

    measure: Measure
    group: str | None
    difference: Difference
    p_value: float | None
    """The p-value, Holm-corrected over the metrics of the workload or group; None for a single seed."""
    verdict: Verdict
    seeds_needed: int | None = None
    """Number of seeds that would probably detect a change at the threshold; None if unknown, or if
    more seeds do not help.
    """

    @property
    def is_open(self) -> bool:
        """True if more seeds could change the verdict."""
        return self.verdict in ("chance", "perhaps")

    @property
    def is_at_floor(self) -> bool:
        """True if the p-value is the smallest possible one for this number of seeds."""
        result = self.difference
        floor = smallest_p_value(result.count) if result.paired else 0.0
        return result.p_value is not None and 0 < result.p_value <= floor * (1 + ROUNDING_NOISE)

    @property
    def improves(self) -> bool | None:
        """True if the mean improved; None if it is unchanged or the metric has no direction."""
        if self.measure.better is None or not self.difference.change:
            return None
        return (self.difference.change < 0) == (self.measure.better == "lower")

    def to_dict(self) -> dict[str, Any]:
        """Returns the row for JSON. Numbers are unscaled: nanoseconds, fractions of 1."""
        result = self.difference
        return {
            "metric": self.measure.name,
            "title": self.measure.title,
            "group": self.group,
            "column": self.measure.column,
            "better": self.measure.better,
            "before": _estimate_dict(result.before),
            "after": _estimate_dict(result.after),
            "difference": result.change,
            "low": result.low,
            "high": result.high,
            "relative": result.relative,
            "p_value": result.p_value,
            "p_value_permutations": result.permutation,
            "p_value_corrected": self.p_value,
            "p_value_at_floor": self.is_at_floor,
            "seeds_needed": self.seeds_needed,
            "improves": self.improves,
            "verdict": self.verdict,
        }


MetricPart = tuple[str | None, str | None]
"""Group and metric. Group None: the whole workload. Metric None: all metrics of the group."""


@dataclass(frozen=True)
class MatchedConfiguration:
    """Two configurations that differ only in the compared dimensions."""

    before: ConfigurationRuns
    after: ConfigurationRuns
    seeds: tuple[int, ...]
    """The seeds of both sides if `is_paired`; other seeds are excluded."""
    is_paired: bool
    is_identical: bool
    """True if each pair of runs has byte-identical traces."""
    rows: tuple[MetricChange, ...] = ()
    """Empty if a run failed or the traces are identical."""
    only_before: tuple[MetricPart, ...] = ()
    """Metrics that not all runs of the other side have."""
    only_after: tuple[MetricPart, ...] = ()

    @property
    def failed_runs(self) -> tuple[StoredRun, ...]:
        """Failed runs among the runs to compare."""
        runs = (*self.before.failed, *self.after.failed)
        return tuple(run for run in runs if not self.is_paired or run.seed in self.seeds)

    @property
    def excluded_seeds(self) -> tuple[int, ...]:
        """If runs are paired: the seeds that only one side has."""
        if not self.is_paired:
            return ()
        seeds = {run.seed for run in (*self.before.runs, *self.after.runs)}
        return tuple(sorted(seeds - set(self.seeds)))


@dataclass(frozen=True)
class Comparison:
    """The result of comparing two sets of runs."""

    facts: tuple[ComparedProperty, ...]
    across: tuple[str, ...]
    """Dimensions that differ between the sides."""
    matches: tuple[MatchedConfiguration, ...]
    threshold: float = DEFAULT_THRESHOLD
    """Threshold: smaller relative changes of a mean do not matter."""
    requested_metrics: tuple[str, ...] = ()
    """Names of the requested metrics; empty for all."""
    unmatched_before: tuple[ConfigurationRuns, ...] = field(default=())
    unmatched_after: tuple[ConfigurationRuns, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Returns the comparison for JSON."""
        return {
            "confidence": CONFIDENCE,
            "matters": self.threshold,
            "facts": [
                {
                    "name": fact.name,
                    "before": fact.before,
                    "after": fact.after,
                    "differs": fact.differs,
                }
                for fact in self.facts
            ],
            "across": self.across,
            "setups": [_match_dict(match) for match in self.matches],
            "without_partner": {
                "before": [
                    dict(zip(DIMENSIONS, configuration_key(setup), strict=True))
                    for setup in self.unmatched_before
                ],
                "after": [
                    dict(zip(DIMENSIONS, configuration_key(setup), strict=True))
                    for setup in self.unmatched_after
                ],
            },
        }


def compare(
    before: Collection,
    after: Collection,
    metrics: Sequence[str] = (),
    matters: float = DEFAULT_THRESHOLD,
) -> Comparison:
    """Compares two sets of runs.

    `metrics`: names of the requested metrics; empty for all. `matters`: the smallest relative
    change of a mean that matters.

    Raises WrongUsage for an unknown metric, for a configuration with the same seed twice, and if no
    configurations match.
    """
    check_metrics(metrics)
    sides = [configurations_by_key(side) for side in (before, after)]
    across = differing_dimensions(*sides)
    pairs = [
        (before_configuration, after_configuration)
        for (key, before_configuration), (partner, after_configuration) in product(
            sides[0].items(), sides[1].items()
        )
        if are_partners(key, partner, across)
    ]
    if not pairs:
        raise WrongUsage(no_match_message(*sides))
    matched = {id(setup) for pair in pairs for setup in pair}
    return Comparison(
        tuple(compare_facts(before, after)),
        across,
        tuple(
            compare_configuration(
                before_configuration, after_configuration, metrics, matters, (before.of, after.of)
            )
            for before_configuration, after_configuration in pairs
        ),
        matters,
        tuple(metrics),
        *(tuple(setup for setup in side.values() if id(setup) not in matched) for side in sides),
    )


def check_metrics(names: Iterable[str]) -> None:
    """Raises WrongUsage for an unknown metric."""
    known = {measure.name for measure in (*MEASURES, *GROUP_MEASURES)}
    for name in names:
        if name not in known and not name.startswith(REPORTED_PREFIX):
            raise WrongUsage(
                f"unknown metric; choose one of {', '.join(sorted(known))}, or {REPORTED_PREFIX}NAME "
                "for a value that programs report",
                what=format_parameter("metrics", name),
            )


# --- results


def compare_configuration(
    before: ConfigurationRuns,
    after: ConfigurationRuns,
    metrics: Sequence[str] = (),
    matters: float = DEFAULT_THRESHOLD,
    sides: Sequence[Callable[[Sequence[StoredRun]], Collection]] = (Collection, Collection),
) -> MatchedConfiguration:
    """Compares a configuration with its partner, by common seeds; unpaired if there are none.

    `sides`: functions that collect the metrics of the runs of either side.
    """
    common = tuple(sorted({run.seed for run in before.runs} & {run.seed for run in after.runs}))
    first, second = (
        [run for run in side.runs if not common or run.seed in common] for side in (before, after)
    )
    identical = bool(common) and all(map(_same_trace, first, second))
    candidate = MatchedConfiguration(before, after, common, bool(common), identical)
    if identical or candidate.failed_runs:
        return candidate
    excluded = TAIL_METRICS - set(metrics)
    first_values, other = (
        _metric_values(measure_values(of(runs)), len(runs), excluded)
        for of, runs in zip(sides, (first, second), strict=True)
    )
    repeatable = all(run.manifest.get("repeatable", True) for run in (*first, *second))
    rows = _compare_metrics(first_values, other, bool(common), repeatable, matters)
    return replace(
        candidate,
        rows=tuple(row for row in rows if not metrics or row.measure.name in metrics),
        only_before=_missing_parts(first_values, other, metrics),
        only_after=_missing_parts(other, first_values, metrics),
    )


def _same_trace(before: StoredRun, after: StoredRun) -> bool:
    """Returns whether the traces of both runs are byte-identical."""
    return before.trace_hash is not None and before.trace_hash == after.trace_hash


def _compare_metrics(
    before: MetricValues, after: MetricValues, paired: bool, repeatable: bool, matters: float
) -> list[MetricChange]:
    """Returns a row for each metric that every run of both sides has."""
    sides = (before, after)
    differences: dict[str | None, list[tuple[Measure, Difference]]] = {}
    seeds_needed: dict[tuple[str | None, str], int | None] = {}
    for group, measure in _common_parts(sides):
        (first, first_resolution), (second, second_resolution) = (
            side[group, measure.name] for side in sides
        )
        change = difference(
            first, second, paired, max(first_resolution, second_resolution), measure.within
        )
        differences.setdefault(group, []).append((measure, change))
        seeds_needed[group, measure.name] = _seeds_to_detect(first, second, paired, matters)
    return [
        replace(row, seeds_needed=seeds_needed[group, row.measure.name] if row.is_open else None)
        for group, group_rows in differences.items()
        for row in _corrected_rows(group, group_rows, repeatable, matters)
    ]


def _seeds_to_detect(
    before: Sequence[float], after: Sequence[float], paired: bool, matters: float
) -> int | None:
    """Returns how many seeds would probably detect a change at the threshold."""
    smallest_change = matters * abs(float(np.mean(before)))
    if min(len(before), len(after)) < 2 or not smallest_change:
        return None
    if paired:
        return sample_size(smallest_change, float(np.std(np.subtract(after, before), ddof=1)))
    return sample_size(
        smallest_change, float(np.hypot(np.std(before, ddof=1), np.std(after, ddof=1)))
    )


def _corrected_rows(
    group: str | None,
    differences: Sequence[tuple[Measure, Difference]],
    repeatable: bool,
    matters: float,
) -> Iterable[MetricChange]:
    """Yields the rows of the workload or of one group, corrected for the number of metrics.

    A metric without any difference is not counted: no choice of signs could make it significant
    (Tarone, 1990).
    """
    counted_p_values = [
        change.p_value
        for _, change in differences
        if change.p_value is not None and not _is_unchanged(change)
    ]
    corrected = iter(correct_p_values(counted_p_values))
    for measure, change in differences:
        p_value = (
            change.p_value if change.p_value is None or _is_unchanged(change) else next(corrected)
        )
        yield MetricChange(
            measure,
            group,
            change,
            p_value,
            metric_verdict(measure, change, p_value, repeatable, matters),
        )


MetricValues = dict[tuple[str | None, str], tuple[list[float], float]]
"""By group and metric: the values by seed, and their resolution."""


def _metric_values(table: pl.DataFrame, runs: int, excluded: frozenset[str]) -> MetricValues:
    """Returns the values of the metrics that all runs have, without the excluded ones."""
    if table.is_empty():
        return {}
    parts = table.sort("seed").partition_by("group", "measure", as_dict=True, maintain_order=True)
    return {
        (group, measure): (part["value"].to_list(), max(part["resolution"]))
        for (group, measure), part in parts.items()
        if len(part) == runs and measure not in excluded
    }


def _missing_parts(
    values: MetricValues, other: MetricValues, metrics: Sequence[str]
) -> tuple[MetricPart, ...]:
    """Returns the metrics that the other side lacks. If the whole workload lacks a metric, its
    groups are not listed.
    """
    missing_keys = [
        key for key in values if key not in other and (not metrics or key[1] in metrics)
    ]
    workload_measures = {measure for group, measure in missing_keys if group is None}
    groups = {None, *(group for group, _ in other)}
    parts: Iterable[MetricPart] = (
        (group, measure if group in groups else None)
        for group, measure in missing_keys
        if group is None or group not in groups or measure not in workload_measures
    )
    return tuple(dict.fromkeys(parts))


def _common_parts(sides: Sequence[MetricValues]) -> Iterable[tuple[str | None, Measure]]:
    """Yields the common parts in order: the whole workload first, then each of several groups."""
    common = sides[0].keys() & sides[1].keys()
    groups = sorted({group for group, _ in common if group is not None})
    if len(groups) == 1:
        groups = []  # a single group repeats the whole workload
    for measure in MEASURES:
        if (None, measure.name) in common:
            yield None, measure
    for name in sorted(name for group, name in common if name.startswith(REPORTED_PREFIX)):
        yield None, reported_value_measure(name)
    for group, measure in product(groups, GROUP_MEASURES):
        if (group, measure.name) in common:
            yield group, measure


def _is_unchanged(change: Difference) -> bool:
    """True if the values are equal for each seed."""
    return change.before == change.after and change.low == change.high == 0


def metric_verdict(
    measure: Measure,
    change: Difference,
    p_value: float | None,
    repeatable: bool = True,
    matters: float = DEFAULT_THRESHOLD,
) -> Verdict:
    """Returns the verdict. `matters`: the smallest relative change of a mean that matters."""
    if _is_unchanged(change):
        return "same"
    if p_value is None and not repeatable:
        return "not repeatable"
    if p_value is None:
        return "slight" if _is_slight(measure, change, matters) else "one seed"
    if change.p_value is None or change.p_value >= 1 - CONFIDENCE:
        return "chance"
    if _is_slight(measure, change, matters):
        return "slight"
    if p_value >= 1 - CONFIDENCE:
        return "perhaps"
    if measure.better is None:
        return "changed"
    return "better" if (change.change < 0) == (measure.better == "lower") else "worse"


def _is_slight(measure: Measure, change: Difference, matters: float) -> bool:
    """True if the change is below the threshold. Percentage points have an absolute threshold,
    because ratios of small points mislead.
    """
    if measure.quantity is POINTS:
        return abs(change.change) < _THRESHOLD_POINTS
    return abs(change.change) < matters * max(abs(change.before.mean), abs(change.after.mean))


# --- JSON


def _estimate_dict(estimate: Any) -> dict[str, Any]:
    """Returns an estimate for JSON; its bounds are null for one seed."""
    return {
        "mean": estimate.mean,
        "low": estimate.low,
        "high": estimate.high,
        "count": estimate.count,
    }


def _match_dict(match: MatchedConfiguration) -> dict[str, Any]:
    return {
        "before": dict(zip(DIMENSIONS, configuration_key(match.before), strict=True)),
        "after": dict(zip(DIMENSIONS, configuration_key(match.after), strict=True)),
        "seeds": match.seeds,
        "seeds_left_out": match.excluded_seeds,
        "paired": match.is_paired,
        "identical": match.is_identical,
        "failed": [
            {
                "folder": str(run.folder),
                "status": run.status,
                "message": run.manifest.get("message"),
            }
            for run in match.failed_runs
        ],
        "metrics": [row.to_dict() for row in match.rows],
        "only_before": _parts_dicts(match.only_before),
        "only_after": _parts_dicts(match.only_after),
    }


def _parts_dicts(parts: Iterable[MetricPart]) -> list[dict[str, str | None]]:
    """Returns parts for JSON, each with its group and metric."""
    return [{"group": group, "metric": metric} for group, metric in parts]
