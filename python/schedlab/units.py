# SPDX-License-Identifier: MIT
"""Parses and formats times and counts as users write them on a command line."""

from __future__ import annotations

import re
from collections.abc import Sequence

_MINUTE = 60_000_000_000
_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": _MINUTE,
    "min": _MINUTE,
    "h": 60 * _MINUTE,
}
_TIME = re.compile(rf"(\d{{1,12}})(?:\.(\d{{1,9}}))?({'|'.join(_NANOSECONDS)})")
RANGE = re.compile(r"(-?\d{1,18})(?:-|\.\.)(-?\d{1,18})(?:([+*])(\d{1,18}))?")
"""A range of whole numbers: 1-8, or 1..8; 1-32+4 with steps; 60-3840*2 with factors."""


def parse_time(text: str) -> int:
    """Returns the nanoseconds of "500us", "1.2ms", "60s", "2min" or "8h". Raises ValueError."""
    match = _TIME.fullmatch(text.strip())
    if not match:
        raise ValueError(
            "write a number and its unit: ns, us, ms, s, min or h, such as 10ms or 1.2s"
        )
    parts = match[2] or ""
    part = int("1" + "0" * len(parts))
    nanoseconds, rest = divmod(int(match[1] + parts) * _NANOSECONDS[match[3]], part)
    if rest:
        raise ValueError("not a whole number of nanoseconds; write a time such as 1ns or 1.2us")
    return nanoseconds


def format_time(nanoseconds: int) -> str:
    """Returns the time in the kernel's format: in the largest of s, ms, us, ns that gives a whole number."""
    for unit in ("s", "ms", "us"):
        if nanoseconds % _NANOSECONDS[unit] == 0:
            return f"{nanoseconds // _NANOSECONDS[unit]}{unit}"
    return f"{nanoseconds}ns"


def numbers_in(first: int, last: int, sign: str | None, by: int) -> Sequence[int]:
    """Returns the numbers of a range, by steps ("+", None) or by factors ("*"). Raises ValueError."""
    if first > last:
        raise ValueError(f"{first} is above {last}; write the lower end first")
    if sign != "*":
        if by < 1:
            raise ValueError("the step must be at least 1")
        return range(first, last + 1, by)
    if by < 2 or first < 1:
        raise ValueError("the factor must be at least 2, and the first number at least 1")
    numbers = [first]
    while numbers[-1] * by <= last:
        numbers.append(numbers[-1] * by)
    return numbers


def parse_counts(text: str, lowest: int, highest: int) -> tuple[int, ...]:
    """Returns the numbers of "4", "1,2,8", "1-4", "1-3,7" or "1-64*2", each once in the given
    order. Raises ValueError.
    """
    numbers: dict[int, None] = {}
    for part in map(str.strip, text.split(",")):
        match = RANGE.fullmatch(part)
        if not match and not part.isdecimal():
            raise ValueError("write numbers and ranges, such as 4 or 1,2,8 or 1-4 or 1-3,7")
        first, last = (int(match[1]), int(match[2])) if match else (int(part), int(part))
        if not lowest <= first <= last <= highest:
            raise ValueError(f"{part}: out of range; choose {lowest} to {highest}, lowest first")
        sign, by = (match[3], int(match[4] or 1)) if match else (None, 1)
        numbers.update(dict.fromkeys(numbers_in(first, last, sign, by)))
    return tuple(numbers)
