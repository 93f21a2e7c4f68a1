# SPDX-License-Identifier: MIT
"""Decides whether a measured value agrees with a published figure, by one rule for all studies."""

from schedlab.studies.figures import Figure

NEAR_FRACTION = 0.15
"""Largest relative difference from a published time or count that counts as near."""
CLOSE_FRACTION = 0.05
"""A stricter limit, reported in addition."""
NEAR_POINTS = 2.0
"""Largest difference in percentage points for shares."""
NEAR_TICKS = 1.0
"""Largest difference in ticks for times published in whole ticks."""

NEARNESS_RULE = (
    f"A time or a count is *near* the published one within {NEAR_FRACTION:.0%} of it, a time in whole ticks also within"
    f" {NEAR_TICKS:.0f} tick, and a share within {NEAR_POINTS:.0f} percentage points."
).replace("%", " %")


def tolerance(figure: Figure) -> float:
    """Returns the tolerance of the figure, in its unit. Raises ValueError if it is not a number."""
    if figure.unit.startswith("%"):
        return NEAR_POINTS
    minimum = NEAR_TICKS if _is_integer_ticks(figure) else 0.0
    return max(NEAR_FRACTION * figure.value, minimum)


def is_near(figure: Figure, value: float) -> bool:
    """True if the value is near the figure."""
    return abs(value - figure.value) <= tolerance(figure)


def is_close(figure: Figure, value: float) -> bool:
    """True if the value differs from the figure by at most 5 %."""
    return abs(value - figure.value) <= CLOSE_FRACTION * figure.value


def is_near_by_tick(figure: Figure, value: float) -> bool:
    """True if the value is near the figure only because of the tick."""
    return is_near(figure, value) and (
        _is_integer_ticks(figure) and abs(value - figure.value) > NEAR_FRACTION * figure.value
    )


def _is_integer_ticks(figure: Figure) -> bool:
    """Returns whether the figure is a time in whole ticks."""
    return figure.unit == "ticks" and figure.decimals == 0
