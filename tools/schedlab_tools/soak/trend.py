# SPDX-License-Identifier: MIT
"""How fast a figure grows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95
WARM_UP = 0.25
"""The part of the time in which caches fill, which is no leak."""
BATCHES = 20
"""Neighbouring samples depend on each other; means of this many stretches do so less."""


@dataclass(frozen=True)
class Trend:
    """A straight line through a figure, after the warm-up."""

    per_hour: float
    low: float
    high: float
    """The slope lies between `low` and this with a confidence of 95 %."""

    @property
    def grows(self) -> bool:
        """The interval is above zero."""
        return self.low > 0


def trend(seconds: Sequence[float], values: Sequence[float]) -> Trend | None:
    """Returns the slope of least squares through the means of batches, with Student's interval.

    Returns None if there are fewer than two samples for each batch. `seconds`: when each value was
    taken, in order. Method of batch means: Conway (1963).
    """
    times, figures = np.asarray(seconds, float), np.asarray(values, float)
    warm = times >= times[0] + WARM_UP * (times[-1] - times[0]) if len(times) else times > 0
    times, figures = times[warm], figures[warm]
    if len(times) < 2 * BATCHES:
        return None
    hours = np.array([part.mean() for part in np.array_split(times, BATCHES)]) / 3600
    means = np.array([part.mean() for part in np.array_split(figures, BATCHES)])
    from scipy import stats  # takes longer to import than a soak to begin

    line = stats.linregress(hours, means)
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, BATCHES - 2)) * float(line.stderr)
    slope = float(line.slope)
    if math.isclose(float(np.ptp(means)), 0, abs_tol=1e-9):
        slope = reach = 0.0
    return Trend(slope, slope - reach, slope + reach)
