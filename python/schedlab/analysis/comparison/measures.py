# SPDX-License-Identifier: MIT
"""Describes the metrics for comparing configurations: name, unit and direction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from schedlab.analysis.comparison.statistics import Floats, contributions
from schedlab.base.display.numbers import Bounds, Quantity
from schedlab.metrics import interquartile_range
from schedlab.metrics.registry import METRICS, REPORTED_PREFIX, Better, Grain, Scope, kind_of
from schedlab.metrics.steady import COLUMNS as STEADY_COLUMNS
from schedlab.metrics.steady import steady_of
from schedlab.metrics.tails import COLUMNS as TAIL_COLUMNS
from schedlab.metrics.tails import SHARE_ERROR, event_rates, tails

if TYPE_CHECKING:
    from schedlab.runs.collection import Collection

CONFIGURATION_COLUMNS = ("experiment", "policy", "cpus", "machine", "tick_ns")
"""Columns of `schedlab.runs.collection.identity` that identify a configuration, without the seed."""


@dataclass(frozen=True)
class Measure:
    """One number of each run, or of each group of its processes."""

    name: str
    """The metric's identifier, also for users."""
    title: str
    column: str
    """The column of a run's summary or groups, or a column that `measure_values` adds."""
    better: Better | None
    """None: the metric has no direction."""
    ideal: str
    """The best possible value, and what it depends on."""
    quantity: Quantity
    grain: Grain
    within: Bounds
    """The range of possible values."""


def make_measure(name: str, title: str, column: str, better: Better | None, ideal: str) -> Measure:
    """Returns the measure of a column. The column's name determines its unit."""
    kind = kind_of(column)
    return Measure(name, title, column, better, ideal, kind.quantity, kind.grain, kind.within)


_STUDY_3_MEASURES = (
    "turnaround",
    "response",
    "throughput",
    "overhead",
    "fairness",
    "predictability",
)


def _measures(scope: Scope) -> tuple[Measure, ...]:
    """Returns the measures of a run or of a group: study 3's first, then the others, and last those
    reported only on request.
    """
    compared = [metric for metric in METRICS if metric.name and metric.scope in (scope, "both")]
    if scope == "group":
        compared = [metric for metric in compared if metric.name != "throughput"]
    positions = {name: index for index, name in enumerate(_STUDY_3_MEASURES)}
    compared.sort(
        key=lambda metric: (metric.only_if_requested, positions.get(metric.name, len(positions)))
    )
    return tuple(
        make_measure(metric.name, metric.title, metric.column, metric.better, metric.ideal)
        for metric in compared
    )


MEASURES = _measures("run")
"""Metrics of a run as a whole."""
GROUP_MEASURES = _measures("group")
"""Metrics of a group of a run's processes."""
TAIL_METRICS = frozenset(
    metric.name for metric in METRICS if metric.name and metric.only_if_requested
)
MEASURES_BY_NAME = {measure.name: measure for measure in MEASURES}
METRICS_OF_ENDED = frozenset(
    metric.name for metric in METRICS if metric.name and metric.covers_only_ended
)


def reported_value_measure(name: str) -> Measure:
    """Returns the measure of a name such as `told-ticks`: the run's mean of a value that programs reported.

    It has no direction, because only the program knows which values are good.
    """
    title = f"reported by the program: {name.removeprefix(REPORTED_PREFIX)}"
    return make_measure(name, title, name, None, "a value that the program reports")


def measure_values(collection: Collection, names: Iterable[str] | None = None) -> pl.DataFrame:
    """Returns all values of all successful runs in long form; if `names` is given, only those measures.

    Columns: those of `identity`, run, group (null: the whole workload), measure, value, resolution
    (the smallest possible difference between values). Missing values have no row.

    Predictability depends on all runs of a configuration together. Each run therefore has a
    contribution (`schedlab.analysis.comparison.statistics`). Values reported by programs appear as
    `told-NAME`, as the mean of each run.
    """
    if not any(run.succeeded for run in collection):
        return pl.DataFrame()
    requested = None if names is None else set(names)
    run_measures, group_measures = (
        _select_measures(requested, measures) for measures in (MEASURES, GROUP_MEASURES)
    )
    succeeded = pl.col("status") == "success"
    summary, groups = collection.summary.filter(succeeded), collection.groups
    clock_steps = summary.select("run", "clock_step_ns")
    run_table = summary.join(
        groups.group_by("run").agg(share_error_max_points=SHARE_ERROR.max()), on="run", how="left"
    )
    for process_values in _process_metrics(collection.processes, (), run_measures):
        run_table = run_table.join(process_values, on="run", how="left")
    values = collection.values
    has_names = "name" in values.columns
    if has_names and any(measure.column == "events_per_second" for measure in run_measures):
        run_table = run_table.join(event_rates(values, ["run"]), on="run", how="left")
    group_table = groups.with_columns(share_error_points=SHARE_ERROR).join(
        clock_steps, on="run", how="left"
    )
    for process_values in _process_metrics(collection.processes, ("group",), group_measures):
        group_table = group_table.join(process_values, on=["run", "group"], how="left")
    return pl.concat(
        [
            *_rows(run_table.with_columns(group=pl.lit(None, pl.String)), run_measures),
            *_rows(group_table, group_measures),
            *([_reported_values(values)] if has_names and requested is None else []),
        ]
    )


def _select_measures(
    requested: set[str] | None, measures: Sequence[Measure]
) -> tuple[Measure, ...]:
    """Returns the requested measures; all if `requested` is None."""
    return tuple(measure for measure in measures if requested is None or measure.name in requested)


def _process_metrics(
    processes: pl.DataFrame, by: tuple[str, ...], measures: Sequence[Measure]
) -> Iterator[pl.DataFrame]:
    """Yields tables of metrics that are computed from processes: one row per run, or per run and group."""
    columns = {measure.column for measure in measures}
    if "response_iqr_ns" in columns:
        yield _spreads(processes, by)
    if columns & set(TAIL_COLUMNS):
        yield _tail_percentiles(processes, by)
    if columns & set(STEADY_COLUMNS):
        yield steady_of(processes, ("run", *by))


def _tail_percentiles(processes: pl.DataFrame, by: tuple[str, ...]) -> pl.DataFrame:
    """Returns high percentiles over each run's processes."""
    needed = {"role", "turnaround_ns", "response_ns", "running_ns", "blocked_ns"}
    if not needed <= set(processes.columns):
        return pl.DataFrame(schema={"run": pl.Int64, **dict.fromkeys(by, pl.String)})
    return tails(processes, ("run", *by))


def _reported_values(values: pl.DataFrame) -> pl.DataFrame:
    """Returns the values that programs reported, as measures `told-NAME`."""
    identity_columns = [*CONFIGURATION_COLUMNS, "seed", "status", "run"]
    return (
        values.filter(pl.col("name").is_not_null())
        .group_by(*identity_columns, "name", maintain_order=True)
        .agg(value=pl.col("value").mean())
        .select(
            *identity_columns,
            group=pl.lit(None, pl.String),
            measure=REPORTED_PREFIX + pl.col("name"),
            value=pl.col("value").cast(pl.Float64),
            resolution=pl.lit(0.0),
        )
    )


def _rows(frame: pl.DataFrame, measures: Sequence[Measure]) -> Iterable[pl.DataFrame]:
    """Yields the rows of each measure that has a column in the frame. `completion_ns` may be null."""
    identity_columns = [*CONFIGURATION_COLUMNS, "seed", "status", "run", "group"]
    all_ended = pl.col("finished") == pl.col("processes")
    for measure in measures:
        if measure.column in frame.columns:
            rows = frame.filter(all_ended) if measure.name in METRICS_OF_ENDED else frame
            yield rows.select(
                *identity_columns,
                measure=pl.lit(measure.name),
                value=pl.col(measure.column).cast(pl.Float64),
                resolution=_resolution(measure.grain),
            ).filter(pl.col("value").is_not_null())


def _resolution(grain: Grain) -> pl.Expr:
    """Returns an expression for the smallest possible difference between values of this grain."""
    step = pl.col("clock_step_ns").cast(pl.Float64)
    if grain == "clock":
        return step
    if grain == "mean of clock":
        return step / pl.col("processes").clip(1)
    return pl.lit(1.0 if grain == "whole" else 0.0)


def _spreads(processes: pl.DataFrame, by: tuple[str, ...]) -> pl.DataFrame:
    """Returns each run's contribution to the interquartile range of its configuration's response times."""
    answered_processes = processes.filter(
        (pl.col("role") == "workload") & pl.col("response_ns").is_not_null()
    )
    spreads = [
        _interquartile_range(part)
        for part in answered_processes.partition_by(
            *CONFIGURATION_COLUMNS, *by, maintain_order=True
        )
    ]
    schema = {"run": pl.Int64, **dict.fromkeys(by, pl.String), "response_iqr_ns": pl.Float64}
    return pl.concat([pl.DataFrame(schema=schema), *(spread.select(*schema) for spread in spreads)])


def _interquartile_range(processes: pl.DataFrame) -> pl.DataFrame:
    """Returns each run's contribution to the interquartile range of response times."""
    runs = processes.partition_by("run", maintain_order=True)
    values = contributions([run["response_ns"].to_numpy() for run in runs], _quartile_distance)
    return pl.concat([run.head(1) for run in runs]).with_columns(response_iqr_ns=pl.Series(values))


def _quartile_distance(values: Floats) -> float:
    return interquartile_range(values) or 0.0
