# SPDX-License-Identifier: MIT
"""What is computed of a run: its tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

TABLES = ("summary", "processes", "groups", "cpus", "values", "said")


@dataclass(frozen=True, eq=False)
class Metrics:
    """What `compute` found. Each column has its unit in its name; null: there is no such value."""

    summary: pl.DataFrame
    """One row: the workload as a whole, and the machine."""
    processes: pl.DataFrame
    """A row per process that lived in the window; `role`: workload, root or other."""
    groups: pl.DataFrame
    """A row per group of the workload's processes."""
    cpus: pl.DataFrame
    """A row per CPU."""
    values: pl.DataFrame
    """A row per figure that a program told, at any time of the trace: pid, group, time_ns, name,
    value."""
    said: pl.DataFrame
    """A row per remark that the policy made in words, in the window: words, times, last_ns, last."""
    attributes: tuple[str, ...] = ()
    """Those that the workload's processes were given; not kept on the disk."""

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {
            "summary": self.summary.row(0, named=True),
            "groups": self.groups.to_dicts(),
            "processes": self.processes.to_dicts(),
            "cpus": self.cpus.to_dicts(),
            "values": self.values.to_dicts(),
            "said": self.said.to_dicts(),
        }

    def write(self, directory: str | Path) -> None:
        """Writes each table to its NAME.parquet in a directory, which is made if needed."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        for name in TABLES:
            table: pl.DataFrame = getattr(self, name)
            table.write_parquet(directory / f"{name}.parquet")
