# SPDX-License-Identifier: MIT
"""Which setups of a sweep are best, and which cannot be told from the best.

Setups are compared where all else is equal: under the same workload, on as many CPUs of the same
machine (a *scene*). Each has a value for each seed, and two are compared seed by seed.

The one that looks best is best partly by luck: measure it again, with other seeds, before you quote it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from schedlab.analysis.comparison import best
from schedlab.analysis.comparison.best import Front, Place, places
from schedlab.analysis.comparison.statistics import Floats
from schedlab.base.display.names import visible_line
from schedlab.errors import FileRefused, WrongUsage, parameter
from schedlab.metrics import tails
from schedlab.sweep import dataset
from schedlab.sweep.objectives import Objective
from schedlab.sweep.origin import MADE_OF, differences

CHOICE = ("policy", "settings")
"""What is chosen; columns of a data set."""
SCENE = (
    "workload", "changes", "machine", "costs", "cpus", "tick_ns", "limit_ns", "memory_mib", "made_of",
)  # fmt: skip
"""What it is chosen for: the last tells apart what has the same names and is not the same."""
_NO_VALUE = "a run has no such value"

Scene = tuple[Any, ...]
Choice = tuple[str, str]


@dataclass(frozen=True)
class Values:
    """The values of one scene: what each choice measured, with the same seeds."""

    scene: Scene
    seeds: tuple[int, ...]
    choices: tuple[Choice, ...]
    values: Floats
    """Objectives × choices × seeds."""
    resolutions: tuple[float, ...]
    """Resolutions of the objectives: no two values of one differ by less."""
    left_out: dict[Choice, str]
    """Choices that lack a value, and why."""
    apart: str = ""
    """What tells it from scenes of the same names; "": there are none."""


def title_of(choice: Choice) -> str:
    """`mlfq boost=60,slice_3=1`."""
    return visible_line(" ".join(part for part in choice if part))


# --- from the data set


def read_values(folder: Path, objectives: Sequence[Objective]) -> list[Values]:
    """Returns the values by scene, in the order of the data set's columns. Raises WrongUsage if
    there is nothing."""
    runs = dataset.read_table(folder, dataset.RUNS)
    if runs.is_empty():
        raise WrongUsage(f"{folder} holds no finished run yet")
    for name in (*CHOICE, "seed"):
        if runs[name].null_count():
            raise FileRefused(f"{folder}: a run in it has no {name}")
    table = runs.select("key", *CHOICE, *SCENE, "seed", "status", "clock_step_ns", "processes")
    for number, objective in enumerate(objectives):
        value = values_by_key(folder, runs, objective, f"value_{number}")
        table = table.join(value, on="key", how="left")
    parts = table.sort(*SCENE).partition_by(*SCENE, as_dict=True, maintain_order=True)
    distinguishing = _told_apart(list(parts), dataset.read_manifest(folder).get(MADE_OF, {}))
    for part in parts.values():
        _check_once(folder, part)
    return [
        replace(_scene(scene, part, objectives), apart=distinguishing[scene])
        for scene, part in parts.items()
    ]


def _told_apart(scenes: Sequence[Scene], known: Mapping[str, dict[str, Any]]) -> dict[Scene, str]:
    """Returns, for each scene, what it is that others of the same names are not."""
    alike: dict[Scene, list[Scene]] = {}
    for scene in scenes:
        alike.setdefault(scene[:-1], []).append(scene)
    labels = dict.fromkeys(scenes, "")
    for those in alike.values():
        if len(those) > 1 or those[0][-1] is None:
            words = differences(known.get(scene[-1]) for scene in those)
            labels.update(zip(those, words, strict=True))
    return labels


def _check_once(folder: Path, part: pl.DataFrame) -> None:
    """Raises WrongUsage if the rows do not say which of two runs is meant."""
    twice = part.filter(pl.struct(*CHOICE, "seed").is_duplicated())
    if len(twice):
        policy, settings, seed = twice.select(*CHOICE, "seed").row(0)
        raise WrongUsage(
            f"{folder}: {title_of((policy, settings))} was run twice with seed {seed}, made of"
            " something else each time, such as a workload file that was edited in between; the"
            " schedlab of then did not keep which is which. Run the sweep again, into another folder"
        )


def values_by_key(
    folder: Path, runs: pl.DataFrame, objective: Objective, name: str
) -> pl.DataFrame:
    """The values of one objective: `key` of the run, and a column of this name."""
    rows = runs
    if objective.group is not None:
        groups = dataset.read_table(folder, dataset.GROUPS)
        rows = groups.filter(pl.col("group") == objective.group)
        if rows.is_empty():
            group_names = sorted(set(groups["group"].to_list()))
            raise WrongUsage(
                f"no run has a group {objective.group}; there are: {', '.join(group_names) or 'none'}",
                what=parameter("best", objective.text),
            )
    return rows.select("key", objective.value().alias(name))


def _scene(scene: Scene, part: pl.DataFrame, objectives: Sequence[Objective]) -> Values:
    seeds = tuple(sorted(set(part["seed"].to_list())))
    columns = [f"value_{number}" for number in range(len(objectives))]
    samples: dict[Choice, list[list[float]]] = {}
    left_out: dict[Choice, str] = {}
    for choice, rows in part.partition_by(*CHOICE, as_dict=True, maintain_order=True).items():
        name = (str(choice[0]), str(choice[1]))
        why = _lacking(rows, columns, len(seeds))
        if why == _NO_VALUE:
            why += _too_few(objectives)
        if why:
            left_out[name] = why
        else:
            samples[name] = rows.sort("seed").select(columns).to_numpy().T.tolist()
    order = sorted(samples)
    values = np.array([samples[choice] for choice in order], np.float64)
    values = values.reshape(len(order), len(objectives), len(seeds)).transpose(1, 0, 2)
    steps = tuple(_resolution(objective, part) for objective in objectives)
    return Values(scene, seeds, tuple(order), values, steps, left_out)


def _lacking(rows: pl.DataFrame, columns: list[str], seeds: int) -> str:
    """Returns why a choice cannot be ranked, or "" if it can."""
    failed = rows.filter(pl.col("status") != "success")
    if len(failed):
        return f"{len(failed)} of {len(rows)} runs failed: {failed['status'][0]}"
    if rows["seed"].n_unique() < len(rows):
        return "a seed is there twice"
    if len(rows) < seeds:
        return f"only {len(rows)} of {seeds} seeds are there"
    if rows.select(pl.any_horizontal(pl.col(columns).is_null()).any()).item():
        return _NO_VALUE
    return ""


def _too_few(objectives: Sequence[Objective]) -> str:
    """Why a run may have no such value: percentiles need processes beyond them."""
    least = max(tails.needed(objective.column) for objective in objectives)
    return f": that takes {least:,} processes that have ended" if least > 1 else ""


def _resolution(objective: Objective, part: pl.DataFrame) -> float:
    step = float(part["clock_step_ns"].drop_nulls().max() or 0)  # type: ignore[arg-type]
    if objective.grain == "clock":
        return step
    if objective.grain == "mean of clock":
        return step / max(float(part["processes"].drop_nulls().min() or 1), 1)  # type: ignore[arg-type]
    return 1.0 if objective.grain == "whole" else 0.0


# --- what is best


def ranked(values: Values, objective: Objective) -> list[Place[Choice]]:
    """The best first; of equal means, by name."""
    return places(
        values.choices,
        values.values[0],
        objective.better,
        values.resolutions[0],
        objective.within,
    )


def front(values: Values, objectives: Sequence[Objective]) -> Front[Choice]:
    """Choices of which none other is at least as good in every mean, and better in one (Pareto)."""
    return best.front(
        values.choices,
        values.values,
        [objective.better for objective in objectives],
        values.resolutions,
        [objective.within for objective in objectives],
    )
