# SPDX-License-Identifier: MIT
"""The CPU time of groups on one infinitely divisible CPU: by weight, each within its quota."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class FluidGroup:
    """A group whose tasks always compute; times in nanoseconds. A `quota` of 0 sets no limit."""

    weight: int
    quota: int = 0
    period: int = 100_000_000


def fluid_service(groups: Sequence[FluidGroup], end: int) -> list[float]:
    """Returns the nanoseconds that each group gets from 0 to `end`. At any moment the groups that
    have quota left share the CPU by weight; the unused part of a quota is lost at the end of its
    period.
    """
    served = [0.0] * len(groups)
    remaining = [float(group.quota) for group in groups]
    now = 0.0
    while now < end:
        ready = [i for i, group in enumerate(groups) if not group.quota or remaining[i] > 1e-3]
        weight = sum(groups[i].weight for i in ready)
        refills = {i: (now // g.period + 1) * g.period for i, g in enumerate(groups) if g.quota}
        until = min([end, *refills.values()])
        rates = {i: groups[i].weight / weight for i in ready}
        until = min([until, *(now + remaining[i] / rates[i] for i in ready if groups[i].quota)])
        for i, rate in rates.items():
            served[i] += rate * (until - now)
            remaining[i] -= rate * (until - now)
        for i, refill in refills.items():
            if refill <= until:
                remaining[i] = groups[i].quota
        now = until
    return served
