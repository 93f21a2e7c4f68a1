# SPDX-License-Identifier: MIT
"""Outputs that are not what they should be."""

from __future__ import annotations

import re


class OutputError(ValueError):
    """A benchmark did not print what it prints when it succeeds; says what is missing."""


def number_after(program: str, text: str, what: str, pattern: str) -> float:
    """The number that the pattern's group holds, where it is first found at a line's beginning."""
    found = re.search(rf"^\s*{pattern}", text, re.MULTILINE)
    if not found:
        raise OutputError(f"{program} printed no {what}: it did not end, or is another version")
    return float(found[1])
