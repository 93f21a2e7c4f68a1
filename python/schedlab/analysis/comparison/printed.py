# SPDX-License-Identifier: MIT
"""Means and differences as text: with the unit that fits, and as many digits as their intervals allow."""

from __future__ import annotations

import math
from collections.abc import Collection

from schedlab.analysis.comparison.statistics import Difference, Estimate
from schedlab.base.display.numbers import (
    NUMBER,
    POINTS,
    SHARE,
    Quantity,
    decimals_of,
    fitting,
    rounded_alike,
)

_SEEN = 1e-3
"""The part of a column's largest number from which on a number is printed as more than 0."""


def as_text(value: Estimate, quantity: Quantity = NUMBER) -> str:
    """`12.3 [11.9, 12.8] ms`; of one seed `12.3 ms (1 seed)`: the same everywhere.

    It has as many digits as the interval allows, which is printed with one or two that count.
    """
    numbers = (value.mean, value.low, value.high)
    shown = fitting(quantity, max(abs(number) for number in numbers))
    printed = rounded_alike(numbers, shown)
    unit = f" {shown.unit}" if shown.unit else ""
    if not value.bounded:
        return f"{printed[0]}{unit} (1 seed)"
    return f"{printed[0]} [{printed[1]}, {printed[2]}]{unit}"


def in_column(value: Estimate, quantity: Quantity = NUMBER, decimals: int | None = None) -> str:
    """`12.3 [11.9, 12.8]`: for a column whose heading names the unit that `quantity` has.

    The mean alone if nothing else would be printed of its interval. `decimals`: this many, as where
    published figures stand beside it; else as `as_text` has them.
    """
    numbers = (value.mean, value.low, value.high)
    mean, low, high = rounded_alike(numbers, quantity, decimals=decimals)
    return mean if mean == low == high else f"{mean} [{low}, {high}]"


def column_decimals(values: Collection[Estimate], quantity: Quantity = NUMBER) -> int:
    """Returns the decimals of all numbers of a column: as many as the interval of the middle one allows, and so many
    that none but 0 is printed as 0, unless it is a thousandth of the largest."""
    factor = quantity.factor
    means = [abs(value.mean * factor) for value in values if value.mean]
    decimals = sorted(
        max(0, decimals_of(value.mean * factor, (value.high - value.low) * factor / 2))
        for value in values
    )
    if not means:
        return 0
    seen = max(min(means), max(means) * _SEEN)
    return max(decimals[len(decimals) // 2], math.ceil(-math.log10(seen)))


def change_as_text(change: Difference, quantity: Quantity = NUMBER) -> str:
    """`+12.3 [11.9, 12.8] ms`; of one seed `+12.3 ms`. Shares differ by percentage points."""
    if quantity is SHARE:
        quantity = Quantity(POINTS.unit, SHARE.factor)
    numbers = (change.change, change.low, change.high)
    shown = fitting(quantity, max(abs(number) for number in numbers))
    printed = rounded_alike(numbers, shown, signed=True)
    unit = f" {shown.unit}" if shown.unit else ""
    if change.chance is None:
        return f"{printed[0]}{unit}"
    return f"{printed[0]} [{printed[1]}, {printed[2]}]{unit}"
