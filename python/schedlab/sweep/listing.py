# SPDX-License-Identifier: MIT
"""Formats a sweep's best setups and effects as tables for a terminal and as values for programs."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
from rich.table import Table as TerminalTable
from rich.text import Text

from schedlab.analysis.comparison.best import ParetoFront, RankedConfiguration
from schedlab.analysis.comparison.formatting import change_as_text, estimate_as_text
from schedlab.analysis.comparison.statistics import Estimate
from schedlab.base.display.markdown import literal
from schedlab.base.display.names import slug, visible_line
from schedlab.base.display.numbers import format_count, number_as_text, percent
from schedlab.base.display.terminal import new_table
from schedlab.report.model import Cell, Column, Table, Tone
from schedlab.sweep.effects import Effects
from schedlab.sweep.objectives import Objective
from schedlab.sweep.ranking import SCENE_COLUMNS, PolicySettings, Values, setup_title
from schedlab.units import format_time

_LEFT_OUT_MAX = 5
_PAIRS_MAX = 6
UNBALANCED_NOTE = "The runs are not a balanced full grid: the parts overlap, so do not add them."


def scene_title(values: Values) -> str:
    """Returns a title such as `mixed.json with tasks.cpu.instance=6, 1 CPU, sim, tick 1ms`."""
    scene_values = dict(zip(SCENE_COLUMNS, values.scene, strict=True))
    cpus = scene_values["cpus"]
    changed = f" with {scene_values['changes']}" if scene_values["changes"] else ""
    texts = [
        f"{scene_values['workload']}{changed}",
        f"{cpus} CPU{'s' if cpus > 1 else ''}",
        scene_values["machine"],
        f"tick {format_time(scene_values['tick_ns'])}",
    ]
    if scene_values["costs"] not in (None, "kernel"):
        texts.append(f"costs {scene_values['costs']}")
    if values.distinction:
        texts.append(values.distinction)
    return visible_line(", ".join(texts))


def ranking_table(
    values: Values,
    objective: Objective,
    places: Sequence[RankedConfiguration[PolicySettings]],
    number: int,
    top: int,
) -> Table:
    """Returns the table of the best `top` setups. `number`: the scene's number, for the table's name."""
    rows = []
    for index, place in enumerate(places[:top], start=1):
        difference = change_as_text(place.deficit, objective.quantity) if place.deficit else ""
        tone: Tone = "good" if place.is_tied_for_best else "plain"
        rows.append(
            (
                Cell(str(index)),
                Cell(setup_title(place.name)),
                Cell(estimate_as_text(place.value, objective.quantity), tone),
                Cell(difference),
                Cell(place_verdict(place, len(values.seeds))),
            )
        )
    remarks = " ".join(str(remark) for remark in ranking_notes(values, places, top))
    return Table(
        name=f"best-{slug(objective.text)}-{number}",
        title=f"{objective.title} ({objective.better} is better): {scene_title(values)}",
        columns=(
            Column(""),
            Column("configuration", align="left"),
            Column("mean [95 %]"),
            Column("difference to the best [95 %]"),
            Column("", align="left"),
        ),
        rows=tuple(rows),
        data=_long_form(values),
        caption=literal(remarks),
        keys=2,
        meanings={"good": "tied for best"},
    )


def _long_form(values: Values) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"policy": setup[0], "settings": setup[1], "seed": seed, "value": float(value)}
            for setup, row in zip(values.setups, values.values[0], strict=True)
            for seed, value in zip(values.seeds, row, strict=True)
        ]
    )


def terminal_table(table: Table, *notes: Text) -> TerminalTable:
    """Converts a report's table for a terminal, with notes below it instead of its caption."""
    headings = (
        f">{column.title}" if column.align == "right" else column.title for column in table.columns
    )
    shown = new_table(table.title, *headings)
    for row in table.rows:
        shown.add_row(*(visible_line(cell.text) for cell in row))
    if notes:
        shown.caption = Text("\n").join(notes)
    return shown


def place_verdict(place: RankedConfiguration[PolicySettings], seeds: int) -> str:
    """Returns the verdict on a place in a few words."""
    if place.deficit is None:
        return "best"
    if seeds == 1:
        return "with this seed"
    if place.is_tied_for_best:
        return "tied for best"
    return f"worse (p {_probability(place.p_value)})"


def _probability(p_value: float | None) -> str:
    assert p_value is not None
    return "< 0.001" if p_value < 0.001 else f"= {p_value:.2g}"


def ranking_notes(
    values: Values, places: Sequence[RankedConfiguration[PolicySettings]], top: int
) -> Iterator[Text]:
    """Yields notes on the ranking's reliability; `top` setups are shown."""
    possible = sum(place.is_tied_for_best for place in places)
    setups = format_count(len(places), "configuration")
    if len(values.seeds) == 1:
        yield Text(f"{setups}, one seed: significance is unknown.")
    else:
        yield Text(
            f"{setups}, {len(values.seeds)} seeds; winner or tied for best (95 % confidence):"
            f" {possible}{f'; shown: {top}' if len(places) > top else ''}."
        )
        yield Text(
            "p: two-sided, corrected for the number of configurations (Holm). Intervals are not corrected."
        )
    yield from _left_out_notes(values)


def _left_out_notes(values: Values) -> Iterator[Text]:
    """Yields notes on setups that cannot be ranked."""
    for setup, why in list(values.left_out.items())[:_LEFT_OUT_MAX]:
        yield Text(f"Not ranked: {setup_title(setup)}: {why}", "yellow")
    hidden_count = len(values.left_out) - _LEFT_OUT_MAX
    if hidden_count > 0:
        yield Text(f"Not ranked: {hidden_count} more", "yellow")


def front_table(
    values: Values, objectives: Sequence[Objective], frontier: ParetoFront[PolicySettings]
) -> TerminalTable:
    """Returns a table of the setups on the front."""
    title = f"Pareto front: {scene_title(values)}"
    measured = (f">{objective.title}\n({objective.better} is better)" for objective in objectives)
    table = new_table(title, ">", "configuration", *measured)
    for number, setup in enumerate(frontier.members, start=1):
        cells = zip(frontier.estimates[setup], objectives, strict=True)
        texts = (estimate_as_text(value, objective.quantity) for value, objective in cells)
        table.add_row(str(number), Text(setup_title(setup)), *texts)
    table.caption = Text("\n").join(_front_notes(values, frontier))
    return table


def _front_notes(values: Values, frontier: ParetoFront[PolicySettings]) -> Iterator[Text]:
    """Yields notes on setups that may belong to the front."""
    seeds = len(values.seeds)
    yield Text(
        f"{len(frontier.members)} of {len(values.setups)} configurations, by their means over {seeds}"
        f" seed{'s' if seeds > 1 else ''}."
    )
    if seeds > 1:
        yield Text(
            f"{len(frontier.candidates)} of the others may belong to the front: their disadvantage is"
            " not significant (95 % confidence)."
        )
    yield from _left_out_notes(values)


# --- for programs


def ranking_dict(
    values: Values, objective: Objective, places: Sequence[RankedConfiguration[PolicySettings]]
) -> dict[str, Any]:
    """Returns a ranking for JSON."""
    return {
        **_scene_dict(values),
        "metric": objective.text,
        "column": objective.column,
        "better": objective.better,
        "setups": [
            {
                **_setup_dict(place.name),
                **_estimate_dict(place.value),
                "behind": place.deficit.change if place.deficit else 0.0,
                "behind_low": place.deficit.low if place.deficit else 0.0,
                "behind_high": place.deficit.high if place.deficit else 0.0,
                "p": place.p_value,
                "may_be_best": place.is_tied_for_best,
            }
            for place in places
        ],
    }


def front_dict(
    values: Values, objectives: Sequence[Objective], frontier: ParetoFront[PolicySettings]
) -> dict[str, Any]:
    """Returns a front for JSON."""
    return {
        **_scene_dict(values),
        "metrics": [objective.text for objective in objectives],
        "setups": [
            {
                **_setup_dict(setup),
                "on_front": setup in frontier.members,
                "may_be_on_front": setup in frontier.members or setup in frontier.candidates,
                "metrics": {
                    objective.text: _estimate_dict(value)
                    for objective, value in zip(objectives, frontier.estimates[setup], strict=True)
                },
            }
            for setup in values.setups
        ],
    }


def _scene_dict(values: Values) -> dict[str, Any]:
    """Returns the columns that identify a scene, for JSON."""
    left_out = [{**_setup_dict(setup), "why": why} for setup, why in values.left_out.items()]
    return {
        **dict(zip(SCENE_COLUMNS, values.scene, strict=True)),
        "apart": values.distinction,
        "seeds": list(values.seeds),
        "left_out": left_out,
    }


def _setup_dict(setup: tuple[str, str]) -> dict[str, str]:
    return {"policy": setup[0], "settings": setup[1]}


def _estimate_dict(value: Estimate) -> dict[str, Any]:
    return {"mean": value.mean, "low": value.low, "high": value.high}


# --- effects


def effects_blocks(effects: Effects, objective: Objective) -> Iterator[Table]:
    """Yields tables of the main effects and the largest interactions."""
    yield _main_effects_table(effects, objective)
    if effects.pairs:
        yield _interactions_table(effects, objective)


def effects_tables(effects: Effects, objective: Objective) -> Iterator[TerminalTable | Text]:
    """Yields the same for a terminal."""
    main, *pairs = effects_blocks(effects, objective)
    yield terminal_table(main, Text(main.caption, "dim"))
    yield from map(terminal_table, pairs)
    if not effects.is_grid:
        yield Text(UNBALANCED_NOTE, "yellow")


def _main_effects_table(effects: Effects, objective: Objective) -> Table:
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
        caption=f"{format_count(effects.runs, 'run')}{left_out}. Means over the other dimensions.",
    )


def _interactions_table(effects: Effects, objective: Objective) -> Table:
    names = [(" × ".join(pair.dimensions), pair.part) for pair in effects.pairs]
    return Table(
        name=f"interactions-{slug(objective.text)}",
        title="Interactions",
        columns=(Column("dimensions", align="left"), Column("of its variance")),
        rows=tuple((Cell(name), Cell(percent(part))) for name, part in names[:_PAIRS_MAX]),
        data=pl.DataFrame(
            names, schema={"dimensions": pl.String, "part": pl.Float64}, orient="row"
        ),
        caption="The part of the variance that two dimensions explain only together.",
    )
