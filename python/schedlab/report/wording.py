# SPDX-License-Identifier: MIT
"""Numbers as tables print them: three digits, one unit a column, and their interval below."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from schedlab.metrics.tables import percent, three_digits
from schedlab.statistics import Estimate, estimate

NOTHING = "–"
"""There is no such value."""


@dataclass(frozen=True)
class Unit:
    """What a column's numbers are multiplied by, and what its heading says of it."""

    factor: float
    name: str = ""
    digits: int | None = None
    """Decimals; None: three significant digits."""

    def number(self, value: float) -> str:
        scaled = value * self.factor
        return three_digits(scaled) if self.digits is None else f"{scaled:,.{self.digits}f}"

    def heading(self, title: str) -> str:
        return f"{title}, {self.name}" if self.name else title


COUNT = Unit(1)
INDEX = Unit(1, digits=3)
PERCENT = Unit(100, "%")
_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))


def time_unit(nanoseconds: Iterable[float | None]) -> Unit:
    """Of s, ms and µs, the largest of which the greatest of these times is one or more."""
    greatest = max((abs(value) for value in nanoseconds if value is not None), default=0.0)
    for length, name in _TIMES:
        if greatest >= length:
            return Unit(1 / length, name)
    return Unit(1 / 1e3, "µs")


def mean_of(values: Sequence[float | None]) -> Estimate | None:
    """Over seeds; None if any seed has no such value: its mean would be one of the others."""
    there = [float(value) for value in values if value is not None]
    return estimate(there) if there and len(there) == len(values) else None


def with_interval(mean: Estimate | None, unit: Unit) -> str:
    """The mean, and in a second line its interval, if several seeds differ."""
    if mean is None:
        return NOTHING
    if mean.low == mean.high:
        return unit.number(mean.mean)
    return f"{unit.number(mean.mean)}\n{unit.number(mean.low)} – {unit.number(mean.high)}"


def share(part: float | None) -> str:
    """In percent."""
    return NOTHING if part is None else percent(part)


def counted(number: int, singular: str, plural: str = "") -> str:
    """`1 run`, `3 runs`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def ranges(numbers: Iterable[int]) -> str:
    """`1–3, 5` of 1, 2, 3 and 5."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{part[0]}–{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)
