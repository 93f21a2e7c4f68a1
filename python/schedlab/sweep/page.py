# SPDX-License-Identifier: MIT
"""Writes the report of a sweep: the best setups by each metric, effects of dimensions, and charts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from schedlab.base.display.markdown import literal
from schedlab.base.display.numbers import format_count
from schedlab.errors import WrongUsage
from schedlab.report.build import report_facts, write_existing_report
from schedlab.report.model import Block, Page, Report, Section, Text
from schedlab.sweep import as_runs, dataset, listing
from schedlab.sweep.effects import compute_effects
from schedlab.sweep.objectives import Objective, parse_objective
from schedlab.sweep.pictures import heat_map, strongest_pairs
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
    if not sections:
        raise WrongUsage(
            f"{folder}: no two runs of the sweep succeeded with different results; "
            "add policies or values to the sweep"
        )
    failed = len(runs.filter(pl.col("status") != "success"))
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
