# SPDX-License-Identifier: MIT
"""Draws heat maps of a metric over two dimensions of a sweep."""

from __future__ import annotations

from pathlib import Path

from schedlab.base.display.names import slug
from schedlab.base.display.numbers import with_fitting_unit
from schedlab.errors import WrongUsage, format_parameter
from schedlab.report.model import Chart
from schedlab.sweep.best import write_numbered
from schedlab.sweep.effects import Effects, mean_cells, sort_values
from schedlab.sweep.objectives import Objective

DEFAULT_MAPS = 3
"""Default number of pairs: the strongest interactions."""

Pair = tuple[str, str]


def parse_pair(text: str) -> Pair:
    """Parses the dimensions of an option. Raises WrongUsage."""
    names = [part.strip() for part in text.split(",")]
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise WrongUsage(
            "not two dimensions of the sweep",
            what=format_parameter("map", text),
            fix="write slice_3,boost, for example",
        )
    return names[0], names[1]


def strongest_pairs(effects: Effects) -> list[Pair]:
    """Returns the pairs of dimensions with the strongest interactions, without seeds."""
    chosen_pair = [pair.dimensions for pair in effects.pairs if "seed" not in pair.dimensions]
    return [(names[0], names[1]) for names in chosen_pair[:DEFAULT_MAPS]]


def heat_map(folder: Path, objective: Objective, pair: Pair) -> Chart:
    """Draws the mean over all other dimensions. Raises WrongUsage."""
    from schedlab.report.charts import heat

    cells = mean_cells(folder, objective, pair)
    largest = max(abs(float(value)) for value in cells["value"].to_list())
    quantity = with_fitting_unit(objective.quantity, largest)
    cells = cells.with_columns(value=cells["value"] * quantity.factor)
    x, y = ("CPUs" if name == "cpus" else name for name in pair)
    return heat(
        f"map-{slug(objective.text)}-{slug(pair[0])}-{slug(pair[1])}",
        cells,
        title=f"{objective.title} by {x} and {y}",
        caption="Means over the other dimensions.",
        x_title=x,
        y_title=y,
        value_title=f"{objective.title} ({quantity.unit})" if quantity.unit else objective.title,
        x_order=sort_values(cells["x"].to_list()),
        y_order=sort_values(cells["y"].to_list()),
    )


def draw_heat_maps(
    folder: Path, objective: Objective, effects: Effects, path: Path, chosen_pair: Pair | None
) -> list[Path]:
    """Draws a picture for each pair; names after the first get a number."""
    pairs = [chosen_pair] if chosen_pair else strongest_pairs(effects)
    if not pairs:
        raise WrongUsage(
            "a heat map needs two dimensions, and only one varies",
            what=format_parameter("chart", path),
            fix="leave it out",
        )
    return write_numbered((heat_map(folder, objective, pair) for pair in pairs), path)
