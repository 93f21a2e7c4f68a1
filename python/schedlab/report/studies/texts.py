# SPDX-License-Identifier: MIT
"""What the studies' pages say in words: sentences whose numbers come from runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import polars as pl

from schedlab.analysis.comparison.statistics import ANYWHERE, difference
from schedlab.base.display.numbers import NOTHING
from schedlab.machines.folder import TRACE_FILE
from schedlab.report.study_tables import Measured, Numbers
from schedlab.runs.collection import Collection, Kept, Repeated
from schedlab.trace import Trace


def of_rows(collection: Collection, rows: pl.DataFrame, value: pl.Expr) -> Numbers:
    """What an expression comes to over the rows of each run; no number where it is null."""
    if rows.is_empty() or not set(value.meta.root_names()) <= set(rows.columns):
        return {}
    found = rows.group_by("run", maintain_order=True).agg(value.alias("value")).drop_nulls()
    return {collection.runs[number].folder: float(each) for number, each in found.rows()}


def combined(first: Measured, second: Measured, make: Callable[[float, float], float]) -> Measured:
    """Seed by seed. What is missing of either is missing."""
    for each in (first, second):
        if each.mean is None:
            return each
    if len(first.values) != len(second.values):
        return Measured((), NOTHING, "The two were run with different numbers of seeds.")
    pairs = zip(first.values, second.values, strict=True)
    return Measured(tuple(make(*pair) for pair in pairs), within=ANYWHERE)


def traces(repeated: Repeated | None, most: int | None = None) -> list[tuple[Kept, Trace]]:
    """The traces of the setup's runs, or the first of them, if all succeeded and kept their traces."""
    if repeated is None or repeated.failed:
        return []
    if not all((run.folder / TRACE_FILE).is_file() for run in repeated.runs):
        return []
    return [(run, run.trace()) for run in repeated.runs[:most]]


def number(value: object) -> float:
    """What a column's sum, mean or maximum came to; 0 for a column without values."""
    return float(value) if isinstance(value, int | float) else 0.0


def in_order(values: Mapping[str, Measured], falling: bool, paired: bool = True) -> str:
    """`A > B ≈ C`: by their means, and ≈ where the difference may be chance. All have means.

    `paired`: seed by seed, since a seed does the same to all.
    """
    means = {name: each.mean or 0.0 for name, each in values.items()}
    names = sorted(means, key=lambda name: means[name], reverse=falling)
    told = names[0]
    for one, other in pairwise(names):
        sign = " > " if falling else " < "
        told += f"{sign if _apart(values[one], values[other], paired) else ' ≈ '}{other}"
    return told


def _apart(one: Measured, other: Measured, paired: bool) -> bool:
    """Is their difference more than chance? One run each cannot tell."""
    if paired and len(one.values) != len(other.values):
        return False
    change = difference(one.values, other.values, paired)
    return change.low > 0 or change.high < 0
