# SPDX-License-Identifier: MIT
"""The report of `stress-ng --metrics-brief`.

It has a report in YAML as well, which it opens anew as a file and so writes over what others have
printed, if that is a file too.
"""

from __future__ import annotations

import re

from schedlab.base.outputs.errors import OutputError

_NUMBER = re.compile(r"\d+(\.\d+)?")
_COLUMNS = (
    "bogo_ops",
    "elapsed_s",
    "user_s",
    "system_s",
    "bogo_ops_per_second",
    "bogo_ops_per_cpu_second",
)
"""The columns of a stressor's line, behind its name. The rate is by real time, then by CPU time."""
_LINE = re.compile(r"^stress-ng: metrc: +\[\d+\] +(.*)$", re.MULTILINE)


def figures(text: str) -> dict[str, float]:
    """`bogo_ops_per_second` of real time, and what it is made of. Of one stressor."""
    rows = [row for line in _LINE.findall(text) if (row := _row(line.split()))]
    if not rows:
        raise OutputError(
            "stress-ng printed no metrics: it did not end, is older than 0.15, or was started"
            " without --metrics-brief"
        )
    if len(rows) > 1:
        raise OutputError(f"stress-ng told of {len(rows)} stressors; run one at a time")
    return rows[0]


def _row(words: list[str]) -> dict[str, float] | None:
    """Returns the row, or None for a heading or another metric."""
    numbers = words[1 : 1 + len(_COLUMNS)]
    if len(numbers) < len(_COLUMNS) or not all(map(_NUMBER.fullmatch, numbers)):
        return None
    return dict(zip(_COLUMNS, map(float, numbers), strict=True))
