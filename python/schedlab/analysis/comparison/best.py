# SPDX-License-Identifier: MIT
"""Finds the best policy or configuration over all seeds, and those tied for best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from schedlab.analysis.comparison.statistics import (
    CONFIDENCE,
    FEW,
    NOISE,
    Difference,
    Estimate,
    Floats,
    Within,
    chances_of_more,
    checked,
    difference,
    estimates,
    holm,
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
    beaten: Mapping[str, float]
    """For each policy, the p-value of being beaten so clearly if it is the best."""
    count: int
    """Number of seeds."""
    level: float = 1 - CONFIDENCE
    """A policy with a smaller p-value is excluded."""

    @property
    def best(self) -> str:
        return self.order[0]

    @property
    def possible(self) -> tuple[str, ...]:
        """The policies tied for best over all seeds.

        With 95 % confidence, they include the true best. If results are evaluated several times,
        `level` must be the level of each evaluation.
        """
        return tuple(name for name in self.order if self.beaten[name] >= self.level)


def ranking(
    values: Mapping[str, Sequence[float] | Floats],
    better: Better = "lower",
    resolution: float = 0,
    evaluations_max: int = 1,
) -> Ranking:
    """Ranks policies by their values, which must be for the same seeds in the same order.

    A policy is excluded if another policy is better with a one-sided p-value below 5 % ÷ (policies
    − 1). The test is Student's t on the differences per seed; with at least `FEW` seeds, it is sign
    flips. The true best is therefore excluded in at most 5 % of cases (Bonferroni over its
    comparisons; the idea of a subset that contains the best: Gupta, 1965).

    A single seed excludes no policy. Raises ValueError if policies have different numbers of
    values.
    """
    if len({len(sample) for sample in values.values()}) != 1:
        raise ValueError("a ranking needs policies with the same number of values each")
    names = list(values)
    matrix = np.stack([checked(values[name]) for name in names])
    costs = matrix if better == "lower" else -matrix
    means = costs.mean(axis=1)
    order = tuple(names[place] for place in np.argsort(means, kind="stable"))
    worse = _worse(costs, resolution)
    beaten = np.minimum(1.0, worse.min(axis=1) * max(1, len(names) - 1))
    return Ranking(
        order,
        dict(zip(names, beaten.tolist(), strict=True)),
        matrix.shape[1],
        level_of(evaluations_max),
    )


def level_of(checks: int) -> float:
    """Returns the significance level of each of `checks` evaluations of growing data.

    The best policy is then excluded by any of them in at most 5 % of cases (Bonferroni; Pocock,
    1977, and O'Brien and Fleming, 1979, divide the level differently).
    """
    return (1 - CONFIDENCE) / checks


def _worse(costs: Floats, resolution: float) -> Floats:
    """Returns p-values (policies × policies) of the null hypothesis that row does not cost more than column."""
    return _not_more(costs[:, np.newaxis, :], costs[np.newaxis, :, :], resolution, FEW)


def _not_more(costs: Floats, others: Floats, resolution: float, few: int | None = None) -> Floats:
    """Returns p-values of the null hypothesis that means along the last axis do not exceed the others.

    The test is Student's t on pairs; if `few` is given and there are at least `few` values, it is
    sign flips.
    """
    differences = costs - others
    if differences.shape[-1] == 1:
        return np.ones(differences.shape[:-1])
    noise = NOISE * max(np.abs(costs).max(initial=0.0), np.abs(others).max(initial=0.0))
    if few is None or differences.shape[-1] < few:
        return chances_of_more(differences, resolution, noise)
    means = differences.mean(axis=-1)
    result: Floats = np.where(means > noise, sign_flips(means - noise, differences), 1.0)
    return result


# --- rankings of hundreds of configurations with few seeds


@dataclass(frozen=True)
class Place(Generic[Name]):
    """A configuration in a ranking.

    Permutations of n seeds give no p-value below 2^-n, which no correction for hundreds of
    comparisons survives. Student's t is therefore used for any number of seeds.
    """

    choice: Name
    value: Estimate
    behind: Difference | None
    """How much better the best configuration is, seed by seed; None for the best."""
    p_value: float | None
    """Two-sided p-value of the difference (Holm-corrected): below 5 % the interval excludes 0. None
    for the best, and for a single seed.
    """

    @property
    def possible(self) -> bool:
        """True if the configuration is tied for best."""
        return self.p_value is None or self.p_value >= level_of(1)


@dataclass(frozen=True)
class Front(Generic[Name]):
    """The Pareto front: configurations that no other one surpasses in all objectives."""

    members: tuple[Name, ...]
    """The members by the first objective, the best first."""
    estimates: dict[Name, tuple[Estimate, ...]]
    """For each configuration, one estimate per objective."""
    perhaps: tuple[Name, ...]
    """Configurations outside the front whose distance from it is not significant."""


def places(
    names: Sequence[Name], values: Floats, better: Better, resolution: float, within: Within
) -> list[Place[Name]]:
    """Ranks configurations by their values (configurations × seeds), the best first. Equal means
    keep the order of names.
    """
    if not names:
        return []
    costs = values if better == "lower" else -values
    first, *others = np.argsort(costs.mean(axis=1), kind="stable").tolist()
    means = estimates(list(values), within)
    beaten = _not_more(costs[others], costs[first], resolution)
    p_values = holm([min(1.0, 2 * float(p_value)) for p_value in beaten])
    ranked = [Place(names[first], means[first], None, None)]
    for number, p_value in zip(others, p_values, strict=True):
        behind = difference(values[first], values[number], True, resolution, within)
        low, high = student_bounds(values[number] - values[first], resolution)
        behind = replace(behind, low=low, high=high)
        known = p_value if values.shape[1] > 1 else None
        ranked.append(Place(names[number], means[number], behind, known))
    return ranked


def front(
    names: Sequence[Name],
    values: Floats,
    better: Sequence[Better],
    resolutions: Sequence[float],
    within: Sequence[Within],
) -> Front[Name]:
    """Returns the Pareto front of the means: no other configuration is at least as good in all and better in one.

    `values` has the shape objectives × configurations × seeds.
    """
    signs = np.array([1.0 if direction == "lower" else -1.0 for direction in better])
    costs = values * signs[:, np.newaxis, np.newaxis]
    means = costs.mean(axis=2).T
    on_it = _undominated(means)
    order = sorted(np.flatnonzero(on_it).tolist(), key=lambda place: tuple(means[place]))
    intervals = [
        estimates(list(samples), limits) for samples, limits in zip(values, within, strict=True)
    ]
    by_name = {
        name: tuple(interval[place] for interval in intervals) for place, name in enumerate(names)
    }
    others = np.flatnonzero(~on_it).tolist()
    sure = holm([_off_the_front(costs, place, order, resolutions) for place in others])
    perhaps = [
        names[place] for place, p_value in zip(others, sure, strict=True) if p_value >= level_of(1)
    ]
    return Front(tuple(names[place] for place in order), by_name, tuple(perhaps))


def _undominated(means: Floats) -> npt.NDArray[np.bool_]:
    """Marks the members of the front. `means` has the shape configurations × objectives."""
    on_it = np.zeros(len(means), dtype=bool)
    for place in np.lexsort(means.T[::-1]):
        members = means[on_it]
        as_good = (members <= means[place]).all(axis=1)
        better = (members < means[place]).any(axis=1)
        on_it[place] = not (as_good & better).any()
    return on_it


def _off_the_front(
    costs: Floats, place: int, members: Sequence[int], resolutions: Sequence[float]
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
            if not np.array_equal(objective[place], objective[member]):
                worse = _not_more(objective[place], objective[member], resolution)
                p_values[number] = max(p_values[number], float(worse))
    return min(1.0, float(p_values.min()) * len(members))
