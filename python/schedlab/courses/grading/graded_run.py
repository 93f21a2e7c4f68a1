# SPDX-License-Identifier: MIT
"""A graded run: its trace, its lazily computed metrics, and its folder."""

import shutil
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import polars as pl

from schedlab import __version__, metrics, trace
from schedlab.base.files import replacement
from schedlab.courses.submissions.trial import Trial
from schedlab.machines import SIMULATOR
from schedlab.machines.folder import BINARY_WORKLOAD_FILE, TRACE_FILE
from schedlab.metrics import Window
from schedlab.metrics.intervals import state_intervals
from schedlab.runs import results
from schedlab.trace import Trace


class GradedRun:
    """A run with lazily read trace and metrics."""

    def __init__(self, path: Path) -> None:
        """Refers to a run by the path of its trace."""
        self.path = path

    @cached_property
    def trace(self) -> Trace:
        """Returns the trace of the run."""
        trace_data = trace.read(self.path)
        trace.validate(trace_data)
        return trace_data

    @cached_property
    def metrics(self) -> metrics.Metrics:
        """Returns the metrics of the run."""
        return metrics.compute(self.trace)

    @cached_property
    def window(self) -> Window:
        """Returns the measured window of the run."""
        return metrics.measured_window(self.trace)

    @cached_property
    def states(self) -> pl.DataFrame:
        """Returns the intervals of the tasks' states (schedlab.metrics)."""
        return state_intervals(self.trace)

    def group_by_pid(self) -> dict[int, str]:
        """Returns the group of each workload process by PID."""
        table = self.metrics.processes.filter(pl.col("role") == "workload")
        return dict(zip(table["pid"].to_list(), table["group"].to_list(), strict=True))


def store_run(
    trial: Trial,
    policy: str,
    run: GradedRun,
    destination: Path,
    group: str,
    workload_sha256: str,
    pictures: Mapping[str, str] | None = None,
) -> None:
    """Writes a run's folder for the monitor and `explain`, replacing one made by schedlab.

    `group` is the prefix of its label. `pictures` are additional SVGs by file name.
    """
    replacement.remove(destination)
    with results.create_run_folder(destination) as folder:
        shutil.copy(run.path, folder / TRACE_FILE)
        run.metrics.write(folder / results.METRICS_FOLDER)
        (folder / BINARY_WORKLOAD_FILE).write_bytes(trial.encoded_workload)
        manifest = {
            "format": results.FORMAT,
            "schedlab": __version__,
            "label": f"{group}-{trial.name}",
            "workload": trial.name,
            "workload_sha256": workload_sha256,
            "costs": trial.costs,
            "policy": policy,
            "tunables": dict(trial.settings),
            "cpus": trial.cpus,
            "seed": trial.seed,
            "tick_ns": trial.tick_ns,
            "limit_ns": trial.limit_ns,
            "memory_mib": 0,
            "boot_arguments": "",
            "machine": SIMULATOR,
            "machine_version": __version__,
            "machine_origin": "built from sim/, with the policy in a separate machine",
            "repeatable": True,
            "status": "success",
            "message": "",
        }
        results.write_json(folder / results.MANIFEST_FILE, manifest)
        for name, picture in (pictures or {}).items():
            (folder / name).write_text(picture)
