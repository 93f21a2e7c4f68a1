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
    TAILS,
    Measure,
    measured,
    reported_value_measure,
)
from schedlab.analysis.comparison.setups import (
    DIMENSIONS,
    Fact,
    across_dimensions,
    alike,
    by_key,
    facts,
    key_of,
    no_match,
)
from schedlab.analysis.comparison.statistics import (
    CONFIDENCE,
    NOISE,
    Difference,
    difference,
    floor_of_chance,
    holm,
    sample_size,
)
from schedlab.base.display.numbers import POINTS
from schedlab.errors import WrongUsage, parameter
from schedlab.metrics.registry import REPORTED_PREFIX
from schedlab.runs.collection import Collection, Repeated, StoredRun

MATTERS = 0.01
"""Default threshold: smaller relative changes of the mean do not matter."""
_LEAST_POINTS = 0.1
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
class Row:
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
    def at_floor(self) -> bool:
        """True if the p-value is the smallest possible one for this number of seeds."""
        result = self.difference
        floor = floor_of_chance(result.count) if result.paired else 0.0
        return result.p_value is not None and 0 < result.p_value <= floor * (1 + NOISE)

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
            "p_value_at_floor": self.at_floor,
            "seeds_needed": self.seeds_needed,
            "improves": self.improves,
            "verdict": self.verdict,
        }


Part = tuple[str | None, str | None]
"""Group and metric. Group None: the whole workload. Metric None: all metrics of the group."""


@dataclass(frozen=True)
class Match:
    """Two configurations that differ only in the compared dimensions."""

    before: Repeated
    after: Repeated
    seeds: tuple[int, ...]
    """The seeds of both sides if `paired`; other seeds are excluded."""
    paired: bool
    identical: bool
    """True if each pair of runs has byte-identical traces."""
    rows: tuple[Row, ...] = ()
    """Empty if a run failed or the traces are identical."""
    only_before: tuple[Part, ...] = ()
    """Metrics that not all runs of the other side have."""
    only_after: tuple[Part, ...] = ()

    @property
    def failed(self) -> tuple[StoredRun, ...]:
        """Failed runs among the runs to compare."""
        runs = (*self.before.failed, *self.after.failed)
        return tuple(run for run in runs if not self.paired or run.seed in self.seeds)

    @property
    def left_out(self) -> tuple[int, ...]:
        """If runs are paired: the seeds that only one side has."""
        if not self.paired:
            return ()
        seeds = {run.seed for run in (*self.before.runs, *self.after.runs)}
        return tuple(sorted(seeds - set(self.seeds)))


@dataclass(frozen=True)
class Comparison:
    """The result of comparing two sets of runs."""

    facts: tuple[Fact, ...]
    across: tuple[str, ...]
    """Dimensions that differ between the sides."""
    matches: tuple[Match, ...]
    matters: float = MATTERS
    """Threshold: smaller relative changes of a mean do not matter."""
    requested_metrics: tuple[str, ...] = ()
    """Names of the requested metrics; empty for all."""
    alone_before: tuple[Repeated, ...] = field(default=())
    alone_after: tuple[Repeated, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Returns the comparison for JSON."""
        return {
            "confidence": CONFIDENCE,
            "matters": self.matters,
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
                    dict(zip(DIMENSIONS, key_of(setup), strict=True)) for setup in self.alone_before
                ],
                "after": [
                    dict(zip(DIMENSIONS, key_of(setup), strict=True)) for setup in self.alone_after
                ],
            },
        }


def compare(
    before: Collection,
    after: Collection,
    metrics: Sequence[str] = (),
    matters: float = MATTERS,
) -> Comparison:
    """Compares two sets of runs.

    `metrics`: names of the requested metrics; empty for all. `matters`: the smallest relative
    change of a mean that matters.

    Raises WrongUsage for an unknown metric, for a configuration with the same seed twice, and if no
    configurations match.
    """
    check_metrics(metrics)
    sides = [by_key(side) for side in (before, after)]
    across = across_dimensions(*sides)
    pairs = [
        (one, other)
        for (key, one), (partner, other) in product(sides[0].items(), sides[1].items())
        if alike(key, partner, across)
    ]
    if not pairs:
        raise WrongUsage(no_match(*sides))
    matched = {id(setup) for pair in pairs for setup in pair}
    return Comparison(
        tuple(facts(before, after)),
        across,
        tuple(match(one, other, metrics, matters, (before.of, after.of)) for one, other in pairs),
        matters,
        tuple(metrics),
        *(tuple(setup for setup in side.values() if id(setup) not in matched) for side in sides),
    )


def check_metrics(names: Iterable[str]) -> None:
    known = {measure.name for measure in (*MEASURES, *GROUP_MEASURES)}
    for name in names:
        if name not in known and not name.startswith(REPORTED_PREFIX):
            raise WrongUsage(
                f"unknown metric; choose one of {', '.join(sorted(known))}, or {REPORTED_PREFIX}NAME "
                "for a value that programs report",
                what=parameter("metrics", name),
            )


# --- results


def match(
    before: Repeated,
    after: Repeated,
    metrics: Sequence[str] = (),
    matters: float = MATTERS,
    sides: Sequence[Callable[[Sequence[StoredRun]], Collection]] = (Collection, Collection),
) -> Match:
    """Compares a configuration with its partner, by common seeds; unpaired if there are none.

    `sides`: functions that collect the metrics of the runs of either side.
    """
    common = tuple(sorted({run.seed for run in before.runs} & {run.seed for run in after.runs}))
    first, second = (
        [run for run in side.runs if not common or run.seed in common] for side in (before, after)
    )
    identical = bool(common) and all(map(_same_trace, first, second))
    candidate = Match(before, after, common, bool(common), identical)
    if identical or candidate.failed:
        return candidate
    passed_over = TAILS - set(metrics)
    first_values, other = (
        _values(measured(of(runs)), len(runs), passed_over)
        for of, runs in zip(sides, (first, second), strict=True)
    )
    repeatable = all(run.manifest.get("repeatable", True) for run in (*first, *second))
    rows = _rows(first_values, other, bool(common), repeatable, matters)
    return replace(
        candidate,
        rows=tuple(row for row in rows if not metrics or row.measure.name in metrics),
        only_before=_only(first_values, other, metrics),
        only_after=_only(other, first_values, metrics),
    )


def _same_trace(before: StoredRun, after: StoredRun) -> bool:
    return before.trace_hash is not None and before.trace_hash == after.trace_hash


def _rows(
    before: Values, after: Values, paired: bool, repeatable: bool, matters: float
) -> list[Row]:
    """Returns a row for each metric that every run of both sides has."""
    sides = (before, after)
    differences: dict[str | None, list[tuple[Measure, Difference]]] = {}
    needed: dict[tuple[str | None, str], int | None] = {}
    for group, measure in _in_order(sides):
        (first, fine), (second, finer) = (side[group, measure.name] for side in sides)
        change = difference(first, second, paired, max(fine, finer), measure.within)
        differences.setdefault(group, []).append((measure, change))
        needed[group, measure.name] = _needed(first, second, paired, matters)
    return [
        replace(row, seeds_needed=needed[group, row.measure.name] if row.is_open else None)
        for group, group_rows in differences.items()
        for row in _corrected(group, group_rows, repeatable, matters)
    ]


def _needed(
    before: Sequence[float], after: Sequence[float], paired: bool, matters: float
) -> int | None:
    """Returns how many seeds would probably detect a change at the threshold."""
    least = matters * abs(float(np.mean(before)))
    if min(len(before), len(after)) < 2 or not least:
        return None
    if paired:
        return sample_size(least, float(np.std(np.subtract(after, before), ddof=1)))
    return sample_size(least, float(np.hypot(np.std(before, ddof=1), np.std(after, ddof=1))))


def _corrected(
    group: str | None,
    differences: Sequence[tuple[Measure, Difference]],
    repeatable: bool,
    matters: float,
) -> Iterable[Row]:
    """Yields the rows of the workload or of one group, corrected for the number of metrics.

    A metric without any difference is not counted: no choice of signs could make it significant
    (Tarone, 1990).
    """
    counting = [
        change.p_value
        for _, change in differences
        if change.p_value is not None and not _same(change)
    ]
    corrected = iter(holm(counting))
    for measure, change in differences:
        p_value = change.p_value if change.p_value is None or _same(change) else next(corrected)
        yield Row(
            measure, group, change, p_value, verdict(measure, change, p_value, repeatable, matters)
        )


Values = dict[tuple[str | None, str], tuple[list[float], float]]
"""By group and metric: the values by seed, and their resolution."""


def _values(table: pl.DataFrame, runs: int, passed_over: frozenset[str]) -> Values:
    """Returns the values of the metrics that all runs have, without the excluded ones."""
    if table.is_empty():
        return {}
    parts = table.sort("seed").partition_by("group", "measure", as_dict=True, maintain_order=True)
    return {
        (group, measure): (part["value"].to_list(), max(part["resolution"]))
        for (group, measure), part in parts.items()
        if len(part) == runs and measure not in passed_over
    }


def _only(values: Values, other: Values, metrics: Sequence[str]) -> tuple[Part, ...]:
    """Returns the metrics that the other side lacks. If the whole workload lacks a metric, its
    groups are not listed.
    """
    lacked = [key for key in values if key not in other and (not metrics or key[1] in metrics)]
    of_all = {measure for group, measure in lacked if group is None}
    groups = {None, *(group for group, _ in other)}
    parts: Iterable[Part] = (
        (group, measure if group in groups else None)
        for group, measure in lacked
        if group is None or group not in groups or measure not in of_all
    )
    return tuple(dict.fromkeys(parts))


def _in_order(sides: Sequence[Values]) -> Iterable[tuple[str | None, Measure]]:
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


def _same(change: Difference) -> bool:
    """True if the values are equal for each seed."""
    return change.before == change.after and change.low == change.high == 0


def verdict(
    measure: Measure,
    change: Difference,
    p_value: float | None,
    repeatable: bool = True,
    matters: float = MATTERS,
) -> Verdict:
    """Returns the verdict. `matters`: the smallest relative change of a mean that matters."""
    if _same(change):
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
        return abs(change.change) < _LEAST_POINTS
    return abs(change.change) < matters * max(abs(change.before.mean), abs(change.after.mean))


# --- JSON


def _estimate_dict(estimate: Any) -> dict[str, Any]:
    return {
        "mean": estimate.mean,
        "low": estimate.low,
        "high": estimate.high,
        "count": estimate.count,
    }


def _match_dict(match: Match) -> dict[str, Any]:
    return {
        "before": dict(zip(DIMENSIONS, key_of(match.before), strict=True)),
        "after": dict(zip(DIMENSIONS, key_of(match.after), strict=True)),
        "seeds": match.seeds,
        "seeds_left_out": match.left_out,
        "paired": match.paired,
        "identical": match.identical,
        "failed": [
            {
                "folder": str(run.folder),
                "status": run.status,
                "message": run.manifest.get("message"),
            }
            for run in match.failed
        ],
        "metrics": [row.to_dict() for row in match.rows],
        "only_before": _parts_dicts(match.only_before),
        "only_after": _parts_dicts(match.only_after),
    }


def _parts_dicts(parts: Iterable[Part]) -> list[dict[str, str | None]]:
    return [{"group": group, "metric": metric} for group, metric in parts]
