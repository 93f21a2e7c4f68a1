# SPDX-License-Identifier: MIT
"""Times and counts as people write them on a command line."""

from __future__ import annotations

import re

_NANOSECONDS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000}
_TIME = re.compile(r"(\d{1,12})(?:\.(\d{1,9}))?(ns|us|ms|s|m)")
_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")


def counted(number: int, singular: str, plural: str = "") -> str:
    """`1 run`, `3 runs`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def parse_time(text: str) -> int:
    """Nanoseconds of "500us", "1.2ms", "60s" or "2m"."""
    match = _TIME.fullmatch(text.strip())
    if not match:
        raise ValueError("write a number and its unit: ns, us, ms, s or m, such as 10ms or 1.2s")
    parts = match[2] or ""
    part = int("1" + "0" * len(parts))
    nanoseconds, rest = divmod(int(match[1] + parts) * _NANOSECONDS[match[3]], part)
    if rest:
        raise ValueError("write a time that is a whole number of nanoseconds")
    return nanoseconds


def format_time(nanoseconds: int) -> str:
    """The time as the kernel reads it: in the largest of s, ms, us, ns that leaves a whole number."""
    for unit in ("s", "ms", "us"):
        if nanoseconds % _NANOSECONDS[unit] == 0:
            return f"{nanoseconds // _NANOSECONDS[unit]}{unit}"
    return f"{nanoseconds}ns"


def parse_counts(text: str, lowest: int, highest: int) -> tuple[int, ...]:
    """Numbers of "4", "1,2,8" or "1-4", in the order given, each once."""
    numbers: dict[int, None] = {}
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if not match:
            raise ValueError("write numbers and ranges, such as 4 or 1,2,8 or 1-4")
        first, last = int(match[1]), int(match[2] or match[1])
        if not lowest <= first <= last <= highest:
            raise ValueError(
                f"{part.strip()}: only {lowest} to {highest} are possible, lowest first"
            )
        numbers.update(dict.fromkeys(range(first, last + 1)))
    return tuple(numbers)


def format_duration(seconds: float) -> str:
    """Host time for people: "0.4 s", "12 s", "3 min 05 s"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s"
