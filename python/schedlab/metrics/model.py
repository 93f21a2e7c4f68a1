# SPDX-License-Identifier: MIT
"""Defines the tables of metrics of a run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from schedlab.base.display.names import json_text

TABLES = ("summary", "processes", "groups", "cpus", "values", "said")
TABLES_FILE = "tables.json"
"""File with the small tables of a run, as lists of values by table and column."""
_ROWS_IN_JSON_MAX = 1000
"""A larger table is a Parquet file, which takes ten times as long to write if a table is small."""


@dataclass(frozen=True, eq=False)
class MeasuredRuns:
    """The metrics of runs that were measured together, as tables like those of Metrics.

    The summary has a row per run. The other tables have a column `run` with the run's row in it.
    """

    summary: pl.DataFrame
    processes: pl.DataFrame
    groups: pl.DataFrame
    cpus: pl.DataFrame
    values: pl.DataFrame


@dataclass(frozen=True, eq=False)
class Metrics:
    """The metrics of a run. Column names contain the unit; null means no value."""

    summary: pl.DataFrame
    """The whole workload and the machine, in one row."""
    processes: pl.DataFrame
    """One row per process alive in the window; `role`: workload, root or other."""
    groups: pl.DataFrame
    """One row per group of the workload's processes."""
    cpus: pl.DataFrame
    """One row per CPU."""
    values: pl.DataFrame
    """One row per value that a program reported, at any time of the trace: pid, group, time_ns, name, value."""
    said: pl.DataFrame
    """One row per text of the policy's annotations in the window: words, times, last_ns, last."""
    attributes: tuple[str, ...] = ()
    """Names of the attributes that the workload sets; not stored on disk."""

    def joined(self) -> MeasuredRuns:
        """Returns the tables in the form of those of many runs."""
        return MeasuredRuns(
            self.summary,
            *(
                table.select(pl.lit(0, pl.Int64).alias("run"), pl.all())
                for table in (self.processes, self.groups, self.cpus, self.values)
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns all tables as lists of rows, for JSON."""
        return {
            "summary": self.summary.row(0, named=True),
            "groups": self.groups.to_dicts(),
            "processes": self.processes.to_dicts(),
            "cpus": self.cpus.to_dicts(),
            "values": self.values.to_dicts(),
            "said": self.said.to_dicts(),
        }

    def write(self, directory: str | Path) -> None:
        """Writes TABLES_FILE and NAME.parquet of each large table; creates the directory if needed."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        small = {}
        for name in TABLES:
            table: pl.DataFrame = getattr(self, name)
            if len(table) > _ROWS_IN_JSON_MAX:
                table.write_parquet(directory / f"{name}.parquet")
            else:
                small[name] = table.to_dict(as_series=False)
        (directory / TABLES_FILE).write_text(json_text(small) + "\n")
