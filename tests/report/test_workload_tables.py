# SPDX-License-Identifier: MIT
"""Tests tables of a workload: figures of jobs after the warm-up, and their bounds."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from kept_runs import MS, Rows, keep_run
from schedlab.metrics.steady import steady
from schedlab.report.model import Table
from schedlab.report.workload_tables import find_workloads, metrics_table
from schedlab.runs import collection as runs

JOBS = 300


def processes(seed: int) -> pl.DataFrame:
    """Jobs of 1 ms that stay from 2 ms to 12; warm-up jobs stay only for their work."""
    stay = [MS] * 30 + [(2 + (number * (6 + seed)) % 11) * MS for number in range(JOBS - 30)]
    return pl.DataFrame(
        {
            "pid": range(3, 3 + JOBS),
            "role": ["workload"] * JOBS,
            "fork_ns": [number * MS for number in range(JOBS)],
            "exit_ns": [number * MS + stay_time for number, stay_time in enumerate(stay)],
            "turnaround_ns": stay,
            "response_ns": [stay_time - MS for stay_time in stay],
            "running_ns": [MS] * JOBS,
            "blocked_ns": [0] * JOBS,
        }
    )


def table_of(folder: Path, seeds: int) -> tuple[Table, dict[str, str]]:
    """Returns the table of a configuration with this number of seeds, and its cells by heading."""
    for seed in range(1, seeds + 1):
        tables: dict[str, Rows | pl.DataFrame] = {
            "summary": [{"processes": JOBS}],
            "processes": processes(seed),
        }
        keep_run(folder, "jobs", "rr", seed, tables=tables)
    collection = runs.read_collection([folder])
    (workload,) = find_workloads(collection)
    table = metrics_table(collection, workload)
    headings = [f"{column.group}: {column.title}" for column in table.columns]
    return table, dict(zip(headings, [cell.text for cell in table.rows[0]], strict=True))


def test_single_run_shows_statistics_after_warm_up(tmp_path: Path) -> None:
    table, cells = table_of(tmp_path, 1)
    steady_values = steady(processes(1))
    mean, error = (
        steady_values["steady_turnaround_mean_ns"],
        steady_values["steady_turnaround_error_ns"],
    )
    assert mean is not None and error is not None and mean > 6.5 * MS
    shown = cells["after the warm-up: turnaround, mean,\N{NO-BREAK SPACE}ms"]
    assert [
        float(part) for part in shown.replace("[", "").replace("]", "").replace(",", "").split()
    ] == [float(f"{value / MS:.2f}") for value in (mean, mean - error, mean + error)]
    assert "the first tenth of the processes" in table.caption
