# SPDX-License-Identifier: MIT
"""Numbers as they are printed: with the unit that fits, and as many digits as their intervals allow."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from schedlab.comparison.statistics import NOISE, Difference, Estimate


@dataclass(frozen=True)
class Quantity:
    """How numbers of a kind are printed: stored number × factor, and the unit."""

    unit: str = ""
    factor: float = 1.0


NUMBER = Quantity()
TIME = Quantity("ns")
"""Nanoseconds; printed in the unit that fits."""
SHARE = Quantity("%", 100)
"""A part of 1."""
POINTS = Quantity("points")
"""Percentage points."""
PER_SECOND = Quantity("/s")

_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))
_DIGITS_MOST = 5
_DIGITS_LEAST = 3
_SEEN = 1e-3
"""The part of a column's largest number from which on a number is printed as more than 0."""


def as_text(value: Estimate, quantity: Quantity = NUMBER) -> str:
    """`12.3 [11.9, 12.8] ms`; of one seed `12.3 ms (1 seed)`: the same everywhere.

    It has as many digits as the interval allows, which is printed with one or two that count.
    """
    numbers = (value.mean, value.low, value.high)
    shown = fitting(quantity, max(abs(number) for number in numbers))
    printed = _printed(numbers, shown, signed=False)
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
    mean, low, high = _printed(numbers, quantity, signed=False, decimals=decimals)
    return mean if mean == low == high else f"{mean} [{low}, {high}]"


def column_decimals(values: Collection[Estimate], quantity: Quantity = NUMBER) -> int:
    """Returns the decimals of all numbers of a column: as many as the interval of the middle one allows, and so many
    that none but 0 is printed as 0, unless it is a thousandth of the largest."""
    factor = quantity.factor
    means = [abs(each.mean * factor) for each in values if each.mean]
    own = sorted(
        max(0, _decimals(each.mean * factor, (each.high - each.low) * factor / 2))
        for each in values
    )
    if not means:
        return 0
    seen = max(min(means), max(means) * _SEEN)
    return max(own[len(own) // 2], math.ceil(-math.log10(seen)))


def change_as_text(change: Difference, quantity: Quantity = NUMBER) -> str:
    """`+12.3 [11.9, 12.8] ms`; of one seed `+12.3 ms`. Shares differ by percentage points."""
    if quantity is SHARE:
        quantity = Quantity(POINTS.unit, SHARE.factor)
    numbers = (change.change, change.low, change.high)
    shown = fitting(quantity, max(abs(number) for number in numbers))
    printed = _printed(numbers, shown, signed=True)
    unit = f" {shown.unit}" if shown.unit else ""
    if change.chance is None:
        return f"{printed[0]}{unit}"
    return f"{printed[0]} [{printed[1]}, {printed[2]}]{unit}"


def number_as_text(value: float, quantity: Quantity = NUMBER) -> str:
    """A number of which no interval is known, with three digits that count."""
    shown = fitting(quantity, abs(value))
    unit = f" {shown.unit}" if shown.unit else ""
    return f"{_printed((value, value, value), shown, signed=False)[0]}{unit}"


def fitting(quantity: Quantity, largest: float) -> Quantity:
    """Times in the unit of which the largest is one or more: for all of a column, say."""
    if quantity is not TIME:
        return quantity
    for size, unit in _TIMES:
        if largest >= size:
            return Quantity(unit, 1 / size)
    return quantity


def _printed(
    numbers: tuple[float, float, float],
    quantity: Quantity,
    signed: bool,
    decimals: int | None = None,
) -> tuple[str, str, str]:
    """Value, low and high, rounded alike: to `decimals`, or as far as the interval allows."""
    value, low, high = (number * quantity.factor for number in numbers)
    if decimals is None:
        decimals = _decimals(value, (high - low) / 2)
    first, second, third = (_rounded(number, decimals) for number in (value, low, high))
    places = max(decimals, 0)
    sign = "+" if signed and first else ""
    return f"{first:{sign},.{places}f}", f"{second:,.{places}f}", f"{third:,.{places}f}"


def _rounded(number: float, decimals: int) -> float:
    return round(number, decimals) + 0.0  # no -0


def _decimals(value: float, half_width: float) -> int:
    """So that the half width has two digits if they begin with 1 to 3, else one.

    The value has at least two and at most five that count; without a width, three; and a whole
    number is not cut.
    """
    largest = max(abs(value), half_width)
    size = math.floor(math.log10(largest)) if largest else 0
    if half_width <= abs(value) * NOISE:
        whole = float(value).is_integer() and abs(value) < 10**_DIGITS_MOST
        return 0 if whole else max(0, _DIGITS_LEAST - 1 - size)
    exponent = math.floor(math.log10(half_width))
    two = half_width / 10**exponent < 3.55
    return min(max(-exponent + (1 if two else 0), 1 - size), _DIGITS_MOST - 1 - size)
