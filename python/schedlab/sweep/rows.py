# SPDX-License-Identifier: MIT
"""Selects the metrics of a run that a data set stores."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from schedlab import metrics
from schedlab.metrics.model import MeasuredRuns
from schedlab.metrics.steady import steady_by
from schedlab.metrics.tails import SHARE_ERROR, event_rates, tails

Row = dict[str, Any]
_REPEATED_COLUMNS = ("policy", "cpus", "seed", "tick_ns")
"""Columns of a summary that identify the run."""


@dataclass(frozen=True)
class RunRows:
    """Measured values with the columns of `columns`; empty if nothing was measured."""

    summary: Row = field(default_factory=dict)
    groups: tuple[Row, ...] = ()
    reported: tuple[Row, ...] = ()


def select_rows(measured: MeasuredRuns) -> list[RunRows]:
    """Returns the rows that a data set stores for each run."""
    runs = len(measured.summary)
    workload = measured.processes.filter(pl.col("role") == "workload")
    run = workload["run"].to_numpy()
    derived = _derived_metrics(measured, workload, runs)
    all_tails = {row.pop("run"): row for row in _tails(workload, runs, ())}
    summary = measured.summary.drop(_REPEATED_COLUMNS).to_dicts()
    for number, values in enumerate(steady_by(workload, run, runs)):
        summary[number] |= {**derived[number], **all_tails.get(number, {}), **values}
    groups = _rows_by_run(_group_rows(measured.groups, workload, runs), runs)
    reported = _rows_by_run(_reported_rows(measured.values), runs)
    return [
        RunRows(of_run, tuple(of_groups), tuple(of_reports))
        for of_run, of_groups, of_reports in zip(summary, groups, reported, strict=True)
    ]


def _rows_by_run(rows: Iterable[Row], runs: int) -> list[list[Row]]:
    """Returns the rows of each run, without their run."""
    by_run: list[list[Row]] = [[] for _ in range(runs)]
    for row in rows:
        by_run[row.pop("run")].append(row)
    return by_run


def _group_rows(groups: pl.DataFrame, workload: pl.DataFrame, runs: int) -> Iterator[Row]:
    tails_by_group = {
        (row.pop("run"), row.pop("group")): row for row in _tails(workload, runs, ("group",))
    }
    keys = list(zip(groups["run"], groups["group"], strict=True))
    number_of_group = {key: number for number, key in enumerate(keys)}
    of_group = zip(workload["run"], workload["group"], strict=True)
    numbers = np.fromiter((number_of_group[key] for key in of_group), np.int64, len(workload))
    for key, row, values in zip(
        keys, groups.to_dicts(), steady_by(workload, numbers, len(keys)), strict=True
    ):
        yield {**row, **tails_by_group.get(key, {}), **values}


_EQUAL_ROWS_MAX = 999
"""Polars rounds the means of groups differently in a table of more rows."""


def _tails(workload: pl.DataFrame, runs: int, by: tuple[str, ...]) -> Iterator[Row]:
    """Yields the tails of each run, or of each run and combination of the columns `by`.

    They are rounded as if each run was alone.
    """
    bounds = np.searchsorted(workload["run"].to_numpy(), np.arange(runs + 1)).tolist()
    begin = 0
    for end, next_end in pairwise([*bounds[1:], bounds[-1] + _EQUAL_ROWS_MAX + 1]):
        if next_end - begin > _EQUAL_ROWS_MAX:
            part = workload[begin:end]
            # Polars also rounds a mean differently if a number identifies its group.
            first, last = (part["run"][0], part["run"][-1]) if len(part) else (0, 0)
            keys = by or ("role",) if first == last else ("run", *by)
            for row in tails(part, keys).to_dicts():
                row.pop("role", None)
                yield {"run": first, **row}
            begin = end


def _derived_metrics(measured: MeasuredRuns, workload: pl.DataFrame, runs: int) -> list[Row]:
    """Returns the additional metrics of `schedlab.analysis.comparison.measures` for each run."""
    errors = dict(measured.groups.group_by("run").agg(SHARE_ERROR.max()).iter_rows())
    rates: dict[int, float | None] = {}
    if len(measured.values):
        rates = dict(event_rates(measured.values, ["run"]).iter_rows())
    answered = workload.select("run", "response_ns").drop_nulls()
    answers = answered["response_ns"].to_numpy()
    bounds = np.searchsorted(answered["run"].to_numpy(), np.arange(runs + 1)).tolist()
    return [
        {
            "share_error_max_points": errors.get(run),
            "response_iqr_ns": metrics.interquartile_range(answers[bounds[run] : bounds[run + 1]]),
            "events_per_second": rates.get(run),
        }
        for run in range(runs)
    ]


def _reported_rows(values: pl.DataFrame) -> list[Row]:
    """Returns a row for each run and name of the values that programs reported."""
    if values.is_empty():
        return []
    value = pl.col("value").cast(pl.Float64)
    return (
        values.filter(pl.col("name").is_not_null())
        .group_by("run", "name")
        .agg(count=pl.len(), mean=value.mean(), least=value.min(), most=value.max())
        .sort("run", "name")
        .to_dicts()
    )
