# SPDX-License-Identifier: MIT
"""Metrics that were written, read with care."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from schedlab.base.files.kept import read_tables
from schedlab.errors import FileRefused
from schedlab.metrics.compute import compute
from schedlab.metrics.model import TABLES, Metrics
from schedlab.metrics.registry import BY_COLUMN
from schedlab.metrics.said import SAID_SCHEMA, VALUES_SCHEMA
from schedlab.trace import Trace
from schedlab.trace.model import EVENTS_SCHEMA, TEXTS_SCHEMA, Header

_OTHERS = (
    ("summary", "root_pid"),
    ("summary", "longest_wait_of"),
    ("groups", "longest_wait_of"),
    ("values", "name"),
)
"""Tables and columns, besides metrics, that may lack a value."""
_LATER = {"values": VALUES_SCHEMA, "said": SAID_SCHEMA}
"""Tables that a folder may lack."""


def load(directory: str | Path) -> Metrics:
    """What `Metrics.write` wrote. Folders of before there were told values, or remarks, have none.

    Raises FileRefused if a table is not whole, or has other columns than it must.
    """
    tables: dict[str, Any] = {name: load_table(Path(directory), name) for name in TABLES}
    return Metrics(**tables)


def load_table(directory: Path, name: str) -> pl.DataFrame:
    """One of them. Raises FileRefused as `load` does."""
    place = directory / f"{name}.parquet"
    if name in _LATER and not place.exists():
        return pl.DataFrame(schema=_LATER[name])
    table = read_tables([place], schemas()[name])
    if name == "summary" and len(table) != 1:
        raise FileRefused(f"{place}: expected one row, found {len(table)}")
    for column in schemas()[name]:
        if table[column].null_count() and not may_lack(name, column):
            raise FileRefused(
                f"{column} is missing", what=str(place), fix="measure anew, with `from_traces=`"
            )
    return table


_OF_PROCESSES = re.compile(
    r"(turnaround|response|waiting|longest_wait|blocked)_ns|.*share.*|fork_ns|first_run_ns|exit_ns|status|weight"
    r"|demand_cpus"
)


def may_lack(table: str, column: str) -> bool:
    """True if a row of a table may have no value in a column."""
    if column in BY_COLUMN and table in ("summary", "groups"):
        return BY_COLUMN[column].may_lack
    if table == "processes":
        is_per_item = column in BY_COLUMN and BY_COLUMN[column].rows in ("wakeups", "jobs")
        return is_per_item or bool(_OF_PROCESSES.fullmatch(column))
    return (table, column) in _OTHERS or (table == "cpus" and "share" in column)


def schemas() -> Mapping[str, pl.Schema]:
    """Columns and types of each table, by its name: those that an empty trace gives, too."""
    return {name: getattr(_of_nothing(), name).schema for name in TABLES}


@cache
def _of_nothing() -> Metrics:
    """The metrics of an empty trace."""
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
