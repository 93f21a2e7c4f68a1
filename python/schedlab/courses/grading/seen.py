# SPDX-License-Identifier: MIT
"""A run's trace, and what is computed of it when it is asked for."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import polars as pl

from schedlab import metrics, trace
from schedlab.metrics import Window
from schedlab.metrics.intervals import state_intervals
from schedlab.trace import Trace


class Seen:
    """A run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def trace(self) -> Trace:
        found = trace.read(self.path)
        trace.validate(found)
        return found

    @cached_property
    def metrics(self) -> metrics.Metrics:
        return metrics.compute(self.trace)

    @cached_property
    def window(self) -> Window:
        return metrics.measured_window(self.trace)

    @cached_property
    def states(self) -> pl.DataFrame:
        return state_intervals(self.trace)

    def groups_of(self) -> dict[int, str]:
        """The group of each process of the workload, by its PID."""
        table = self.metrics.processes.filter(pl.col("role") == "workload")
        return dict(zip(table["pid"].to_list(), table["group"].to_list(), strict=True))
