# SPDX-License-Identifier: MIT
"""Formats a sweep's best setups and effects as tables for a terminal and as values for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from schedlab.analysis.comparison.best import Front, Place
from schedlab.analysis.comparison.formatting import as_text, change_as_text
from schedlab.analysis.comparison.statistics import Estimate
from schedlab.base.display.names import visible_line
from schedlab.base.display.numbers import counted, number_as_text, percent
from schedlab.base.display.terminal import new_table
from schedlab.sweep.effects import Effects
from schedlab.sweep.objectives import Objective
from schedlab.sweep.ranking import SCENE, Choice, Values, title_of
from schedlab.units import format_time

_LEFT_OUT_SHOWN = 5
_PAIRS_SHOWN = 6


def scene_title(values: Values) -> str:
    """Returns a title such as `mixed.json with tasks.cpu.instance=6, 1 CPU, sim, tick 1ms`."""
    scene_values = dict(zip(SCENE, values.scene, strict=True))
    cpus = scene_values["cpus"]
    changed = f" with {scene_values['changes']}" if scene_values["changes"] else ""
    parts = [
        f"{scene_values['workload']}{changed}",
        f"{cpus} CPU{'s' if cpus > 1 else ''}",
        scene_values["machine"],
        f"tick {format_time(scene_values['tick_ns'])}",
    ]
    if scene_values["costs"] not in (None, "kernel"):
        parts.append(f"costs {scene_values['costs']}")
    if values.distinction:
        parts.append(values.distinction)
    return visible_line(", ".join(parts))


def ranking_table(
    values: Values, objective: Objective, places: Sequence[Place[Choice]], top: int
) -> Table:
    """Returns a table of the best `top` setups."""
    title = f"{objective.title} ({objective.better} is better): {scene_title(values)}"
    table = new_table(
        title, ">", "configuration", ">mean [95 %]", ">difference to the best [95 %]", ""
    )
    for number, place in enumerate(places[:top], start=1):
        behind = change_as_text(place.behind, objective.quantity) if place.behind else ""
        table.add_row(
            str(number),
            Text(title_of(place.choice)),
            as_text(place.value, objective.quantity),
            behind,
            verdict(place, len(values.seeds)),
        )
    table.caption = Text("\n").join(remarks(values, places, top))
    return table


def verdict(place: Place[Choice], seeds: int) -> str:
    """Returns the verdict on a place in a few words."""
    if place.behind is None:
        return "best"
    if seeds == 1:
        return "with this seed"
    if place.possible:
        return "tied for best"
    return f"worse (p {_probability(place.p_value)})"


def _probability(p_value: float | None) -> str:
    assert p_value is not None
    return "< 0.001" if p_value < 0.001 else f"= {p_value:.2g}"


def remarks(values: Values, places: Sequence[Place[Choice]], top: int) -> Iterator[Text]:
    """Yields notes on the ranking's reliability; `top` setups are shown."""
    possible = sum(place.possible for place in places)
    setups = counted(len(places), "configuration")
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
    yield from _left_out(values)


def _left_out(values: Values) -> Iterator[Text]:
    for choice, why in list(values.left_out.items())[:_LEFT_OUT_SHOWN]:
        yield Text(f"Not ranked: {title_of(choice)}: {why}", "yellow")
    more = len(values.left_out) - _LEFT_OUT_SHOWN
    if more > 0:
        yield Text(f"Not ranked: {more} more", "yellow")


def front_table(values: Values, objectives: Sequence[Objective], frontier: Front[Choice]) -> Table:
    """Returns a table of the setups on the front."""
    title = f"Pareto front: {scene_title(values)}"
    measured = (f">{objective.title}\n({objective.better} is better)" for objective in objectives)
    table = new_table(title, ">", "configuration", *measured)
    for number, choice in enumerate(frontier.members, start=1):
        cells = zip(frontier.estimates[choice], objectives, strict=True)
        texts = (as_text(value, objective.quantity) for value, objective in cells)
        table.add_row(str(number), Text(title_of(choice)), *texts)
    table.caption = Text("\n").join(_front_remarks(values, frontier))
    return table


def _front_remarks(values: Values, frontier: Front[Choice]) -> Iterator[Text]:
    seeds = len(values.seeds)
    yield Text(
        f"{len(frontier.members)} of {len(values.choices)} configurations, by their means over {seeds}"
        f" seed{'s' if seeds > 1 else ''}."
    )
    if seeds > 1:
        yield Text(
            f"{len(frontier.perhaps)} of the others may belong to the front: their disadvantage is"
            " not significant (95 % confidence)."
        )
    yield from _left_out(values)


# --- for programs


def ranking_dict(
    values: Values, objective: Objective, places: Sequence[Place[Choice]]
) -> dict[str, Any]:
    return {
        **_scene_dict(values),
        "metric": objective.text,
        "column": objective.column,
        "better": objective.better,
        "setups": [
            {
                **_choice_dict(place.choice),
                **_estimate_dict(place.value),
                "behind": place.behind.change if place.behind else 0.0,
                "behind_low": place.behind.low if place.behind else 0.0,
                "behind_high": place.behind.high if place.behind else 0.0,
                "p": place.p_value,
                "may_be_best": place.possible,
            }
            for place in places
        ],
    }


def front_dict(
    values: Values, objectives: Sequence[Objective], frontier: Front[Choice]
) -> dict[str, Any]:
    return {
        **_scene_dict(values),
        "metrics": [objective.text for objective in objectives],
        "setups": [
            {
                **_choice_dict(choice),
                "on_front": choice in frontier.members,
                "may_be_on_front": choice in frontier.members or choice in frontier.perhaps,
                "metrics": {
                    objective.text: _estimate_dict(value)
                    for objective, value in zip(objectives, frontier.estimates[choice], strict=True)
                },
            }
            for choice in values.choices
        ],
    }


def _scene_dict(values: Values) -> dict[str, Any]:
    left_out = [{**_choice_dict(choice), "why": why} for choice, why in values.left_out.items()]
    return {
        **dict(zip(SCENE, values.scene, strict=True)),
        "apart": values.distinction,
        "seeds": list(values.seeds),
        "left_out": left_out,
    }


def _choice_dict(choice: tuple[str, str]) -> dict[str, str]:
    return {"policy": choice[0], "settings": choice[1]}


def _estimate_dict(value: Estimate) -> dict[str, Any]:
    return {"mean": value.mean, "low": value.low, "high": value.high}


# --- effects


def effects_tables(effects: Effects, objective: Objective) -> Iterator[Table | Text]:
    """Yields tables of the main effects and the largest interactions."""
    table = new_table(
        f"Effects on {objective.title}",
        "dimension",
        ">of its variance",
        ">least, at",
        ">most, at",
    )
    for effect in effects.main:
        least, most = effect.levels[0], effect.levels[-1]
        table.add_row(
            visible_line(effect.dimensions[0]),
            percent(effect.part),
            *(
                f"{number_as_text(level.mean, objective.quantity)}, {visible_line(level.value)}"
                for level in (least, most)
            ),
        )
    left_out = f"; {effects.left_out:,} without a value are left out" if effects.left_out else ""
    table.caption = Text(
        f"{counted(effects.runs, 'run')}{left_out}. Means over the other dimensions.", "dim"
    )
    yield table
    if effects.pairs:
        pairs = new_table("Interactions", "dimensions", ">of its variance")
        for effect in effects.pairs[:_PAIRS_SHOWN]:
            pairs.add_row(visible_line(" × ".join(effect.dimensions)), percent(effect.part))
        yield pairs
    if not effects.is_grid:
        yield Text(
            "The runs are not a balanced full grid: the parts overlap, so do not add them.",
            "yellow",
        )
