# SPDX-License-Identifier: MIT
"""Implements the distribution functions and quantiles of Student's t and the normal distribution.

SciPy provides them but is 36 MB, a quarter of the first installation's download.
tests/comparison/test_students_t.py compares these functions with SciPy's.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_NORMAL = NormalDist()
_STEPS = 400
"""Terms of the continued fraction. About 100 are needed for a million degrees of freedom."""
_TINY = 1e-300
_EXACT = 1e-15


def normal_below(values: Floats) -> Floats:
    """Returns, for each value, the probability that a standard normal variable is smaller."""
    halved = [math.erfc(-value / math.sqrt(2)) / 2 for value in values.flat]
    return np.array(halved).reshape(values.shape)


def normal_quantile(p_values: Floats) -> Floats:
    """Returns the quantiles of the standard normal distribution for probabilities between 0 and 1."""
    return np.array([_NORMAL.inv_cdf(p_value) for p_value in p_values.flat]).reshape(p_values.shape)


def student_below(freedom: float, values: npt.ArrayLike) -> Floats:
    """Returns, for each value, the probability that a Student's t variable is smaller. `freedom`
    (above 0): degrees of freedom.
    """
    given = np.asarray(values, np.float64)
    squared = given**2
    inner = squared / (
        freedom + squared
    )  # the two arguments of the beta function, `inner` and `outer`, add up to 1
    outer = freedom / (freedom + squared)
    swapped = inner < 1.5 / (freedom / 2 + 2.5)  # the other tail's fraction converges here
    near = 1 - _beta_tail(0.5, freedom / 2, np.where(swapped, inner, 0.0))
    far = _beta_tail(freedom / 2, 0.5, np.where(swapped, 0.0, outer))
    tail = np.where(swapped, near, far) / 2
    return np.where(given > 0, 1 - tail, tail)


@cache
def student_quantile(freedom: float, p_value: float) -> float:
    """Returns the quantile of Student's t for a probability of at least 0.5, by Newton's method."""
    scale = (
        math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    )
    value = _NORMAL.inv_cdf(
        p_value
    )  # the start is below the root, and the function is concave above 0
    for _ in range(200):
        density = math.exp(scale - (freedom + 1) / 2 * math.log1p(value**2 / freedom))
        step = (p_value - float(student_below(freedom, value))) / density
        value += step
        if abs(step) <= _EXACT * abs(value):
            break
    return value


def _beta_tail(first: float, second: float, values: Floats) -> Floats:
    """Returns the regularised incomplete beta function by its continued fraction (Lentz, 1976).

    The fraction converges quickly for values below (first + 1) / (first + second + 2).
    """
    front = math.lgamma(first + second) - math.lgamma(first) - math.lgamma(second) - math.log(first)
    clipped = np.clip(values, _TINY, 1.0)
    factor = np.exp(
        front + first * np.log(clipped) + second * np.log1p(-np.minimum(clipped, 1 - 2**-53))
    )
    upper = np.ones_like(clipped)
    lower = 1 / _are_distinct(1 - (first + second) / (first + 1) * clipped)
    fraction = lower
    for step in range(1, _STEPS):
        place = first + 2 * step
        even = step * (second - step) / ((place - 1) * place)
        odd = -(first + step) * (first + second + step) / (place * (place + 1))
        before = fraction
        for term in (even, odd):
            lower = 1 / _are_distinct(1 + term * clipped * lower)
            upper = _are_distinct(1 + term * clipped / upper)
            fraction = fraction * lower * upper
        if bool((np.abs(fraction - before) <= _EXACT * np.abs(fraction)).all()):
            break
    return np.where(values > 0, factor * fraction, 0.0)


def _are_distinct(values: Floats) -> Floats:
    """Replaces values close to 0, so that they can be divisors."""
    return np.where(np.abs(values) < _TINY, _TINY, values)
