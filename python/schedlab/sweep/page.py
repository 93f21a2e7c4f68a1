# SPDX-License-Identifier: MIT
"""Writes the report of a sweep: the best setups by each metric, effects of dimensions, and charts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from schedlab.base.display.markdown import literal
from schedlab.base.display.names import slug
from schedlab.base.display.numbers import format_count, with_fitting_unit
from schedlab.errors import WrongUsage, format_parameter
from schedlab.report.build import report_facts, write_existing_report
from schedlab.report.model import Block, Chart, Page, Report, Section, Text
from schedlab.sweep import as_runs, dataset, listing
from schedlab.sweep.best import write_numbered
from schedlab.sweep.effects import Effects, compute_effects, mean_cells, sort_values
from schedlab.sweep.objectives import Objective, parse_objective
from schedlab.sweep.ranking import rank_setups, read_values

TITLE = "A sweep"
REPORTED_METRICS = (
    "turnaround", "turnaround-99th", "slowdown", "slowdown-99th", "response", "response-99th",
    "wakeup-99th", "waiting", "fairness", "misses",
)  # fmt: skip
"""Metrics in reports if runs differ in them; rankings and effects support all metrics."""
_PLACES_MAX = 10
_SCENES_MAX = 6


def write_page(
    folder: Path, out: Path, formats: tuple[str, ...], pictures: bool = False
) -> dict[str, Any]:
    """Writes the report, as schedlab.report.command does for runs. Raises WrongUsage."""
    sections = make_page(folder)
    runs = as_runs.read_collection(folder)
    report = Report(TITLE, (sections,), report_facts(runs))
    first_document = write_existing_report(report, out, formats, pictures=pictures)
    failed = [str(run.folder) for run in runs if not run.succeeded]
    return {"report": str(first_document), "runs": len(runs), "failed": failed}


def make_page(folder: Path) -> Page:
    """Returns the page of a data set. Raises WrongUsage if no two successful runs differ."""
    manifest = dataset.read_manifest(folder)
    runs = dataset.read_table(folder, dataset.RUNS)
    sections = [
        Section(objective.title[0].upper() + objective.title[1:], tuple(blocks))
        for objective in map(parse_objective, REPORTED_METRICS)
        if (blocks := list(_blocks(folder, objective)))
    ]
    failed = len(runs.filter(pl.col("status") != "success"))
    if not sections and failed > len(runs) - 2:
        raise WrongUsage(
            f"{folder}: {failed} of {len(runs)} runs failed, and nothing can be compared; "
            "correct the cause, and repeat the sweep with `retry_failed=`"
        )
    if not sections:
        raise WrongUsage(
            f"{folder}: all runs of the sweep have the same results; "
            "add policies or values to the sweep"
        )
    setups = runs.select("policy", "settings").n_unique()
    title = f"{literal(manifest['title'])} " if manifest.get("title") else ""
    of_them = f", of which {failed} failed" if failed else ""
    lead = (
        f"{title}{format_count(len(runs), 'run')} of {format_count(setups, 'configuration')}{of_them}: the best"
        " configurations by metric, and the effects of each dimension. The best of many is partly"
        " the best by chance, so measure it again with other seeds."
    )
    return Page("index", TITLE, lead, tuple(sections))


def _blocks(folder: Path, objective: Objective) -> Iterator[Block]:
    try:
        all_effects = compute_effects(folder, objective)
    except WrongUsage:  # nothing differs in it
        return
    scenes = read_values(folder, [objective])
    for number, values in enumerate(scenes[:_SCENES_MAX], start=1):
        places = rank_setups(values, objective)
        if len(places) > 1:
            yield listing.ranking_table(values, objective, places, number, _PLACES_MAX)
    if len(scenes) > _SCENES_MAX:
        yield Text(f"{len(scenes) - _SCENES_MAX} more are ranked by `./schedlab sweep --from`.")
    yield from listing.effects_blocks(all_effects, objective)
    if not all_effects.is_grid:
        yield Text(listing.UNBALANCED_NOTE, "warning")
    for pair in strongest_pairs(all_effects):
        yield heat_map(folder, objective, pair)


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
