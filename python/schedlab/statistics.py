# SPDX-License-Identifier: MIT
"""What several seeds allow to be said: means with their intervals, and differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
_RESAMPLES = 2000
_SEED = 1


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds, and between what bounds the mean over all seeds probably lies."""

    mean: float
    low: float
    high: float
    count: int
    """Seeds. Of one, or of equal values, the bounds are the mean itself: see `bounded`."""

    @property
    def bounded(self) -> bool:
        """Is there an interval? One seed gives none."""
        return self.count > 1


def estimate(values: Sequence[float]) -> Estimate:
    """The mean with its bootstrap interval of 95 % (BCa: Efron, 1987). Raises ValueError for none.

    The same values give the same bounds, whenever they are computed.
    """
    if not len(values):
        raise ValueError("there is no value to take the mean of")
    sample = np.asarray(values, float)
    mean = float(sample.mean())
    if len(sample) == 1 or np.ptp(sample) == 0:
        return Estimate(mean, mean, mean, len(sample))
    interval = stats.bootstrap(
        (sample,),
        np.mean,
        confidence_level=CONFIDENCE,
        n_resamples=_RESAMPLES,
        rng=np.random.default_rng(_SEED),
    ).confidence_interval
    return Estimate(mean, float(interval.low), float(interval.high), len(sample))
