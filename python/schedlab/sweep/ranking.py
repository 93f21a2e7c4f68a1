# SPDX-License-Identifier: MIT
"""Ranks the setups of a sweep, and finds setups that are tied for best.

Setups are compared within a *scene*: the same workload, CPUs and machine. Each has a value for each
seed, and comparisons are paired by seed. The best of many is best partly by luck: measure it again
with other seeds before quoting it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from schedlab.analysis.comparison import best
from schedlab.analysis.comparison.best import ParetoFront, RankedConfiguration, rank_configurations
from schedlab.analysis.comparison.statistics import Floats
from schedlab.base.display.names import visible_line
from schedlab.errors import WrongUsage, format_parameter
from schedlab.metrics import tails
from schedlab.sweep import dataset
from schedlab.sweep.objectives import Objective
from schedlab.sweep.origin import MADE_OF_KEY, distinguishing_facts

SETUP_COLUMNS = ("policy", "settings")
"""Columns of a data set that identify a setup."""
SCENE_COLUMNS = (
    "workload", "changes", "machine", "costs", "cpus", "tick_ns", "limit_ns", "memory_mib", "made_of",
)  # fmt: skip
"""Columns of a scene; the last distinguishes scenes with equal names but different inputs."""
_NO_VALUE_REASON = "a run has no such value"

Scene = tuple[Any, ...]
"""Values of the scene's columns."""
PolicySettings = tuple[str, str]
"""Policy and settings."""


@dataclass(frozen=True)
class Values:
    """The values of one scene: each setup's results with the same seeds."""

    scene: Scene
    seeds: tuple[int, ...]
    setups: tuple[PolicySettings, ...]
    values: Floats
    """Shape: objectives × setups × seeds."""
    resolutions: tuple[float, ...]
    """Resolution of each objective: the smallest possible difference between values."""
    left_out: dict[PolicySettings, str]
    """Setups without complete values, and the reasons."""
    distinction: str = ""
    """What distinguishes the scene from others with the same names; empty if there are none."""


def setup_title(setup: PolicySettings) -> str:
    """Returns a title such as `mlfq boost=60,slice_3=1`."""
    return visible_line(" ".join(part for part in setup if part))


# --- from the data set


def read_values(folder: Path, objectives: Sequence[Objective]) -> list[Values]:
    """Returns the objectives' values of each setup, by scene: by all that is equal in the scene's runs.

    Raises WrongUsage if there are none.
    """
    runs = dataset.read_runs(folder, (*SETUP_COLUMNS, "seed"))
    run_rows = runs.select(
        "key", *SETUP_COLUMNS, *SCENE_COLUMNS, "seed", "status", "clock_step_ns", "processes"
    )
    for number, objective in enumerate(objectives):
        value = values_by_key(folder, runs, objective, f"value_{number}")
        run_rows = run_rows.join(value, on="key", how="left")
    scenes = run_rows.sort(*SCENE_COLUMNS).partition_by(
        *SCENE_COLUMNS, as_dict=True, maintain_order=True
    )
    distinguishing = _distinguish_scenes(
        list(scenes), dataset.read_manifest(folder).get(MADE_OF_KEY, {})
    )
    for part in scenes.values():
        _check_seeds_once(folder, part)
    return [
        replace(_scene_values(scene, part, objectives), distinction=distinguishing[scene])
        for scene, part in scenes.items()
    ]


def _distinguish_scenes(
    scenes: Sequence[Scene], facts_by_hash: Mapping[str, dict[str, Any]]
) -> dict[Scene, str]:
    """Returns, for each scene, what distinguishes it from scenes with the same names."""
    scenes_by_names: dict[Scene, list[Scene]] = {}
    for scene in scenes:
        scenes_by_names.setdefault(scene[:-1], []).append(scene)
    labels = dict.fromkeys(scenes, "")
    for same_names in scenes_by_names.values():
        if len(same_names) > 1 or same_names[0][-1] is None:
            words = distinguishing_facts(facts_by_hash.get(scene[-1]) for scene in same_names)
            labels.update(zip(same_names, words, strict=True))
    return labels


def _check_seeds_once(folder: Path, part: pl.DataFrame) -> None:
    """Raises WrongUsage if a setup has two runs with the same seed."""
    duplicates = part.filter(pl.struct(*SETUP_COLUMNS, "seed").is_duplicated())
    if len(duplicates):
        policy, settings, seed = duplicates.select(*SETUP_COLUMNS, "seed").row(0)
        raise WrongUsage(
            f"{folder}: {setup_title((policy, settings))} ran twice with seed {seed}, "
            "each time with different inputs, and its version of schedlab did not "
            "record which; run the sweep again into another folder"
        )


def values_by_key(
    folder: Path, runs: pl.DataFrame, objective: Objective, name: str
) -> pl.DataFrame:
    """Returns the values of an objective: `key` of the run, and a column `name`."""
    rows = runs
    if objective.group is not None:
        groups = dataset.read_table(folder, dataset.GROUPS)
        rows = groups.filter(pl.col("group") == objective.group)
        if rows.is_empty():
            group_names = sorted(set(groups["group"].to_list()))
            raise WrongUsage(
                f"no run has a group {objective.group}",
                what=format_parameter("best", objective.text),
                fix=f"choose from {', '.join(group_names) or 'none'}",
            )
    return rows.select("key", objective.value().alias(name))


def _scene_values(scene: Scene, part: pl.DataFrame, objectives: Sequence[Objective]) -> Values:
    seeds = tuple(sorted(set(part["seed"].to_list())))
    columns = [f"value_{number}" for number in range(len(objectives))]
    samples: dict[PolicySettings, list[list[float]]] = {}
    left_out: dict[PolicySettings, str] = {}
    for setup, rows in part.partition_by(*SETUP_COLUMNS, as_dict=True, maintain_order=True).items():
        name = (str(setup[0]), str(setup[1]))
        why = _missing_reason(rows, columns, len(seeds))
        if why == _NO_VALUE_REASON:
            why += _too_few_reason(objectives)
        if why:
            left_out[name] = why
        else:
            samples[name] = rows.sort("seed").select(columns).to_numpy().T.tolist()
    order = sorted(samples)
    values = np.array([samples[setup] for setup in order], np.float64)
    values = values.reshape(len(order), len(objectives), len(seeds)).transpose(1, 0, 2)
    steps = tuple(_resolution(objective, part) for objective in objectives)
    return Values(scene, seeds, tuple(order), values, steps, left_out)


def _missing_reason(rows: pl.DataFrame, columns: list[str], seeds: int) -> str:
    """Returns why a setup cannot be ranked, or ""."""
    failed = rows.filter(pl.col("status") != "success")
    if len(failed):
        return f"{len(failed)} of {len(rows)} runs failed: {failed['status'][0]}"
    if rows["seed"].n_unique() < len(rows):
        return "a seed occurs twice"
    if len(rows) < seeds:
        return f"only {len(rows)} of {seeds} seeds exist"
    if rows.select(pl.any_horizontal(pl.col(columns).is_null()).any()).item():
        return _NO_VALUE_REASON
    return ""


def _too_few_reason(objectives: Sequence[Objective]) -> str:
    """Returns why a value may be missing: percentiles need processes beyond them."""
    least = max(tails.processes_needed(objective.column) for objective in objectives)
    return f": it needs at least {least:,} processes that ended" if least > 1 else ""


def _resolution(objective: Objective, part: pl.DataFrame) -> float:
    """Returns the smallest possible difference between values of the objective."""
    step = float(part["clock_step_ns"].drop_nulls().max() or 0)  # type: ignore[arg-type]
    if objective.grain == "clock":
        return step
    if objective.grain == "mean of clock":
        return step / max(float(part["processes"].drop_nulls().min() or 1), 1)  # type: ignore[arg-type]
    return 1.0 if objective.grain == "whole" else 0.0


# --- what is best


def rank_setups(values: Values, objective: Objective) -> list[RankedConfiguration[PolicySettings]]:
    """Ranks setups, the best first; equal means are sorted by name."""
    return rank_configurations(
        values.setups,
        values.values[0],
        objective.better,
        values.resolutions[0],
        objective.within,
    )


def find_front(values: Values, objectives: Sequence[Objective]) -> ParetoFront[PolicySettings]:
    """Returns the Pareto front: no other setup is at least as good in every mean and better in one."""
    return best.pareto_front(
        values.setups,
        values.values,
        [objective.better for objective in objectives],
        values.resolutions,
        [objective.within for objective in objectives],
    )
