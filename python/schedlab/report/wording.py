# SPDX-License-Identifier: MIT
"""Numbers as tables print them, one unit a column, and how many of what there are in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from string import Template

from schedlab.analysis.comparison.printed import column_decimals, in_column
from schedlab.analysis.comparison.statistics import Estimate, estimate
from schedlab.base.display.numbers import NOTHING, TIME, Quantity, fitting

COUNT = Quantity(digits=0)
"""The count of one run; a mean of several is written as any other number."""
PERCENT_OF_SHARES = Quantity("%", 100, digits=1, within=(0, 1))
_SHORTEST_UNIT_NS = 1000


def time_unit(nanoseconds: Iterable[float | None]) -> Quantity:
    """Returns the largest of s, ms and µs in which the greatest of these times is one or more."""
    times = [abs(value) for value in nanoseconds if value is not None]
    return fitting(TIME, max([_SHORTEST_UNIT_NS, *times]))


def mean_of(values: Sequence[float | None], unit: Quantity) -> Estimate | None:
    """Returns the mean over seeds, or None if a seed has no such value: the mean would be one of the
    others."""
    there = [float(value) for value in values if value is not None]
    return estimate(there, unit.within) if there and len(there) == len(values) else None


def in_a_column(unit: Quantity, means: Iterable[Estimate | None]) -> Quantity:
    """Returns the unit with the decimals of all numbers of its column, unless it says them."""
    there = [each for each in means if each is not None]
    if unit.digits is not None or not there:
        return unit
    return replace(unit, digits=column_decimals(there, unit))


def with_interval(mean: Estimate | None, unit: Quantity) -> str:
    """Returns a mean as all tables have it; a dash if there is none."""
    return NOTHING if mean is None else in_column(mean, unit)


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
