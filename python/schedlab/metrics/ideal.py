# SPDX-License-Identifier: MIT
"""What each process should get: the weighted max-min allocation of CPUs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def ideal_shares(weights: npt.ArrayLike, demands: npt.ArrayLike, cpus: float) -> Floats:
    """The weighted max-min allocation: how many CPUs each process should get.

    `demands` are in CPUs: how much each would use if it never had to wait. No
    process gets more than it asks for, nor more than one CPU; what it leaves is
    shared among the others in proportion to their weights (progressive filling:
    Bertsekas and Gallager, Data Networks, 1987). The sum is the lesser of what
    is there and what is asked for; divide by it to have shares.

    Raises ValueError for a weight that is not above 0, a demand below 0, no CPUs,
    or arrays of different length.
    """
    return max_min(weights, np.minimum(np.asarray(demands, np.float64), 1.0), cpus)


def max_min(weights: npt.ArrayLike, wishes: npt.ArrayLike, cpus: float) -> Floats:
    """The same, where a wish may be more than one CPU: that of a group of processes."""
    weight = np.asarray(weights, np.float64)
    wish = np.asarray(wishes, np.float64)
    if weight.ndim != 1 or weight.shape != wish.shape:
        raise ValueError("weights and demands must be lists of the same length")
    if not (np.isfinite(weight) & (weight > 0)).all():
        raise ValueError("a weight must be above 0")
    if not (wish >= 0).all():
        raise ValueError("a demand must not be below 0")
    if not cpus > 0:
        raise ValueError("there must be at least a part of a CPU")
    # The process that asks for least, measured by weight, is satisfied first. Of equal ones, the one that
    # asks for less: so the order in which they come changes no sum.
    order = np.lexsort((wish, wish / weight))
    filled = _fill(weight[order], wish[order], float(cpus))
    allocation = np.empty_like(wish)
    allocation[order] = filled
    return allocation


def _fill(weight: Floats, wish: Floats, cpus: float) -> Floats:
    """The same, for processes sorted by wish ÷ weight."""
    taken_before = np.concatenate(([0.0], np.cumsum(wish)[:-1]))
    weight_from_here = np.cumsum(weight[::-1])[::-1]
    level = np.maximum(cpus - taken_before, 0.0) / weight_from_here
    unsatisfied = np.flatnonzero(wish > weight * level)
    if len(unsatisfied) == 0:
        return wish
    first = int(unsatisfied[0])
    return np.concatenate((wish[:first], weight[first:] * level[first]))
