# SPDX-License-Identifier: MIT
"""Defines the tables of metrics of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

TABLES = ("summary", "processes", "groups", "cpus", "values", "said")


@dataclass(frozen=True, eq=False)
class Metrics:
    """The metrics of a run. Column names contain the unit; null means no value."""

    summary: pl.DataFrame
    """One row: the whole workload and the machine."""
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
    """The attributes that the workload's processes were given; not stored on disk."""

    def to_dict(self) -> dict[str, Any]:
        """Returns all tables for JSON."""
        return {
            "summary": self.summary.row(0, named=True),
            "groups": self.groups.to_dicts(),
            "processes": self.processes.to_dicts(),
            "cpus": self.cpus.to_dicts(),
            "values": self.values.to_dicts(),
            "said": self.said.to_dicts(),
        }

    def write(self, directory: str | Path) -> None:
        """Writes each table to NAME.parquet in a directory, and creates the directory if needed."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        for name in TABLES:
            table: pl.DataFrame = getattr(self, name)
            table.write_parquet(directory / f"{name}.parquet")
