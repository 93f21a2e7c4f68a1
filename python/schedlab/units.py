# SPDX-License-Identifier: MIT
"""Parses and formats times and counts as users write them on a command line."""

import re
from collections.abc import Sequence

_MINUTE_NS = 60_000_000_000
_UNIT_NS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": _MINUTE_NS,
    "min": _MINUTE_NS,
    "h": 60 * _MINUTE_NS,
}
_TIME = re.compile(rf"(\d{{1,12}})(?:\.(\d{{1,9}}))?({'|'.join(_UNIT_NS)})")
RANGE_PATTERN = re.compile(r"(-?\d{1,18})(?:-|\.\.)(-?\d{1,18})(?:([+*])(\d{1,18}))?")
"""A range: 1-8 or 1..8, with steps (1-32+4), or with factors (60-3840*2)."""


def parse_time(text: str) -> int:
    """Returns the nanoseconds of "500us", "1.2ms", "60s", "2min" or "8h". Raises ValueError."""
    match = _TIME.fullmatch(text.strip())
    if not match:
        raise ValueError(
            "write a number and its unit: ns, us, ms, s, min or h, such as 10ms or 1.2s"
        )
    decimals = match[2] or ""
    scale = int("1" + "0" * len(decimals))
    nanoseconds, rest = divmod(int(match[1] + decimals) * _UNIT_NS[match[3]], scale)
    if rest:
        raise ValueError("not a whole number of nanoseconds; write a time such as 1ns or 1.2us")
    return nanoseconds


def format_time(nanoseconds: int) -> str:
    """Returns a time in the largest of s, ms, us, ns that gives a whole number, as the kernel prints it."""
    for unit in ("s", "ms", "us"):
        if nanoseconds % _UNIT_NS[unit] == 0:
            return f"{nanoseconds // _UNIT_NS[unit]}{unit}"
    return f"{nanoseconds}ns"


def expand_range(first: int, last: int, sign: str | None, by: int) -> Sequence[int]:
    """Returns the numbers from `first` to `last`, by steps ("+", None) or by factors ("*").

    Raises ValueError for an endless or empty range.
    """
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
    """Returns the counts in "4", "1,2,8", "1-4", "1-3,7" or "1-64*2", without duplicates, in the
    given order.

    Raises ValueError.
    """
    numbers: dict[int, None] = {}
    for part in map(str.strip, text.split(",")):
        match = RANGE_PATTERN.fullmatch(part)
        if not match and not part.isdecimal():
            raise ValueError("write numbers and ranges, such as 4 or 1,2,8 or 1-4 or 1-3,7")
        first, last = (int(match[1]), int(match[2])) if match else (int(part), int(part))
        if not lowest <= first <= last <= highest:
            raise ValueError(f"{part}: out of range; choose {lowest} to {highest}, lowest first")
        sign, by = (match[3], int(match[4] or 1)) if match else (None, 1)
        numbers.update(dict.fromkeys(expand_range(first, last, sign, by)))
    return tuple(numbers)
