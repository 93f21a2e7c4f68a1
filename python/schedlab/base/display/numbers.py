# SPDX-License-Identifier: MIT
"""Formats numbers, times, shares and sizes for people: in tables, reports and messages.

`monitor/page/words.js` does the same for the page. Both are tested with tests/numbers/cases.json.
"""

import math
from dataclasses import dataclass

NO_VALUE = "–"
"""Shown if there is no value."""
Bounds = tuple[float, float]
"""The minimum and maximum possible value."""


def format_count(number: int, singular: str, plural: str = "") -> str:
    """Returns a count with its noun: `1 run`, `3 runs`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def duration(nanoseconds: float | None) -> str:
    """Returns a time with three significant digits in a suitable unit, such as `12.3 ms`."""
    if nanoseconds is None:
        return NO_VALUE
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        # A value that would be rounded up to 1000 gets the next larger unit.
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
    """Returns a point in time in seconds, to the millisecond by default: `1.234 s`."""
    return f"{nanoseconds / 1e9:,.{digits}f} s"


def milliseconds(nanoseconds: float, digits: int = 3) -> str:
    """Returns a time in milliseconds, to the microsecond by default: `1,234.567 ms`."""
    return f"{nanoseconds / 1e6:,.{digits}f} ms"


def three_digits(value: float | None) -> str:
    """Returns a number with three significant digits, without exponent."""
    if value is None:
        return NO_VALUE
    size = abs(value)
    if size >= 99.95 or size == 0:
        return f"{value:,.0f}"
    decimals = 1 if size >= 9.995 else 2 if size >= 0.9995 else 3 if size >= 0.09995 else 4
    return f"{value:.{decimals}f}"


def format_index(value: float | None) -> str:
    """Returns an index from 0 to 1, such as Jain's: `0.987`."""
    return NO_VALUE if value is None else f"{value:.3f}"


def percent(share: float | None, digits: int | None = None) -> str:
    """Returns a fraction in percent, with two decimals below 10 % and otherwise one: `2.50 %`.

    `digits`: another number of decimals.
    """
    if share is None:
        return NO_VALUE
    if digits is None:
        digits = 1 if abs(share) * 100 >= 9.95 else 2
    return f"{share * 100:,.{digits}f} %"


def percent_change(relative: float | None) -> str:
    """Returns a relative change in percent with its sign: `+3.2 %`."""
    return NO_VALUE if relative is None else f"{relative * 100:+,.1f} %"


def rate(per_second: float | None) -> str:
    """Returns a rate with three significant digits, such as `12.3 /s`."""
    return NO_VALUE if per_second is None else f"{three_digits(per_second)} /s"


def format_speed(speed: float) -> str:
    """Returns how fast a system's time advances relative to the host's: `0.25×`."""
    if speed == 0:
        return "0×"
    small = min(6, 1 - math.floor(math.log10(speed)))
    return f"{speed:,.{0 if speed >= 10 else 1 if speed >= 1 else small}f}×"


def format_size(count: int) -> str:
    """Returns a file size in MB, or in kB below 1 MB."""
    return f"{count / 1e6:,.0f} MB" if count >= 1e6 else f"{count / 1e3:,.0f} kB"


# --- numbers with units and intervals


@dataclass(frozen=True)
class Quantity:
    """How numbers of one kind are printed: their unit, and the factor from stored to printed values."""

    unit: str = ""
    factor: float = 1.0
    digits: int | None = None
    """Number of decimals. None: three significant digits, or the interval's precision."""
    within: Bounds = (0, math.inf)
    """Smallest and largest possible stored value."""

    def number(self, value: float) -> str:
        """Returns a value without interval, with `digits` decimals or three significant digits."""
        scaled = value * self.factor
        return three_digits(scaled) if self.digits is None else f"{scaled:,.{self.digits}f}"

    def heading(self, title: str) -> str:
        """Returns a column title with the unit."""
        return f"{title},\N{NO-BREAK SPACE}{self.unit}" if self.unit else title


NUMBER = Quantity()
TIME = Quantity("ns")
"""Nanoseconds, printed in a suitable unit."""
SHARE = Quantity("%", 100, within=(0, 1))
"""A fraction."""
POINTS = Quantity("points")
"""Percentage points."""
PER_SECOND = Quantity("/s")

_TIME_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))
_DIGITS_MAX = 5
_DIGITS_MIN = 3
_FLOATING_POINT = 1e-12
"""Relative rounding error of floating-point numbers."""


def with_fitting_unit(quantity: Quantity, largest: float) -> Quantity:
    """Returns a Quantity for times with the unit that makes `largest` at least 1, such as for a
    column.

    Returns other quantities unchanged.
    """
    if quantity is not TIME:
        return quantity
    for length, unit in _TIME_UNITS:
        if largest >= length:
            return Quantity(unit, 1 / length)
    return quantity


def number_as_text(value: float, quantity: Quantity = NUMBER) -> str:
    """Returns a number without interval, with its unit and three significant digits."""
    shown = with_fitting_unit(quantity, abs(value))
    unit = f" {shown.unit}" if shown.unit else ""
    return f"{round_alike((value, value, value), shown)[0]}{unit}"


def round_alike(
    numbers: tuple[float, float, float],
    quantity: Quantity,
    *,
    signed: bool = False,
    decimals: int | None = None,
) -> tuple[str, str, str]:
    """Returns a value and the ends of its interval as text, with the same number of decimals.

    That number is `decimals`, or else the quantity's `digits`, or else follows from the interval's
    width.
    """
    value, low, high = (number * quantity.factor for number in numbers)
    if decimals is None:
        decimals = quantity.digits
    if decimals is None:
        decimals = count_decimals(value, (high - low) / 2)
    # adding 0.0 turns -0.0 into 0.0
    first, second, third = (round(number, decimals) + 0.0 for number in (value, low, high))
    places = max(decimals, 0)
    sign = "+" if signed and first else ""
    return f"{first:{sign},.{places}f}", f"{second:,.{places}f}", f"{third:,.{places}f}"


def count_decimals(value: float, half_width: float) -> int:
    """Returns how many decimals to print of a value with an interval of this half width.

    The half width gets two digits if it begins with 1 to 3, otherwise one. The value gets two to
    five significant digits, or three without an interval. Integers stay complete.
    """
    largest = max(abs(value), half_width)
    size = math.floor(math.log10(largest)) if largest else 0
    if half_width <= abs(value) * _FLOATING_POINT:
        is_integer = float(value).is_integer() and abs(value) < 10**_DIGITS_MAX
        return 0 if is_integer else max(0, _DIGITS_MIN - 1 - size)
    exponent = math.floor(math.log10(half_width))
    has_two_digits = half_width / 10**exponent < 3.55
    return min(max(-exponent + (1 if has_two_digits else 0), 1 - size), _DIGITS_MAX - 1 - size)
