# SPDX-License-Identifier: MIT
"""Reads the metrics in a run's folder and validates them."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from schedlab.base.files.untrusted import mapping_field, read_object, read_tables, table_of
from schedlab.errors import FileRefused
from schedlab.metrics.compute import compute
from schedlab.metrics.model import TABLES, TABLES_FILE, Metrics
from schedlab.metrics.registry import BY_COLUMN
from schedlab.metrics.reported import ANNOTATION_SCHEMA, VALUES_SCHEMA
from schedlab.trace import Trace
from schedlab.trace.model import EVENTS_SCHEMA, TEXTS_SCHEMA, Header

_NULLABLE = (
    ("summary", "root_pid"),
    ("summary", "longest_wait_of"),
    ("groups", "longest_wait_of"),
    ("values", "name"),
)
"""Columns that may be null although they are not metrics, with their tables."""
_OPTIONAL_TABLES = {"values": VALUES_SCHEMA, "said": ANNOTATION_SCHEMA}
"""Tables that folders of older versions lack."""
RUN = "run"
"""Column with the number of the run that a row belongs to."""
_PATH = "path"
_MEASURE_AGAIN = "run or import it again; a report can measure it again with `from_traces=`"
_TABLES_FIELDS = {
    name: mapping_field("columns", lambda values: isinstance(values, list)) for name in TABLES
}


def load(directory: str | Path) -> Metrics:
    """Reads what `Metrics.write` wrote; accepts folders of older versions.

    Raises FileRefused if a table is incomplete or has other columns.
    """
    directory = Path(directory)
    small = _small_tables(directory)
    tables: dict[str, Any] = {name: _load(directory, small, name) for name in TABLES}
    return Metrics(**tables)


def load_table(directory: Path, name: str) -> pl.DataFrame:
    """Reads one of the tables. Raises FileRefused as `load` does."""
    return _load(directory, _small_tables(directory), name)


def load_many(directories: Mapping[int, Path]) -> dict[str, pl.DataFrame]:
    """Reads the tables of many runs; the column RUN of each has the key of the row's directory.

    A directory may lack tables. Raises FileRefused for a damaged file.
    """
    number_type = {RUN: pl.Int64()}
    types = {name: {**number_type, **schema} for name, schema in schemas().items()}
    rows: dict[str, dict[str, list[Any]]] = {
        name: {column: [] for column in schema} for name, schema in types.items()
    }
    files: dict[str, dict[Path, int]] = {name: {} for name in TABLES}
    for number, directory in directories.items():
        small = _small_tables(directory)
        for name in TABLES:
            if name in small:
                _append(rows[name], number, small[name], directory / TABLES_FILE)
            elif (path := directory / f"{name}.parquet").is_file():
                files[name][path] = number
    tables = {}
    for name, schema in types.items():
        try:
            tables[name] = table_of(Path(), rows[name], schema)
        except FileRefused:
            for directory in directories.values():  # names the file
                table_of(
                    directory / TABLES_FILE, _small_tables(directory).get(name, {}), schemas()[name]
                )
            raise
        if files[name]:
            large = read_tables(files[name], schemas()[name], include_file_paths=_PATH)
            numbers = {str(path): number for path, number in files[name].items()}
            run = pl.col(_PATH).replace_strict(numbers, return_dtype=pl.Int64).alias(RUN)
            both = [tables[name], large.select(run, pl.exclude(_PATH, RUN))]
            tables[name] = pl.concat(both, how="diagonal_relaxed").sort(RUN, maintain_order=True)
    return tables


def _append(
    rows: Mapping[str, list[Any]], number: int, columns: Mapping[str, list[Any]], path: Path
) -> None:
    """Appends the rows of a table with these columns, which were read from `path`."""
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise FileRefused(
            "columns of one table have different lengths", what=str(path), fix=_MEASURE_AGAIN
        )
    missing = [None] * max(lengths, default=0)
    for name, values in rows.items():
        values.extend([number] * len(missing) if name == RUN else columns.get(name, missing))


def _small_tables(directory: Path) -> Mapping[str, Mapping[str, list[Any]]]:
    """Returns the tables in TABLES_FILE, by name; empty without the file, as in older versions."""
    path = directory / TABLES_FILE
    return read_object(path, _TABLES_FIELDS) if path.exists() else {}


def _load(directory: Path, small: Mapping[str, Mapping[str, list[Any]]], name: str) -> pl.DataFrame:
    schema = schemas()[name]
    path = directory / (TABLES_FILE if name in small else f"{name}.parquet")
    if name in small:
        table = table_of(path, small[name], schema)
    elif name in _OPTIONAL_TABLES and not path.exists():
        return pl.DataFrame(schema=_OPTIONAL_TABLES[name])
    else:
        table = read_tables([path], schema)
    if name == "summary" and len(table) != 1:
        raise FileRefused(
            f"expected one row, found {len(table)}", what=str(path), fix=_MEASURE_AGAIN
        )
    for column in schema:
        if table[column].null_count() and not may_lack(name, column):
            raise FileRefused(f"the column {column} is missing", what=str(path), fix=_MEASURE_AGAIN)
    return table


_NULLABLE_PATTERN = re.compile(
    r"(turnaround|response|waiting|longest_wait|blocked)_ns|.*share.*|fork_ns|first_run_ns|exit_ns|status|weight"
    r"|demand_cpus"
)


def may_lack(table: str, column: str) -> bool:
    """Returns whether a column of a table may contain null."""
    if column in BY_COLUMN and table in ("summary", "groups"):
        return BY_COLUMN[column].may_lack
    if table == "processes":
        is_per_item = column in BY_COLUMN and BY_COLUMN[column].rows in ("wakeups", "jobs")
        return is_per_item or bool(_NULLABLE_PATTERN.fullmatch(column))
    return (table, column) in _NULLABLE or (table == "cpus" and "share" in column)


def schemas() -> Mapping[str, pl.Schema]:
    """Returns the columns and types of each table, by name."""
    return {name: getattr(_empty_metrics(), name).schema for name in TABLES}


@cache
def _empty_metrics() -> Metrics:
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
