# SPDX-License-Identifier: MIT
"""Numbers and times as people read them in a narrow column; the same words as the page's."""

from __future__ import annotations

STATES = ("runnable", "running", "blocked")
REASONS = (
    "",
    "sleep",
    "child",
    "pipe",
    "console",
    "disk",
    "lock",
    "journal",
    "exit",
    "other",
)
"""Words for enum block_reason of the trace, in its order."""
_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))


def duration(ns: float | None) -> str:
    """A duration such as 12.3 ms, of three digits; –: not known."""
    if ns is None or ns < 0:
        return "–"
    if ns == 0:
        return "0"
    size, unit = next((each for each in _UNITS if ns >= each[0]), _UNITS[-1])
    value = ns / size
    digits = 0 if unit == "ns" or value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}"


def percent(part: float | None) -> str:
    """A part such as 12.5 %; –: not known."""
    return "–" if part is None or part < 0 else f"{100 * part:.1f} %"


def moment(ns: int) -> str:
    """Seconds to the millisecond."""
    return f"{ns / 1e9:,.3f} s"


def times(speed: float) -> str:
    """Returns how fast time goes, compared with ours."""
    return f"{speed:,.0f}×" if speed >= 10 else f"{speed:.2g}×"


def per_second(rate: float) -> str:
    """A rate such as 12.3/s."""
    return f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.1f}/s"


def state(number: int, reason: int) -> str:
    """Returns what a process does, with the reason why it waits."""
    if number == 2 and 0 < reason < len(REASONS):
        return REASONS[reason]
    return STATES[number] if 0 <= number < len(STATES) else "?"
