# SPDX-License-Identifier: MIT
"""The tails of what processes waited for: high quantiles of turnaround, response and slowdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

QUANTILES: Mapping[str, float] = {"p95": 0.95, "p99": 0.99, "p999": 0.999}
"""Parts of column names, and the quantiles that they stand for."""
NEEDED: Mapping[str, int] = {"p95": 20, "p99": 100, "p999": 1000}
"""How many processes a quantile needs: of fewer, none is beyond it, and it would say no more than the longest."""
_OF = {"turnaround": "_ns", "response": "_ns", "slowdown": ""}
"""Figures of a process, and the units at the ends of their columns."""


COLUMNS = (
    "slowdown_mean",
    *(f"{of}_{part}{unit}" for of, unit in _OF.items() for part in QUANTILES),
)
"""What `tails` gives besides the columns that it was asked for."""


def needed(column: str) -> int:
    """How many processes a column of `tails` needs; 1 for any other."""
    parts = [part for part in column.split("_") if part in NEEDED] if column in COLUMNS else []
    return NEEDED[parts[0]] if parts else 1


def with_slowdown(processes: pl.DataFrame) -> pl.DataFrame:
    """The processes with `slowdown`: turnaround ÷ (time on a CPU + time blocked), 1 for one that never waited. Null
    for one that has not ended, or did nothing at all."""
    needed_ns = pl.col("running_ns") + pl.col("blocked_ns")
    return processes.with_columns(
        slowdown=pl.when(needed_ns > 0).then(pl.col("turnaround_ns") / needed_ns)
    )


def tails(processes: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """For each set of the columns `by`: `slowdown_mean`, and turnaround, response and slowdown at QUANTILES
    (`turnaround_p99_ns`, `slowdown_p999` …), of the workload's processes that have such a value.

    Quantiles interpolate linearly, as all of schedlab.metrics; one of fewer processes than it needs is null.
    """
    workload = with_slowdown(processes.filter(pl.col("role") == "workload"))
    return workload.group_by(list(by), maintain_order=True).agg(
        pl.col("slowdown").mean().alias("slowdown_mean"),
        *(
            pl.when(pl.col(f"{of}{unit}").count() >= NEEDED[part])
            .then(pl.col(f"{of}{unit}").quantile(quantile, "linear"))
            .alias(f"{of}_{part}{unit}")
            for of, unit in _OF.items()
            for part, quantile in QUANTILES.items()
        ),
    )
