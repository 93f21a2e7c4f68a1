# SPDX-License-Identifier: MIT
"""Where a policy is at its best and at its worst, beside all others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from schedlab.errors import SchedlabError


@dataclass(frozen=True)
class Contest:
    """All policies by one measure, of which less is better, under one workload on so many CPUs."""

    workload: str
    cpus: int
    measure: str
    alike: float
    """Values below this are told apart by no user: they count as this."""
    values: Mapping[str, tuple[float, ...]]
    """By policy: a value for each seed."""

    def mean(self, policy: str) -> float:
        """Returns the policy's mean over the seeds."""
        return sum(self.values[policy]) / len(self.values[policy])

    @property
    def typical(self) -> str:
        """The policy in the middle of all, by their means; of several, the first by name."""
        middle = median(self.mean(each) for each in self.values)
        return min(self.values, key=lambda each: (abs(self.mean(each) - middle), each))

    def factor(self, policy: str) -> float:
        """Returns how many times the typical policy's value this one's is, where that is sure: of the values of
        all seeds those that are nearest to each other are taken, and 1 where the two cannot be told apart."""
        own, usual = (
            [max(value, self.alike) for value in self.values[name]]
            for name in (policy, self.typical)
        )
        if min(own) > max(usual):
            return min(own) / max(usual)
        if max(own) < min(usual):
            return max(own) / min(usual)
        return 1.0


@dataclass(frozen=True)
class Extremes:
    """Contests in which a policy differs most from the typical one; None: it is nowhere better, or worse."""

    best: Contest | None
    worst: Contest | None


def extremes(contests: Iterable[Contest], policy: str) -> Extremes:
    """Returns the policy's best and worst contest. Of equals, the first by workload, CPUs and measure.

    Raises SchedlabError if the policy is in no contest.
    """
    own = sorted(
        (each for each in contests if policy in each.values),
        key=lambda each: (each.workload, each.cpus, each.measure),
    )
    if not own:
        raise SchedlabError(f"no contest has a value of {policy}")
    best = min(own, key=lambda each: each.factor(policy))
    worst = max(own, key=lambda each: each.factor(policy))
    return Extremes(
        best if best.factor(policy) < 1 else None, worst if worst.factor(policy) > 1 else None
    )
