# SPDX-License-Identifier: MIT
"""Times in workload files: fixed ones, and random ones in equal steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Time:
    """A fixed time in nanoseconds or in ticks; a number of ticks may be fractional."""

    number: int | Fraction
    in_ticks: bool = False

    @property
    def in_full_ticks(self) -> bool:
        return self.in_ticks and self.number == int(self.number)

    def nanoseconds(self, tick_ns: int) -> int:
        return round(self.number * tick_ns) if self.in_ticks else int(self.number)


@dataclass(frozen=True)
class RandomTime:
    """A random time: `first` plus a random number of steps, all equally likely."""

    first: Time
    end: Time
    step: Time
    end_counts: bool
    """True if `end` itself may be drawn."""

    @property
    def in_full_ticks(self) -> bool:
        return self.first.in_full_ticks and self.step.in_full_ticks

    def draw(self, below: Callable[[int], int], tick_ns: int) -> Time:
        """Draws a time. `below` returns an integer from 0 to one less than its argument."""
        drawn = below(self.choices(tick_ns))
        if self.in_full_ticks:
            return Time(self.first.number + drawn * self.step.number, in_ticks=True)
        return Time(self.first.nanoseconds(tick_ns) + drawn * self.step.nanoseconds(tick_ns))

    def draws(self, numbers: npt.NDArray[np.uint64], tick_ns: int) -> npt.NDArray[np.uint64]:
        """Does the same as `draw` for many random numbers at once; returns ns."""
        drawn = numbers % np.uint64(self.choices(tick_ns))
        first, step = self.first.nanoseconds(tick_ns), self.step.nanoseconds(tick_ns)
        times: npt.NDArray[np.uint64] = np.uint64(first) + drawn * np.uint64(step)
        return times

    def choices(self, tick_ns: int) -> int:
        """Returns how many different times may be drawn."""
        span = self.end.nanoseconds(tick_ns) - self.first.nanoseconds(tick_ns)
        step = max(self.step.nanoseconds(tick_ns), 1)
        return max(span // step + 1 if self.end_counts else -(-span // step), 1)

    def mean_ns(self, tick_ns: int) -> float:
        """Returns the mean in nanoseconds."""
        steps = (self.choices(tick_ns) - 1) / 2
        return self.first.nanoseconds(tick_ns) + steps * self.step.nanoseconds(tick_ns)
