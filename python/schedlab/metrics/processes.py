# SPDX-License-Identifier: MIT
"""Describes the processes of a run: names, groups and roles; times of arrival, first run and exit."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from schedlab.metrics.columns import Mask, named, nullable
from schedlab.metrics.lives import LifeTable, descendants, labels, names
from schedlab.metrics.window import Window, Windows
from schedlab.trace import TraceFacts
from schedlab.trace.joined import RunFacts, facts_of_run
from schedlab.trace.model import Integers

NEVER_RAN = "(never ran)"
"""Group of processes that never ran, and so could not set their group."""


def names_and_groups(trace: TraceFacts, life_table: LifeTable, window: Window) -> pl.DataFrame:
    """Returns the name and the group of each life of one run."""
    runs = facts_of_run(trace)
    return called_of_runs(trace, runs, life_table, Windows([window], runs))


def called_of_runs(
    trace: TraceFacts, runs: RunFacts, life_table: LifeTable, windows: Windows
) -> pl.DataFrame:
    """Returns the name and the group of each life of all runs."""
    run = runs.of_pids(life_table.pid)
    pids = (life_table.pid - run * runs.pids).tolist()
    name = [
        name or f"process {pid}" for name, pid in zip(names(trace, life_table), pids, strict=True)
    ]
    root = _root_lives(life_table, windows)[run]
    has_no_group = (life_table.first_run_row < 0) & (
        (life_table.parent == root) | arrived(trace, life_table, windows)
    )
    has_no_group &= root >= 0
    group = [
        NEVER_RAN if never_ran else label or process_name
        for never_ran, label, process_name in zip(
            has_no_group.tolist(), labels(trace, life_table), name, strict=True
        )
    ]
    return pl.DataFrame(
        {"name": name, "group": group}, schema={"name": pl.String, "group": pl.String}
    )


ROLES = {0: "workload", 1: "root", 2: "other"}
_WORKLOAD, _ROOT, _OTHER = ROLES


@dataclass(frozen=True, eq=False)
class Processes:
    """The processes that were alive in the window; all arrays have one element per row of `table`."""

    table: pl.DataFrame
    """The columns that `process_table` returns."""
    run: Integers
    life: Integers
    role: Integers
    """Keys of ROLES."""
    ended: Mask
    """True if the process ended in the window."""

    @cached_property
    def workload(self) -> Integers:
        """The rows of the workload's processes."""
        return np.flatnonzero(self.role == _WORKLOAD)

    def sum_of(self, values: Integers, role: str, runs: int) -> Integers:
        """Returns, for each run, the sum of values over the processes of a role."""
        number = next(number for number, name in ROLES.items() if name == role)
        sums = np.zeros(runs, np.int64)
        of_role = self.role == number
        np.add.at(sums, self.run[of_role], values[of_role])
        return sums


def process_table(trace: TraceFacts, life_table: LifeTable, window: Window) -> pl.DataFrame:
    """Returns one row per process that was alive in the window: name, group, role and times."""
    runs = facts_of_run(trace)
    windows = Windows([window], runs)
    called = called_of_runs(trace, runs, life_table, windows)
    return alive_processes(trace, runs, life_table, windows, called).table.drop("run")


def alive_processes(
    trace: TraceFacts,
    runs: RunFacts,
    life_table: LifeTable,
    windows: Windows,
    called: pl.DataFrame,
) -> Processes:
    """Returns the processes with the names and groups that `called_of_runs` returned."""

    def at(name: str, row: Integers) -> Integers:
        return trace.at(name, row) if len(trace) else row

    run_of_life = runs.of_pids(life_table.pid)
    roots = _root_lives(life_table, windows)
    of_the_workload = descendants(life_table, *roots.tolist())
    of_the_workload |= arrived(trace, life_table, windows) & (roots[run_of_life] >= 0)
    role = np.where(of_the_workload, _WORKLOAD, _OTHER)
    rootless = np.array([window.root_pid is None for window in windows.windows])
    if rootless.any():
        role[rootless[run_of_life] & _are_programs(called)] = _WORKLOAD
    role[roots[roots >= 0]] = _ROOT
    # The root was forked before the window, but is alive in it.
    life = np.flatnonzero(
        (life_table.fork_row <= windows.end_row[run_of_life])
        & ((life_table.exit_row < 0) | (life_table.exit_row >= windows.begin_row[run_of_life]))
    )
    role, parent, run = role[life], life_table.parent[life], run_of_life[life]
    end_row = windows.end_row[run]

    def is_in_window(row: Integers) -> Mask:
        in_window: Mask = (row >= 0) & (row <= end_row)
        return in_window

    fork_row, exit_row = life_table.fork_row[life], life_table.exit_row[life]
    fork, end, first_run = (
        at("time_ns", fork_row),
        at("time_ns", exit_row),
        life_table.first_run_ns[life],
    )
    forked, ended, ran = map(is_in_window, (fork_row, exit_row, life_table.first_run_row[life]))
    status = at("first", exit_row).astype(np.uint32).view(np.int32)
    first_pid = run * runs.pids
    table = pl.DataFrame(
        {
            "run": run,
            "life": life,
            "pid": life_table.pid[life] - first_pid,
            "parent": np.where(parent >= 0, life_table.pid[parent] - first_pid, 0),
            "name": called["name"][life],
            "group": called["group"][life],
            "role": named(role, ROLES),
            "fork_ns": nullable(fork, ~forked),
            "first_run_ns": nullable(first_run, ~ran),
            "exit_ns": nullable(end, ~ended),
            "status": nullable(status, ~ended, pl.Int32),
            "turnaround_ns": nullable(np.maximum(end - fork, 0), ~(ended & forked)),
            "response_ns": nullable(np.maximum(first_run - fork, 0), ~(ran & forked)),
        }
    )
    return Processes(table, run, life, role, ended)


def arrived(trace: TraceFacts, life_table: LifeTable, windows: Windows) -> Mask:
    """Returns which lives began in the window without a parent: processes that arrived from outside."""
    if not len(trace):
        return np.zeros(len(life_table), bool)
    is_arrival: Mask = trace.at("process", life_table.fork_row) == 0
    begin_row = windows.begin_row[windows.runs.of_pids(life_table.pid)]
    return is_arrival & (life_table.fork_row > begin_row) & (life_table.fork_row >= 0)


def _are_programs(called: pl.DataFrame) -> Mask:
    """Returns which rows are programs and not kernel threads, whose names are in brackets."""
    return np.array([not name.startswith("[") for name in called["name"].to_list()], bool)


def _root_lives(life_table: LifeTable, windows: Windows) -> Integers:
    """Returns the life of each run's root; −1 for a run without one."""
    return np.array([_root_life(life_table, window) for window in windows.windows], np.int64)


def _root_life(life_table: LifeTable, window: Window) -> int:
    """Returns the life of the window's root process; −1 without one."""
    if window.root_pid is None:
        return -1
    begin, end = np.searchsorted(life_table.pid, (window.root_pid, window.root_pid + 1)).tolist()
    earlier = np.flatnonzero(life_table.fork_row[begin:end] <= window.begin_row)
    place = int(earlier[-1]) if len(earlier) else 0
    return begin + place if end > begin else -1
