# SPDX-License-Identifier: MIT
"""`./schedlab query`: runs SQL over the traces of runs."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import click

from schedlab.base.display.numbers import format_count
from schedlab.base.display.terminal import new_table, print_full_width, print_result, say
from schedlab.commands.options import FILE, echo_json
from schedlab.errors import WrongUsage

if TYPE_CHECKING:
    import polars as pl

Format = Literal["table", "csv", "json", "parquet"]
_PROGRESS_STEP = 50
"""Number of runs between two progress messages."""


@click.command()
@click.argument("words", nargs=-1, metavar="RUN... SQL")
@click.option(
    "--format",
    "file_format",
    default="table",
    show_default=True,
    type=click.Choice(get_args(Format)),
    help="Print in this format; parquet needs --out.",
)
@click.option("-o", "--out", type=FILE, help="Write the result to this file.")
@click.option("--tables", "only_list", is_flag=True, help="List the tables and their columns.")
@click.option(
    "--allow-files",
    is_flag=True,
    help="Allow SQL to read all your files, fetch others and load DuckDB "
    "extensions. Use this only for queries that you trust.",
)
def query(
    words: tuple[str, ...],
    file_format: Format,
    out: Path | None,
    only_list: bool,
    allow_files: bool,
) -> None:
    """Query the traces of runs with SQL.

    RUN is a folder of one run, or of many; SQL is a query in DuckDB's dialect over the tables runs, processes,
    stays, waits, blocks, wakeups, decisions, said, switches, migrations, marks and cpus. All have a column `run`,
    and tables about processes have `life`. docs/tables.md and --tables describe them. RUN may also be a sweep,
    with the tables runs, groups and told (docs/sweeps.md). SQL reads these tables and no files.
    """
    if only_list:
        _list_tables()
        return
    if len(words) < 2:
        raise WrongUsage("query: expected one or more run folders and then the SQL query in quotes")
    if file_format == "parquet" and out is None:
        raise WrongUsage("--format parquet: cannot be shown in a terminal; name a file with --out")
    *places, sql = words
    rows = _query_runs(places, sql, allow_files)
    if file_format == "table" and out is None:
        _print_rows(rows)
    else:
        _write_rows(rows, "csv" if file_format == "table" else file_format, out)


def _query_runs(places: list[str], sql: str, allow_files: bool) -> pl.DataFrame:
    from schedlab.analysis.tables import Run
    from schedlab.analysis.tables import query as ask
    from schedlab.machines.folder import TRACE_FILE
    from schedlab.runs.collection import read_collection
    from schedlab.sweep import as_runs

    for place in places:
        if not Path(place).exists():
            raise WrongUsage(
                f"{place}: no such folder; name run folders first and the SQL query last"
            )
    if len(places) == 1 and as_runs.is_sweep(Path(places[0])):
        return _query_sweep(Path(places[0]), sql, allow_files)
    runs = read_collection([Path(place) for place in places])
    with_trace = [run for run in runs if (run.folder / TRACE_FILE).is_file()]
    if not with_trace:
        raise WrongUsage(
            f"{', '.join(places)}: no run has a trace; name a folder of runs with traces"
        )
    if len(with_trace) < len(runs):
        say(
            f"schedlab: skipped without a trace: {format_count(len(runs) - len(with_trace), 'run')}"
        )

    def show_progress(ready: int) -> None:
        """Shows how many runs are ready."""
        if ready % _PROGRESS_STEP == 0 and ready < len(with_trace):
            say(f"schedlab: {ready:,} of {len(with_trace):,} runs read")

    return ask((Run(run) for run in with_trace), sql, show_progress, allow_files)


def _query_sweep(folder: Path, sql: str, allow_files: bool) -> pl.DataFrame:
    """Queries a sweep, whose tables are those of its data set."""
    from schedlab.analysis.tables.query import query_tables
    from schedlab.sweep import dataset

    names = (dataset.RUNS, dataset.GROUPS, dataset.REPORTED)
    tables = {name: partial(dataset.read_table, folder, name) for name in names}
    return query_tables(tables, sql, allow_files)


def _print_rows(rows: pl.DataFrame) -> None:
    are_numeric = [kind.is_numeric() for kind in rows.dtypes]
    headings = [
        f">{name}" if number else name
        for name, number in zip(rows.columns, are_numeric, strict=True)
    ]
    table = new_table("", *headings)
    for row in rows.iter_rows():
        table.add_row(*(_format_cell(value) for value in row))
    print_full_width(table)


def _format_cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _write_rows(rows: pl.DataFrame, file_format: str, out: Path | None) -> None:
    """Writes the rows in this format to a file or to standard output."""
    from schedlab.base.display.names import json_text, write_csv
    from schedlab.base.files import replacement
    from schedlab.base.files.atomic import atomic_write

    if out is None:
        if file_format == "json":
            echo_json(_json_rows(rows))
        else:
            write_csv(rows, sys.stdout.buffer)
        return
    path = out.absolute()
    replacement.check_file("out", path, has_default_name=False)
    with atomic_write(path) as new:
        if file_format == "json":
            new.write_text(json_text(_json_rows(rows), indent=2) + "\n")
        elif file_format == "csv":
            write_csv(rows, new)
        else:
            rows.write_parquet(new)
    print_result(f"{path}: {format_count(len(rows), 'row')}")


def _json_rows(rows_table: pl.DataFrame) -> list[dict[str, object]]:
    """Returns rows for JSON. Numbers that are not finite become null."""
    import polars as pl

    floats = [name for name, kind in rows_table.schema.items() if kind.is_float()]
    return rows_table.with_columns(
        pl.when(pl.col(name).is_finite()).then(pl.col(name)).alias(name) for name in floats
    ).to_dicts()


def _list_tables() -> None:
    from schedlab.analysis.tables import TABLE_DESCRIPTIONS

    for table in TABLE_DESCRIPTIONS.values():
        shown = new_table(f"{table.name}: {table.row}", "column", "", "meaning")
        for column in table.columns:
            shown.add_row(column.name, column.type_, column.meaning)
        print_full_width(shown)
