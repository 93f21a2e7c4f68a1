# SPDX-License-Identifier: MIT
"""Explains a metric's variance in a sweep by dimensions, alone and in pairs.

Uses the analysis of variance (Fisher 1925). A dimension's main effect is the sum of squares between
the means of its values. The interaction of two dimensions is what their cells explain beyond both
main effects. In a full grid, these parts and those of higher orders and seeds add up to the total.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import polars as pl

from schedlab.errors import WrongUsage, parameter
from schedlab.sweep import dataset
from schedlab.sweep.columns import CHANGE, TUNABLE
from schedlab.sweep.objectives import Objective
from schedlab.sweep.ranking import values_by_key

_DIMENSIONS = ("workload", "policy", "machine", "costs", "shape", "cpus", "tick_ns", "seed")
_VALUE = "value"
_LEVELS_MOST = 20
"""More distinct numbers, as in samples, are grouped into ranges; otherwise each run would be a group."""
_RANGES = 8
UNSET = "–"
"""Shown for a missing value, such as a tunable of another policy."""


@dataclass(frozen=True)
class Level:
    """A value of a dimension."""

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


def effects(folder: Path, objective: Objective) -> Effects:
    """Computes the effects in a data set.

    Raises WrongUsage if runs do not differ in a dimension or in the metric.
    """
    table = read(folder, objective)
    known = table.filter(pl.col(_VALUE).is_not_null())
    dimensions = [name for name in known.columns if name != _VALUE and known[name].n_unique() > 1]
    total = _squares(known, [])
    if not dimensions or not total:
        raise WrongUsage(
            f"the runs in {folder} all have the same "
            f"{'value' if dimensions else 'configuration'}, so there are no effects; sweep more values",
            what=parameter("effects", objective.text),
        )
    alone = {name: total - _squares(known, [name]) for name in dimensions}
    together = {
        (one, other): total - _squares(known, [one, other]) - alone[one] - alone[other]
        for one, other in combinations(dimensions, 2)
    }
    main = [
        Effect((name,), _part(variance, total), _levels(known, name))
        for name, variance in alone.items()
    ]
    pairs = [Effect(names, _part(variance, total)) for names, variance in together.items()]
    return Effects(
        len(known),
        len(table) - len(known),
        all(_is_even(known, names) for names in (*together, *((name,) for name in alone))),
        tuple(sorted(main, key=lambda effect: -effect.part)),
        tuple(sorted(pairs, key=lambda effect: -effect.part)),
    )


def read(folder: Path, objective: Objective) -> pl.DataFrame:
    """Returns a row for each run: its dimensions as texts, and `value`, which may be null."""
    runs = dataset.read_table(folder, dataset.RUNS)
    if runs.is_empty():
        raise WrongUsage(f"{folder}: no run has finished yet; continue the sweep first")
    dimensions = [name for name in runs.columns if name.startswith((TUNABLE, CHANGE))]
    names = [name for name in _DIMENSIONS if name in runs.columns] + dimensions
    values = values_by_key(folder, runs, objective, _VALUE)
    succeeded = pl.col("status") == "success"
    table = (
        runs.join(values, on="key", how="left")
        .with_columns(pl.when(succeeded).then(pl.col(_VALUE)))
        .select(*(pl.col(name).cast(pl.String).fill_null(UNSET) for name in names), _VALUE)
        .rename({name: name.removeprefix(TUNABLE).removeprefix(CHANGE) for name in dimensions})
    )
    return table.with_columns(_in_ranges(table[name]) for name in table.columns if name != _VALUE)


def _in_ranges(values: pl.Series) -> pl.Series:
    """Returns the values; many distinct numbers become ranges with similar counts, such as `60..119`."""
    numbers = values.unique().replace(UNSET, None).drop_nulls().cast(pl.Float64, strict=False)
    if len(numbers) <= _LEVELS_MOST or numbers.null_count():
        return values
    inner = numbers.sort()
    edges = [round(place * len(inner) / _RANGES) for place in range(_RANGES + 1)]
    words = {
        f"{value:g}": f"{inner[first]:g}..{inner[last - 1]:g}"
        for first, last in pairwise(edges)
        for value in inner[first:last].to_list()
    }
    known = {
        value: words[f"{float(value):g}"] for value in values.unique().to_list() if value != UNSET
    }
    renamed: pl.Series = values.replace(known)
    return renamed


def in_order(values: Iterable[str]) -> list[str]:
    """Sorts numbers and ranges by size, followed by texts."""

    def place(text: str) -> tuple[bool, float, str]:
        try:
            return False, float(text.partition("..")[0]), text
        except ValueError:
            return True, 0.0, text

    return sorted(set(values), key=place)


def cells(folder: Path, objective: Objective, pair: tuple[str, str]) -> pl.DataFrame:
    """Returns the mean of the metric for each pair of two dimensions' values: x, y, value, runs.

    Runs that lack a dimension, such as runs of other policies, are omitted. Raises WrongUsage.
    """
    table = read(folder, objective)
    for name in pair:
        if name not in table.columns or name == _VALUE:
            columns = ", ".join(
                column
                for column in table.columns
                if table[column].n_unique() > 1 and column != _VALUE
            )
            raise WrongUsage(
                f"unknown dimension {name}",
                what=parameter("map", ",".join(pair)),
                fix=f"choose from {columns}",
            )
    known = table.filter(
        pl.col(_VALUE).is_not_null() & pl.all_horizontal(pl.col(column) != UNSET for column in pair)
    )
    if known.is_empty():
        raise WrongUsage(
            "no run has values of both dimensions and of the metric",
            what=parameter("map", ",".join(pair)),
            fix="choose another pair",
        )
    return (
        known.group_by(x=pl.col(pair[0]), y=pl.col(pair[1]))
        .agg(value=pl.col(_VALUE).mean(), runs=pl.len())
        .sort("x", "y")
    )


def _squares(table: pl.DataFrame, by: list[str]) -> float:
    """Returns the sum of squares around the mean, or around the means of groups."""
    mean = pl.col(_VALUE).mean()
    off = pl.col(_VALUE) - (mean.over(by) if by else mean)
    return float(table.select((off**2).sum()).item())


def _part(variance: float, total: float) -> float:
    return min(max(variance / total, 0.0), 1.0)


def _levels(table: pl.DataFrame, name: str) -> tuple[Level, ...]:
    levels = table.group_by(name).agg(pl.col(_VALUE).mean(), pl.len().alias("runs"))
    return tuple(Level(*row) for row in levels.sort(_VALUE, name).iter_rows())


def _is_even(table: pl.DataFrame, names: Sequence[str]) -> bool:
    cells = table.group_by(names).len()["len"]
    expected = 1
    for name in names:
        expected *= table[name].n_unique()
    return len(cells) == expected and cells.n_unique() == 1
