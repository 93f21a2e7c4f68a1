# SPDX-License-Identifier: MIT
"""Draws heat maps of a metric over two dimensions of a sweep."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from schedlab.base.display.names import slug
from schedlab.base.display.numbers import fitting
from schedlab.base.files.replacement import check_file
from schedlab.errors import WrongUsage, parameter
from schedlab.report.model import Chart
from schedlab.sweep.best import write_chart
from schedlab.sweep.effects import Effects, cells, in_order
from schedlab.sweep.objectives import Objective

MAPS = 3
"""Default number of pairs: the strongest interactions."""

Pair = tuple[str, str]


def pair_of(text: str) -> Pair:
    """Parses the dimensions of an option. Raises WrongUsage."""
    names = [part.strip() for part in text.split(",")]
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise WrongUsage(
            "not two dimensions of the sweep",
            what=parameter("map", text),
            fix="write slice_3,boost, for example",
        )
    return names[0], names[1]


def pairs_of(effects: Effects) -> list[Pair]:
    """Returns the pairs of dimensions with the strongest interactions, without seeds."""
    named = [pair.dimensions for pair in effects.pairs if "seed" not in pair.dimensions]
    return [(names[0], names[1]) for names in named[:MAPS]]


def heat_map(folder: Path, objective: Objective, pair: Pair) -> Chart:
    """Draws the mean over all other dimensions. Raises WrongUsage."""
    from schedlab.report.charts import heat

    data = cells(folder, objective, pair)
    largest = max(abs(float(value)) for value in data["value"].to_list())
    quantity = fitting(objective.quantity, largest)
    data = data.with_columns(value=data["value"] * quantity.factor)
    x, y = ("CPUs" if name == "cpus" else name for name in pair)
    return heat(
        f"map-{slug(objective.text)}-{slug(pair[0])}-{slug(pair[1])}",
        data,
        title=f"{objective.title} by {x} and {y}",
        caption="Means over the other dimensions.",
        x_title=x,
        y_title=y,
        value_title=f"{objective.title} ({quantity.unit})" if quantity.unit else objective.title,
        x_order=in_order(data["x"].to_list()),
        y_order=in_order(data["y"].to_list()),
    )


def draw(
    folder: Path, objective: Objective, effects: Effects, place: Path, named: Pair | None
) -> Iterator[Path]:
    """Draws a picture for each pair; names after the first get a number."""
    pairs = [named] if named else pairs_of(effects)
    if not pairs:
        raise WrongUsage(
            "a heat map needs two dimensions, and only one varies",
            what=parameter("chart", place),
            fix="leave it out",
        )
    for number, pair in enumerate(pairs, start=1):
        path = place if number == 1 else place.with_name(f"{place.stem}-{number}{place.suffix}")
        check_file("chart", path)
        write_chart(heat_map(folder, objective, pair), path)
        yield path
