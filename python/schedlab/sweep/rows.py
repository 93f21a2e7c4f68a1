# SPDX-License-Identifier: MIT
"""Selects the metrics of a run that a data set stores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from schedlab import metrics
from schedlab.metrics.derived import SHARE_ERROR, event_rates
from schedlab.metrics.steady import steady
from schedlab.metrics.tails import tails

Row = dict[str, Any]
_REPEATED_COLUMNS = ("policy", "cpus", "seed", "tick_ns")
"""Columns of a summary that identify the run."""


@dataclass(frozen=True)
class RunRows:
    """Measured values with the columns of `columns`; empty if nothing was measured."""

    summary: Row = field(default_factory=dict)
    groups: tuple[Row, ...] = ()
    reported: tuple[Row, ...] = ()


def select_rows(run_metrics: metrics.Metrics) -> RunRows:
    """Returns the rows that a data set stores for a run."""
    summary = run_metrics.summary.row(0, named=True)
    summary = {name: value for name, value in summary.items() if name not in _REPEATED_COLUMNS}
    groups = tuple(run_metrics.groups.to_dicts())
    workload = run_metrics.processes.filter(pl.col("role") == "workload")
    steady_by_group = {
        name: steady(part) for (name,), part in workload.partition_by("group", as_dict=True).items()
    }
    tails_by_group = {row["group"]: row for row in tails(workload, ("group",)).to_dicts()}
    group_rows = tuple(
        {**row, **tails_by_group.get(row["group"], {}), **steady_by_group.get(row["group"], {})}
        for row in groups
    )
    all_tails = tails(workload, ("role",)).drop("role").to_dicts()
    derived_metrics = {
        **_derived_metrics(run_metrics),
        **(all_tails[0] if all_tails else {}),
        **steady(workload),
    }
    return RunRows({**summary, **derived_metrics}, group_rows, _reported_rows(run_metrics.values))


def _derived_metrics(run_metrics: metrics.Metrics) -> Row:
    """Returns the additional metrics of `schedlab.analysis.comparison.measures` for one run."""
    answers = run_metrics.processes.filter(pl.col("role") == "workload")["response_ns"].drop_nulls()
    rates = event_rates(run_metrics.values.with_columns(run=pl.lit(1)), ["run"])[
        "events_per_second"
    ]
    return {
        "share_error_max_points": run_metrics.groups.select(SHARE_ERROR.max()).item(),
        "response_iqr_ns": metrics.interquartile_range(answers.to_numpy()),
        "events_per_second": rates.item() if len(rates) else None,
    }


def _reported_rows(values: pl.DataFrame) -> tuple[Row, ...]:
    """Returns a row for each name of the values that programs reported."""
    if values.is_empty():
        return ()
    value = pl.col("value").cast(pl.Float64)
    return tuple(
        values.filter(pl.col("name").is_not_null())
        .group_by("name")
        .agg(count=pl.len(), mean=value.mean(), least=value.min(), most=value.max())
        .sort("name")
        .to_dicts()
    )
