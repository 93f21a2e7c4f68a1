# SPDX-License-Identifier: MIT
"""Computes tails (high percentiles of processes' times and slowdown), and rates of reported events."""

from collections.abc import Mapping, Sequence

import polars as pl

QUANTILES: Mapping[str, float] = {"p95": 0.95, "p99": 0.99, "p999": 0.999}
"""The quantiles, by their part of the column's name."""
PROCESSES_NEEDED: Mapping[str, int] = {"p95": 20, "p99": 100, "p999": 1000}
"""Minimum number of processes per quantile; with fewer, the quantile would equal the maximum."""
_MEASURES = {"turnaround": "_ns", "response": "_ns", "slowdown": ""}
"""Measures whose tails are computed, with the suffix of their columns."""


COLUMNS = (
    "slowdown_mean",
    *(f"{of}_{part}{unit}" for of, unit in _MEASURES.items() for part in QUANTILES),
)
"""The columns that `tails` computes."""


def processes_needed(column: str) -> int:
    """Returns the minimum number of processes for a value in a column; 1 for other columns."""
    quantiles = (
        [part for part in column.split("_") if part in PROCESSES_NEEDED]
        if column in COLUMNS
        else []
    )
    return PROCESSES_NEEDED[quantiles[0]] if quantiles else 1


def with_slowdown(processes: pl.DataFrame) -> pl.DataFrame:
    """Adds `slowdown`: turnaround ÷ (time on a CPU + time blocked), which is 1 for a process that never waited.

    It is null for a process that has not ended, or neither ran nor blocked.
    """
    needed_ns = pl.col("running_ns") + pl.col("blocked_ns")
    return processes.with_columns(
        slowdown=pl.when(needed_ns > 0).then(pl.col("turnaround_ns") / needed_ns)
    )


def tails(processes: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Returns the tails of the workload's processes, for each combination of the columns `by`.

    Columns: `slowdown_mean`, and turnaround, response and slowdown at QUANTILES
    (`turnaround_p99_ns`, `slowdown_p999` …). Quantiles interpolate linearly, as everywhere in
    schedlab.metrics. A quantile is null if there are too few processes.
    """
    workload = with_slowdown(processes.filter(pl.col("role") == "workload"))
    return workload.group_by(list(by), maintain_order=True).agg(
        pl.col("slowdown").mean().alias("slowdown_mean"),
        *(
            pl.when(pl.col(f"{of}{unit}").count() >= PROCESSES_NEEDED[part])
            .then(pl.col(f"{of}{unit}").quantile(quantile, "linear"))
            .alias(f"{of}_{part}{unit}")
            for of, unit in _MEASURES.items()
            for part, quantile in QUANTILES.items()
        ),
    )


_DIGITS_OF_POINTS = 9
"""Digits of percentage points that are kept; further digits are rounding errors."""
SHARE_ERROR = pl.col("share_error_points").abs().round(_DIGITS_OF_POINTS)
"""How far each group's share is from its ideal share, in percentage points."""


def event_rates(values: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Returns `events_per_second` of each run whose program reported exactly one `events` and one `elapsed` (in ns)."""

    def single_value(name: str) -> pl.Expr:
        values = pl.col("value").filter(pl.col("name") == name)
        return pl.when(values.len() == 1).then(values.first())

    elapsed = single_value("elapsed")
    rate = pl.when(elapsed > 0).then(single_value("events") * 1e9 / elapsed)
    return values.group_by(by).agg(events_per_second=rate)
