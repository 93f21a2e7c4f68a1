# SPDX-License-Identifier: MIT
"""Formats programs in the simulator's text format, and compresses repetitions to loops."""

from __future__ import annotations

import re
from collections.abc import Sequence

NAME_MAX = 31
_PERIOD_MAX = 12
"""The most lines in the body of a loop."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_.+/:-]")


def safe_name(name: str, length: int = NAME_MAX) -> str:
    """Returns a name that the simulator reads as one word."""
    return _UNSAFE.sub("_", name)[:length] or "process"


def with_loops(lines: Sequence[str]) -> list[str]:
    """Returns the lines with repeated sequences replaced by loops."""
    result: list[str] = []
    at = 0
    while at < len(lines):
        period, rounds = _repetition(lines, at)
        if rounds > 1:
            body = [f"  {line}" for line in lines[at : at + period]]
            result += [f"loop {rounds}", *body, "end"]
            at += period * rounds
        else:
            result.append(lines[at])
            at += 1
    return result


def _repetition(lines: Sequence[str], at: int) -> tuple[int, int]:
    """Returns length and count of the repetition at `at`, if a loop would save lines."""
    for period in range(1, _PERIOD_MAX + 1):
        if at + period >= len(lines) or lines[at] != lines[at + period]:
            continue
        body = lines[at : at + period]
        rounds = 1
        while lines[at + rounds * period : at + (rounds + 1) * period] == body:
            rounds += 1
        if (rounds - 1) * period > 2:
            return period, rounds
    return 1, 1
