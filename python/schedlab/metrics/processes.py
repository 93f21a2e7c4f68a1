# SPDX-License-Identifier: MIT
"""Describes the processes of a run: names, groups and roles; times of arrival, first run and exit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab.metrics.columns import nullable
from schedlab.metrics.lives import LifeTable, descendants, labels, names
from schedlab.metrics.window import Window
from schedlab.trace import Facts
from schedlab.trace.model import Integers

NEVER_RAN = "(never ran)"
"""The group of processes that never had a CPU, and so could not set their group."""


def called_by(trace: Facts, life_table: LifeTable, window: Window) -> pl.DataFrame:
    """Returns the name and the group of each life."""
    pids = life_table.pid.tolist()
    name = [
        name or f"process {pid}" for name, pid in zip(names(trace, life_table), pids, strict=True)
    ]
    root = _root(life_table, window)
    silent = (life_table.first_run_row < 0) & (
        (life_table.parent == root) | arrived(trace, life_table, window)
    )
    silent &= root >= 0
    group = [
        NEVER_RAN if never_ran else label or process_name
        for never_ran, label, process_name in zip(
            silent.tolist(), labels(trace, life_table), name, strict=True
        )
    ]
    return pl.DataFrame(
        {"name": name, "group": group}, schema={"name": pl.String, "group": pl.String}
    )


def process_table(trace: Facts, life_table: LifeTable, window: Window) -> pl.DataFrame:
    """Returns the processes alive in the window, one row each: names, groups, roles and times."""
    return processes_by_name(trace, life_table, window, called_by(trace, life_table, window))


def processes_by_name(
    trace: Facts, life_table: LifeTable, window: Window, called: pl.DataFrame
) -> pl.DataFrame:
    """Like `process_table`, with names and groups that `called_by` already computed."""

    def at(name: str, row: Integers) -> Integers:
        return trace.at(name, row) if len(trace) else row

    root = _root(life_table, window)
    of_the_workload = descendants(life_table, root)
    if root >= 0:
        of_the_workload |= arrived(trace, life_table, window)
    role = np.where(of_the_workload, "workload", "other").astype(object)
    if window.root_pid is None:
        role[_programs(called)] = "workload"
    if root >= 0:
        role[root] = "root"

    def when(row: Integers, time: Integers | None = None) -> pl.Series:
        in_window = (row >= 0) & (row <= window.end_row)
        return nullable(at("time_ns", row) if time is None else time, ~in_window)

    status = pl.Series(at("first", life_table.exit_row))
    names = pl.DataFrame(
        {
            "life": np.arange(len(life_table)),
            "pid": life_table.pid,
            "parent": np.where(life_table.parent >= 0, life_table.pid[life_table.parent], 0)
            if len(life_table)
            else life_table.pid,
            "name": called["name"],
            "group": called["group"],
            "role": pl.Series(role.tolist(), dtype=pl.Enum(["workload", "root", "other"])),
            "fork_ns": when(life_table.fork_row),
            "first_run_ns": when(life_table.first_run_row, life_table.first_run_ns),
            "exit_ns": when(life_table.exit_row),
            "status": status.cast(pl.UInt32).reinterpret(signed=True),
        }
    )
    # The root was forked before the window, but is alive in it.
    alive = (life_table.fork_row <= window.end_row) & (
        (life_table.exit_row < 0) | (life_table.exit_row >= window.begin_row)
    )
    fork = pl.col("fork_ns")
    return names.filter(pl.Series(alive)).with_columns(
        status=pl.when(pl.col("exit_ns").is_not_null()).then("status"),
        turnaround_ns=(pl.col("exit_ns") - fork).clip(0),
        response_ns=(pl.col("first_run_ns") - fork).clip(0),
    )


def arrived(trace: Facts, life_table: LifeTable, window: Window) -> npt.NDArray[np.bool_]:
    """Marks the lives that were forked from outside after the begin of the window."""
    if not len(trace):
        return np.zeros(len(life_table), bool)
    is_arrival: npt.NDArray[np.bool_] = trace.at("process", life_table.fork_row) == 0
    return is_arrival & (life_table.fork_row > window.begin_row) & (life_table.fork_row >= 0)


def _programs(called: pl.DataFrame) -> npt.NDArray[np.bool_]:
    """Marks the rows that are not kernel threads. Names of kernel threads are in brackets."""
    programs: npt.NDArray[np.bool_] = (~called["name"].str.starts_with("[")).to_numpy()
    return programs


def _root(life_table: LifeTable, window: Window) -> int:
    lives_of_root = np.flatnonzero(life_table.pid == window.root_pid)
    earlier = lives_of_root[life_table.fork_row[lives_of_root] <= window.begin_row]
    return int((earlier if len(earlier) else lives_of_root[:1])[-1]) if len(lives_of_root) else -1
