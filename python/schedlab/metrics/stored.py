# SPDX-License-Identifier: MIT
"""Reads stored metrics and validates them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from schedlab.base.files.untrusted import read_tables
from schedlab.errors import FileRefused
from schedlab.metrics.compute import compute
from schedlab.metrics.model import TABLES, Metrics
from schedlab.metrics.registry import BY_COLUMN
from schedlab.metrics.reported import ANNOTATION_SCHEMA, VALUES_SCHEMA
from schedlab.trace import Trace
from schedlab.trace.model import EVENTS_SCHEMA, TEXTS_SCHEMA, Header

_OTHERS = (
    ("summary", "root_pid"),
    ("summary", "longest_wait_of"),
    ("groups", "longest_wait_of"),
    ("values", "name"),
)
"""Nullable columns of tables, in addition to metrics."""
_LATER = {"values": VALUES_SCHEMA, "said": ANNOTATION_SCHEMA}
"""Tables that older folders may lack."""


def load(directory: str | Path) -> Metrics:
    """Reads what `Metrics.write` wrote. Older folders have no reported values or annotations.

    Raises FileRefused if a table is incomplete or has other columns.
    """
    tables: dict[str, Any] = {name: load_table(Path(directory), name) for name in TABLES}
    return Metrics(**tables)


def load_table(directory: Path, name: str) -> pl.DataFrame:
    """Reads one of the tables. Raises FileRefused as `load` does."""
    place = directory / f"{name}.parquet"
    if name in _LATER and not place.exists():
        return pl.DataFrame(schema=_LATER[name])
    table = read_tables([place], schemas()[name])
    if name == "summary" and len(table) != 1:
        raise FileRefused(f"{place}: expected one row, found {len(table)}")
    for column in schemas()[name]:
        if table[column].null_count() and not may_lack(name, column):
            raise FileRefused(
                f"the column {column} is missing",
                what=str(place),
                fix="measure again with `from_traces=`",
            )
    return table


_OF_PROCESSES = re.compile(
    r"(turnaround|response|waiting|longest_wait|blocked)_ns|.*share.*|fork_ns|first_run_ns|exit_ns|status|weight"
    r"|demand_cpus"
)


def may_lack(table: str, column: str) -> bool:
    """True if a column of a table may be null."""
    if column in BY_COLUMN and table in ("summary", "groups"):
        return BY_COLUMN[column].may_lack
    if table == "processes":
        is_per_item = column in BY_COLUMN and BY_COLUMN[column].rows in ("wakeups", "jobs")
        return is_per_item or bool(_OF_PROCESSES.fullmatch(column))
    return (table, column) in _OTHERS or (table == "cpus" and "share" in column)


def schemas() -> Mapping[str, pl.Schema]:
    """Returns the columns and types of each table, by name."""
    return {name: getattr(_of_nothing(), name).schema for name in TABLES}


@cache
def _of_nothing() -> Metrics:
    """Returns the metrics of an empty trace, whose tables have the right types."""
    nothing = Trace(
        path=Path(),
        header=Header(cpus=1, tick_ns=1, cycles_per_second=1, seed=0),
        events=pl.DataFrame(schema=EVENTS_SCHEMA),
        texts=pl.DataFrame(schema=TEXTS_SCHEMA),
        truncated=False,
        missing=0,
        declared_lost=0,
    )
    return compute(nothing)
