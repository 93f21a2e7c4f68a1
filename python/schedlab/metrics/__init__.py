# SPDX-License-Identifier: MIT
"""Metrics of runs, from their traces (docs/metrics.md)."""

from schedlab.metrics.compute import Metrics, Weights, compute, load, schemas, wakeup_latencies
from schedlab.metrics.fairness import interquartile_range, jain_index
from schedlab.metrics.ideal import ideal_shares
from schedlab.metrics.intervals import cpu_intervals, scheduler_intervals, state_intervals
from schedlab.metrics.predictability import predictability
from schedlab.metrics.tables import tables
from schedlab.metrics.window import Window, measured_window

__all__ = [
    "Metrics",
    "Weights",
    "Window",
    "compute",
    "cpu_intervals",
    "ideal_shares",
    "interquartile_range",
    "jain_index",
    "load",
    "measured_window",
    "predictability",
    "scheduler_intervals",
    "schemas",
    "state_intervals",
    "tables",
    "wakeup_latencies",
]
