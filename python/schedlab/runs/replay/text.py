# SPDX-License-Identifier: MIT
"""Formats programs in the simulator's text format, and replaces repetitions by loops."""

import re
from collections.abc import Sequence

NAME_MAX = 31
_LOOP_BODY_LINES_MAX = 12
"""The most lines in the body of a loop."""
_UNSAFE_CHARACTERS = re.compile(r"[^A-Za-z0-9_.+/:-]")


def safe_name(name: str, length: int = NAME_MAX) -> str:
    """Returns the name with characters replaced so that the simulator reads it as one word."""
    return _UNSAFE_CHARACTERS.sub("_", name)[:length] or "process"


def replace_repetitions(lines: Sequence[str]) -> list[str]:
    """Returns the lines with repeated sequences replaced by loops."""
    result: list[str] = []
    start = 0
    while start < len(lines):
        body_length, rounds = _find_repetition(lines, start)
        if rounds > 1:
            body = [f"  {line}" for line in lines[start : start + body_length]]
            result += [f"loop {rounds}", *body, "end"]
            start += body_length * rounds
        else:
            result.append(lines[start])
            start += 1
    return result


def _find_repetition(lines: Sequence[str], start: int) -> tuple[int, int]:
    """Returns length (in lines) and count of a repetition that begins at line `start`.

    The count is less than 2 if a loop would not save lines.
    """
    for body_length in range(1, _LOOP_BODY_LINES_MAX + 1):
        if start + body_length >= len(lines) or lines[start] != lines[start + body_length]:
            continue
        body = lines[start : start + body_length]
        rounds = 1
        while lines[start + rounds * body_length : start + (rounds + 1) * body_length] == body:
            rounds += 1
        if (rounds - 1) * body_length > 2:
            return body_length, rounds
    return 1, 1
