# SPDX-License-Identifier: MIT
"""Mean times that jobs of a Poisson process stay, from arrival to end, in the long run.

All take the rate at which jobs arrive, and times in its unit. Nothing but the work takes time. Each
returns infinity for a load that the servers cannot bear. `work` is what a job takes by itself:
the mean, and the mean of the square.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Work:
    """The work of a job: its mean, and the mean of its square."""

    mean: float
    square: float


def first_come(rate: float, work: Work) -> float:
    """M/G/1, first come, first served. Source: F. Pollaczek 1930, A. Khinchine 1932."""
    idle = 1 - rate * work.mean
    return work.mean + rate * work.square / (2 * idle) if idle > 0 else math.inf


def several_servers(rate: float, mean: float, servers: int) -> float:
    """M/M/k, first come, first served: the work is distributed exponentially. Source: A. K. Erlang
    1917 (his formula C)."""
    offered = rate * mean
    if offered >= servers:
        return math.inf
    blocked = 1.0  # Erlang's formula B, by its recursion
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    waits = servers * blocked / (servers - offered * (1 - blocked))
    return mean + waits * mean / (servers - offered)


def processor_sharing(rate: float, mean: float) -> float:
    """M/G/1, all jobs at once at equal speed: round-robin with slices that are short beside the work.
    Source: M. Sakata, S. Noguchi, J. Oizumi 1969; L. Kleinrock 1967."""
    idle = 1 - rate * mean
    return mean / idle if idle > 0 else math.inf


def processor_sharing_slowdown(rate: float, mean: float) -> float:
    """The mean of the time that a job stays ÷ its work, under the same: it is the same for all jobs."""
    return processor_sharing(rate, mean) / mean


@dataclass(frozen=True)
class Delay:
    """What a job of a class meets: it waits, and takes so many times its work from then on."""

    wait: float
    stretch: float

    def stay(self, work: float) -> float:
        """The mean time of a job with this work, from its arrival to its end."""
        return self.wait + self.stretch * work


def priorities(classes: Sequence[tuple[float, Work]], preemptive: bool) -> list[Delay]:
    """M/G/1 with classes of jobs, the most urgent first, each with its rate: the delay of each
    class. Within a class first come, first served; `preemptive`: one that is interrupted goes on
    later where it was.

    Source: A. Cobham 1954; H. White and L. S. Christie 1958 for the preemptive.
    """
    times = []
    above, below = 0.0, 0.0
    residual = 0.0 if preemptive else _residual(classes)
    for rate, work in classes:
        until = above + rate * work.mean
        below += rate * work.square / 2
        if until >= 1:
            times.append(Delay(math.inf, 1.0))
        else:
            waits = (below if preemptive else residual) / ((1 - above) * (1 - until))
            times.append(Delay(waits, 1 / (1 - above) if preemptive else 1.0))
        above = until
    return times


def _residual(classes: Sequence[tuple[float, Work]]) -> float:
    """What is left, in the mean over time, of the job that is served. Of a class that the server cannot bear it
    serves what the classes above leave."""
    left, total = 1.0, 0.0
    for rate, work in classes:
        load = rate * work.mean
        served = min(1.0, left / load) if load > 0 else 1.0
        left -= served * load
        total += served * rate * work.square / 2
    return total


def shortest_remaining(
    rate: float, quantile: Callable[[float], float], steps: int = 20_000
) -> float:
    """M/G/1, the job with the least work left first: no discipline has a smaller mean.

    `quantile`: how much work a job has that this part of all jobs has at most; of a distribution
    without steps. Computed at so many steps. Source: L. Schrage and L. Miller 1966.
    """
    part = (np.arange(steps) + 0.5) / steps
    work = np.array([quantile(float(probability)) for probability in part])
    load = rate * np.cumsum(work) / steps
    if load[-1] >= 1:
        return math.inf
    squares = np.cumsum(work**2) / steps + work**2 * (1 - part)
    waits = rate * squares / (2 * (1 - load) ** 2)
    grows = np.diff(work, prepend=0.0)
    before = np.concatenate(([0.0], load[:-1]))
    stays = np.cumsum(grows / (1 - before))
    return float(np.mean(waits + stays))


def first_come_ends(arrivals: Sequence[int], work: Sequence[int], servers: int = 1) -> list[int]:
    """Returns when each job ends if jobs are served first come, first served, without interruption,
    by so many alike servers with one line. Times are in their order, and all in the same unit.

    Source: D. V. Lindley 1952 for one server; J. Kiefer and J. Wolfowitz 1955 for several.
    """
    free = [0] * servers
    ends = []
    for when, takes in zip(arrivals, work, strict=True):
        end = max(free[0], when) + takes
        heapq.heapreplace(free, end)
        ends.append(end)
    return ends
