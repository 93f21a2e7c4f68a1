# SPDX-License-Identifier: MIT
"""How equal a set of numbers is, and how alike a set of runs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def steady_sum(values: npt.ArrayLike) -> float:
    """The sum from the smallest to the largest: whatever order the values come in, and whatever adds
    them up, it is the same to the last bit."""
    x = np.sort(np.asarray(values, np.float64))
    return float(np.cumsum(x)[-1]) if len(x) else 0.0


def jain_index(values: npt.ArrayLike) -> float | None:
    """(Σx)² ÷ (n Σx²): 1 if all are equal, 1/n if one has all (Jain, Chiu and Hawe, 1984).

    None: there are no values, or all are 0.
    """
    x = np.asarray(values, np.float64)
    largest = x.max(initial=0.0)
    if len(x) == 0 or largest <= 0:
        return None
    x = x / largest  # so that squares neither overflow nor vanish
    total = steady_sum(x)
    return total * total / (len(x) * steady_sum(x * x))


def interquartile_range(values: npt.ArrayLike) -> float | None:
    """Returns third quartile − first quartile, interpolated linearly, or None if there are no values."""
    x = np.asarray(values, np.float64)
    if len(x) == 0:
        return None
    low, high = np.quantile(x, (0.25, 0.75))
    return float(high - low)
