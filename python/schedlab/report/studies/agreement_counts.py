# SPDX-License-Identifier: MIT
"""Counts how many published figures of a study agree with the measured ones, table by table."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import polars as pl

from schedlab.report.model import Cell, Column, Section, Table, Text
from schedlab.report.study_tables import FigureComparison
from schedlab.studies.agreement import (
    CLOSE_FRACTION,
    NEARNESS_RULE,
    is_close,
    is_near,
    is_near_by_tick,
)
from schedlab.studies.figures import Figure

SECTION_TITLE = "How much agrees"
_COLUMN_TITLES = (
    "published",
    "calibrated",
    "compared",
    "near",
    f"within {CLOSE_FRACTION:.0%}".replace("%", " %"),
    "near only by the tick",
    "compared, study costs",
    "near, study costs",
)


class TableCount(NamedTuple):
    """The number of agreeing figures of a table, in the order of its columns."""

    place: str
    published: int
    calibrated: int
    compared: int
    near: int
    """Figures that agree by the rule for their kind (docs/studies.md)."""
    close: int
    """Figures that differ by at most `CLOSE_FRACTION`."""
    near_by_tick: int
    """Near figures that are near only because a tick is allowed."""
    compared_on_costs: int
    near_on_costs: int


def count_agreement(
    figures: Iterable[Figure], comparisons: Iterable[FigureComparison]
) -> list[TableCount]:
    """Returns the counts of each table with measurements, then the total.

    A figure that was compared several times counts by its first comparison.
    """
    by_figure: dict[Figure, FigureComparison] = {}
    for comparison in comparisons:
        if comparison.published is not None:
            by_figure.setdefault(comparison.published, comparison)
    places: dict[str, list[Figure]] = {}
    for figure in figures:
        if figure.kind == "measurement" and figure.source != "rerun" and figure.is_number:
            places.setdefault(figure.place, []).append(figure)
    counts = [_count_table(place, figures, by_figure) for place, figures in places.items()]
    if not counts:
        return []
    return [
        *counts,
        TableCount("all", *map(sum, zip(*(count[1:] for count in counts), strict=True))),
    ]


def _count_table(
    place: str, figures: Sequence[Figure], by_figure: dict[Figure, FigureComparison]
) -> TableCount:
    """Counts how many published figures of a table are near the measured ones.

    `by_figure`: the comparison of each figure.
    """
    compared_pairs = [(figure, by_figure[figure]) for figure in figures if figure in by_figure]
    compared = [(figure, result) for figure, result in compared_pairs if result.is_counted]
    measured = [
        (f, comparison.measured.mean)
        for f, comparison in compared
        if comparison.measured and comparison.measured.mean is not None
    ]
    costs = [
        (f, comparison.study_costs.mean)
        for f, comparison in compared
        if comparison.study_costs and comparison.study_costs.mean is not None
    ]
    return TableCount(
        place,
        len(figures),
        len(compared_pairs) - len(compared),
        len(measured),
        sum(is_near(*pair) for pair in measured),
        sum(is_close(*pair) for pair in measured),
        sum(is_near_by_tick(*pair) for pair in measured),
        len(costs),
        sum(is_near(*pair) for pair in costs),
    )


def headline_text(counts: Sequence[TableCount]) -> str:
    """Returns a sentence for the top of a page, or "" if no figure was compared."""
    if not counts or not counts[-1].compared:
        return ""
    total = counts[-1]
    costs = (
        f"; with the study's costs, {total.near_on_costs} of {total.compared_on_costs}"
        if total.compared_on_costs
        else ""
    )
    return f"Of {total.compared} published figures compared, {total.near} have a measured value near them{costs}."


def agreement_section(study: int, counts: Sequence[TableCount]) -> Section | None:
    """Returns the section with the rule and the table, or None if no figure was compared."""
    if not headline_text(counts):
        return None
    rows = [(Cell(count.place), *(Cell(str(number)) for number in count[1:])) for count in counts]
    count_data = pl.DataFrame(
        counts,
        schema={"place": pl.String, **dict.fromkeys(_COLUMN_TITLES, pl.Int64)},
        orient="row",
    )
    table = Table(
        f"study-{study}-agreement",
        "Published figures with a measured value near them",
        (Column("place", align="left"), *map(Column, _COLUMN_TITLES)),
        tuple(rows),
        count_data,
        """Calibrated: figures from which a constant was derived, or that do not depend on the scheduler. The counts
        to the right exclude them. A published figure that is not compared was not run, or schedlab does not measure
        it.""",
        keys=1,
    )
    return Section(SECTION_TITLE, (Text(NEARNESS_RULE), table))
