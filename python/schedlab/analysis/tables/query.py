# SPDX-License-Identifier: MIT
"""Runs SQL queries over the tables of one or many runs, with DuckDB."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from schedlab.analysis.tables.opened_run import Run
from schedlab.analysis.tables.trace_tables import TABLE_DESCRIPTIONS
from schedlab.base.toolchain.needs import need_extra
from schedlab.errors import WrongUsage

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

ReportProgress = Callable[[int], None]


def query(
    runs: Iterable[Run],
    sql: str,
    report_progress: ReportProgress = lambda done: None,
    allow_files: bool = False,
) -> pl.DataFrame:
    """Returns the result of an SQL query over the tables of some runs (docs/tables.md).

    Only tables named in the query are computed, run by run, and stored as temporary files. Memory
    use therefore does not grow with the number of runs. Calls `report_progress` with the number of
    finished runs.

    Unless `allow_files`, the query can read only these tables and no files, so it may be untrusted.
    Raises WrongUsage if DuckDB rejects the query.
    """
    needed = _tables_named(TABLE_DESCRIPTIONS, sql)
    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder_name:
        folder = Path(folder_name)
        for number, run in enumerate(runs):
            _write_tables(run, number, needed, folder)
            report_progress(number + 1)
        return _execute(folder, needed, sql, allow_files)


def query_tables(
    tables: Mapping[str, Callable[[], pl.DataFrame]], sql: str, allow_files: bool = False
) -> pl.DataFrame:
    """Returns the result of an SQL query over these tables. Computes only the tables named in it;
    otherwise like `query`.
    """
    needed = _tables_named(tables, sql)
    with tempfile.TemporaryDirectory(prefix="schedlab-") as place:
        for name in needed:
            tables[name]().write_parquet(Path(place) / f"{name}-0.parquet")
        return _execute(Path(place), needed, sql, allow_files)


def _tables_named(tables: Iterable[str], sql: str) -> list[str]:
    return [name for name in tables if re.search(rf"\b{name}\b", sql, re.IGNORECASE)]


def _execute(folder: Path, needed: Sequence[str], sql: str, allow_files: bool) -> pl.DataFrame:
    need_extra("sql")
    import duckdb

    connection = duckdb.connect()
    try:
        for name in needed:
            files = ", ".join(map(_sql_string, sorted(folder.glob(f"{name}-*.parquet"))))
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet([{files}])")
        if not allow_files:
            _forbid_other_files(connection, folder)
        kinds = [statement.type for statement in connection.extract_statements(sql)]
        if kinds != [duckdb.StatementType.SELECT]:
            raise WrongUsage(
                "expected one statement that returns a table",
                what="query",
                fix="write a query that begins with SELECT, FROM or WITH",
            )
        result_file = folder / "found.parquet"
        _with_plain_types(connection.sql(sql)).write_parquet(str(result_file))
    except duckdb.PermissionException as error:
        raise WrongUsage(
            f"the query may not read files: {error}",
            fix="if you wrote the query yourself, add `allow_files=True`",
        ) from None
    except duckdb.Error as error:
        raise WrongUsage(
            f"DuckDB rejects the query: {error}",
            what="query",
            fix="Correct it; docs/tables.md lists the tables and columns",
        ) from None
    finally:
        connection.close()
    return pl.read_parquet(result_file, glob=False)


def _forbid_other_files(connection: DuckDBPyConnection, folder: Path) -> None:
    """Restricts a query to the files of this folder, and forbids extensions and changes of settings."""
    for setting in (
        f"temp_directory = {_sql_string(folder)}",
        f"allowed_directories = [{_sql_string(folder)}]",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")


def _sql_string(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


_SQL_TYPES = re.compile(r"BOOLEAN|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|VARCHAR|\"NULL\"")
_DECIMAL = re.compile(r"DECIMAL\(\d+, ?\d+\)")


def _with_plain_types(result: DuckDBPyRelation) -> DuckDBPyRelation:
    """Converts columns that are not numbers, text or booleans to text."""
    columns = (
        f'CAST(#{number} AS {_plain_type(str(kind))}) AS "{name.replace(chr(34), chr(34) * 2)}"'
        for number, (name, kind) in enumerate(
            zip(result.columns, result.types, strict=True), start=1
        )
    )
    return result.project(", ".join(columns))


def _plain_type(kind: str) -> str:
    """Returns the SQL type to which a column of this type is converted."""
    if _DECIMAL.fullmatch(kind):
        return "DOUBLE"
    return kind if _SQL_TYPES.fullmatch(kind) else "VARCHAR"


def _write_tables(run: Run, number: int, needed: Sequence[str], folder: Path) -> None:
    """Writes the tables of one run, each to a file. The caller's `run` holds the cached data and frees it."""
    for name in needed:
        run.table(name).write_parquet(folder / f"{name}-{number:06}.parquet")
