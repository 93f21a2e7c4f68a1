# SPDX-License-Identifier: MIT
"""How near a replay comes to its recording: by group, in turnaround and in waiting.

Only processes of groups that are measured in the recording are compared: of a recording of a whole machine, its
kernel's threads are not, but in the replay they are processes as any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from schedlab.metrics import Metrics, jain_index
from schedlab.runs.replay.text import safe_name
from schedlab.runs.replay.writer import GROUP_MAX

FIGURES = ("turnaround", "waiting")
"""What is compared."""


def nearness(recorded: Metrics, replayed: Metrics) -> pl.DataFrame:
    """A row for each group of the recording: `group`, `processes` and, for each of FIGURES, the means `…_ns` and
    `…_replayed_ns` over those processes that have it; null: none has. Groups that a replay cannot tell apart, since
    their first characters are the same, are one."""
    before, after = (_by_group(_called(run)) for run in (recorded, replayed))
    joined = before.join(after, on="called", how="left", suffix="_replayed")
    return joined.select(
        "group",
        "processes",
        *(f"{name}_ns" for name in FIGURES),
        *(pl.col(f"{name}_ns_replayed").alias(f"{name}_replayed_ns") for name in FIGURES),
    )


def error(groups: pl.DataFrame, figure: str) -> float | None:
    """How far the replay is off, as a part of the recording's: each group by its processes, over those that have the
    figure in both. None: no group has, or all are 0."""
    complete = groups.drop_nulls([f"{figure}_ns", f"{figure}_replayed_ns"])
    total = float((complete[f"{figure}_ns"] * complete["processes"]).sum())
    off = (complete[f"{figure}_replayed_ns"] - complete[f"{figure}_ns"]).abs() * complete[
        "processes"
    ]
    return float(off.sum()) / total if total else None


def figures(recorded: Metrics, run: Metrics) -> dict[str, float | None]:
    """What is told of a run of the same demand: of the processes whose groups the recording measured."""
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
    """Metrics of several runs as those of one, as far as it is asked for here: their processes, and the mean number of
    switches."""
    switches = sum(int(run.summary["context_switches"][0]) for run in runs) / len(runs)
    return replace(
        runs[0],
        processes=pl.concat([run.processes for run in runs]),
        summary=runs[0].summary.with_columns(context_switches=pl.lit(switches)),
    )


def _called(of: Metrics) -> pl.DataFrame:
    """The workload's processes; `called`: their group's name in a replay."""
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
