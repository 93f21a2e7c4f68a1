# SPDX-License-Identifier: MIT
"""Not yet."""

from __future__ import annotations

from schedlab.report.model import Chart
from schedlab.trace import Trace


def levels(
    name: str,
    trace: Trace,
    *,
    title: str,
    caption: str,
    begin_ns: int | None = None,
    end_ns: int | None = None,
    description: str = "",
) -> Chart:
    """Not yet."""
    raise NotImplementedError
