# SPDX-License-Identifier: MIT
"""Computes the steady-state metrics of arriving jobs: turnaround, response time and slowdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

WARM_UP_FRACTION = 0.1
"""Fraction of jobs, beginning with the first, that are excluded because they found an empty machine."""
BATCHES = 20
_STUDENT = 2.093
"""Student's t for 95 % and BATCHES − 1 degrees of freedom."""
JOBS_LEAST = 20
"""Minimum number of processes for steady-state metrics."""
QUANTILES = {"median": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}

STATISTICS = ("mean", *QUANTILES, "error")
COLUMNS = (
    "steady_jobs",
    *(f"steady_turnaround_{statistic}_ns" for statistic in STATISTICS),
    *(f"steady_slowdown_{statistic}" for statistic in STATISTICS),
    *(f"steady_response_{statistic}_ns" for statistic in STATISTICS),
)


def steady(processes: pl.DataFrame) -> dict[str, float | int | None]:
    """Returns the values of COLUMNS, computed from processes that ended after the warm-up.

    `processes` are in the order of their forks. Slowdown is turnaround ÷ running time. A quantile
    is None if too few jobs exceed it. The error is half the width of the mean's 95 % interval, by
    batch means (R. W. Conway, 1963). It is None if a batch has fewer than ten jobs.
    """
    running = processes["running_ns"].to_numpy()
    ended = pl.Series(_known(processes["exit_ns"]) & _known(processes["fork_ns"]) & (running > 0))
    # Of columns, not of the table: a query would take longer than the rest.
    pid, fork, end, running = (
        processes[name].filter(ended).to_numpy()
        for name in ("pid", "fork_ns", "exit_ns", "running_ns")
    )
    order = np.lexsort((pid, fork))
    order = order[math.ceil(WARM_UP_FRACTION * len(order)) :]
    answers = processes["response_ns"].filter(ended)[order]
    turnaround = (end - fork)[order].astype(np.float64)
    slowdown = turnaround / running[order]
    response = answers.filter(pl.Series(_known(answers))).to_numpy().astype(np.float64)
    return {
        "steady_jobs": len(order),
        **{f"steady_turnaround_{name}_ns": value for name, value in _statistics(turnaround)},
        **{f"steady_slowdown_{name}": value for name, value in _statistics(slowdown)},
        **{f"steady_response_{name}_ns": value for name, value in _statistics(response)},
    }


def steady_of(processes: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Returns COLUMNS for each combination of the columns `by`, which must include "run".

    Combinations with fewer than JOBS_LEAST processes are omitted. If the processes have no times,
    COLUMNS are missing.
    """
    keys = pl.Schema({column: pl.Int64 if column == "run" else pl.String for column in by})
    needed = {"role", "pid", "fork_ns", "exit_ns", "running_ns", "response_ns"}
    if not needed <= set(processes.columns):
        return pl.DataFrame(schema=keys)
    workload = processes.filter(pl.col("role") == "workload")
    parts = workload.partition_by(*by, as_dict=True, maintain_order=True)
    rows = [
        {**dict(zip(by, names, strict=True)), **steady(part)}
        for names, part in parts.items()
        if len(part) >= JOBS_LEAST
    ]
    return pl.DataFrame(rows, schema={**keys, **dict.fromkeys(COLUMNS, pl.Float64)})


def _known(values: pl.Series) -> npt.NDArray[np.bool_]:
    """Returns which values are not null."""
    known: npt.NDArray[np.bool_] = ~np.isnan(values.to_numpy())
    return known


def _statistics(values: npt.NDArray[np.float64]) -> list[tuple[str, float | None]]:
    statistics: list[tuple[str, float | None]] = [
        ("mean", float(values.mean()) if len(values) else None)
    ]
    for name, part in QUANTILES.items():
        known = len(values) * (1 - part) >= 1 - 1e-9
        statistics.append((name, float(np.quantile(values, part)) if known else None))
    return [*statistics, ("error", _error(values))]


def _error(values: npt.NDArray[np.float64]) -> float | None:
    if len(values) < 10 * BATCHES:
        return None
    batches = [batch.mean() for batch in np.array_split(values, BATCHES)]
    return float(_STUDENT * np.std(batches, ddof=1) / math.sqrt(BATCHES))
