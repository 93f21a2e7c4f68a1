# SPDX-License-Identifier: MIT
"""Writes the report of a sweep: the best setups by each metric, effects of dimensions, and charts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from schedlab.analysis.comparison.best import Place
from schedlab.analysis.comparison.formatting import as_text, change_as_text
from schedlab.base.display.markdown import literal
from schedlab.base.display.names import slug
from schedlab.base.display.numbers import counted, number_as_text, percent
from schedlab.errors import WrongUsage
from schedlab.report.build import facts, write_into
from schedlab.report.model import Block, Cell, Column, Page, Report, Section, Table, Text, Tone
from schedlab.sweep import as_runs, dataset, listing
from schedlab.sweep.effects import Effects, effects
from schedlab.sweep.objectives import Objective, parse
from schedlab.sweep.pictures import heat_map, pairs_of
from schedlab.sweep.ranking import Choice, Values, ranked, read_values, title_of

TITLE = "A sweep"
METRICS = (
    "turnaround", "turnaround-99th", "slowdown", "slowdown-99th", "response", "response-99th",
    "wakeup-99th", "waiting", "fairness", "misses",
)  # fmt: skip
"""Metrics in reports if runs differ in them; rankings and effects support all metrics."""
_PLACES = 10
_SCENES = 6
_PAIRS = 6


def write(
    folder: Path, out: Path, formats: tuple[str, ...], pictures: bool = False
) -> dict[str, Any]:
    """Writes the report, as schedlab.report.command does for runs. Raises WrongUsage."""
    sections = page(folder)
    runs = as_runs.collection(folder)
    report = Report(TITLE, (sections,), facts(runs))
    first = write_into(report, out, formats, pictures=pictures)
    failed = [str(run.folder) for run in runs if not run.succeeded]
    return {"report": str(first), "runs": len(runs), "failed": failed}


def page(folder: Path) -> Page:
    """Returns the page of a data set. Raises WrongUsage if no two successful runs differ."""
    manifest = dataset.read_manifest(folder)
    runs = dataset.read_table(folder, dataset.RUNS)
    sections = [
        Section(objective.title[0].upper() + objective.title[1:], tuple(blocks))
        for objective in map(parse, METRICS)
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
        f"{title}{counted(len(runs), 'run')} of {counted(setups, 'configuration')}{of_them}: the best"
        " configurations by metric, and the effects of each dimension. The best of many is partly"
        " the best by chance, so measure it again with other seeds."
    )
    return Page("index", TITLE, lead, tuple(sections))


def _blocks(folder: Path, objective: Objective) -> Iterator[Block]:
    try:
        all_effects = effects(folder, objective)
    except WrongUsage:  # nothing differs in it
        return
    scenes = read_values(folder, [objective])
    for number, values in enumerate(scenes[:_SCENES], start=1):
        places = ranked(values, objective)
        if len(places) > 1:
            yield _ranking(values, objective, places, number)
    if len(scenes) > _SCENES:
        yield Text(f"{len(scenes) - _SCENES} more are ranked by `./schedlab sweep --from`.")
    yield _main(all_effects, objective)
    if all_effects.pairs:
        yield _interactions(all_effects, objective)
    if not all_effects.is_grid:
        yield Text(
            "The runs are not a balanced full grid: the parts overlap, so do not add them.",
            "warning",
        )
    for pair in pairs_of(all_effects):
        yield heat_map(folder, objective, pair)


def _ranking(
    values: Values, objective: Objective, places: list[Place[Choice]], number: int
) -> Table:
    rows = []
    for at, place in enumerate(places[:_PLACES], start=1):
        behind = change_as_text(place.behind, objective.quantity) if place.behind else ""
        verdict = listing.verdict(place, len(values.seeds))
        tone: Tone = "good" if place.possible else "plain"
        rows.append(
            (
                Cell(str(at)),
                Cell(title_of(place.choice)),
                Cell(as_text(place.value, objective.quantity), tone),
                Cell(behind),
                Cell(verdict),
            )
        )
    remarks = " ".join(str(remark) for remark in listing.remarks(values, places, _PLACES))
    return Table(
        name=f"best-{slug(objective.text)}-{number}",
        title=f"{objective.title} ({objective.better} is better): {listing.scene_title(values)}",
        columns=(
            Column(""),
            Column("configuration", align="left"),
            Column("mean [95 %]"),
            Column("difference to the best [95 %]"),
            Column("", align="left"),
        ),
        rows=tuple(rows),
        data=_data(values),
        caption=literal(remarks),
        keys=2,
        meanings={"good": "tied for best"},
    )


def _data(values: Values) -> pl.DataFrame:
    """Returns the values of a ranking in long form."""
    return pl.DataFrame(
        [
            {"policy": choice[0], "settings": choice[1], "seed": seed, "value": float(value)}
            for choice, row in zip(values.choices, values.values[0], strict=True)
            for seed, value in zip(values.seeds, row, strict=True)
        ]
    )


def _main(effects: Effects, objective: Objective) -> Table:
    rows = []
    for effect in effects.main:
        ends = (
            f"{number_as_text(level.mean, objective.quantity)}, {level.value}"
            for level in (effect.levels[0], effect.levels[-1])
        )
        rows.append((Cell(effect.dimensions[0]), Cell(percent(effect.part)), *map(Cell, ends)))
    levels = [
        {"dimension": effect.dimensions[0], "part": effect.part, **vars(level)}
        for effect in effects.main
        for level in effect.levels
    ]
    left_out = f"; {effects.left_out:,} without a value are left out" if effects.left_out else ""
    return Table(
        name=f"effects-{slug(objective.text)}",
        title=f"Effects on {objective.title}",
        columns=(
            Column("dimension", align="left"),
            Column("of its variance"),
            Column("least, at"),
            Column("most, at"),
        ),
        rows=tuple(rows),
        data=pl.DataFrame(levels, infer_schema_length=None),
        caption=f"{counted(effects.runs, 'run')}{left_out}. Means over the other dimensions.",
    )


def _interactions(effects: Effects, objective: Objective) -> Table:
    names = [(" × ".join(pair.dimensions), pair.part) for pair in effects.pairs]
    return Table(
        name=f"interactions-{slug(objective.text)}",
        title="Interactions",
        columns=(Column("dimensions", align="left"), Column("of its variance")),
        rows=tuple((Cell(name), Cell(percent(part))) for name, part in names[:_PAIRS]),
        data=pl.DataFrame(
            names, schema={"dimensions": pl.String, "part": pl.Float64}, orient="row"
        ),
        caption="The part of the variance that two dimensions explain only together.",
    )
