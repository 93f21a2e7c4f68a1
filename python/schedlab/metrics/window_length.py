# SPDX-License-Identifier: MIT
"""Whether the window of a run was as long as its workload said before."""

from __future__ import annotations

import polars as pl

from schedlab.metrics.model import Metrics

WINDOW = "window"
"""By this name a workload tells how many nanoseconds its window is to last (workload_window() of
workloads/api/workload.h)."""
_MOST_OFF = 0.05
"""A part of that length: by more no figure of the window may be off."""


class NoResult(ValueError):
    """The figures are of another window than the one that was to be measured."""


def check_window(metrics: Metrics) -> None:
    """Raises NoResult if the workload said how long its window was to be, and it was not."""
    asked = metrics.values.filter(pl.col("name") == WINDOW)["value"]
    if asked.is_empty():
        return
    planned, lasted = int(asked[0]), int(metrics.summary["elapsed_ns"][0])
    if abs(lasted - planned) > _MOST_OFF * planned:
        raise NoResult(f"the window lasted {lasted / 1e6:g} of {planned / 1e6:g} ms")
