# SPDX-License-Identifier: MIT
"""Formats means and differences with a suitable unit and the digits that their intervals justify."""

import math
from collections.abc import Collection

from schedlab.analysis.comparison.statistics import Difference, Estimate
from schedlab.base.display.numbers import (
    NUMBER,
    POINTS,
    SHARE,
    Quantity,
    count_decimals,
    round_alike,
    with_fitting_unit,
)

_VISIBLE_FRACTION = 1e-3
"""Smaller fractions of a column's largest number may be printed as 0."""


def estimate_as_text(value: Estimate, quantity: Quantity = NUMBER) -> str:
    """Returns the estimate as `12.3 [11.9, 12.8] ms`; of one seed, as `12.3 ms (1 seed)`.

    The interval has one or two significant digits, and the mean as many decimals as the interval.
    """
    numbers = (value.mean, value.low, value.high)
    unit_quantity = with_fitting_unit(quantity, max(abs(number) for number in numbers))
    printed = round_alike(numbers, unit_quantity)
    unit = f" {unit_quantity.unit}" if unit_quantity.unit else ""
    if not value.has_interval:
        return f"{printed[0]}{unit} (1 seed)"
    return f"{printed[0]} [{printed[1]}, {printed[2]}]{unit}"


def estimate_in_column(
    value: Estimate, quantity: Quantity = NUMBER, decimals: int | None = None
) -> str:
    """Returns the estimate as `12.3 [11.9, 12.8]`, for a column whose heading has the unit.

    The interval is omitted if its bounds are printed like the mean. `decimals`: a fixed number, for
    example that of published values in the next column; None: as in `estimate_as_text`.
    """
    numbers = (value.mean, value.low, value.high)
    mean, low, high = round_alike(numbers, quantity, decimals=decimals)
    return mean if mean == low == high else f"{mean} [{low}, {high}]"


def column_decimals(values: Collection[Estimate], quantity: Quantity = NUMBER) -> int:
    """Returns the number of decimals for a column, as justified by the median interval.

    Values above 0 are not printed as 0, unless they are below a thousandth of the largest value.
    """
    factor = quantity.factor
    means = [abs(value.mean * factor) for value in values if value.mean]
    decimals = sorted(
        max(0, count_decimals(value.mean * factor, (value.high - value.low) * factor / 2))
        for value in values
    )
    if not means:
        return 0
    smallest_visible = max(min(means), max(means) * _VISIBLE_FRACTION)
    return max(decimals[len(decimals) // 2], math.ceil(-math.log10(smallest_visible)))


def change_as_text(change: Difference, quantity: Quantity = NUMBER) -> str:
    """Returns the change as `+12.3 [11.9, 12.8] ms`; of one seed, as `+12.3 ms`. Shares differ in percentage points."""
    if quantity is SHARE:
        quantity = Quantity(POINTS.unit, SHARE.factor)
    numbers = (change.change, change.low, change.high)
    unit_quantity = with_fitting_unit(quantity, max(abs(number) for number in numbers))
    printed = round_alike(numbers, unit_quantity, signed=True)
    unit = f" {unit_quantity.unit}" if unit_quantity.unit else ""
    if change.p_value is None:
        return f"{printed[0]}{unit}"
    return f"{printed[0]} [{printed[1]}, {printed[2]}]{unit}"
