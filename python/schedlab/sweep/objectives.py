# SPDX-License-Identifier: MIT
"""Parses objectives of rankings: `turnaround`, `turnaround@inter`, `min:migrations`."""

import re
from dataclasses import dataclass

import polars as pl

from schedlab.analysis.comparison.measures import (
    GROUP_MEASURES,
    MEASURES,
    Measure,
    make_measure,
)
from schedlab.analysis.comparison.statistics import ValueRange
from schedlab.base.display.numbers import Quantity
from schedlab.base.toolchain.policies import describe_unknown_name
from schedlab.errors import WrongUsage, format_parameter
from schedlab.metrics.registry import BY_COLUMN, Better, Grain
from schedlab.sweep.columns import GROUP_METRICS, METRICS, Column

_OBJECTIVE = re.compile(r"(?:(min|max):)?([A-Za-z0-9_-]+)(?:@(.{1,8}))?")


@dataclass(frozen=True)
class Objective:
    """A metric of a run or of a group, and its direction."""

    text: str
    """The objective as the user wrote it."""
    title: str
    column: str
    group: str | None
    better: Better
    quantity: Quantity
    grain: Grain
    within: ValueRange
    covers_only_ended: bool
    """True for metrics of ended processes: a run with unfinished processes has no value."""

    def value(self) -> pl.Expr:
        """Returns the expression for a table of runs or groups."""
        value = pl.col(self.column).cast(pl.Float64).fill_nan(None)
        if self.column == "share_error_points":
            value = value.abs()
        if self.covers_only_ended:
            return pl.when(pl.col("finished") == pl.col("processes")).then(value)
        return value


def parse_objective(text: str) -> Objective:
    """Parses an objective. Raises WrongUsage with the available metrics."""
    match = _OBJECTIVE.fullmatch(text.strip())
    if not match:
        raise WrongUsage(
            "not a metric",
            what=format_parameter("best", text),
            fix="write turnaround, turnaround@GROUP or min:migrations, for example",
        )
    direction, name, group = match.groups()
    measure = _find_measure(text, name, group is not None)
    better: Better | None = {"min": "lower", "max": "higher", None: measure.better}[direction]
    if better is None:
        raise WrongUsage(
            "this metric has no better direction",
            what=format_parameter("best", text),
            fix=f"write min:{name} or max:{name}",
        )
    title = measure.title if group is None else f"{measure.title}, {group}"
    ended = measure.column in BY_COLUMN and BY_COLUMN[measure.column].covers_only_ended
    kind = (measure.quantity, measure.grain, measure.within)
    return Objective(text, title, measure.column, group, better, *kind, ended)


def _find_measure(text: str, name: str, of_groups: bool) -> Measure:
    """Returns the measure of a name or of a data set's column."""
    measures = GROUP_MEASURES if of_groups else MEASURES
    columns = _numeric_columns(of_groups)
    for measure in measures:
        if name in (measure.name, measure.column):
            if measure.column not in columns:
                raise WrongUsage(
                    "a sweep does not store this metric for groups",
                    what=format_parameter("best", text),
                    fix="leave out @GROUP, or choose another metric",
                )
            return measure
    if name not in columns:
        names = [*(measure.name for measure in measures), *columns]
        raise WrongUsage(
            describe_unknown_name("metric", name, names), what=format_parameter("best", text)
        )
    return make_measure(name, name, name, BY_COLUMN[name].better if name in BY_COLUMN else None, "")


def _numeric_columns(of_groups: bool) -> list[str]:
    columns: tuple[Column, ...] = GROUP_METRICS if of_groups else METRICS
    return [column.name for column in columns if column.dtype.is_numeric()]
