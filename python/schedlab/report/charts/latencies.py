# SPDX-License-Identifier: MIT
"""Not yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schedlab.report.model import Chart
from schedlab.trace import Trace


def latencies(
    name: str,
    traces: Mapping[str, Sequence[Trace]],
    *,
    title: str,
    caption: str,
    description: str = "",
) -> Chart:
    """Not yet."""
    raise NotImplementedError
