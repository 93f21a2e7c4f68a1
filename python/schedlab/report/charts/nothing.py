# SPDX-License-Identifier: MIT
"""Charts of what may hold nothing to draw, such as a recording of no length: they are left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

from schedlab.report.model import Chart

P = ParamSpec("P")


class NothingToDraw(ValueError):
    """There is no value, no process or no time that the chart could show."""


def drawn(make: Callable[P, Chart | None], *arguments: P.args, **named: P.kwargs) -> list[Chart]:
    """Returns the chart, or no chart if there is nothing that it could show."""
    try:
        chart = make(*arguments, **named)
    except NothingToDraw:
        chart = None
    return [chart] if chart else []
