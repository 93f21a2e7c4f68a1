# SPDX-License-Identifier: MIT
"""The metrics by which setups are compared: what each is called, its unit, and what is better."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from schedlab.analysis.comparison.statistics import Floats, contributions
from schedlab.base.display.numbers import Quantity, Within
from schedlab.metrics import interquartile_range
from schedlab.metrics.derived import SHARE_ERROR, event_rates
from schedlab.metrics.registry import METRICS, TOLD, Better, Grain, Of, kind_of
from schedlab.metrics.steady import COLUMNS as STEADY_COLUMNS
from schedlab.metrics.steady import steady_of
from schedlab.metrics.tails import COLUMNS as TAIL_COLUMNS
from schedlab.metrics.tails import tails

if TYPE_CHECKING:
    from schedlab.runs.collection import Collection

SETUP = ("experiment", "policy", "cpus", "machine", "tick_ns")
"""Columns of `schedlab.runs.collection.identity` that say what was run, except the seed."""


@dataclass(frozen=True)
class Measure:
    """One number that a run has, or each group of its processes."""

    name: str
    """The name for programs and for users."""
    title: str
    column: str
    """The column of a run's summary or groups, or one that `measured` adds to them."""
    better: Better | None
    """None: more is neither good nor bad in itself."""
    ideal: str
    """What the best value is, and what it depends on."""
    quantity: Quantity
    grain: Grain
    within: Within
    """What values are possible."""


def measure_of(name: str, title: str, column: str, better: Better | None, ideal: str) -> Measure:
    """The measure of a column, whose name says what kind of number it has."""
    kind = kind_of(column)
    return Measure(name, title, column, better, ideal, kind.quantity, kind.grain, kind.within)


_STUDY_3 = ("turnaround", "response", "throughput", "overhead", "fairness", "predictability")


def _measures(of: Of) -> tuple[Measure, ...]:
    """Returns the measures of a run, or of a group: those of study 3 first, those that are only asked for last."""
    compared = [metric for metric in METRICS if metric.name and metric.of in (of, "both")]
    if of == "group":
        compared = [metric for metric in compared if metric.name != "throughput"]
    places = {name: place for place, name in enumerate(_STUDY_3)}
    compared.sort(key=lambda metric: (metric.only_asked, places.get(metric.name, len(places))))
    return tuple(
        measure_of(metric.name, metric.title, metric.column, metric.better, metric.ideal)
        for metric in compared
    )


MEASURES = _measures("run")
"""Metrics of a run as a whole."""
GROUP_MEASURES = _measures("group")
"""Metrics of a group of a run's processes."""
TAILS = frozenset(metric.name for metric in METRICS if metric.name and metric.only_asked)
BY_NAME = {measure.name: measure for measure in MEASURES}
OF_ENDED = frozenset(metric.name for metric in METRICS if metric.name and metric.of_ended)


def told(name: str) -> Measure:
    """The measure of a name such as `told-ticks`: the run's mean of it. Only the program knows what
    is good."""
    title = f"told by the program: {name.removeprefix(TOLD)}"
    return measure_of(name, title, name, None, "what the program says")


def measured(collection: Collection, names: Iterable[str] | None = None) -> pl.DataFrame:
    """All values of all runs that succeeded, in long form; of the measures `names` alone, if these are given.

    Columns: those of `identity`, run, group (null: the whole), measure, value, resolution (no two
    values differ by less). What a run does not have has no row. Predictability is a figure of all
    runs of a setup together: each run has its contribution (`schedlab.analysis.comparison.statistics`). What programs
    told is there as `told-NAME`, the mean of each run.
    """
    if not any(run.succeeded for run in collection):
        return pl.DataFrame()
    requested = None if names is None else set(names)
    of_run, of_group = (_of(requested, measures) for measures in (MEASURES, GROUP_MEASURES))
    succeeded = pl.col("status") == "success"
    summary, groups = collection.summary.filter(succeeded), collection.groups
    steps = summary.select("run", "clock_step_ns")
    run_table = summary.join(
        groups.group_by("run").agg(share_error_max_points=SHARE_ERROR.max()), on="run", how="left"
    )
    for process_values in _of_processes(collection.processes, (), of_run):
        run_table = run_table.join(process_values, on="run", how="left")
    values = collection.values
    has_names = "name" in values.columns
    if has_names and any(measure.column == "events_per_second" for measure in of_run):
        run_table = run_table.join(event_rates(values, ["run"]), on="run", how="left")
    parts = groups.with_columns(share_error_points=SHARE_ERROR).join(steps, on="run", how="left")
    for process_values in _of_processes(collection.processes, ("group",), of_group):
        parts = parts.join(process_values, on=["run", "group"], how="left")
    return pl.concat(
        [
            *_rows(run_table.with_columns(group=pl.lit(None, pl.String)), of_run),
            *_rows(parts, of_group),
            *([_told(values)] if has_names and requested is None else []),
        ]
    )


def _of(requested: set[str] | None, measures: Sequence[Measure]) -> tuple[Measure, ...]:
    return tuple(measure for measure in measures if requested is None or measure.name in requested)


def _of_processes(
    processes: pl.DataFrame, by: tuple[str, ...], measures: Sequence[Measure]
) -> Iterator[pl.DataFrame]:
    """What these measures need that is made of processes, and is in no table of a run: a column of each run, and of
    each of its groups if they are asked for."""
    columns = {measure.column for measure in measures}
    if "response_iqr_ns" in columns:
        yield _spreads(processes, by)
    if columns & set(TAIL_COLUMNS):
        yield _tails(processes, by)
    if columns & set(STEADY_COLUMNS):
        yield steady_of(processes, ("run", *by))


def _tails(processes: pl.DataFrame, by: tuple[str, ...]) -> pl.DataFrame:
    """High quantiles of what each run's processes had."""
    needed = {"role", "turnaround_ns", "response_ns", "running_ns", "blocked_ns"}
    if not needed <= set(processes.columns):
        return pl.DataFrame(schema={"run": pl.Int64, **dict.fromkeys(by, pl.String)})
    return tails(processes, ("run", *by))


def _told(values: pl.DataFrame) -> pl.DataFrame:
    who = [*SETUP, "seed", "status", "run"]
    return (
        values.filter(pl.col("name").is_not_null())
        .group_by(*who, "name", maintain_order=True)
        .agg(value=pl.col("value").mean())
        .select(
            *who,
            group=pl.lit(None, pl.String),
            measure=TOLD + pl.col("name"),
            value=pl.col("value").cast(pl.Float64),
            resolution=pl.lit(0.0),
        )
    )


def _rows(frame: pl.DataFrame, measures: Sequence[Measure]) -> Iterable[pl.DataFrame]:
    """Rows for each measure that the frame has a column of. `completion_ns` may be missing."""
    who = [*SETUP, "seed", "status", "run", "group"]
    all_ended = pl.col("finished") == pl.col("processes")
    for measure in measures:
        if measure.column in frame.columns:
            rows = frame.filter(all_ended) if measure.name in OF_ENDED else frame
            yield rows.select(
                *who,
                measure=pl.lit(measure.name),
                value=pl.col(measure.column).cast(pl.Float64),
                resolution=_resolution(measure.grain),
            ).filter(pl.col("value").is_not_null())


def _resolution(grain: Grain) -> pl.Expr:
    step = pl.col("clock_step_ns").cast(pl.Float64)
    if grain == "clock":
        return step
    if grain == "mean of clock":
        return step / pl.col("processes").clip(1)
    return pl.lit(1.0 if grain == "whole" else 0.0)


def _spreads(processes: pl.DataFrame, by: tuple[str, ...]) -> pl.DataFrame:
    """Each run's contribution to the interquartile range of its setup's responses."""
    answered = processes.filter(
        (pl.col("role") == "workload") & pl.col("response_ns").is_not_null()
    )
    spreads = [_spread(part) for part in answered.partition_by(*SETUP, *by, maintain_order=True)]
    schema = {"run": pl.Int64, **dict.fromkeys(by, pl.String), "response_iqr_ns": pl.Float64}
    return pl.concat([pl.DataFrame(schema=schema), *(spread.select(*schema) for spread in spreads)])


def _spread(processes: pl.DataFrame) -> pl.DataFrame:
    runs = processes.partition_by("run", maintain_order=True)
    values = contributions([run["response_ns"].to_numpy() for run in runs], _spread_of)
    return pl.concat([run.head(1) for run in runs]).with_columns(response_iqr_ns=pl.Series(values))


def _spread_of(values: Floats) -> float:
    return interquartile_range(values) or 0.0
