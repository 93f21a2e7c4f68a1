# SPDX-License-Identifier: MIT
"""Formats means and differences with a suitable unit and the digits that their intervals justify."""

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
"""Smaller fractions of a column's largest number may be printed as 0."""


def as_text(value: Estimate, quantity: Quantity = NUMBER) -> str:
    """Returns the estimate as `12.3 [11.9, 12.8] ms`; of one seed, as `12.3 ms (1 seed)`.

    The interval has one or two significant digits, and the mean as many decimals as the interval.
    """
    numbers = (value.mean, value.low, value.high)
    shown = fitting(quantity, max(abs(number) for number in numbers))
    printed = rounded_alike(numbers, shown)
    unit = f" {shown.unit}" if shown.unit else ""
    if not value.bounded:
        return f"{printed[0]}{unit} (1 seed)"
    return f"{printed[0]} [{printed[1]}, {printed[2]}]{unit}"


def in_column(value: Estimate, quantity: Quantity = NUMBER, decimals: int | None = None) -> str:
    """Returns the estimate as `12.3 [11.9, 12.8]`, for a column whose heading has the unit.

    The interval is omitted if its bounds are printed like the mean. `decimals`: a fixed number, for
    example that of published values in the next column; None: as in `as_text`.
    """
    numbers = (value.mean, value.low, value.high)
    mean, low, high = rounded_alike(numbers, quantity, decimals=decimals)
    return mean if mean == low == high else f"{mean} [{low}, {high}]"


def column_decimals(values: Collection[Estimate], quantity: Quantity = NUMBER) -> int:
    """Returns the number of decimals for a column, as justified by the median interval.

    Values above 0 are not printed as 0, unless they are below a thousandth of the largest value.
    """
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
    """Returns the change as `+12.3 [11.9, 12.8] ms`; of one seed, as `+12.3 ms`. Shares differ in percentage points."""
    if quantity is SHARE:
        quantity = Quantity(POINTS.unit, SHARE.factor)
    numbers = (change.change, change.low, change.high)
    shown = fitting(quantity, max(abs(number) for number in numbers))
    printed = rounded_alike(numbers, shown, signed=True)
    unit = f" {shown.unit}" if shown.unit else ""
    if change.p_value is None:
        return f"{printed[0]}{unit}"
    return f"{printed[0]} [{printed[1]}, {printed[2]}]{unit}"
