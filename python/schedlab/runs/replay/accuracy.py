# SPDX-License-Identifier: MIT
"""Measures how close a replay is to its recording, by turnaround and waiting time of each group.

Only groups that have metrics in the recording are compared. In a recording of a whole machine,
kernel threads have no metrics, while their replay consists of ordinary processes.
"""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from schedlab.metrics import Metrics, jain_index
from schedlab.runs.replay.text import safe_name
from schedlab.runs.replay.writer import GROUP_MAX

COMPARED_METRICS = ("turnaround", "waiting")
"""The compared metrics."""


def compare_groups(recorded: Metrics, replayed: Metrics) -> pl.DataFrame:
    """Compares the groups of a recording with those of its replay, one row per group.

    Columns: `group`, `processes`, and for each of FIGURES `…_ns` (recorded) and `…_replayed_ns`.
    These are means over processes; null without a value. Groups whose names become equal in the
    simulator's short form are merged.
    """
    before, after = (_by_group(_workload_processes(run)) for run in (recorded, replayed))
    joined = before.join(after, on="called", how="left", suffix="_replayed")
    return joined.select(
        "group",
        "processes",
        *(f"{name}_ns" for name in COMPARED_METRICS),
        *(pl.col(f"{name}_ns_replayed").alias(f"{name}_replayed_ns") for name in COMPARED_METRICS),
    )


def relative_error(groups: pl.DataFrame, figure: str) -> float | None:
    """Returns the replay's relative error in a metric, weighted by number of processes.

    Considers groups with a value in both runs. Returns None if there are none, or if all values are
    0.
    """
    complete = groups.drop_nulls([f"{figure}_ns", f"{figure}_replayed_ns"])
    total = float((complete[f"{figure}_ns"] * complete["processes"]).sum())
    weighted_errors = (
        complete[f"{figure}_replayed_ns"] - complete[f"{figure}_ns"]
    ).abs() * complete["processes"]
    return float(weighted_errors.sum()) / total if total else None


def replay_metrics(recorded: Metrics, run: Metrics) -> dict[str, float | None]:
    """Returns metrics of a run, restricted to processes of the groups that the recording measured."""
    groups = _workload_processes(recorded)["called"].unique()
    group_rows = _workload_processes(run).filter(pl.col("called").is_in(groups.to_list()))
    return {
        "processes": len(group_rows),
        "finished": group_rows["exit_ns"].count(),
        "turnaround_mean_ns": _float_or_none(group_rows["turnaround_ns"].mean()),
        "waiting_mean_ns": _float_or_none(group_rows["waiting_ns"].mean()),
        "waiting_max_ns": _float_or_none(group_rows["waiting_ns"].max()),
        "wakeup_latency_max_ns": _float_or_none(group_rows["wakeup_latency_max_ns"].max()),
        "fairness_turnaround": jain_index(group_rows["turnaround_ns"].drop_nulls().to_numpy()),
        "context_switches": _float_or_none(run.summary["context_switches"][0]),
    }


def merge_metrics(runs: Sequence[Metrics]) -> Metrics:
    """Merges the metrics of several runs: all their processes, and the mean number of switches."""
    switches = sum(int(run.summary["context_switches"][0]) for run in runs) / len(runs)
    return replace(
        runs[0],
        processes=pl.concat([run.processes for run in runs]),
        summary=runs[0].summary.with_columns(context_switches=pl.lit(switches)),
    )


def _workload_processes(run_metrics: Metrics) -> pl.DataFrame:
    """Returns the rows of workload processes.

    The added column `short_group` has the group's name as the replay shortens it.
    """
    short_group = pl.col("group").map_elements(
        lambda group: safe_name(group, GROUP_MAX), return_dtype=pl.String
    )
    return run_metrics.processes.filter(pl.col("role") == "workload").with_columns(
        called=short_group
    )


def _by_group(processes: pl.DataFrame) -> pl.DataFrame:
    """Returns the number of processes and the means of their times by group."""
    return (
        processes.group_by("called")
        .agg(
            pl.col("group").unique().sort().str.join(", "),
            pl.len().alias("processes"),
            pl.col(*(f"{name}_ns" for name in COMPARED_METRICS)).mean(),
        )
        .sort("group")
    )


def _float_or_none(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
