# SPDX-License-Identifier: MIT
"""Measures how close a replay is to its recording, by turnaround and waiting time of each group.

Only groups with metrics in the recording are compared. In a recording of a whole machine, kernel
threads have no metrics, but in the replay they are ordinary processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from schedlab.metrics import Metrics, jain_index
from schedlab.runs.replay.text import safe_name
from schedlab.runs.replay.writer import GROUP_MAX

FIGURES = ("turnaround", "waiting")
"""The compared metrics."""


def nearness(recorded: Metrics, replayed: Metrics) -> pl.DataFrame:
    """Returns a row for each group of the recording: `group`, `processes`, and two columns for each of FIGURES.

    `…_ns` and `…_replayed_ns` are means over the processes with a value; null if no process has
    one. Groups are merged if a replay truncates their names to the same text.
    """
    before, after = (_by_group(_called(run)) for run in (recorded, replayed))
    joined = before.join(after, on="called", how="left", suffix="_replayed")
    return joined.select(
        "group",
        "processes",
        *(f"{name}_ns" for name in FIGURES),
        *(pl.col(f"{name}_ns_replayed").alias(f"{name}_replayed_ns") for name in FIGURES),
    )


def error(groups: pl.DataFrame, figure: str) -> float | None:
    """Returns the relative error of the replay, weighted by processes, over groups with a value in both runs.

    Returns None if no group has a value, or if all are 0.

    """
    complete = groups.drop_nulls([f"{figure}_ns", f"{figure}_replayed_ns"])
    total = float((complete[f"{figure}_ns"] * complete["processes"]).sum())
    off = (complete[f"{figure}_replayed_ns"] - complete[f"{figure}_ns"]).abs() * complete[
        "processes"
    ]
    return float(off.sum()) / total if total else None


def figures(recorded: Metrics, run: Metrics) -> dict[str, float | None]:
    """Returns the metrics of a run with the same demand.

    Only processes of the groups that the recording measured are included.
    """
    groups = _called(recorded)["called"].unique()
    group_rows = _called(run).filter(pl.col("called").is_in(groups.to_list()))
    return {
        "processes": len(group_rows),
        "finished": group_rows["exit_ns"].count(),
        "turnaround_mean_ns": _number(group_rows["turnaround_ns"].mean()),
        "waiting_mean_ns": _number(group_rows["waiting_ns"].mean()),
        "waiting_max_ns": _number(group_rows["waiting_ns"].max()),
        "wakeup_latency_max_ns": _number(group_rows["wakeup_latency_max_ns"].max()),
        "fairness_turnaround": jain_index(group_rows["turnaround_ns"].drop_nulls().to_numpy()),
        "context_switches": _number(run.summary["context_switches"][0]),
    }


def pooled(runs: Sequence[Metrics]) -> Metrics:
    """Returns combined metrics of several runs: all their processes, and the mean number of switches."""
    switches = sum(int(run.summary["context_switches"][0]) for run in runs) / len(runs)
    return replace(
        runs[0],
        processes=pl.concat([run.processes for run in runs]),
        summary=runs[0].summary.with_columns(context_switches=pl.lit(switches)),
    )


def _called(of: Metrics) -> pl.DataFrame:
    """Returns the workload's processes.

    The column `called` has the name of the process's group in a replay.
    """
    called = pl.col("group").map_elements(
        lambda group: safe_name(group, GROUP_MAX), return_dtype=pl.String
    )
    return of.processes.filter(pl.col("role") == "workload").with_columns(called=called)


def _by_group(processes: pl.DataFrame) -> pl.DataFrame:
    return (
        processes.group_by("called")
        .agg(
            pl.col("group").unique().sort().str.join(", "),
            pl.len().alias("processes"),
            pl.col(*(f"{name}_ns" for name in FIGURES)).mean(),
        )
        .sort("group")
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
