# SPDX-License-Identifier: MIT
"""Computes the steady-state metrics of arriving jobs: turnaround, response time and slowdown."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab.metrics.fairness import quantiles
from schedlab.trace.model import Integers

WARM_UP_FRACTION = 0.1
"""Fraction of jobs, beginning with the first, that are excluded because they found an empty machine."""
BATCHES = 20
_STUDENT = 2.093
"""Student's t for 95 % and BATCHES − 1 degrees of freedom."""
JOBS_LEAST = 20
"""Minimum number of processes for steady-state metrics."""
QUANTILES = {"median": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}

STATISTICS = ("mean", *QUANTILES, "error")
_TURNAROUND = tuple(f"steady_turnaround_{statistic}_ns" for statistic in STATISTICS)
_SLOWDOWN = tuple(f"steady_slowdown_{statistic}" for statistic in STATISTICS)
_RESPONSE = tuple(f"steady_response_{statistic}_ns" for statistic in STATISTICS)
COLUMNS = ("steady_jobs", *_TURNAROUND, *_SLOWDOWN, *_RESPONSE)


Values = dict[str, float | int | None]


def steady(processes: pl.DataFrame) -> Values:
    """Returns the values of COLUMNS, computed from processes that ended after the warm-up.

    `processes` are in the order of their forks. Slowdown is turnaround ÷ running time. A quantile
    is None if too few jobs exceed it. The error is half the width of the mean's 95 % interval, by
    batch means (R. W. Conway, 1963). It is None if a batch has fewer than ten jobs.
    """
    return steady_by(processes, np.zeros(len(processes), np.int64), 1)[0]


def steady_by(processes: pl.DataFrame, part_of_process: Integers, count: int) -> list[Values]:
    """Returns what `steady` returns, for each of `count` parts of the processes.

    `part_of_process`: the number of each process's part.
    """
    running = processes["running_ns"].to_numpy()
    ended = _is_not_null(processes["exit_ns"]) & _is_not_null(processes["fork_ns"]) & (running > 0)
    # Of columns, not of the table: a query would take longer than the rest.
    pid, fork, end, running, response = (
        processes[name].filter(pl.Series(ended))
        for name in ("pid", "fork_ns", "exit_ns", "running_ns", "response_ns")
    )
    part_of_process = part_of_process[ended]
    order = np.lexsort((pid.to_numpy(), fork.to_numpy(), part_of_process))
    bounds = np.searchsorted(part_of_process[order], np.arange(count + 1)).tolist()
    fork_ns, end_ns, running_ns = (values.to_numpy()[order] for values in (fork, end, running))
    turnaround = (end_ns - fork_ns).astype(np.float64)
    slowdown = turnaround / running_ns
    answered = _is_not_null(response)[order]
    answers = response.to_numpy()[order].astype(np.float64)
    statistics = []
    for first, last in pairwise(bounds):
        begin = first + math.ceil(WARM_UP_FRACTION * (last - first))
        response_ns = answers[begin:last][answered[begin:last]]
        statistics.append(
            {
                "steady_jobs": last - begin,
                **_statistics(_TURNAROUND, turnaround[begin:last]),
                **_statistics(_SLOWDOWN, slowdown[begin:last]),
                **_statistics(_RESPONSE, response_ns),
            }
        )
    return statistics


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
    combinations = workload.partition_by(*by, as_dict=True, maintain_order=True)
    rows = [
        {**dict(zip(by, names, strict=True)), **steady(combination)}
        for names, combination in combinations.items()
        if len(combination) >= JOBS_LEAST
    ]
    return pl.DataFrame(rows, schema={**keys, **dict.fromkeys(COLUMNS, pl.Float64)})


def _is_not_null(values: pl.Series) -> npt.NDArray[np.bool_]:
    is_not_null: npt.NDArray[np.bool_] = ~np.isnan(values.to_numpy())
    return is_not_null


def _statistics(columns: Sequence[str], values: npt.NDArray[np.float64]) -> Values:
    """Returns the statistics of values, in these columns, which are in the order of STATISTICS."""
    count = len(values)
    if not count:
        return dict.fromkeys(columns)
    levels = [level if count * (1 - level) >= 1 - 1e-9 else None for level in QUANTILES.values()]
    allowed = [level for level in levels if level is not None]
    results = iter(quantiles(values, allowed) if allowed else ())
    return dict(
        zip(
            columns,
            (
                float(values.mean()),
                *(None if level is None else next(results) for level in levels),
                _half_width(values),
            ),
            strict=True,
        )
    )


def _half_width(values: npt.NDArray[np.float64]) -> float | None:
    """Returns the half width of the mean's 95 % interval, by batch means; None for too few values."""
    if len(values) < 10 * BATCHES:
        return None
    batches = [batch.mean() for batch in np.array_split(values, BATCHES)]
    return float(_STUDENT * np.std(batches, ddof=1) / math.sqrt(BATCHES))
