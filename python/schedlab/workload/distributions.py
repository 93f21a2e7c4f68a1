# SPDX-License-Identifier: MIT
"""Probability distributions of the random times and whole numbers of a workload."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from schedlab.workload.times import Time

Uniform = Callable[[], float]
"""Returns a random number between 0 and 1, both excluded."""
_UNIFORM_STEPS = 2**53


def make_uniform(below: Callable[[int], int]) -> Uniform:
    """Returns a generator of random numbers between 0 and 1.

    `below` returns a random integer from 0 to one less than its argument.
    """
    return lambda: _uniform(below(_UNIFORM_STEPS))


def _uniform(number: int) -> float:
    """Returns a fraction strictly between 0 and 1 from a random number."""
    return (number % _UNIFORM_STEPS + 0.5) / _UNIFORM_STEPS


def _choose_index(weights: tuple[float, ...], number: float) -> int:
    """Returns which of the weights a number between 0 and 1 selects."""
    sums = tuple(accumulate(weights))
    position = number * sums[-1]
    return next((i for i, partial_sum in enumerate(sums) if position < partial_sum), len(sums) - 1)


@dataclass(frozen=True)
class Distribution:
    """A distribution of times. Results are in ns; `tick_ns` converts times given in ticks."""

    def draw(self, below: Callable[[int], int], tick_ns: int) -> Time:
        """Draws a time and rounds it to nanoseconds. `below`: as for `make_uniform`."""
        return Time(max(round(self.drawn_ns(make_uniform(below), tick_ns)), 0))

    def draws(self, numbers: npt.NDArray[np.uint64], tick_ns: int) -> npt.NDArray[np.uint64]:
        """Does the same as `draw` for many random numbers at once; returns ns.

        Requires that each draw uses one number.
        """
        uniform = map(_uniform, numbers.tolist()).__next__
        drawn = (self.drawn_ns(uniform, tick_ns) for _ in numbers)
        return np.fromiter((max(round(time), 0) for time in drawn), np.uint64, len(numbers))

    def drawn_ns(self, uniform: Uniform, tick_ns: int) -> float:
        """Returns a random time in ns."""
        raise NotImplementedError

    def moments_ns(self, tick_ns: int) -> tuple[float, float]:
        """Returns the mean of the time (ns) and the mean of its square (ns²), which may be infinite."""
        raise NotImplementedError


@dataclass(frozen=True)
class Constant(Distribution):
    """Always the same time: the mean."""

    mean: Time

    def drawn_ns(self, uniform: Uniform, tick_ns: int) -> float:
        return self.mean.nanoseconds(tick_ns)

    def moments_ns(self, tick_ns: int) -> tuple[float, float]:
        mean = self.mean.nanoseconds(tick_ns)
        return mean, mean**2


@dataclass(frozen=True)
class UniformTimes(Distribution):
    """Uniform distribution between 0 and twice the mean."""

    mean: Time

    def drawn_ns(self, uniform: Uniform, tick_ns: int) -> float:
        return 2 * self.mean.nanoseconds(tick_ns) * uniform()

    def moments_ns(self, tick_ns: int) -> tuple[float, float]:
        mean = self.mean.nanoseconds(tick_ns)
        return mean, 4 * mean**2 / 3


@dataclass(frozen=True)
class Exponential(Distribution):
    """The exponential distribution."""

    mean: Time

    def drawn_ns(self, uniform: Uniform, tick_ns: int) -> float:
        return -self.mean.nanoseconds(tick_ns) * math.log(1 - uniform())

    def moments_ns(self, tick_ns: int) -> tuple[float, float]:
        mean = self.mean.nanoseconds(tick_ns)
        return mean, 2 * mean**2


@dataclass(frozen=True)
class LogNormal(Distribution):
    """Log-normal distribution: the logarithm of the time has the standard deviation `sigma`."""

    mean: Time
    sigma: float

    def drawn_ns(self, uniform: Uniform, tick_ns: int) -> float:
        mean = self.mean.nanoseconds(tick_ns)
        return mean * math.exp(self.sigma * NormalDist().inv_cdf(uniform()) - self.sigma**2 / 2)

    def moments_ns(self, tick_ns: int) -> tuple[float, float]:
        mean = self.mean.nanoseconds(tick_ns)
        return mean, mean**2 * math.exp(self.sigma**2)


@dataclass(frozen=True)
class Pareto(Distribution):
    """Pareto distribution above `least` with the exponent `shape`; bounded if `most` is finite."""

    least: float
    """Nanoseconds."""
    shape: float
    most: float = math.inf

    def drawn_ns(self, uniform: Uniform, tick_ns: int) -> float:
        untruncated_part = 1 - (self.least / self.most) ** self.shape
        return float(self.least * (1 - uniform() * untruncated_part) ** (-1 / self.shape))

    def moments_ns(self, tick_ns: int) -> tuple[float, float]:
        return self._moment(1), self._moment(2)

    def _moment(self, power: int) -> float:
        """Returns the mean of a power of the time."""
        shape, least, most = self.shape, self.least, self.most
        if math.isinf(most):
            return float(shape * least**power / (shape - power)) if shape > power else math.inf
        density = shape * least**shape / (1 - (least / most) ** shape)
        if shape == power:
            return float(density * math.log(most / least))
        exponent = power - shape
        return float(density * (most**exponent - least**exponent) / exponent)


@dataclass(frozen=True)
class Mixture(Distribution):
    """One of several distributions, each chosen with a probability in proportion to its weight."""

    parts: tuple[Distribution, ...]
    weights: tuple[float, ...]

    def drawn_ns(self, uniform: Uniform, tick_ns: int) -> float:
        return self.parts[_choose_index(self.weights, uniform())].drawn_ns(uniform, tick_ns)

    def moments_ns(self, tick_ns: int) -> tuple[float, float]:
        moments = [part.moments_ns(tick_ns) for part in self.parts]
        first, second = (
            sum(
                weight * moment[power] for weight, moment in zip(self.weights, moments, strict=True)
            )
            / sum(self.weights)
            for power in (0, 1)
        )
        return first, second


@dataclass(frozen=True)
class IntegerDistribution:
    """A whole number that is one of `values`, chosen in proportion to `weights`."""

    values: tuple[int, ...] = (1,)
    weights: tuple[float, ...] = (1.0,)

    @property
    def mean(self) -> float:
        pairs = zip(self.values, self.weights, strict=True)
        return sum(value * weight for value, weight in pairs) / sum(self.weights)

    def draw(self, uniform: Uniform) -> int:
        """Draws a number."""
        return self.values[_choose_index(self.weights, uniform())]
