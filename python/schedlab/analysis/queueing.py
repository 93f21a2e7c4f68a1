# SPDX-License-Identifier: MIT
"""Computes mean response times of jobs with Poisson arrivals in the steady state, from arrival to completion.

All functions take the arrival rate, and times in its unit. There are no costs except the jobs'
work. Each returns infinity for an overload. `work` is the service time of a job: its mean, and the
mean of its square.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Work:
    """The service time of a job: its mean, and the mean of its square."""

    mean: float
    square: float


def first_come(rate: float, work: Work) -> float:
    """Returns the mean response time of M/G/1, first come, first served (F. Pollaczek, 1930; A. Khinchine, 1932)."""
    idle = 1 - rate * work.mean
    return work.mean + rate * work.square / (2 * idle) if idle > 0 else math.inf


def several_servers(rate: float, mean: float, servers: int) -> float:
    """Returns the mean response time of M/M/k, first come, first served (A. K. Erlang, 1917, formula C).

    The service time has an exponential distribution.
    """
    offered = rate * mean
    if offered >= servers:
        return math.inf
    blocked = 1.0  # Erlang's formula B, by its recursion
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    waits = servers * blocked / (servers - offered * (1 - blocked))
    return mean + waits * mean / (servers - offered)


def processor_sharing(rate: float, mean: float) -> float:
    """Returns the mean response time of M/G/1 with processor sharing: round-robin with slices much
    shorter than the work.

    Sources: M. Sakata, S. Noguchi, J. Oizumi, 1969; L. Kleinrock, 1967.
    """
    idle = 1 - rate * mean
    return mean / idle if idle > 0 else math.inf


def processor_sharing_slowdown(rate: float, mean: float) -> float:
    """Returns the mean slowdown (response time ÷ work) under processor sharing, which is equal for all jobs."""
    return processor_sharing(rate, mean) / mean


@dataclass(frozen=True)
class Delay:
    """The delay of a job: it waits first, and then takes `stretch` times its work."""

    wait: float
    stretch: float

    def stay(self, work: float) -> float:
        """Returns the mean response time of a job with this work."""
        return self.wait + self.stretch * work


def priorities(classes: Sequence[tuple[float, Work]], preemptive: bool) -> list[Delay]:
    """Returns the mean delay of each class in M/G/1 with priorities.

    `classes`: the arrival rate and work of each class, the most urgent first. Within a class, jobs
    are served first come, first served. `preemptive`: an interrupted job later resumes where it
    stopped.

    Sources: A. Cobham, 1954; preemptive: H. White and L. S. Christie, 1958.
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
    """Returns the mean residual work of the job in service, averaged over time.

    A class that would overload the server gets the capacity that more urgent classes leave.
    """
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
    """Returns the mean response time of M/G/1 with shortest remaining time first, the smallest of all disciplines.

    `quantile`: the quantile function of the work, which must be continuous. It is evaluated at
    `steps` points. Source: L. Schrage and L. Miller, 1966.
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
    """Returns when each job ends, first come, first served without preemption, by equal servers with one queue.

    `arrivals` must be sorted; all times have the same unit. Sources: D. V. Lindley, 1952, for one
    server; J. Kiefer and J. Wolfowitz, 1955, for several.
    """
    free = [0] * servers
    ends = []
    for when, takes in zip(arrivals, work, strict=True):
        end = max(free[0], when) + takes
        heapq.heapreplace(free, end)
        ends.append(end)
    return ends
