# SPDX-License-Identifier: MIT
"""Measures how equal a set of numbers is, and how much a set of runs varies."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def steady_sum(values: npt.ArrayLike) -> float:
    """Returns the sum in ascending order, so that it does not depend on the order of the values."""
    ordered_values = np.sort(np.asarray(values, np.float64))
    return float(np.cumsum(ordered_values)[-1]) if len(ordered_values) else 0.0


def jain_index(values: npt.ArrayLike) -> float | None:
    """Returns (Σx)² ÷ (n Σx²): 1 if all are equal, 1/n if one has everything (Jain, Chiu and Hawe, 1984).

    Returns None if there are no values, or if all are 0.
    """
    scaled = np.asarray(values, np.float64)
    largest = scaled.max(initial=0.0)
    if len(scaled) == 0 or largest <= 0:
        return None
    scaled = scaled / largest  # avoids overflow and underflow of squares
    total = steady_sum(scaled)
    return total * total / (len(scaled) * steady_sum(scaled * scaled))


def interquartile_range(values: npt.ArrayLike) -> float | None:
    """Returns third quartile − first quartile, interpolated linearly, or None if there are no values."""
    x = np.asarray(values, np.float64)
    if len(x) == 0:
        return None
    low, high = quantiles(x, (0.25, 0.75))
    return high - low


def quantiles(values: npt.NDArray[np.float64], parts: Sequence[float]) -> list[float]:
    """Returns quantiles, interpolated linearly, exactly as numpy's quantile().

    It takes a twentieth of the time for a few values. `values` must not be empty.
    """
    ordered = np.sort(values)
    last = len(ordered) - 1
    results = []
    for part in parts:
        place = last * part
        index = math.floor(place)
        low, high = float(ordered[index]), float(ordered[min(index + 1, last)])
        weight = place - index
        distance = high - low
        # The two forms differ in rounding.
        results.append(high - distance * (1 - weight) if weight >= 0.5 else low + distance * weight)
    return results
