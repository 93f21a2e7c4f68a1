# SPDX-License-Identifier: MIT
"""Computes mean response times of jobs with Poisson arrivals in the steady state, from arrival to completion.

All functions take the arrival rate, and times in its unit. There are no costs except the jobs'
work. Each returns infinity for an overload. `work` is the service time of a job: its mean, and the
mean of its square.
"""

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


def first_come_response(rate: float, work: Work) -> float:
    """Returns the mean response time of M/G/1, first come, first served (F. Pollaczek, 1930; A. Khinchine, 1932)."""
    idle = 1 - rate * work.mean
    return work.mean + rate * work.square / (2 * idle) if idle > 0 else math.inf


def several_servers_response(rate: float, mean: float, servers: int) -> float:
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


def processor_sharing_response(rate: float, mean: float) -> float:
    """Returns the mean response time of M/G/1 with processor sharing: round-robin with slices much
    shorter than the work.

    Sources: M. Sakata, S. Noguchi, J. Oizumi, 1969; L. Kleinrock, 1967.
    """
    idle = 1 - rate * mean
    return mean / idle if idle > 0 else math.inf


def processor_sharing_slowdown(rate: float, mean: float) -> float:
    """Returns the mean slowdown (response time ÷ work) under processor sharing, which is equal for all jobs."""
    return processor_sharing_response(rate, mean) / mean


@dataclass(frozen=True)
class Delay:
    """The delay of a job: it waits first, and then takes `stretch` times its work."""

    wait: float
    stretch: float

    def response_time(self, work: float) -> float:
        """Returns the mean response time of a job with this work."""
        return self.wait + self.stretch * work


def priority_delays(classes: Sequence[tuple[float, Work]], preemptive: bool) -> list[Delay]:
    """Returns the mean delay of each class in M/G/1 with priorities.

    `classes`: the arrival rate and work of each class, the most urgent first. Within a class, jobs
    are served first come, first served. `preemptive`: an interrupted job later resumes where it
    stopped.

    Sources: A. Cobham, 1954; preemptive: H. White and L. S. Christie, 1958.
    """
    delays = []
    above, below = 0.0, 0.0
    residual = 0.0 if preemptive else _mean_residual_work(classes)
    for rate, work in classes:
        load_until = above + rate * work.mean
        below += rate * work.square / 2
        if load_until >= 1:
            delays.append(Delay(math.inf, 1.0))
        else:
            waits = (below if preemptive else residual) / ((1 - above) * (1 - load_until))
            delays.append(Delay(waits, 1 / (1 - above) if preemptive else 1.0))
        above = load_until
    return delays


def _mean_residual_work(classes: Sequence[tuple[float, Work]]) -> float:
    """Returns the mean residual work of the job in service, averaged over time.

    A class that would overload the server gets the capacity that more urgent classes leave.
    """
    capacity, total = 1.0, 0.0
    for rate, work in classes:
        load = rate * work.mean
        served_fraction = min(1.0, capacity / load) if load > 0 else 1.0
        capacity -= served_fraction * load
        total += served_fraction * rate * work.square / 2
    return total


def shortest_remaining_response(rate: float, quantile: Callable[[float], float]) -> float:
    """Returns the mean response time of M/G/1 with shortest remaining time first, the smallest of all disciplines.

    `quantile`: the quantile function of the work, which must be continuous. It is evaluated at
    20,000 points. Source: L. Schrage and L. Miller, 1966.
    """
    steps = 20_000
    probabilities = (np.arange(steps) + 0.5) / steps
    work = np.array([quantile(float(probability)) for probability in probabilities])
    load = rate * np.cumsum(work) / steps
    if load[-1] >= 1:
        return math.inf
    squares = np.cumsum(work**2) / steps + work**2 * (1 - probabilities)
    waits = rate * squares / (2 * (1 - load) ** 2)
    increments = np.diff(work, prepend=0.0)
    load_before = np.concatenate(([0.0], load[:-1]))
    service_times = np.cumsum(increments / (1 - load_before))
    return float(np.mean(waits + service_times))


def first_come_end_times(
    arrivals: Sequence[int], work: Sequence[int], servers: int = 1
) -> list[int]:
    """Returns when each job ends, first come, first served without preemption, by equal servers with one queue.

    `arrivals` must be sorted; all times have the same unit. Sources: D. V. Lindley, 1952, for one
    server; J. Kiefer and J. Wolfowitz, 1955, for several.
    """
    free_at = [0] * servers
    ends = []
    for arrival, service_time in zip(arrivals, work, strict=True):
        end = max(free_at[0], arrival) + service_time
        heapq.heapreplace(free_at, end)
        ends.append(end)
    return ends
