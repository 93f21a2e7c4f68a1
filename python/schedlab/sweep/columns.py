# SPDX-License-Identifier: MIT
"""The columns of a sweep's data set: names, types and meanings (docs/sweeps.md).

Types are explicit, so that all parts of a data set have the same types.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from schedlab.metrics import registry, schemas, steady, tails
from schedlab.metrics.registry import BY_COLUMN, meaning_of

FORMAT = 1
TUNABLE_PREFIX = "set_"
CHANGE_PREFIX = "with_"
SHAPE_COLUMN = "shape"
"""Prefixes of columns for tunables and for places in the workload file; the column of shapes."""


@dataclass(frozen=True)
class Column:
    """A column of a data set's table."""

    name: str
    dtype: Any
    meaning: str

    @property
    def unit(self) -> str:
        """The unit, from the suffix of the name; empty for plain numbers and texts."""
        return next((unit for end, unit in _UNITS.items() if self.name.endswith(end)), "")


_UNITS = {
    "_per_million_cycles": "per million cycles",
    "_per_second": "per second",
    "_cycles": "cycles",
    "_points": "percentage points",
    "_share": "part of 1",
    "_ns": "ns",
    "_mib": "MiB",
}

TEXT, INTEGER, NUMBER = pl.String, pl.Int64, pl.Float64

KEY = Column("key", TEXT, "the run: a hash of everything that determines its result")
IDENTITY_COLUMNS = (
    KEY,
    Column("workload", TEXT, "the workload file, experiment or command"),
    Column("policy", TEXT, "the policy, with its preset"),
    Column("settings", TEXT, "tunables that were set: slice_3=2,boost=480"),
    Column("changes", TEXT, "changed values of the workload file, in the same form"),
    Column("machine", TEXT, "sim, spike or qemu"),
    Column("costs", TEXT, "costs of operations, on sim; null elsewhere"),
    Column("cpus", INTEGER, "number of CPUs"),
    Column("tick_ns", INTEGER, "length of a tick"),
    Column("limit_ns", INTEGER, "time limit of a run"),
    Column("memory_mib", INTEGER, "the machine's; null on sim"),
    Column("seed", INTEGER, "of all randomness"),
    Column(
        "made_of",
        TEXT,
        "a hash of its other components, without policy, settings and seed (`made_of`)",
    ),
)
OUTCOME_COLUMNS = (
    Column("status", TEXT, "success, or the kind of failure"),
    Column("message", TEXT, "the failure's message; null after a success"),
)


def _metric_columns(table: str) -> tuple[Column, ...]:
    """Returns the metric columns of a table, without columns that identify the run."""
    identity_names = {column.name for column in IDENTITY_COLUMNS}
    return tuple(
        Column(name, _widest_type(dtype), meaning_of(name))
        for name, dtype in schemas()[table].items()
        if name not in identity_names
    )


def _widest_type(dtype: pl.DataType) -> Any:
    """Returns the 64-bit type of a number; other types are unchanged."""
    return INTEGER if dtype.is_integer() else type(dtype)


def _derived_columns(names: Iterable[str]) -> Iterator[Column]:
    """Yields columns of metrics derived from a run's tables."""
    for name in names:
        yield Column(name, INTEGER if name == "steady_jobs" else NUMBER, BY_COLUMN[name].meaning)


_LISTED_SEPARATELY = {*tails.COLUMNS, *steady.COLUMNS}
METRICS = (
    *_metric_columns("summary"),
    *_derived_columns(tails.COLUMNS),
    *_derived_columns(
        metric.column
        for metric in registry.METRICS
        if metric.derived and metric.column not in _LISTED_SEPARATELY
    ),
    *_derived_columns(steady.COLUMNS),
)
GROUP_METRICS = (*_metric_columns("groups"), *_derived_columns((*tails.COLUMNS, *steady.COLUMNS)))
REPORTED = (
    Column("name", TEXT, "name of a value that a program reported"),
    Column("count", INTEGER, "number of reports"),
    Column("mean", NUMBER, "mean of the values; the workload defines them"),
    Column("least", NUMBER, "of the values"),
    Column("most", NUMBER, "of the values"),
)

GROUPS_TABLE = (KEY, *GROUP_METRICS)
REPORTED_TABLE = (KEY, *REPORTED)


def runs_columns(dimensions: Iterable[str]) -> tuple[Column, ...]:
    """Returns the columns of a data set with these dimensions."""
    columns = [Column(name, _dimension_type(name), _dimension_meaning(name)) for name in dimensions]
    return (*IDENTITY_COLUMNS, *columns, *OUTCOME_COLUMNS, *METRICS)


def _dimension_type(dimension: str) -> Any:
    return INTEGER if dimension.startswith(TUNABLE_PREFIX) else TEXT


def _dimension_meaning(dimension: str) -> str:
    if dimension == SHAPE_COLUMN:
        return "the machine's shape (docs/shapes.md)"
    if dimension.startswith(TUNABLE_PREFIX):
        return f"the tunable {dimension.removeprefix(TUNABLE_PREFIX)}, set or not; null: the policy has none"
    return "a value of the workload file; null: it is as in the file"


def polars_schema(table: Iterable[Column]) -> dict[str, Any]:
    """Returns the columns for Polars."""
    return {column.name: column.dtype for column in table}


def make_frame(rows: list[Mapping[str, Any]], table: Iterable[Column]) -> pl.DataFrame:
    """Returns rows as a table with these columns and types; missing values are null."""
    types = polars_schema(table)
    columns = {name: [row.get(name) for row in rows] for name in types}
    return pl.DataFrame(columns, schema=types)
