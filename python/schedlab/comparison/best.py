# SPDX-License-Identifier: MIT
"""Which policy is best over all seeds, and which cannot be told from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from schedlab.comparison.statistics import (
    CONFIDENCE,
    FEW,
    NOISE,
    Floats,
    chances_of_more,
    checked,
    sign_flips,
)

Better = Literal["lower", "higher"]


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


def level_of(looks: int) -> float:
    """Returns the level of each of so many looks, so that the best policy is out at any of them in 5 % of cases at
    most (Bonferroni; for looks at data that grow, Pocock, 1977, and O'Brien and Fleming, 1979, have other parts)."""
    return (1 - CONFIDENCE) / looks


def _worse(costs: Floats, resolution: float) -> Floats:
    """The p-value, for policies × seeds, that one policy (row) does not cost more than another
    (column)."""
    policies, count = costs.shape
    if count == 1:
        return np.ones((policies, policies))
    differences = costs[:, np.newaxis, :] - costs[np.newaxis, :, :]
    noise = NOISE * float(np.abs(costs).max())
    if count < FEW:
        return chances_of_more(differences, resolution, noise)
    means = differences.mean(axis=-1)
    result: Floats = np.where(means > noise, sign_flips(means - noise, differences), 1.0)
    return result
