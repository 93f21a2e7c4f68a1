# SPDX-License-Identifier: MIT
"""SQL over the tables of one run or of many, by DuckDB."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import polars as pl

from schedlab.errors import WrongUsage
from schedlab.tables.described import DESCRIBED
from schedlab.tables.opened import Run

Tell = Callable[[int], None]


def query(runs: Iterable[Run], sql: str, tell: Tell = lambda done: None) -> pl.DataFrame:
    """What an SQL query finds in the tables of some runs (docs/tables.md).

    Only tables whose names are in the query are made, run by run, as files: so thousands of runs need no more memory
    than one. `tell` is called with the number of runs that are ready. Raises WrongUsage for what DuckDB refuses.
    """
    wanted = _named(DESCRIBED, sql)
    with tempfile.TemporaryDirectory(prefix="schedlab-") as place:
        folder = Path(place)
        for number, run in enumerate(runs):
            _write(run, number, wanted, folder)
            tell(number + 1)
        return _found(folder, wanted, sql)


def query_tables(tables: Mapping[str, Callable[[], pl.DataFrame]], sql: str) -> pl.DataFrame:
    """What an SQL query finds in these tables, of which those are made that it names. Raises WrongUsage as `query`."""
    wanted = _named(tables, sql)
    with tempfile.TemporaryDirectory(prefix="schedlab-") as place:
        for name in wanted:
            tables[name]().write_parquet(Path(place) / f"{name}-0.parquet")
        return _found(Path(place), wanted, sql)


def _named(tables: Iterable[str], sql: str) -> list[str]:
    return [name for name in tables if re.search(rf"\b{name}\b", sql, re.IGNORECASE)]


def _found(folder: Path, wanted: Sequence[str], sql: str) -> pl.DataFrame:
    """What the query finds in the files there, whose names begin as those of their tables."""
    import duckdb

    connection = duckdb.connect()
    try:
        for name in wanted:
            connection.execute(
                f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{folder}/{name}-*.parquet')"
            )
        kinds = [each.type for each in connection.extract_statements(sql)]
        if kinds != [duckdb.StatementType.SELECT]:
            raise WrongUsage("expected one query, which gives a table: SELECT, FROM or WITH …")
        found = folder / "found.parquet"
        connection.sql(sql).write_parquet(str(found))
    except duckdb.Error as error:
        raise WrongUsage(f"DuckDB refuses the query: {error}") from None
    finally:
        connection.close()
    return pl.read_parquet(found)


def _write(run: Run, number: int, wanted: Sequence[str], folder: Path) -> None:
    """The tables of one run, each as a file. What was read for them goes with the caller's `run`."""
    for name in wanted:
        run.table(name).write_parquet(folder / f"{name}-{number:06}.parquet")
