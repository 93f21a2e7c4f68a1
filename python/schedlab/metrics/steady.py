# SPDX-License-Identifier: MIT
"""What is said of jobs that arrive: how long they stay in the long run, and how much longer than alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

WARM_UP = 0.1
"""The part of the jobs, the first to come, that is left out: they found an empty machine."""
BATCHES = 20
_STUDENT = 2.093
"""Student's t for 95 % and BATCHES - 1."""
JOBS_LEAST = 20
"""Of fewer processes it is not asked what they come to in the long run."""
QUANTILES = {"median": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}

STATISTICS = ("mean", *QUANTILES, "error")
COLUMNS = (
    "steady_jobs",
    *(f"steady_turnaround_{statistic}_ns" for statistic in STATISTICS),
    *(f"steady_slowdown_{statistic}" for statistic in STATISTICS),
    *(f"steady_response_{statistic}_ns" for statistic in STATISTICS),
)


def steady(processes: pl.DataFrame) -> dict[str, float | int | None]:
    """The columns COLUMNS of processes that have ended, in the order of their forks, after the warm-up.

    Slowdown: turnaround ÷ running time. A quantile is None if so few jobs are beyond it that it would be
    the longest alone. The error is half the width of the mean's interval of 95 %, by the means of batches
    (R. W. Conway 1963); None if there are fewer than ten jobs in a batch.
    """
    ended = processes.filter(
        pl.col("exit_ns").is_not_null()
        & pl.col("fork_ns").is_not_null()
        & (pl.col("running_ns") > 0)
    ).sort("fork_ns", "pid")
    jobs = ended[math.ceil(WARM_UP * len(ended)) :]
    turnaround = (jobs["exit_ns"] - jobs["fork_ns"]).to_numpy().astype(np.float64)
    slowdown = turnaround / jobs["running_ns"].to_numpy()
    response = jobs["response_ns"].drop_nulls().to_numpy().astype(np.float64)
    return {
        "steady_jobs": len(jobs),
        **{f"steady_turnaround_{name}_ns": value for name, value in _statistics(turnaround)},
        **{f"steady_slowdown_{name}": value for name, value in _statistics(slowdown)},
        **{f"steady_response_{name}_ns": value for name, value in _statistics(response)},
    }


def steady_of(processes: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The same for each set of the columns `by`, "run" among them, of the workload's processes, if there are
    JOBS_LEAST of them. Without COLUMNS if the processes have no times."""
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
