# SPDX-License-Identifier: MIT
"""Explains a metric's variance in a sweep by dimensions, alone and in pairs.

Uses the analysis of variance (Fisher 1925). A dimension's main effect is the sum of squares between
the means of its values. The interaction of two dimensions is what their cells explain beyond both
main effects. In a full grid, these parts and those of higher orders and seeds add up to the total.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import polars as pl

from schedlab.errors import WrongUsage, format_parameter
from schedlab.sweep import dataset
from schedlab.sweep.columns import CHANGE_PREFIX, TUNABLE_PREFIX
from schedlab.sweep.objectives import Objective
from schedlab.sweep.ranking import values_by_key

_DIMENSIONS = ("workload", "policy", "machine", "costs", "shape", "cpus", "tick_ns", "seed")
_VALUE = "value"
_LEVELS_MAX = 20
"""More distinct numbers, as in samples, are grouped into ranges; otherwise each run would be a group."""
_RANGE_COUNT = 8
UNSET = "–"
"""Shown for a missing value, such as a tunable of another policy."""


@dataclass(frozen=True)
class Level:
    """A value of a dimension, and the mean of its runs."""

    value: str
    mean: float
    runs: int


@dataclass(frozen=True)
class Effect:
    """The effect of a dimension, or the interaction of two, on a metric."""

    dimensions: tuple[str, ...]
    part: float
    """Fraction (0 to 1) of the variance over all runs."""
    levels: tuple[Level, ...] = ()
    """Values of a single dimension, sorted by mean."""


@dataclass(frozen=True)
class Effects:
    """All effects on one metric."""

    runs: int
    left_out: int
    """Runs that failed or lack the value."""
    is_grid: bool
    """True if each pair of values has the same number of runs; otherwise parts overlap and must not be added."""
    main: tuple[Effect, ...]
    """The largest first."""
    pairs: tuple[Effect, ...]
    """The largest first."""

    def to_dict(self) -> dict[str, Any]:
        """Returns values for JSON."""
        return {
            "runs": self.runs,
            "left_out": self.left_out,
            "is_grid": self.is_grid,
            "main": [
                {
                    "dimension": effect.dimensions[0],
                    "part": effect.part,
                    "levels": [vars(level) for level in effect.levels],
                }
                for effect in self.main
            ],
            "pairs": [
                {"dimensions": effect.dimensions, "part": effect.part} for effect in self.pairs
            ],
        }


def compute_effects(folder: Path, objective: Objective) -> Effects:
    """Computes the effects in a data set.

    Raises WrongUsage if runs do not differ in a dimension or in the metric.
    """
    table = read_dimensions_and_values(folder, objective)
    rows_with_value = table.filter(pl.col(_VALUE).is_not_null())
    dimensions = [
        name
        for name in rows_with_value.columns
        if name != _VALUE and rows_with_value[name].n_unique() > 1
    ]
    total = _sum_of_squares(rows_with_value, [])
    if not dimensions or not total:
        raise WrongUsage(
            f"the runs in {folder} all have the same "
            f"{'value' if dimensions else 'configuration'}, so there are no effects; sweep more values",
            what=format_parameter("effects", objective.text),
        )
    main_variances = {name: total - _sum_of_squares(rows_with_value, [name]) for name in dimensions}
    pair_variances = {
        (one, other): total
        - _sum_of_squares(rows_with_value, [one, other])
        - main_variances[one]
        - main_variances[other]
        for one, other in combinations(dimensions, 2)
    }
    main = [
        Effect((name,), _fraction(variance, total), _levels(rows_with_value, name))
        for name, variance in main_variances.items()
    ]
    pairs = [
        Effect(names, _fraction(variance, total)) for names, variance in pair_variances.items()
    ]
    return Effects(
        len(rows_with_value),
        len(table) - len(rows_with_value),
        all(
            _is_even(rows_with_value, names)
            for names in (*pair_variances, *((name,) for name in main_variances))
        ),
        tuple(sorted(main, key=lambda effect: -effect.part)),
        tuple(sorted(pairs, key=lambda effect: -effect.part)),
    )


def read_dimensions_and_values(folder: Path, objective: Objective) -> pl.DataFrame:
    """Returns a row for each run: its dimensions as texts, and `value`, which may be null."""
    runs = dataset.read_runs(folder)
    dimensions = [name for name in runs.columns if name.startswith((TUNABLE_PREFIX, CHANGE_PREFIX))]
    names = [name for name in _DIMENSIONS if name in runs.columns] + dimensions
    values = values_by_key(folder, runs, objective, _VALUE)
    succeeded = pl.col("status") == "success"
    table = (
        runs.join(values, on="key", how="left")
        .with_columns(pl.when(succeeded).then(pl.col(_VALUE)))
        .select(*(pl.col(name).cast(pl.String).fill_null(UNSET) for name in names), _VALUE)
        .rename(
            {
                name: name.removeprefix(TUNABLE_PREFIX).removeprefix(CHANGE_PREFIX)
                for name in dimensions
            }
        )
    )
    return table.with_columns(
        _group_into_ranges(table[name]) for name in table.columns if name != _VALUE
    )


def _group_into_ranges(values: pl.Series) -> pl.Series:
    """Returns the values; many distinct numbers become ranges with similar counts, such as `60..119`."""
    numbers = values.unique().replace(UNSET, None).drop_nulls().cast(pl.Float64, strict=False)
    if len(numbers) <= _LEVELS_MAX or numbers.null_count():
        return values
    sorted_numbers = numbers.sort()
    edges = [round(index * len(sorted_numbers) / _RANGE_COUNT) for index in range(_RANGE_COUNT + 1)]
    range_names = {
        f"{value:g}": f"{sorted_numbers[first]:g}..{sorted_numbers[last - 1]:g}"
        for first, last in pairwise(edges)
        for value in sorted_numbers[first:last].to_list()
    }
    range_by_value = {
        value: range_names[f"{float(value):g}"]
        for value in values.unique().to_list()
        if value != UNSET
    }
    renamed: pl.Series = values.replace(range_by_value)
    return renamed


def sort_values(values: Iterable[str]) -> list[str]:
    """Sorts numbers and ranges by size, followed by texts."""

    def sort_key(text: str) -> tuple[bool, float, str]:
        """Returns the sort key of a value: numbers and ranges by size, then texts."""
        try:
            return False, float(text.partition("..")[0]), text
        except ValueError:
            return True, 0.0, text

    return sorted(set(values), key=sort_key)


def mean_cells(folder: Path, objective: Objective, pair: tuple[str, str]) -> pl.DataFrame:
    """Returns the mean of the metric for each pair of two dimensions' values: x, y, value, runs.

    Runs that lack a dimension, such as runs of other policies, are omitted. Raises WrongUsage.
    """
    table = read_dimensions_and_values(folder, objective)
    for name in pair:
        if name not in table.columns or name == _VALUE:
            columns = ", ".join(
                column
                for column in table.columns
                if table[column].n_unique() > 1 and column != _VALUE
            )
            raise WrongUsage(
                f"unknown dimension {name}",
                what=format_parameter("map", ",".join(pair)),
                fix=f"choose from {columns}",
            )
    complete_rows = table.filter(
        pl.col(_VALUE).is_not_null() & pl.all_horizontal(pl.col(column) != UNSET for column in pair)
    )
    if complete_rows.is_empty():
        raise WrongUsage(
            f"no run has values of {pair[0]}, of {pair[1]} and of {objective.title}",
            what=format_parameter("map", ",".join(pair)),
            fix="choose dimensions that vary in the same runs, or another metric",
        )
    return (
        complete_rows.group_by(x=pl.col(pair[0]), y=pl.col(pair[1]))
        .agg(value=pl.col(_VALUE).mean(), runs=pl.len())
        .sort("x", "y")
    )


def _sum_of_squares(table: pl.DataFrame, by: list[str]) -> float:
    """Returns the sum of squares around the mean, or around the means of groups."""
    mean = pl.col(_VALUE).mean()
    deviation = pl.col(_VALUE) - (mean.over(by) if by else mean)
    return float(table.select((deviation**2).sum()).item())


def _fraction(variance: float, total: float) -> float:
    """Returns the fraction of the total; 0 if the total is 0."""
    return min(max(variance / total, 0.0), 1.0)


def _levels(table: pl.DataFrame, name: str) -> tuple[Level, ...]:
    """Returns the values of a dimension with their means, sorted by mean."""
    levels = table.group_by(name).agg(pl.col(_VALUE).mean(), pl.len().alias("runs"))
    return tuple(Level(*row) for row in levels.sort(_VALUE, name).iter_rows())


def _is_even(table: pl.DataFrame, names: Sequence[str]) -> bool:
    """Returns whether all combinations of these dimensions' values have the same number of runs."""
    cells = table.group_by(names).len()["len"]
    expected = 1
    for name in names:
        expected *= table[name].n_unique()
    return len(cells) == expected and cells.n_unique() == 1
