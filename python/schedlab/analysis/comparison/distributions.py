# SPDX-License-Identifier: MIT
"""Implements the distribution functions and quantiles of Student's t and the normal distribution.

SciPy provides them but is 36 MB, a quarter of the first installation's download.
tests/comparison/test_students_t.py compares these functions with SciPy's.
"""

import math
from functools import cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_NORMAL = NormalDist()
_TERMS_MAX = 400
"""Terms of the continued fraction. About 100 are needed for a million degrees of freedom."""
_SMALLEST_DIVISOR = 1e-300
_PRECISION = 1e-15


def normal_cdf(values: Floats) -> Floats:
    """Returns, for each value, the probability that a standard normal variable is smaller."""
    probabilities = [math.erfc(-value / math.sqrt(2)) / 2 for value in values.flat]
    return np.array(probabilities).reshape(values.shape)


def normal_quantile(p_values: Floats) -> Floats:
    """Returns the quantiles of the standard normal distribution for probabilities between 0 and 1."""
    return np.array([_NORMAL.inv_cdf(p_value) for p_value in p_values.flat]).reshape(p_values.shape)


def student_t_cdf(freedom: float, values: npt.ArrayLike) -> Floats:
    """Returns, for each value, the probability that a Student's t variable is smaller. `freedom`
    (above 0): degrees of freedom.
    """
    t_values = np.asarray(values, np.float64)
    squared = t_values**2
    inner_argument = squared / (
        freedom + squared
    )  # the two arguments of the beta function, `inner_argument` and `outer_argument`, add up to 1
    outer_argument = freedom / (freedom + squared)
    swapped = inner_argument < 1.5 / (freedom / 2 + 2.5)  # the other tail's fraction converges here
    near_tail = 1 - _beta_tail(0.5, freedom / 2, np.where(swapped, inner_argument, 0.0))
    far_tail = _beta_tail(freedom / 2, 0.5, np.where(swapped, 0.0, outer_argument))
    tail = np.where(swapped, near_tail, far_tail) / 2
    return np.where(t_values > 0, 1 - tail, tail)


@cache
def student_t_quantile(freedom: float, p_value: float) -> float:
    """Returns the quantile of Student's t for a probability of at least 0.5, by Newton's method."""
    scale = (
        math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    )
    value = _NORMAL.inv_cdf(
        p_value
    )  # the start is below the root, and the function is concave above 0
    for _ in range(200):
        density = math.exp(scale - (freedom + 1) / 2 * math.log1p(value**2 / freedom))
        step = (p_value - float(student_t_cdf(freedom, value))) / density
        value += step
        if abs(step) <= _PRECISION * abs(value):
            break
    return value


def _beta_tail(first: float, second: float, values: Floats) -> Floats:
    """Returns the regularised incomplete beta function by its continued fraction (Lentz, 1976).

    The fraction converges quickly for values below (first + 1) / (first + second + 2).
    """
    front = math.lgamma(first + second) - math.lgamma(first) - math.lgamma(second) - math.log(first)
    clipped = np.clip(values, _SMALLEST_DIVISOR, 1.0)
    factor = np.exp(
        front + first * np.log(clipped) + second * np.log1p(-np.minimum(clipped, 1 - 2**-53))
    )
    upper = np.ones_like(clipped)
    lower = 1 / _avoid_zero(1 - (first + second) / (first + 1) * clipped)
    fraction = lower
    for step in range(1, _TERMS_MAX):
        denominator_index = first + 2 * step
        even = step * (second - step) / ((denominator_index - 1) * denominator_index)
        odd = (
            -(first + step)
            * (first + second + step)
            / (denominator_index * (denominator_index + 1))
        )
        previous = fraction
        for term in (even, odd):
            lower = 1 / _avoid_zero(1 + term * clipped * lower)
            upper = _avoid_zero(1 + term * clipped / upper)
            fraction = fraction * lower * upper
        if bool((np.abs(fraction - previous) <= _PRECISION * np.abs(fraction)).all()):
            break
    return np.where(values > 0, factor * fraction, 0.0)


def _avoid_zero(values: Floats) -> Floats:
    """Replaces values close to 0, so that they can be divisors."""
    return np.where(np.abs(values) < _SMALLEST_DIVISOR, _SMALLEST_DIVISOR, values)
