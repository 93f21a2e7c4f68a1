# SPDX-License-Identifier: MIT
"""Lines of programs in the simulator's form, and how repetition in them becomes loops."""

from __future__ import annotations

import re
from collections.abc import Sequence

NAME_MAX = 31
_PERIOD_MAX = 12
"""Lines of a loop's body, at most."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_.+/:-]")


def safe_name(name: str, length: int = NAME_MAX) -> str:
    """A name that the simulator reads as one word."""
    return _UNSAFE.sub("_", name)[:length] or "process"


def with_loops(lines: Sequence[str]) -> list[str]:
    """The same, where a few lines that follow each other again and again are said once."""
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
    """How many lines from a place on come how often; worth it only if lines are saved."""
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
