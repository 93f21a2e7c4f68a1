# SPDX-License-Identifier: MIT
"""Finds the best policy or configuration over all seeds, and those tied for best."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from schedlab.analysis.comparison.statistics import (
    CONFIDENCE,
    ROUNDING_NOISE,
    T_TEST_COUNT_MAX,
    Difference,
    Estimate,
    Floats,
    ValueRange,
    checked_values,
    correct_p_values,
    difference,
    estimates,
    p_values_above_zero,
    sign_flips,
    student_bounds,
)
from schedlab.metrics.registry import Better

Name = TypeVar("Name")


@dataclass(frozen=True)
class Ranking:
    """A ranking of policies: the best, and the policies tied for best."""

    order: tuple[str, ...]
    """All policies by their means, the best first. Policies with equal means keep the order of the input."""
    p_values: Mapping[str, float]
    """For each policy, the p-value of being beaten so clearly if it is the best."""
    seed_count: int
    """Number of seeds."""
    significance_level: float = 1 - CONFIDENCE
    """A policy with a smaller p-value is excluded."""

    @property
    def best(self) -> str:
        """Returns the policy with the best mean."""
        return self.order[0]

    @property
    def tied_for_best(self) -> tuple[str, ...]:
        """The policies tied for best over all seeds.

        With 95 % confidence, they include the true best. If results are evaluated several times,
        `significance_level` must be the level of each evaluation.
        """
        return tuple(name for name in self.order if self.p_values[name] >= self.significance_level)


def rank_policies(
    values: Mapping[str, Sequence[float] | Floats],
    better: Better = "lower",
    resolution: float = 0,
    evaluations_max: int = 1,
) -> Ranking:
    """Ranks policies by their values, which must be for the same seeds in the same order.

    A policy is excluded if another policy is better with a one-sided p-value below 5 % ÷ (policies
    − 1). The test is Student's t on the differences per seed; with at least `T_TEST_BELOW` seeds, it is sign
    flips. The true best is therefore excluded in at most 5 % of cases (Bonferroni over its
    comparisons; the idea of a subset that contains the best: Gupta, 1965).

    A single seed excludes no policy. Raises ValueError if policies have different numbers of
    values.
    """
    if len({len(sample) for sample in values.values()}) != 1:
        raise ValueError("a ranking needs policies with the same number of values each")
    names = list(values)
    matrix = np.stack([checked_values(values[name]) for name in names])
    costs = matrix if better == "lower" else -matrix
    means = costs.mean(axis=1)
    order = tuple(names[place] for place in np.argsort(means, kind="stable"))
    pairwise_p_values = _pairwise_p_values(costs, resolution)
    p_values = np.minimum(1.0, pairwise_p_values.min(axis=1) * max(1, len(names) - 1))
    return Ranking(
        order,
        dict(zip(names, p_values.tolist(), strict=True)),
        matrix.shape[1],
        level_per_evaluation(evaluations_max),
    )


def level_per_evaluation(checks: int) -> float:
    """Returns the significance level of each of `checks` evaluations of growing data.

    The best policy is then excluded by any of them in at most 5 % of cases (Bonferroni; Pocock,
    1977, and O'Brien and Fleming, 1979, divide the level differently).
    """
    return (1 - CONFIDENCE) / checks


def _pairwise_p_values(costs: Floats, resolution: float) -> Floats:
    """Returns p-values (policies × policies) of the null hypothesis that row does not cost more than column."""
    return _p_values_of_not_more(
        costs[:, np.newaxis, :], costs[np.newaxis, :, :], resolution, T_TEST_COUNT_MAX
    )


def _p_values_of_not_more(
    costs: Floats, others: Floats, resolution: float, sign_flips_from: int | None = None
) -> Floats:
    """Returns p-values of the null hypothesis that means along the last axis do not exceed the others.

    The test is Student's t on pairs; with `sign_flips_from` values or more, it is sign flips.
    """
    differences = costs - others
    if differences.shape[-1] == 1:
        return np.ones(differences.shape[:-1])
    noise = ROUNDING_NOISE * max(np.abs(costs).max(initial=0.0), np.abs(others).max(initial=0.0))
    if sign_flips_from is None or differences.shape[-1] < sign_flips_from:
        return p_values_above_zero(differences, resolution, noise)
    means = differences.mean(axis=-1)
    result: Floats = np.where(means > noise, sign_flips(means - noise, differences), 1.0)
    return result


# --- rankings of hundreds of configurations with few seeds


@dataclass(frozen=True)
class RankedConfiguration(Generic[Name]):
    """A configuration in a ranking.

    Permutations of n seeds give no p-value below 2^-n, which no correction for hundreds of
    comparisons survives. Student's t is therefore used for any number of seeds.
    """

    name: Name
    value: Estimate
    deficit: Difference | None
    """How much better the best configuration is, seed by seed; None for the best."""
    p_value: float | None
    """Two-sided p-value of the difference (Holm-corrected): below 5 % the interval excludes 0. None
    for the best, and for a single seed.
    """

    @property
    def is_tied_for_best(self) -> bool:
        """True if the configuration is tied for best."""
        return self.p_value is None or self.p_value >= level_per_evaluation(1)


@dataclass(frozen=True)
class ParetoFront(Generic[Name]):
    """The Pareto front: configurations that no other one surpasses in all objectives."""

    members: tuple[Name, ...]
    """The members by the first objective, the best first."""
    estimates: dict[Name, tuple[Estimate, ...]]
    """For each configuration, one estimate per objective."""
    candidates: tuple[Name, ...]
    """Configurations outside the front whose distance from it is not significant."""


def rank_configurations(
    names: Sequence[Name], values: Floats, better: Better, resolution: float, within: ValueRange
) -> list[RankedConfiguration[Name]]:
    """Ranks configurations by their values (configurations × seeds), the best first. Equal means
    keep the order of names.
    """
    if not names:
        return []
    costs = values if better == "lower" else -values
    first, *others = np.argsort(costs.mean(axis=1), kind="stable").tolist()
    means = estimates(list(values), within)
    one_sided = _p_values_of_not_more(costs[others], costs[first], resolution)
    p_values = correct_p_values([min(1.0, 2 * float(p_value)) for p_value in one_sided])
    ranked = [RankedConfiguration(names[first], means[first], None, None)]
    for number, p_value in zip(others, p_values, strict=True):
        deficit = difference(values[first], values[number], True, resolution, within)
        low, high = student_bounds(values[number] - values[first], resolution)
        deficit = replace(deficit, low=low, high=high)
        known_p_value = p_value if values.shape[1] > 1 else None
        ranked.append(RankedConfiguration(names[number], means[number], deficit, known_p_value))
    return ranked


def pareto_front(
    names: Sequence[Name],
    values: Floats,
    better: Sequence[Better],
    resolutions: Sequence[float],
    within: Sequence[ValueRange],
) -> ParetoFront[Name]:
    """Returns the Pareto front of the means: no other configuration is at least as good in all and better in one.

    `values` has the shape objectives × configurations × seeds.
    """
    signs = np.array([1.0 if direction == "lower" else -1.0 for direction in better])
    costs = values * signs[:, np.newaxis, np.newaxis]
    means = costs.mean(axis=2).T
    is_member = _undominated(means)
    order = sorted(np.flatnonzero(is_member).tolist(), key=lambda place: tuple(means[place]))
    intervals = [
        estimates(list(samples), limits) for samples, limits in zip(values, within, strict=True)
    ]
    by_name = {
        name: tuple(interval[index] for interval in intervals) for index, name in enumerate(names)
    }
    others_off_front = np.flatnonzero(~is_member).tolist()
    p_values_off_front = correct_p_values(
        [_p_value_off_front(costs, place, order, resolutions) for place in others_off_front]
    )
    candidates = [
        names[place]
        for place, p_value in zip(others_off_front, p_values_off_front, strict=True)
        if p_value >= level_per_evaluation(1)
    ]
    return ParetoFront(tuple(names[place] for place in order), by_name, tuple(candidates))


def _undominated(means: Floats) -> npt.NDArray[np.bool_]:
    """Marks the members of the front. `means` has the shape configurations × objectives."""
    is_member = np.zeros(len(means), dtype=bool)
    for place in np.lexsort(means.T[::-1]):
        members = means[is_member]
        as_good = (members <= means[place]).all(axis=1)
        better = (members < means[place]).any(axis=1)
        is_member[place] = not (as_good & better).any()
    return is_member


def _p_value_off_front(
    costs: Floats, index: int, members: Sequence[int], resolutions: Sequence[float]
) -> float:
    """Returns the p-value of the null hypothesis that no member of the front is better in all objectives.

    This is an intersection-union test (Berger, 1982) with a Bonferroni correction over members. An
    objective with equal values for every seed counts as passed.
    """
    if costs.shape[2] == 1:
        return 1.0
    p_values = np.zeros(len(members))
    for objective, resolution in zip(costs, resolutions, strict=True):
        for number, member in enumerate(members):
            if not np.array_equal(objective[index], objective[member]):
                worse = _p_values_of_not_more(objective[index], objective[member], resolution)
                p_values[number] = max(p_values[number], float(worse))
    return min(1.0, float(p_values.min()) * len(members))
