# SPDX-License-Identifier: MIT
"""Lists the processes of a trace.

A PID may be used again after an exit. So a process is identified by its "life": the index of its
row in a LifeTable, which has one row from each fork to the following exit.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from schedlab.trace import (
    AttributeKind,
    Kind,
    MarkKind,
    Step,
    Trace,
    TraceFacts,
    mark_text,
    sort_steps,
)
from schedlab.trace.cpu_records import is_change
from schedlab.trace.model import Integers
from schedlab.trace.steps import Steps
from schedlab.trace.timeline import life_at

Mask = npt.NDArray[np.bool_]

_NONE = -1


@dataclass(frozen=True, eq=False)
class LifeTable:
    """One row per life, as arrays of equal length, sorted by PID and begin; −1 for missing values."""

    pid: Integers
    """In joined runs, the PIDs of run r are shifted by r × RunFacts.pids."""
    begin_row: Integers
    """Row (in the trace's events) of the first record about this life."""
    parent: Integers
    """Index of the parent's life.

    For a process without a parent in the trace, this is the first process, which reaps it.
    """
    fork_row: Integers
    first_run_row: Integers
    first_run_ns: Integers
    exit_row: Integers

    def __len__(self) -> int:
        return len(self.pid)

    def life_at(self, pid: Integers, row: Integers) -> Integers:
        """Returns the life that each PID had at each row; −1 if unknown."""
        return life_at(self.pid, self.begin_row, pid, row)


@dataclass(frozen=True, eq=False)
class Lives(LifeTable):
    """The lives, together with all steps that change their states."""

    steps: Steps


def lives(trace: Trace) -> Lives:
    """Returns the lives in a trace: each PID from its fork, or first appearance, to its exit."""
    steps = sort_steps(trace)
    first = steps.first
    first_run_row = _first_row_of_step(steps, Step.IN, len(first))
    fork_row, parent = forks(
        trace,
        steps.pid[first],
        steps.row[first],
        steps.step[first] == Step.BORN,
        np.zeros(len(first), np.int64),
    )
    return Lives(
        pid=steps.pid[first],
        begin_row=steps.row[first],
        parent=parent,
        fork_row=fork_row,
        first_run_row=first_run_row,
        first_run_ns=trace.at("time_ns", first_run_row) if len(trace) else first_run_row,
        exit_row=_first_row_of_step(steps, Step.ENDED, len(first)),
        steps=steps,
    )


def forks(
    trace: TraceFacts,
    pid: Integers,
    begin_row: Integers,
    forked: Mask,
    run: Integers,
) -> tuple[Integers, Integers]:
    """Returns the row of each life's fork, and the index of its parent.

    `forked`: whether each life begins with a fork. `run`: the run of each life.
    """
    fork_row = np.where(forked, begin_row, _NONE)
    if len(pid) == 0:
        return fork_row, np.empty(0, np.int64)
    parent_pid = trace.at("process", np.maximum(fork_row, 0)).astype(np.int64)
    parent = life_at(pid, begin_row, parent_pid, fork_row)
    return fork_row, _parents(parent, forked, forked & (parent_pid == 0), fork_row, run)


def _parents(
    parent: Integers, forked: Mask, outside: Mask, fork_row: Integers, run: Integers
) -> Integers:
    """Returns the parents; those in `outside` get the first process of their run as their parent.

    If the trace begins after the first fork, the first process is unknown, and they get none.
    """
    parent = np.where(forked & ~outside, parent, _NONE)
    begins = np.flatnonzero(is_change(run))
    known = np.logical_and.reduceat(forked, begins) & np.logical_or.reduceat(outside, begins)
    if known.any():
        lives = np.diff(begins, append=len(run))
        first_row = np.minimum.reduceat(fork_row, begins)
        first = np.flatnonzero((fork_row == np.repeat(first_row, lives)) & np.repeat(known, lives))
        of_outside = outside & np.repeat(known, lives)
        parent[of_outside] = np.repeat(first, lives[known])[outside[np.repeat(known, lives)]]
        parent[first] = _NONE
    return parent


def _first_row_of_step(steps: Steps, step: Step, count: int) -> Integers:
    """Returns the row of each life's first step of this kind; −1 without one."""
    rows = np.full(count, _NONE)
    order = np.flatnonzero(steps.step == step)[::-1]
    rows[steps.life[order]] = steps.row[order]  # the earliest row comes last, and remains
    return rows


def descendants(life_table: LifeTable, *root: int) -> Mask:
    """Returns which processes are descendants of one of the lives `root`; −1 means none."""
    mark = np.full(len(life_table), _NONE)
    roots = [life for life in root if life >= 0]
    if not roots:
        return np.zeros(len(life_table), bool)
    mark[roots] = 1
    result: Mask = _resolve(mark, life_table.parent) == 1
    result[roots] = False
    return result


def names(trace: TraceFacts, life_table: LifeTable) -> list[str | None]:
    """Returns each life's last name: of its last EXEC, or where it was found, or of its parent at
    the fork.
    """
    rows = trace.texts["row"].to_numpy()
    naming = np.flatnonzero(np.isin(rows, trace.rows(Kind.EXEC, Kind.FOUND)))
    index = _inherited(life_table, *_set_values(trace, life_table, rows[naming]))
    text = trace.texts["text"].to_list()
    return [text[naming[at]] if at >= 0 else None for at in index.tolist()]


def labels(trace: TraceFacts, life_table: LifeTable) -> list[str | None]:
    """Returns each life's MARK_GROUP label: its last one, or its parent's at the fork."""
    rows = trace.rows(Kind.MARK)
    rows = rows[trace.at("first", rows) == MarkKind.GROUP]
    index = _inherited(life_table, *_set_values(trace, life_table, rows))
    values = trace.at("second", rows).tolist()
    return [mark_text(values[at]) if at >= 0 else None for at in index.tolist()]


def attribute(
    trace: TraceFacts,
    life_table: LifeTable,
    kind: AttributeKind,
    end_row: int | Integers,
    default: int,
) -> Integers:
    """Returns each life's last value of an attribute up to `end_row`: set, inherited, or `default`."""
    all_lives = np.arange(len(life_table))
    rows = np.empty(len(life_table), np.int64)
    rows[:] = end_row
    return attribute_at(trace, life_table, kind, all_lives, rows, default)


def attribute_at(
    trace: TraceFacts,
    life_table: LifeTable,
    kind: AttributeKind,
    life: Integers,
    row: Integers,
    default: int,
    *,
    inherited: bool = True,
) -> Integers:
    """Returns the value of an attribute that each life has at a row of the events.

    It is the last value set until then. If there is none and `inherited` is true, it is the
    parent's value at the fork, recursively. Otherwise it is `default`.
    """
    rows = trace.rows(Kind.ATTRIBUTE)
    rows = rows[trace.at("first", rows) == kind]
    changed_lives = life_table.life_at(trace.at("process", rows).astype(np.int64), rows)
    changed_row = last_before(changed_lives, rows, life, row + 1)
    index = changed_row
    if inherited:
        at_fork = _resolve(
            last_before(changed_lives, rows, life_table.parent, life_table.fork_row),
            life_table.parent,
        )
        index = np.where(changed_row >= 0, changed_row, at_fork[life])
    values = np.append(trace.at("second", rows).astype(np.int64), default)
    return values[index]


def _set_values(
    trace: TraceFacts, life_table: LifeTable, rows: Integers
) -> tuple[Integers, Integers]:
    """Returns the lives of these records, and the rows."""
    return life_table.life_at(trace.at("process", rows).astype(np.int64), rows), rows


def _inherited(life_table: LifeTable, life: Integers, row: Integers) -> Integers:
    """Returns, for each life, the index of its last record; −1 without one.

    A life without records inherits its parent's last record before the fork, recursively.
    """
    at_fork = _resolve(
        last_before(life, row, life_table.parent, life_table.fork_row), life_table.parent
    )
    changed_row = last_before(
        life, row, np.arange(len(life_table)), np.full(len(life_table), (1 << 32) - 1)
    )
    return np.where(changed_row >= 0, changed_row, at_fork)


def last_before(life: Integers, row: Integers, row_limit: Integers, before: Integers) -> Integers:
    """Returns, for each life in `row_limit`, the index of its last record before a row, or −1.
    `life` and `row` describe the records.
    """
    order = np.lexsort((row, life))
    at = np.searchsorted(_key(life[order], row[order]), _key(row_limit, before)) - 1
    has_record = (at >= 0) & (row_limit >= 0)
    has_record[has_record] = life[order[at[has_record]]] == row_limit[has_record]
    return np.where(has_record, order[np.maximum(at, 0)] if len(order) else _NONE, _NONE)


def _resolve(value: Integers, parent: Integers) -> Integers:
    """Replaces each −1 by the value of the nearest ancestor that has one."""
    value, link = value.copy(), parent.copy()
    for _ in range(64):  # each iteration doubles the distance to the ancestor that is looked up
        unknown = np.flatnonzero((value < 0) & (link >= 0))
        if len(unknown) == 0:
            break
        ancestor = link[unknown]
        value[unknown], link[unknown] = value[ancestor], link[ancestor]
    return value


def _key(life: Integers, row: Integers) -> Integers:
    return (life << 32) | row
