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
        middle = median(self.mean(policy) for policy in self.values)
        return min(self.values, key=lambda policy: (abs(self.mean(policy) - middle), policy))

    def factor(self, policy: str) -> float:
        """Returns how many times the typical policy's value this one's is, where that is sure: of the values of
        all seeds those that are nearest to each other are taken, and 1 where the two cannot be told apart."""
        values, usual = (
            [max(value, self.alike) for value in self.values[name]]
            for name in (policy, self.typical)
        )
        if min(values) > max(usual):
            return min(values) / max(usual)
        if max(values) < min(usual):
            return max(values) / min(usual)
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
    policy_contests = sorted(
        (contest for contest in contests if policy in contest.values),
        key=lambda contest: (contest.workload, contest.cpus, contest.measure),
    )
    if not policy_contests:
        raise SchedlabError(f"no contest has a value of {policy}")
    best = min(policy_contests, key=lambda contest: contest.factor(policy))
    worst = max(policy_contests, key=lambda contest: contest.factor(policy))
    return Extremes(
        best if best.factor(policy) < 1 else None, worst if worst.factor(policy) > 1 else None
    )
