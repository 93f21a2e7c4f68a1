# SPDX-License-Identifier: MIT
"""A score card: by which factor a policy is better than the reference, objective by objective, and which policies are
better in all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from schedlab.analysis.comparison.measures import measured
from schedlab.analysis.comparison.statistics import (
    Difference,
    Estimate,
    Floats,
    difference,
    estimate,
)
from schedlab.courses.scoring.sets import Level, Objective, WorkloadSet
from schedlab.runs.collection import Collection

Values = Mapping[str, Floats]
"""By objective: of each variant the mean logarithm over its workloads and CPUs. An objective of which a run has no
value is missing."""


@dataclass(frozen=True)
class Measured:
    """What all policies measured with one key."""

    values: Mapping[str, Values]
    """By policy."""
    failures: Mapping[str, str]
    """Of a policy whose runs did not all end well: the first, in words."""


def read_values(workload_set: WorkloadSet, level: Level, runs: Collection) -> Measured:
    """Returns what runs of the set measured."""
    failures: dict[str, str] = {}
    for run in runs:
        if not run.succeeded:
            reason = str(run.manifest.get("message") or run.status).splitlines()[0]
            failures.setdefault(
                run.setup.policy, f"{run.setup.experiment}, {run.setup.cpus} CPUs: {reason}"
            )
    objectives = workload_set.objectives_of(level)
    table = measured(runs, {objective.metric for objective in objectives})
    policies = dict.fromkeys(run.setup.policy for run in runs)
    return Measured(
        {
            policy: {
                objective.name: objective_values
                for objective in objectives
                if (objective_values := _values(table, policy, objective, level)) is not None
            }
            for policy in policies
            if policy not in failures
        },
        failures,
    )


def _values(table: pl.DataFrame, policy: str, objective: Objective, level: Level) -> Floats | None:
    """Returns the mean logarithm of each variant, or None if a run has no value."""
    values = np.zeros((len(objective.of), len(level.cpus), level.variants))
    for place, (workload, group) in enumerate(objective.of.items()):
        rows = table.filter(
            (pl.col("policy") == policy)
            & (pl.col("measure") == objective.metric)
            & pl.col("experiment").str.starts_with(f"{workload}-")
            & (pl.col("group") == group if group else pl.col("group").is_null())
        )
        if len(rows) != len(level.cpus) * level.variants:
            return None
        for experiment, cpus, value in rows.select("experiment", "cpus", "value").iter_rows():
            variant = int(experiment.rpartition("-")[2])
            values[place, level.cpus.index(cpus), variant] = math.log(max(value, objective.floor))
    means: Floats = values.mean(axis=(0, 1))
    return means


@dataclass(frozen=True)
class Figure:
    """One objective of a card."""

    objective: Objective
    better: Estimate | None
    """The logarithm of the factor by which it is better than the reference; None: it has no value."""
    best: str
    """The other policy that is best in it."""
    best_better: float

    def to_dict(self) -> dict[str, Any]:
        """The same for programs, with factors."""
        interval = self.better and [
            math.exp(bound) for bound in (self.better.mean, self.better.low, self.better.high)
        ]
        return {
            "title": self.objective.title,
            "weight": self.objective.weight,
            "factor": interval and interval[0],
            "low": interval and interval[1],
            "high": interval and interval[2],
            "best_other": self.best,
            "best_other_factor": math.exp(self.best_better),
        }


@dataclass(frozen=True)
class Card:
    """What is said of one policy among all."""

    policy: str
    failure: str
    """Why it has no figures; "": it has."""
    figures: tuple[Figure, ...]
    dominated_by: tuple[str, ...]
    """Policies that are at least as good in every mean, and better in one: () means that it is on the front."""
    surely_dominated_by: tuple[str, ...]
    """Those of them that are better by more than chance in one, and in none is the opposite more than chance."""

    @property
    def score(self) -> float | None:
        """One number: the factors' mean by their weights (of logarithms). None: an objective has no value."""
        if self.failure or not all(figure.better for figure in self.figures):
            return None
        weights = [figure.objective.weight for figure in self.figures]
        means = [figure.better.mean for figure in self.figures if figure.better]
        return math.exp(sum(w * m for w, m in zip(weights, means, strict=True)) / sum(weights))

    def to_dict(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "failure": self.failure,
            "score": self.score,
            "objectives": {figure.objective.name: figure.to_dict() for figure in self.figures},
            "dominated_by": self.dominated_by,
            "surely_dominated_by": self.surely_dominated_by,
        }


def card(workload_set: WorkloadSet, level: Level, measured: Measured, policy: str) -> Card:
    """Returns the card of a policy among all that were measured."""
    if policy in measured.failures:
        return Card(policy, measured.failures[policy], (), (), ())
    objectives = workload_set.objectives_of(level)
    reference = measured.values[str(workload_set.reference)]
    policy_values = measured.values[policy]
    others = {name: values for name, values in measured.values.items() if name != policy}
    figures = []
    for objective in objectives:
        base = reference[objective.name]
        means = {
            name: float((base - values[objective.name]).mean())
            for name, values in others.items()
            if objective.name in values
        }
        best = max(means, key=lambda name: means[name])
        better = (
            estimate(base - policy_values[objective.name])
            if objective.name in policy_values
            else None
        )
        figures.append(Figure(objective, better, best, means[best]))
    names = [objective.name for objective in objectives]
    dominating = [
        name for name, values in others.items() if _dominates(values, policy_values, names)
    ]
    sure = [name for name in dominating if _surely(others[name], policy_values, names)]
    return Card(policy, "", tuple(figures), tuple(dominating), tuple(sure))


def _dominates(other: Values, measured_values: Values, objectives: Sequence[str]) -> bool:
    """Is the other at least as good in every mean, and better in one? It must have all that the own has."""
    have = [name for name in objectives if name in measured_values]
    if not all(name in other for name in have):
        return False
    more = any(name in other for name in objectives if name not in measured_values)
    gains = [float((measured_values[name] - other[name]).mean()) for name in have]
    return all(gain >= 0 for gain in gains) and (more or any(gain > 0 for gain in gains))


def _surely(other: Values, measured_values: Values, objectives: Sequence[str]) -> bool:
    gains = [
        difference(other[name], measured_values[name], paired=True, resolution=0)
        for name in objectives
        if name in measured_values and name in other
    ]
    return any(gain.low > 0 for gain in gains) and not any(gain.high < 0 for gain in gains)


def gaps(shown: Measured, hidden: Measured, reference: str, policy: str) -> dict[str, Difference]:
    """Returns by objective how much better, over the reference, a policy is with shown variants than with hidden
    ones."""
    return {
        name: difference(
            hidden.values[reference][name] - hidden.values[policy][name],
            shown.values[reference][name] - shown.values[policy][name],
            paired=False,
            resolution=0,
        )
        for name in shown.values.get(policy, {})
        if name in hidden.values.get(policy, {})
    }
