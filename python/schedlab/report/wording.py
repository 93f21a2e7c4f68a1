# SPDX-License-Identifier: MIT
"""Numbers as tables print them, one unit a column, and how many of what there are in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template

from schedlab.comparison.printed import TIME, Quantity, column_decimals, fitting, in_column
from schedlab.comparison.statistics import Estimate, Within, estimate
from schedlab.metrics.tables import three_digits
from schedlab.units import counted as counted

NOTHING = "–"
"""There is no such value."""


@dataclass(frozen=True)
class Unit:
    """What a column's numbers are multiplied by, and how they are printed."""

    factor: float
    name: str = ""
    digits: int | None = None
    """Decimals; None: as many as count."""
    within: Within = (0, math.inf)
    """What values are possible, before they are multiplied."""

    def number(self, value: float) -> str:
        """One of which no interval is known, of three digits if `digits` does not say how many."""
        scaled = value * self.factor
        return three_digits(scaled) if self.digits is None else f"{scaled:,.{self.digits}f}"

    def heading(self, title: str) -> str:
        return f"{title},\N{NO-BREAK SPACE}{self.name}" if self.name else title


PLAIN = Unit(1)
COUNT = Unit(1, digits=0)
"""The count of one run; a mean of several is written as any other number."""
INDEX = Unit(1, digits=3, within=(0, 1))
RATIO = Unit(1, digits=3)
PERCENT = Unit(100, "%", within=(0, 1))
PERCENT_OF_SHARES = Unit(100, "%", digits=1, within=(0, 1))
_SHORTEST_UNIT_NS = 1000


def time_unit(nanoseconds: Iterable[float | None]) -> Unit:
    """Returns the largest of s, ms and µs in which the greatest of these times is one or more."""
    times = [abs(value) for value in nanoseconds if value is not None]
    shown = fitting(TIME, max([_SHORTEST_UNIT_NS, *times]))
    return Unit(shown.factor, shown.unit)


def mean_of(values: Sequence[float | None], unit: Unit) -> Estimate | None:
    """Returns the mean over seeds, or None if a seed has no such value: the mean would be one of the
    others."""
    there = [float(value) for value in values if value is not None]
    return estimate(there, unit.within) if there and len(there) == len(values) else None


def in_a_column(unit: Unit, means: Iterable[Estimate | None]) -> Unit:
    """Returns the unit with the decimals of all numbers of its column, unless it says them."""
    there = [each for each in means if each is not None]
    if unit.digits is not None or not there:
        return unit
    return replace(unit, digits=column_decimals(there, Quantity("", unit.factor)))


def with_interval(mean: Estimate | None, unit: Unit) -> str:
    """Returns a mean as all tables have it; a dash if there is none."""
    return NOTHING if mean is None else in_column(mean, Quantity("", unit.factor), unit.digits)


def prose(name: str, **slots: str) -> str:
    """The Markdown of prose/NAME.md, with what its slots (`$slot`) stand for."""
    text = (Path(__file__).parent / "prose" / f"{name}.md").read_text(encoding="utf-8")
    return Template(text).substitute(slots).strip()


def listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def cpus(numbers: Iterable[int]) -> str:
    """`1 CPU`, `1–3, 5 CPUs`."""
    text = ranges(numbers)
    return f"{text} CPU" if text == "1" else f"{text} CPUs"


def ranges(numbers: Iterable[int]) -> str:
    """`1–3, 5` of 1, 2, 3 and 5."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{part[0]}–{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)
