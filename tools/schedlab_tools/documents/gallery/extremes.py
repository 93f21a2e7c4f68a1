# SPDX-License-Identifier: MIT
"""Finds each policy's best and worst results compared with all others."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from schedlab.errors import SchedlabError


@dataclass(frozen=True)
class PolicyComparison:
    """All policies by one measure (less is better), under one workload on a number of CPUs."""

    workload: str
    cpus: int
    measure: str
    noticeable: float
    """Smaller values count as this, because users cannot notice the difference."""
    values: Mapping[str, tuple[float, ...]]
    """By policy: a value for each seed."""

    def mean(self, policy: str) -> float:
        """Returns the policy's mean over the seeds."""
        return sum(self.values[policy]) / len(self.values[policy])

    @property
    def typical(self) -> str:
        """The policy with the median of all means; of several, the first by name."""
        middle = median(self.mean(policy) for policy in self.values)
        return min(self.values, key=lambda policy: (abs(self.mean(policy) - middle), policy))

    def factor(self, policy: str) -> float:
        """Returns the ratio of the policy's value to the typical policy's; 1 if their ranges over the seeds overlap.

        The ratio uses the two closest values of any seeds, so it is a lower bound of the
        difference.
        """
        values, usual = (
            [max(value, self.noticeable) for value in self.values[name]]
            for name in (policy, self.typical)
        )
        if min(values) > max(usual):
            return min(values) / max(usual)
        if max(values) < min(usual):
            return max(values) / min(usual)
        return 1.0


@dataclass(frozen=True)
class Extremes:
    """The comparisons with the largest differences from the typical policy; None if there is none in that direction."""

    best: PolicyComparison | None
    worst: PolicyComparison | None


def extremes(comparisons: Iterable[PolicyComparison], policy: str) -> Extremes:
    """Returns the policy's best and worst comparison. Of equals, the first by workload, CPUs and measure.

    Raises SchedlabError if the policy is in no comparison.
    """
    policy_comparisons = sorted(
        (comparison for comparison in comparisons if policy in comparison.values),
        key=lambda comparison: (comparison.workload, comparison.cpus, comparison.measure),
    )
    if not policy_comparisons:
        raise SchedlabError(f"no contest has a value of {policy}")
    best = min(policy_comparisons, key=lambda comparison: comparison.factor(policy))
    worst = max(policy_comparisons, key=lambda comparison: comparison.factor(policy))
    return Extremes(
        best if best.factor(policy) < 1 else None, worst if worst.factor(policy) > 1 else None
    )
