# SPDX-License-Identifier: MIT
"""Numbers, times, shares and sizes as people read them, in tables, reports, messages and the terminal.

`monitor/page/words.js` writes the same for the page; tests/numbers/cases.json holds both to one table of cases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

NOTHING = "–"
"""There is no such value."""
Within = tuple[float, float]
"""The least and the greatest possible value."""


def counted(number: int, singular: str, plural: str = "") -> str:
    """Returns `1 run`, `3 runs`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def duration(nanoseconds: float | None) -> str:
    """Returns a time with three significant digits and a fitting unit, such as `12.3 ms`."""
    if nanoseconds is None:
        return NOTHING
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        # What would be rounded up to 1000 of a unit is 1 of the next.
        if abs(nanoseconds) >= 0.9995 * factor:
            return f"{three_digits(nanoseconds / factor)} {unit}"
    return f"{nanoseconds:.0f} ns"


def host_time(seconds: float) -> str:
    """Returns a time of the host: `0.4 s`, `12 s`, `3 min 05 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s"


def moment(nanoseconds: float, digits: int = 3) -> str:
    """Returns a point in time in seconds, by default to the millisecond: `1.234 s`."""
    return f"{nanoseconds / 1e9:,.{digits}f} s"


def milliseconds(nanoseconds: float, digits: int = 3) -> str:
    """Returns a time in milliseconds, by default to the microsecond: `1,234.567 ms`."""
    return f"{nanoseconds / 1e6:,.{digits}f} ms"


def three_digits(value: float | None) -> str:
    """Returns a number with three significant digits, and never as a power of ten."""
    if value is None:
        return NOTHING
    size = abs(value)
    if size >= 99.95 or size == 0:
        return f"{value:,.0f}"
    decimals = 1 if size >= 9.995 else 2 if size >= 0.9995 else 3 if size >= 0.09995 else 4
    return f"{value:.{decimals}f}"


def index(value: float | None) -> str:
    """Returns an index from 0 to 1, such as Jain's: `0.987`."""
    return NOTHING if value is None else f"{value:.3f}"


def percent(share: float | None, digits: int | None = None) -> str:
    """Returns a part of 1 in percent, by default with two decimals below 10 % and with one above: `2.50 %`."""
    if share is None:
        return NOTHING
    if digits is None:
        digits = 1 if abs(share) * 100 >= 9.95 else 2
    return f"{share * 100:,.{digits}f} %"


def percent_change(relative: float | None) -> str:
    """Returns a change ÷ the value before in percent, with its sign: `+3.2 %`."""
    return NOTHING if relative is None else f"{relative * 100:+,.1f} %"


def rate(per_second: float | None) -> str:
    """Returns a rate with three significant digits, such as `12.3 /s`."""
    return NOTHING if per_second is None else f"{three_digits(per_second)} /s"


def times(speed: float) -> str:
    """Returns how fast a system's time goes, compared with the host's: `0.25×`."""
    if speed == 0:
        return "0×"
    small = min(6, 1 - math.floor(math.log10(speed)))
    return f"{speed:,.{0 if speed >= 10 else 1 if speed >= 1 else small}f}×"


def size(count: int) -> str:
    """Returns a size of files in MB, or in kB below that."""
    return f"{count / 1e6:,.0f} MB" if count >= 1e6 else f"{count / 1e3:,.0f} kB"


# --- numbers of one kind, in one unit, with their intervals


@dataclass(frozen=True)
class Quantity:
    """How numbers of a kind are printed: stored number × factor, and the unit."""

    unit: str = ""
    factor: float = 1.0
    digits: int | None = None
    """Decimals; None: as many as count."""
    within: Within = (0, math.inf)
    """The possible values, before they are multiplied."""

    def number(self, value: float) -> str:
        """Returns a value without an interval: three digits, unless `digits` says how many."""
        scaled = value * self.factor
        return three_digits(scaled) if self.digits is None else f"{scaled:,.{self.digits}f}"

    def heading(self, title: str) -> str:
        """Returns the title of a column of such numbers, with their unit."""
        return f"{title},\N{NO-BREAK SPACE}{self.unit}" if self.unit else title


NUMBER = Quantity()
TIME = Quantity("ns")
"""Nanoseconds; printed in the unit that fits."""
SHARE = Quantity("%", 100, within=(0, 1))
"""A part of 1."""
POINTS = Quantity("points")
"""Percentage points."""
PER_SECOND = Quantity("/s")

_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))
_DIGITS_MOST = 5
_DIGITS_LEAST = 3
_FLOATING_POINT = 1e-12
"""The part of a value that floating point may add."""


def fitting(quantity: Quantity, largest: float) -> Quantity:
    """Returns, for times, the unit in which the largest is one or more: for all of a column, say."""
    if quantity is not TIME:
        return quantity
    for length, unit in _TIMES:
        if largest >= length:
            return Quantity(unit, 1 / length)
    return quantity


def number_as_text(value: float, quantity: Quantity = NUMBER) -> str:
    """Returns a number without an interval, with its unit and three digits that count."""
    shown = fitting(quantity, abs(value))
    unit = f" {shown.unit}" if shown.unit else ""
    return f"{rounded_alike((value, value, value), shown)[0]}{unit}"


def rounded_alike(
    numbers: tuple[float, float, float],
    quantity: Quantity,
    *,
    signed: bool = False,
    decimals: int | None = None,
) -> tuple[str, str, str]:
    """Returns value, low and high, rounded alike: to `decimals`, else the quantity's, else as the interval allows."""
    value, low, high = (number * quantity.factor for number in numbers)
    if decimals is None:
        decimals = quantity.digits
    if decimals is None:
        decimals = decimals_of(value, (high - low) / 2)
    # + 0.0: no -0
    first, second, third = (round(number, decimals) + 0.0 for number in (value, low, high))
    places = max(decimals, 0)
    sign = "+" if signed and first else ""
    return f"{first:{sign},.{places}f}", f"{second:,.{places}f}", f"{third:,.{places}f}"


def decimals_of(value: float, half_width: float) -> int:
    """Returns so many decimals that the half width has two digits if they begin with 1 to 3, else one.

    The value has at least two and at most five that count; without a width, three; and a whole
    number is not cut.
    """
    largest = max(abs(value), half_width)
    size = math.floor(math.log10(largest)) if largest else 0
    if half_width <= abs(value) * _FLOATING_POINT:
        whole = float(value).is_integer() and abs(value) < 10**_DIGITS_MOST
        return 0 if whole else max(0, _DIGITS_LEAST - 1 - size)
    exponent = math.floor(math.log10(half_width))
    two = half_width / 10**exponent < 3.55
    return min(max(-exponent + (1 if two else 0), 1 - size), _DIGITS_MOST - 1 - size)
