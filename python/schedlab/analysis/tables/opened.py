# SPDX-License-Identifier: MIT
"""A run, for Python: its manifest, trace, metrics and tables."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from schedlab.analysis.tables.trace_tables import DESCRIBED, TraceTables
from schedlab.metrics import Metrics
from schedlab.metrics.window import Window, measured_window
from schedlab.runs.collection import Kept, Setup
from schedlab.runs.results import find_run, read_manifest
from schedlab.trace import Trace


class Run:
    """A run's folder. What is read of it is kept; each table is a Polars frame, whose columns
    docs/tables.md describes."""

    def __init__(self, stored: Kept) -> None:
        self._kept = stored

    def __repr__(self) -> str:
        return f"<run {self.folder}>"

    def __getattr__(self, name: str) -> pl.DataFrame:
        if name not in DESCRIBED:
            raise AttributeError(f"a run has no {name}; its tables are {', '.join(DESCRIBED)}")
        return self.table(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *DESCRIBED]

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return self._kept.folder

    @property
    def manifest(self) -> Mapping[str, Any]:
        """What was run, and how it ended."""
        return self._kept.manifest

    @property
    def setup(self) -> Setup:
        """What was run, except the seed."""
        return self._kept.setup

    @cached_property
    def trace(self) -> Trace:
        """Its event trace. Raises TraceError if it cannot have happened."""
        return self._kept.trace()

    @cached_property
    def metrics(self) -> Metrics:
        """Its metrics (docs/metrics.md). Raises FileRefused if it was not measured."""
        return self._kept.metrics()

    @cached_property
    def window(self) -> Window:
        """What of it is measured."""
        return measured_window(self.trace)

    def table(self, name: str) -> pl.DataFrame:
        """The table of this name, with `run` in front. Raises KeyError if there is none, and TraceError if the
        trace cannot have happened."""
        schema = DESCRIBED[name].schema
        frame = self._told() if name == "runs" else self._of_trace.table(name)
        run = pl.lit(self.folder.name).alias("run")
        return frame.select(run, *(pl.col(name) for name in schema if name != "run"))

    def lives(self, task: str) -> list[int]:
        """The processes (`life`) that a PID, or the name of processes or of a group, means. Raises WrongUsage if there
        is none."""
        return self._of_trace.lives_of(task)

    @cached_property
    def _of_trace(self) -> TraceTables:
        return TraceTables(self.trace)

    def _told(self) -> pl.DataFrame:
        """The row of this run in `runs`."""
        stored, setup = self._kept, self.setup
        row = {
            "folder": str(self.folder),
            "policy": setup.policy,
            "tunables": ",".join(f"{name}={value}" for name, value in setup.settings),
            "machine": setup.machine,
            "cpus": setup.cpus,
            "seed": stored.seed,
            "workload": setup.experiment,
            "status": stored.status,
            "tick_ns": setup.tick_ns,
            "begin_ns": self.window.begin_ns,
            "end_ns": self.window.end_ns,
            "lost": self.trace.lost,
        }
        schema = {name: kind for name, kind in DESCRIBED["runs"].schema.items() if name != "run"}
        return pl.DataFrame([row], schema=schema, orient="row")


def open_run(place: str | Path) -> Run:
    """Opens a run's folder, or a folder that holds one run. Raises WrongUsage if it is neither, and FileRefused
    if its manifest is not whole."""
    folder = find_run(Path(place))
    return Run(Kept(folder.absolute(), read_manifest(folder)))
