# SPDX-License-Identifier: MIT
"""Describes the processes of a run: names, groups and roles; times of arrival, first run and exit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from schedlab.metrics.columns import Mask, named, nullable
from schedlab.metrics.lives import LifeTable, descendants, labels, names
from schedlab.metrics.window import Window
from schedlab.trace import TraceFacts
from schedlab.trace.model import Integers

NEVER_RAN = "(never ran)"
"""Group of processes that never ran, and so could not set their group."""


def names_and_groups(trace: TraceFacts, life_table: LifeTable, window: Window) -> pl.DataFrame:
    """Returns the name and the group of each life."""
    pids = life_table.pid.tolist()
    name = [
        name or f"process {pid}" for name, pid in zip(names(trace, life_table), pids, strict=True)
    ]
    root = _root_life(life_table, window)
    has_no_group = (life_table.first_run_row < 0) & (
        (life_table.parent == root) | arrived(trace, life_table, window)
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
    life: Integers
    role: Integers
    """Keys of ROLES."""
    ended: Mask
    """True if the process ended in the window."""

    @cached_property
    def workload(self) -> Integers:
        """The rows of the workload's processes."""
        return np.flatnonzero(self.role == _WORKLOAD)

    def sum_of(self, values: Integers, role: str) -> int:
        """Returns the sum of values over the processes of a role."""
        number = next(number for number, name in ROLES.items() if name == role)
        return int(values[self.role == number].sum())


def process_table(trace: TraceFacts, life_table: LifeTable, window: Window) -> pl.DataFrame:
    """Returns one row per process that was alive in the window: name, group, role and times."""
    names = names_and_groups(trace, life_table, window)
    return alive_processes(trace, life_table, window, names).table


def alive_processes(
    trace: TraceFacts, life_table: LifeTable, window: Window, called: pl.DataFrame
) -> Processes:
    """Returns the processes with the names and groups that `names_and_groups` returned."""

    def at(name: str, row: Integers) -> Integers:
        return trace.at(name, row) if len(trace) else row

    root = _root_life(life_table, window)
    of_the_workload = descendants(life_table, root)
    if root >= 0:
        of_the_workload |= arrived(trace, life_table, window)
    role = np.where(of_the_workload, _WORKLOAD, _OTHER)
    if window.root_pid is None:
        role[_are_programs(called)] = _WORKLOAD
    if root >= 0:
        role[root] = _ROOT
    # The root was forked before the window, but is alive in it.
    life = np.flatnonzero(
        (life_table.fork_row <= window.end_row)
        & ((life_table.exit_row < 0) | (life_table.exit_row >= window.begin_row))
    )
    role, parent = role[life], life_table.parent[life]

    def is_in_window(row: Integers) -> Mask:
        in_window: Mask = (row >= 0) & (row <= window.end_row)
        return in_window

    fork_row, exit_row = life_table.fork_row[life], life_table.exit_row[life]
    fork, end, first_run = (
        at("time_ns", fork_row),
        at("time_ns", exit_row),
        life_table.first_run_ns[life],
    )
    forked, ended, ran = map(is_in_window, (fork_row, exit_row, life_table.first_run_row[life]))
    status = at("first", exit_row).astype(np.uint32).view(np.int32)
    table = pl.DataFrame(
        {
            "life": life,
            "pid": life_table.pid[life],
            "parent": np.where(parent >= 0, life_table.pid[parent], 0),
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
    return Processes(table, life, role, ended)


def arrived(trace: TraceFacts, life_table: LifeTable, window: Window) -> Mask:
    """Returns which lives began in the window without a parent: processes that arrived from outside."""
    if not len(trace):
        return np.zeros(len(life_table), bool)
    is_arrival: Mask = trace.at("process", life_table.fork_row) == 0
    return is_arrival & (life_table.fork_row > window.begin_row) & (life_table.fork_row >= 0)


def _are_programs(called: pl.DataFrame) -> Mask:
    """Returns which rows are programs and not kernel threads, whose names are in brackets."""
    return np.array([not name.startswith("[") for name in called["name"].to_list()], bool)


def _root_life(life_table: LifeTable, window: Window) -> int:
    lives_of_root = np.flatnonzero(life_table.pid == window.root_pid)
    earlier = lives_of_root[life_table.fork_row[lives_of_root] <= window.begin_row]
    return int((earlier if len(earlier) else lives_of_root[:1])[-1]) if len(lives_of_root) else -1
