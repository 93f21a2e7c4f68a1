# SPDX-License-Identifier: MIT
"""Score cards: improvement factors over the reference by objective, and the policies that dominate a policy."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from schedlab.analysis.comparison.measures import measure_values
from schedlab.analysis.comparison.statistics import (
    Difference,
    Estimate,
    Floats,
    difference,
    estimate,
)
from schedlab.courses.scoring.workload_sets import Level, Objective, WorkloadSet
from schedlab.runs.collection import Collection

Values = Mapping[str, Floats]
"""By objective, each variant's mean logarithm over workloads and CPUs.

Objectives that lack a value in any run are omitted.
"""


@dataclass(frozen=True)
class MeasuredPolicies:
    """The values of all policies with one key."""

    values: Mapping[str, Values]
    """By policy."""
    failures: Mapping[str, str]
    """The first failure message of each policy with failed runs."""


def read_values(workload_set: WorkloadSet, level: Level, runs: Collection) -> MeasuredPolicies:
    """Returns the values of a set's runs."""
    failures: dict[str, str] = {}
    for run in runs:
        if not run.succeeded:
            reason = str(run.manifest.get("message") or run.status).splitlines()[0]
            failures.setdefault(
                run.setup.policy, f"{run.setup.experiment}, {run.setup.cpus} CPUs: {reason}"
            )
    objectives = workload_set.objectives_of(level)
    table = measure_values(runs, {objective.metric for objective in objectives})
    policies = dict.fromkeys(run.setup.policy for run in runs)
    return MeasuredPolicies(
        {
            policy: {
                objective.name: objective_values
                for objective in objectives
                if (objective_values := _objective_values(table, policy, objective, level))
                is not None
            }
            for policy in policies
            if policy not in failures
        },
        failures,
    )


def _objective_values(
    table: pl.DataFrame, policy: str, objective: Objective, level: Level
) -> Floats | None:
    """Returns the mean logarithm of each variant, or None if a run has no value."""
    values = np.zeros((len(objective.group_by_workload), len(level.cpus), level.variants))
    for position, (workload, group) in enumerate(objective.group_by_workload.items()):
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
            values[position, level.cpus.index(cpus), variant] = math.log(
                max(value, objective.floor)
            )
    means: Floats = values.mean(axis=(0, 1))
    return means


@dataclass(frozen=True)
class ObjectiveScore:
    """A policy's improvement in one objective, and the best other policy's."""

    objective: Objective
    log_improvement: Estimate | None
    """Logarithm of the improvement factor over the reference; None if there is no value."""
    best_other: str
    """The best other policy for this objective."""
    best_other_log_improvement: float

    def to_dict(self) -> dict[str, Any]:
        """Returns values for JSON, with factors."""
        interval = self.log_improvement and [
            math.exp(bound)
            for bound in (
                self.log_improvement.mean,
                self.log_improvement.low,
                self.log_improvement.high,
            )
        ]
        return {
            "title": self.objective.title,
            "weight": self.objective.weight,
            "factor": interval and interval[0],
            "low": interval and interval[1],
            "high": interval and interval[2],
            "best_other": self.best_other,
            "best_other_factor": math.exp(self.best_other_log_improvement),
        }


@dataclass(frozen=True)
class ScoreCard:
    """The scores of one policy in all objectives."""

    policy: str
    failure: str
    """Why it has no figures; empty if it has."""
    figures: tuple[ObjectiveScore, ...]
    dominated_by: tuple[str, ...]
    """Policies that are at least as good in every mean and better in one; empty on the Pareto front."""
    surely_dominated_by: tuple[str, ...]
    """Dominating policies that are significantly better in one objective and significantly worse in none."""

    @property
    def score(self) -> float | None:
        """Weighted geometric mean of the factors; None if an objective has no value."""
        if self.failure or not all(figure.log_improvement for figure in self.figures):
            return None
        weights = [figure.objective.weight for figure in self.figures]
        means = [figure.log_improvement.mean for figure in self.figures if figure.log_improvement]
        return math.exp(sum(w * m for w, m in zip(weights, means, strict=True)) / sum(weights))

    def to_dict(self) -> dict[str, Any]:
        """Returns values for JSON."""
        return {
            "failure": self.failure,
            "score": self.score,
            "objectives": {figure.objective.name: figure.to_dict() for figure in self.figures},
            "dominated_by": self.dominated_by,
            "surely_dominated_by": self.surely_dominated_by,
        }


def make_card(
    workload_set: WorkloadSet, level: Level, measured: MeasuredPolicies, policy: str
) -> ScoreCard:
    """Returns a policy's card in comparison with all measured policies."""
    if policy in measured.failures:
        return ScoreCard(policy, measured.failures[policy], (), (), ())
    objectives = workload_set.objectives_of(level)
    reference = measured.values[str(workload_set.reference)]
    policy_values = measured.values[policy]
    others = {name: values for name, values in measured.values.items() if name != policy}
    figures = []
    for objective in objectives:
        reference_values = reference[objective.name]
        means = {
            name: float((reference_values - values[objective.name]).mean())
            for name, values in others.items()
            if objective.name in values
        }
        best_other = max(means, key=lambda name: means[name])
        log_improvement = (
            estimate(reference_values - policy_values[objective.name])
            if objective.name in policy_values
            else None
        )
        figures.append(ObjectiveScore(objective, log_improvement, best_other, means[best_other]))
    names = [objective.name for objective in objectives]
    dominating = [
        name for name, values in others.items() if _dominates(values, policy_values, names)
    ]
    surely_dominating = [
        name for name in dominating if _surely_dominates(others[name], policy_values, names)
    ]
    return ScoreCard(policy, "", tuple(figures), tuple(dominating), tuple(surely_dominating))


def _dominates(other: Values, measured_values: Values, objectives: Sequence[str]) -> bool:
    """Returns whether the other policy is at least as good in every mean and better in one.

    It must have all objectives of the policy.
    """
    measured_objectives = [name for name in objectives if name in measured_values]
    if not all(name in other for name in measured_objectives):
        return False
    has_more_objectives = any(name in other for name in objectives if name not in measured_values)
    gains = [float((measured_values[name] - other[name]).mean()) for name in measured_objectives]
    return all(gain >= 0 for gain in gains) and (
        has_more_objectives or any(gain > 0 for gain in gains)
    )


def _surely_dominates(other: Values, measured_values: Values, objectives: Sequence[str]) -> bool:
    """Returns whether the other policy is significantly better in one objective and significantly
    worse in none.
    """
    gains = [
        difference(other[name], measured_values[name], paired=True, resolution=0)
        for name in objectives
        if name in measured_values and name in other
    ]
    return any(gain.low > 0 for gain in gains) and not any(gain.high < 0 for gain in gains)


def improvement_gaps(
    shown: MeasuredPolicies, hidden: MeasuredPolicies, reference: str, policy: str
) -> dict[str, Difference]:
    """Returns, by objective, how much more a policy improves with shown than with hidden variants.

    An improvement is the logarithm of the reference's value ÷ the policy's value.
    """
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
