# SPDX-License-Identifier: MIT
"""By what setups are ranked: `turnaround`, `turnaround@inter`, `min:migrations`."""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from schedlab.comparison.measures import BY_NAME, GROUP_MEASURES, OF_ENDED, POSITIVE, Grain, Measure
from schedlab.comparison.statistics import (
    ANYWHERE,
    NUMBER,
    PER_SECOND,
    POINTS,
    SHARE,
    TIME,
    Better,
    Quantity,
    Within,
)
from schedlab.errors import WrongUsage
from schedlab.sweep.columns import GROUP_METRICS, METRICS, Column
from schedlab.toolchain.policies import unknown

_TEXT = re.compile(r"(?:(min|max):)?([A-Za-z0-9_-]+)(?:@(.{1,8}))?")
_WHOLE_COLUMNS = {"share_error": "share_error_max_points"}
_GROUP_COLUMNS = {"share_error": "share_error_points"}
"""The columns of measures that a data set calls something else."""
_BETTER_LOWER = ("turnaround_", "response_", "waiting_", "wakeup_latency_")
"""Beginnings of columns in which less is better, whichever statistic they are."""
_OF_ENDED = ("turnaround_", "fairness_turnaround")
_QUANTITIES = {
    "_ns": TIME, "_share": SHARE, "share": SHARE, "_points": POINTS, "_per_second": PER_SECOND,
}  # fmt: skip


@dataclass(frozen=True)
class Objective:
    """A metric of a run as a whole or of a group, and what is better."""

    text: str
    """As it was named."""
    title: str
    column: str
    group: str | None
    better: Better
    quantity: Quantity
    grain: Grain
    within: Within
    of_ended: bool
    """It is over processes that ended: where some go on, a run has no value."""

    def value(self) -> pl.Expr:
        """Of a table of runs, or of the group's rows."""
        value = pl.col(self.column).cast(pl.Float64).fill_nan(None)
        if self.column == "share_error_points":
            value = value.abs()
        if self.of_ended:
            return pl.when(pl.col("finished") == pl.col("processes")).then(value)
        return value


def parse(text: str) -> Objective:
    """Raises WrongUsage, which names what there is."""
    match = _TEXT.fullmatch(text.strip())
    if not match:
        raise WrongUsage(
            f"--best {text}: expected a metric, such as turnaround, turnaround@GROUP or min:migrations"
        )
    way, name, group = match.groups()
    measure = _measures(group is not None).get(name)
    found = _of_measure(text, measure, group) if measure else _of_column(text, name, group)
    better: Better | None = {"min": "lower", "max": "higher"}.get(way) if way else found[0]  # type: ignore[assignment]
    if better is None:
        raise WrongUsage(
            f"--best {text}: more of it is neither good nor bad in itself: say min:{name} or max:{name}"
        )
    _, title, column, quantity, grain, within = found
    if group is not None:
        title = f"{title}, {group}"
    ended = name in OF_ENDED or column.startswith(_OF_ENDED)
    return Objective(text, title, column, group, better, quantity, grain, within, ended)


_Found = tuple["Better | None", str, str, Quantity, Grain, Within]


def _measures(of_groups: bool) -> dict[str, Measure]:
    return {each.name: each for each in GROUP_MEASURES} if of_groups else BY_NAME


def _of_measure(text: str, measure: Measure, group: str | None) -> _Found:
    renamed = _GROUP_COLUMNS if group is not None else _WHOLE_COLUMNS
    column = renamed.get(measure.column, measure.column)
    if column not in _names(group is not None):
        raise WrongUsage(f"--best {text}: a sweep's data set does not have it for groups")
    return measure.better, measure.title, column, measure.quantity, measure.grain, measure.within


def _of_column(text: str, name: str, group: str | None) -> _Found:
    of_groups = group is not None
    if name not in _names(of_groups):
        known = [*_measures(of_groups), *_names(of_groups)]
        raise WrongUsage(f"--best {text}: {unknown('metric', name, known)}")
    for measure in _measures(of_groups).values():
        if measure.column == name:
            return _of_measure(text, measure, group)
    better: Better | None = "lower" if name.startswith(_BETTER_LOWER) else None
    ends = [end for end in _QUANTITIES if name.endswith(end)]
    quantity = _QUANTITIES[ends[0]] if ends else NUMBER
    within = POSITIVE if quantity is TIME else ANYWHERE
    return better, name, name, quantity, "none", within


def _names(of_groups: bool) -> list[str]:
    """Of columns that are numbers."""
    of: tuple[Column, ...] = GROUP_METRICS if of_groups else METRICS
    return [column.name for column in of if column.dtype.is_numeric()]
