# SPDX-License-Identifier: MIT
"""Gives Python programs access to a run: manifest, trace, metrics and tables."""

import tempfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from schedlab.analysis.tables.trace_tables import TABLE_DESCRIPTIONS, TraceTables
from schedlab.metrics import Metrics
from schedlab.metrics.window import Window, measured_window
from schedlab.runs.collection import Setup, StoredRun
from schedlab.runs.results import find_run, read_manifest
from schedlab.trace import Trace


class Run:
    """A stored run. Data is read when first used and then cached. Each table is a Polars frame with
    the columns of docs/tables.md.
    """

    def __init__(
        self, stored: StoredRun, scratch: tempfile.TemporaryDirectory[str] | None = None
    ) -> None:
        """Opens a stored run. Nothing is read yet.

        `scratch`: the temporary folder that the run is in, which exists as long as this object.
        """
        self._run = stored
        self._scratch = scratch

    def __repr__(self) -> str:
        return f"<run {self.folder}>"

    def __getattr__(self, name: str) -> pl.DataFrame:
        """Returns the table of this name (see `table`)."""
        if name not in TABLE_DESCRIPTIONS:
            raise AttributeError(
                f"a run has no {name}; its tables are {', '.join(TABLE_DESCRIPTIONS)}"
            )
        return self.table(name)

    def __dir__(self) -> list[str]:
        """Returns the attributes, with the names of tables."""
        return [*super().__dir__(), *TABLE_DESCRIPTIONS]

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self._run.folder

    @property
    def manifest(self) -> Mapping[str, Any]:
        """What was run, and how it ended."""
        return self._run.manifest

    @property
    def setup(self) -> Setup:
        """The configuration: what was run, except the seed."""
        return self._run.setup

    @cached_property
    def trace(self) -> Trace:
        """The event trace. Raises TraceError if the trace is invalid."""
        return self._run.trace()

    @cached_property
    def metrics(self) -> Metrics:
        """The metrics (docs/metrics.md). Raises FileRefused if the run was not measured."""
        return self._run.metrics()

    @cached_property
    def window(self) -> Window:
        """The measured window."""
        return measured_window(self.trace)

    def table(self, name: str) -> pl.DataFrame:
        """Returns the table of this name, with `run` as the first column.

        Raises KeyError for an unknown name, and TraceError if the trace is invalid.
        """
        schema = TABLE_DESCRIPTIONS[name].schema
        frame = self._runs_table() if name == "runs" else self._trace_tables.table(name)
        run = pl.lit(self.folder.name).alias("run")
        return frame.select(run, *(pl.col(name) for name in schema if name != "run"))

    def lives(self, task: str) -> list[int]:
        """Returns the processes (`life`) with this PID, name or group. Raises WrongUsage if there are none."""
        return self._trace_tables.lives_of(task)

    @cached_property
    def _trace_tables(self) -> TraceTables:
        return TraceTables(self.trace)

    def _runs_table(self) -> pl.DataFrame:
        """Returns the row of this run in `runs`."""
        stored, setup = self._run, self.setup
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
        schema = {
            name: kind for name, kind in TABLE_DESCRIPTIONS["runs"].schema.items() if name != "run"
        }
        return pl.DataFrame([row], schema=schema, orient="row")


def open_run(place: str | Path) -> Run:
    """Opens the folder of a run, or a folder that contains one run.

    Raises WrongUsage if it is neither, and FileRefused if the manifest is incomplete.
    """
    folder = find_run(Path(place))
    return Run(StoredRun(folder.absolute(), read_manifest(folder)))
