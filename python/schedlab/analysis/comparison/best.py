# SPDX-License-Identifier: MIT
"""Which policy or setup is best over all seeds, and which cannot be told from it."""

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
    """The best policy, and those that cannot be told from the best."""

    order: tuple[str, ...]
    """All, by their means, the best first. Of equal means, the one that was named first comes
    first."""
    beaten: Mapping[str, float]
    """The p-value: how probable it is that another beats it so clearly, if it is the best."""
    count: int
    """Seeds."""
    level: float = 1 - CONFIDENCE
    """A policy that is beaten with a smaller p-value is out."""

    @property
    def best(self) -> str:
        return self.order[0]

    @property
    def possible(self) -> tuple[str, ...]:
        """Policies that may be the best over all seeds: with 95 % confidence, the true best is
        among them, if it was looked once, or the level is that of each of several looks."""
        return tuple(name for name in self.order if self.beaten[name] >= self.level)


def ranking(
    values: Mapping[str, Sequence[float] | Floats],
    better: Better = "lower",
    resolution: float = 0,
    looks: int = 1,
) -> Ranking:
    """Of the values of each policy with the same seeds in the same order. Raises ValueError.

    A policy is out if any other is better with a one-sided p-value below 5 % ÷ (policies − 1):
    Student's t of each seed's difference; from `FEW` seeds on, sign flips. So the true best is out
    in at most 5 % of cases (Bonferroni over its comparisons with all others; the idea of a subset
    that holds the best is Gupta's, 1965). One seed tells no policy from the best.
    """
    if len({len(sample) for sample in values.values()}) != 1:
        raise ValueError("a ranking needs policies, and as many values of each")
    names = list(values)
    matrix = np.stack([checked(values[name]) for name in names])
    costs = matrix if better == "lower" else -matrix
    means = costs.mean(axis=1)
    order = tuple(names[place] for place in np.argsort(means, kind="stable"))
    worse = _worse(costs, resolution)
    beaten = np.minimum(1.0, worse.min(axis=1) * max(1, len(names) - 1))
    return Ranking(
        order, dict(zip(names, beaten.tolist(), strict=True)), matrix.shape[1], level_of(looks)
    )


def level_of(checks: int) -> float:
    """Returns the level of each of so many looks, so that the best policy is out at any of them in 5 % of cases at
    most (Bonferroni; for looks at data that grow, Pocock, 1977, and O'Brien and Fleming, 1979, have other parts)."""
    return (1 - CONFIDENCE) / checks


def _worse(costs: Floats, resolution: float) -> Floats:
    """The p-value, for policies × seeds, that one policy (row) does not cost more than another
    (column)."""
    return _not_more(costs[:, np.newaxis, :], costs[np.newaxis, :, :], resolution, FEW)


def _not_more(costs: Floats, others: Floats, resolution: float, few: int | None = None) -> Floats:
    """The p-values that means along the last axis are not more than others: Student's t, paired; from `few` values on,
    if that is given, sign flips."""
    differences = costs - others
    if differences.shape[-1] == 1:
        return np.ones(differences.shape[:-1])
    noise = NOISE * max(np.abs(costs).max(initial=0.0), np.abs(others).max(initial=0.0))
    if few is None or differences.shape[-1] < few:
        return chances_of_more(differences, resolution, noise)
    means = differences.mean(axis=-1)
    result: Floats = np.where(means > noise, sign_flips(means - noise, differences), 1.0)
    return result


# --- setups, of which there are hundreds, with few seeds


@dataclass(frozen=True)
class Place(Generic[Name]):
    """A setup in a ranking.

    Permutations of n seeds give no p-value below 2^-n, which no correction for hundreds of comparisons survives; so
    Student's t is used here however many seeds there are.
    """

    choice: Name
    value: Estimate
    behind: Difference | None
    """How much better the best is, seed by seed; None: this is the best."""
    chance: float | None
    """How probable so large a difference is if there is none (two-sided p-value, corrected by Holm): below 5 % the
    interval does not hold 0. None: of one seed nothing can be said, or it is the best."""

    @property
    def possible(self) -> bool:
        """Can it not be told from the best?"""
        return self.chance is None or self.chance >= level_of(1)


@dataclass(frozen=True)
class Front(Generic[Name]):
    """Setups that no other surpasses in everything."""

    members: tuple[Name, ...]
    """The members, by the first objective, the best first."""
    estimates: dict[Name, tuple[Estimate, ...]]
    """For all setups, an estimate for each objective."""
    perhaps: tuple[Name, ...]
    """Setups that are not on it, but that may be chance."""


def places(
    names: Sequence[Name], values: Floats, better: Better, resolution: float, within: Within
) -> list[Place[Name]]:
    """Ranks setups by their values (setups × seeds), the best first; of equal means, the first of the names."""
    if not names:
        return []
    costs = values if better == "lower" else -values
    first, *others = np.argsort(costs.mean(axis=1), kind="stable").tolist()
    means = estimates(list(values), within)
    beaten = _not_more(costs[others], costs[first], resolution)
    chances = holm([min(1.0, 2 * float(chance)) for chance in beaten])
    ranked = [Place(names[first], means[first], None, None)]
    for number, chance in zip(others, chances, strict=True):
        behind = difference(values[first], values[number], True, resolution, within)
        low, high = student_bounds(values[number] - values[first], resolution)
        behind = replace(behind, low=low, high=high)
        known = chance if values.shape[1] > 1 else None
        ranked.append(Place(names[number], means[number], behind, known))
    return ranked


def front(
    names: Sequence[Name],
    values: Floats,
    better: Sequence[Better],
    resolutions: Sequence[float],
    within: Sequence[Within],
) -> Front[Name]:
    """Finds the setups of which none other is at least as good in every mean, and better in one (Pareto). `values`:
    objectives × setups × seeds."""
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
        names[place] for place, chance in zip(others, sure, strict=True) if chance >= level_of(1)
    ]
    return Front(tuple(names[place] for place in order), by_name, tuple(perhaps))


def _undominated(means: Floats) -> npt.NDArray[np.bool_]:
    """Marks the setups (setups × objectives) that are on the front, beginning with the best of the first."""
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
    """The p-value that no member of the front is better in everything (an intersection-union test: Berger, 1982;
    Bonferroni over members). Where both are equal with every seed, that is enough."""
    if costs.shape[2] == 1:
        return 1.0
    chances = np.zeros(len(members))
    for objective, resolution in zip(costs, resolutions, strict=True):
        for number, member in enumerate(members):
            if not np.array_equal(objective[place], objective[member]):
                worse = _not_more(objective[place], objective[member], resolution)
                chances[number] = max(chances[number], float(worse))
    return min(1.0, float(chances.min()) * len(members))
