# SPDX-License-Identifier: MIT
"""Finds the best setups of a data set: as tables, as values for programs, and as a chart of the front."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
from rich.table import Table

from schedlab.analysis.comparison.best import ParetoFront
from schedlab.base.display.numbers import with_fitting_unit
from schedlab.base.files.replacement import check_file
from schedlab.base.host.addresses import import_chart_library
from schedlab.errors import WrongUsage, format_parameter
from schedlab.report.model import Chart
from schedlab.sweep import listing
from schedlab.sweep.objectives import Objective, parse_objective
from schedlab.sweep.ranking import (
    PolicySettings,
    Values,
    find_front,
    rank_setups,
    read_values,
    setup_title,
)

PICTURE_SUFFIXES = (".svg", ".png")


def parse_objectives(texts: Sequence[str]) -> list[Objective]:
    """Parses objectives. Raises WrongUsage."""
    objectives = [parse_objective(text) for text in dict.fromkeys(texts)]
    columns = [(objective.column, objective.group) for objective in objectives]
    for number, objective in enumerate(objectives):
        if columns.index((objective.column, objective.group)) < number:
            raise WrongUsage(
                "given twice",
                what=format_parameter("best", objective.text),
                fix="give each metric once",
            )
    return objectives


def parse_effects_objective(text: str) -> Objective:
    """Parses the objective of `effects`, which needs no direction. Raises WrongUsage."""
    try:
        return parse_objective(text)
    except WrongUsage:
        return replace(parse_objective(f"min:{text}"), text=text)


def check_chart(path: Path, objectives: Sequence[Objective], loads: bool = False) -> None:
    """Raises WrongUsage, before anything runs, if the chart is impossible; `loads` means load curves."""
    if path.suffix not in PICTURE_SUFFIXES:
        raise WrongUsage(
            "not a picture's name",
            what=format_parameter("chart", path),
            fix=f"use a name that ends in {' or '.join(PICTURE_SUFFIXES)}",
        )
    if len(objectives) != 2 and not loads:
        raise WrongUsage(
            "a frontier needs two metrics",
            what=format_parameter("chart", path),
            fix="add `best=A` `best=B`",
        )
    check_file("chart", path)


def ranking_tables(folder: Path, objectives: Sequence[Objective], top: int) -> Iterator[Table]:
    """Yields, for each scene, the ranking by one metric or the front of several."""
    for values in read_values(folder, objectives):
        if len(objectives) == 1:
            ranking = rank_setups(values, objectives[0])
            table = listing.ranking_table(values, objectives[0], ranking, 1, top)
            yield listing.terminal_table(table, *listing.ranking_notes(values, ranking, top))
        else:
            yield listing.front_table(values, objectives, find_front(values, objectives))


def rankings_as_dicts(folder: Path, objectives: Sequence[Objective]) -> list[dict[str, Any]]:
    """Returns the same for programs, with all setups."""
    values = read_values(folder, objectives)
    if len(objectives) == 1:
        first_objective = objectives[0]
        return [
            listing.ranking_dict(
                objective, first_objective, rank_setups(objective, first_objective)
            )
            for objective in values
        ]
    return [
        listing.front_dict(objective, objectives, find_front(objective, objectives))
        for objective in values
    ]


# --- the chart


def draw_fronts(folder: Path, objectives: Sequence[Objective], path: Path) -> list[Path]:
    """Draws a picture for each scene; names after the first get a number."""
    return write_numbered(
        (
            frontier_chart(values, objectives, find_front(values, objectives))
            for values in read_values(folder, objectives)
        ),
        path,
    )


def write_numbered(charts: Iterable[Chart], place: Path) -> list[Path]:
    """Writes charts; names after the first get a number. Raises WrongUsage for a foreign file."""
    drawn = []
    for number, chart in enumerate(charts, start=1):
        path = place if number == 1 else place.with_name(f"{place.stem}-{number}{place.suffix}")
        check_file("chart", path)
        write_chart(chart, path)
        drawn.append(path)
    return drawn


def write_chart(chart: Chart, path: Path) -> None:
    """Writes a chart in the format of the path's suffix, one of PICTURES."""
    from schedlab.report.specifications import VEGA_LITE, paper_specification

    svg = import_chart_library().vegalite_to_svg(paper_specification(chart), vl_version=VEGA_LITE)
    if path.suffix == ".svg":
        path.write_text(svg)
    else:
        path.write_bytes(import_chart_library().svg_to_png(svg, scale=2))


def frontier_chart(
    values: Values, objectives: Sequence[Objective], answer: ParetoFront[PolicySettings]
) -> Chart:
    """Draws the front of two objectives. Raises WrongUsage if no setup has both metrics."""
    from schedlab.report.charts.frontier import frontier

    if not answer.estimates:
        raise WrongUsage(
            f"no configuration of {listing.scene_title(values)} has both metrics, "
            f"{' and '.join(objective.text for objective in objectives)}",
            what="`chart=`",
            fix="name two metrics of one workload; `./schedlab sweep FOLDER` lists them",
        )
    largest = [
        max(estimate[place].mean for estimate in answer.estimates.values()) for place in (0, 1)
    ]
    shown = [
        with_fitting_unit(objective.quantity, largest_value)
        for objective, largest_value in zip(objectives, largest, strict=True)
    ]
    rows = []
    for setup, estimate_pair in answer.estimates.items():
        row: dict[str, Any] = {
            "setup": setup_title(setup),
            "policy": setup[0],
            "place": answer.members.index(setup) + 1 if setup in answer.members else None,
        }
        for axis, value, quantity in zip("xy", estimate_pair, shown, strict=True):
            row[axis] = value.mean * quantity.factor
            row[f"{axis}_low"] = value.low * quantity.factor
            row[f"{axis}_high"] = value.high * quantity.factor
        rows.append(row)
    titles = [
        f"{objective.title} ({quantity.unit})" if quantity.unit else objective.title
        for objective, quantity in zip(objectives, shown, strict=True)
    ]
    return frontier(
        "frontier",
        pl.DataFrame(rows, schema_overrides={"place": pl.Int64}, infer_schema_length=None),
        title=f"{objectives[0].title} against {objectives[1].title}",
        caption=f"{listing.scene_title(values)}; {len(values.seeds)} seeds.",
        x_title=titles[0],
        y_title=titles[1],
    )
