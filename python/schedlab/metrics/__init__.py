# SPDX-License-Identifier: MIT
"""Computes metrics of runs from their traces (docs/metrics.md)."""

from schedlab.metrics.compute import NoResult, compute, measure
from schedlab.metrics.fairness import interquartile_range, jain_index
from schedlab.metrics.intervals import (
    cpu_intervals,
    scheduler_intervals,
    state_intervals,
    wakeup_latencies,
)
from schedlab.metrics.jobs import jobs
from schedlab.metrics.lag import lags
from schedlab.metrics.model import Metrics
from schedlab.metrics.shares import Weights, ideal_shares
from schedlab.metrics.stored import load, load_many, load_table, schemas
from schedlab.metrics.window import Window, measured_window

__all__ = [
    "Metrics",
    "NoResult",
    "Weights",
    "Window",
    "compute",
    "cpu_intervals",
    "ideal_shares",
    "interquartile_range",
    "jain_index",
    "jobs",
    "lags",
    "load",
    "load_many",
    "load_table",
    "measure",
    "measured_window",
    "scheduler_intervals",
    "schemas",
    "state_intervals",
    "wakeup_latencies",
]
