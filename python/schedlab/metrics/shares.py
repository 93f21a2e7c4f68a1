# SPDX-License-Identifier: MIT
"""Computes the CPU shares that processes received, and their ideal shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from schedlab.metrics.columns import Mask, nullable
from schedlab.metrics.fairness import steady_sum
from schedlab.metrics.lives import LifeTable, attribute
from schedlab.metrics.window import Window, Windows
from schedlab.trace import AttributeKind, GroupField, Kind, TraceFacts
from schedlab.trace.format import SHARES_BY_CURRENCIES, SHARES_EQUAL
from schedlab.trace.joined import facts_of_run
from schedlab.trace.model import Integers

WEIGHT_DEFAULT, PERIOD_DEFAULT = 100, 100_000_000
"""GROUP_WEIGHT_DEFAULT and GROUP_PERIOD_DEFAULT of policies/policy.h."""
WEIGHT_UNIT = 1024
"""Units of max-min weight per unit of group weight: a group of weight 100 equals a process of nice 0."""
PROCESS_UNIT = 100
TICKET_UNIT = WEIGHT_UNIT
"""Unit of `ideal_in_groups` for tickets: one ticket equals a group weight of 1."""


@dataclass
class TaskGroup:
    """A task group with its settings, by default those of a new group."""

    parent: int = 0
    weight: int = WEIGHT_DEFAULT
    quota_ns: int = 0
    """CPU time (ns) per period; 0 means unlimited."""
    period_ns: int = PERIOD_DEFAULT

    @property
    def most(self) -> float:
        """The group's limit in CPUs."""
        return self.quota_ns / self.period_ns if self.quota_ns else np.inf


def groups_at(trace: TraceFacts, row: int) -> list[TaskGroup]:
    """Returns the task groups by number, with their settings at a row of the events.

    The root group always exists.
    """
    rows = trace.rows(Kind.TASK_GROUP)
    rows = rows[rows <= row]
    numbers, fields, values = (
        trace.at(column, rows).astype(np.int64).tolist()
        for column in ("process", "first", "second")
    )
    groups = [TaskGroup() for _ in range(max(numbers, default=0) + 1)]
    for number, field, value in zip(numbers, fields, values, strict=True):
        group = groups[number]
        if field == GroupField.PARENT:
            group.parent = value if value < number else 0
        elif field == GroupField.WEIGHT:
            group.weight = max(value, 1)
        elif field == GroupField.QUOTA:
            group.quota_ns = value
        else:
            group.period_ns = max(value, 1)
    return groups


def ideal_in_groups(
    groups: list[TaskGroup],
    group_of: Integers,
    weights: npt.ArrayLike,
    demands: npt.ArrayLike,
    cpus: float,
    unit: int = PROCESS_UNIT,
) -> Floats:
    """Returns the ideal number of CPUs of each process in a hierarchy of groups (weighted max-min).

    `group_of`: the group of each process. `weights`: the weights of their nice values or, in units of
    TICKET_UNIT, their tickets. A group's share is divided among its processes and subgroups. No
    process or group gets more than its demand, no process more than one CPU, and no group more than
    its limit.
    """
    limited_demand = np.minimum(np.asarray(demands, np.float64), 1.0)
    weight = np.asarray(weights, np.float64) * unit
    group_of = np.where(group_of < len(groups), group_of, 0)
    wishes = np.zeros(len(groups))
    for number in reversed(range(len(groups))):
        wishes[number] += limited_demand[group_of == number].sum()
        wishes[number] = min(wishes[number], groups[number].most)
        if number:
            wishes[groups[number].parent] += wishes[number]
    allotted = np.zeros(len(groups))
    allotted[0] = min(wishes[0], cpus)
    allocation = np.zeros(len(limited_demand))
    for number in range(len(groups)):
        members = np.flatnonzero(group_of == number)
        subgroups = [
            group
            for group in range(1, len(groups))
            if groups[group].parent == number and wishes[group]
        ]
        if not allotted[number]:
            continue
        shares = max_min(
            np.concatenate(
                (weight[members], [groups[group].weight * WEIGHT_UNIT for group in subgroups])
            ),
            np.concatenate((limited_demand[members], wishes[subgroups])),
            allotted[number],
        )
        allocation[members] = shares[: len(members)]
        allotted[subgroups] = shares[len(members) :]
    return allocation


Floats = npt.NDArray[np.float64]


def ideal_shares(weights: npt.ArrayLike, demands: npt.ArrayLike, cpus: float) -> Floats:
    """Returns the ideal number of CPUs of each process: the weighted max-min allocation.

    `demands` are in CPUs: how much each process would use if it never waited. No process gets more
    than its demand, nor more than one CPU. The others share the rest in proportion to their weights
    (progressive filling: Bertsekas and Gallager, Data Networks, 1987). The sum is the lesser of
    supply and demand; divide by it to get shares. Raises ValueError for a weight not above 0, a
    demand below 0, no CPUs, or arrays of different length.
    """
    return max_min(weights, np.minimum(np.asarray(demands, np.float64), 1.0), cpus)


def max_min(weights: npt.ArrayLike, wishes: npt.ArrayLike, cpus: float) -> Floats:
    """Does the same as `ideal_shares`, but allows demands above one CPU, for groups of processes."""
    weight = np.asarray(weights, np.float64)
    limited_demand = np.asarray(wishes, np.float64)
    if weight.ndim != 1 or weight.shape != limited_demand.shape:
        raise ValueError("weights and demands must be lists of the same length")
    if not (np.isfinite(weight) & (weight > 0)).all():
        raise ValueError("a weight must be above 0")
    if not (limited_demand >= 0).all():
        raise ValueError("a demand must not be below 0")
    if not cpus > 0:
        raise ValueError("there must be more than 0 CPUs")
    # Processes are satisfied in the order of demand ÷ weight. Ties are ordered by demand, so that
    # rounding does not depend on the order of processes.
    order = np.lexsort((limited_demand, limited_demand / weight))
    filled = _fill_progressively(weight[order], limited_demand[order], float(cpus))
    allocation = np.empty_like(limited_demand)
    allocation[order] = filled
    return allocation


def _fill_progressively(weight: Floats, demands: Floats, cpus: float) -> Floats:
    """Returns the allocation of processes that are sorted by demand ÷ weight."""
    taken_before = np.concatenate(([0.0], np.cumsum(demands)[:-1]))
    weight_from_row = np.cumsum(weight[::-1])[::-1]
    level = np.maximum(cpus - taken_before, 0.0) / weight_from_row
    unsatisfied = np.flatnonzero(demands > weight * level)
    if len(unsatisfied) == 0:
        return demands
    first = int(unsatisfied[0])
    return np.concatenate((demands[:first], weight[first:] * level[first]))


Weights = Literal["tickets", "weight", "nice", "groups", "currencies", "equal"]
"""What determines weights. `groups`: nice values in task groups; `currencies`: tickets in task groups."""
IN_GROUPS: tuple[Weights, ...] = ("groups", "currencies")

ATTRIBUTE_DEFAULTS = {
    AttributeKind.TICKETS: 1,
    AttributeKind.WEIGHT: 5,
    AttributeKind.NICE: 0,
    AttributeKind.TASKGROUP: 0,
}
"""Values of processes that set none: TICKETS_DEFAULT, WEIGHT_DEFAULT and NICE_DEFAULT of
policies/policy.h, and the root group.
"""

KINDS: dict[Weights, AttributeKind] = {
    "tickets": AttributeKind.TICKETS,
    "weight": AttributeKind.WEIGHT,
    "nice": AttributeKind.NICE,
    "groups": AttributeKind.TASKGROUP,
}
_WEIGHT_ATTRIBUTES: dict[Weights, AttributeKind] = {
    **KINDS,
    "groups": AttributeKind.NICE,
    "currencies": AttributeKind.TICKETS,
}

NICE_FIRST, NICE_LAST = -20, 19
NICE_WEIGHTS = np.array(
    [
        *(88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916),
        *(9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277),
        *(1024, 820, 655, 526, 423, 335, 272, 215, 172, 137),
        *(110, 87, 70, 56, 45, 36, 29, 23, 18, 15),
    ]
)
"""Weights of NICE_FIRST to NICE_LAST, as in policies/nice_weights.h."""


@dataclass(frozen=True, eq=False)
class Shares:
    """The shares of the workload's processes, in their order. NaN: the sum of the run is 0.

    The ideal share is what the policy should give, by the attribute that it shares by. The demanded
    share is what the workload's own attributes ask for.
    """

    weight: Integers
    demand_cpus: Floats
    received: Floats
    ideal: Floats
    demanded: Floats

    def columns(self, rows: Integers, count: int) -> Iterator[pl.Series]:
        """Yields columns for a table of `count` processes, where these rows are the workload's."""
        for name, values in (
            ("weight", self.weight),
            ("demand_cpus", self.demand_cpus),
            ("share", self.received),
            ("ideal_share", self.ideal),
            ("share_error_points", (self.received - self.demanded) * 100),
        ):
            absent = np.ones(count, bool)
            absent[rows] = np.isnan(values)
            placed = np.zeros(count, values.dtype)
            placed[rows] = values
            yield nullable(placed, absent, pl.Int64 if name == "weight" else pl.Float64, name)

    def relative(self, of: slice) -> Floats:
        """Returns received ÷ demanded shares of the processes in this slice that demand a share."""
        received, demanded = self.received[of], self.demanded[of]
        demands = (demanded > 0) & ~np.isnan(received)
        relative: Floats = received[demands] / demanded[demands]
        return relative


def shares_of(
    trace: TraceFacts,
    life_table: LifeTable,
    windows: Windows,
    weights: Weights | None,
    life: Integers,
    sums: Mapping[str, Integers],
    ended: Mask,
) -> Shares:
    """Returns the shares of the workload's processes.

    `life`: their lives. `sums`: their times, by column. `ended`: which of them ended in the window.
    """
    run = windows.runs.of_pids(life_table.pid[life])
    shares_by = _shares_by(trace, windows)
    choices = (
        [weights] * len(windows)
        if weights
        else [
            _chosen_weights(trace, window, attribute)
            for window, attribute in zip(windows.windows, shares_by, strict=True)
        ]
    )
    demand = _demands(sums, ended, windows.elapsed_ns[run])
    weight = _weights(trace, life_table, windows, life, choices, run)
    received, ideal, demanded = (np.full(len(life), np.nan) for _ in range(3))
    running = sums["running_ns"].astype(np.float64)
    cpus = windows.runs.cpus
    for number, in_run in enumerate(windows.runs.slices(run)):
        received[in_run] = _fractions_of_sum(running[in_run])
        ideal_cpus = _ideal_cpus(
            trace,
            life_table,
            windows.windows[number],
            life[in_run],
            choices[number],
            weight[in_run],
            demand[in_run],
            cpus,
        )
        demanded[in_run] = _fractions_of_sum(ideal_cpus)
        if not weights and shares_by[number] == SHARES_EQUAL:
            ideal_cpus = ideal_shares(np.ones(len(ideal_cpus), np.int64), demand[in_run], cpus)
            ideal[in_run] = _fractions_of_sum(ideal_cpus)
        else:
            ideal[in_run] = demanded[in_run]
    return Shares(weight, demand, received, ideal, demanded)


def _ideal_cpus(
    trace: TraceFacts,
    life_table: LifeTable,
    window: Window,
    life: Integers,
    choice: Weights,
    weight: Integers,
    demand: Floats,
    cpus: int,
) -> Floats:
    """Returns the CPUs that each process of a run should get by its weight."""
    if choice not in IN_GROUPS:
        return ideal_shares(weight, demand, cpus)
    group_of_process = _attribute_values(
        trace, life_table, window.end_row, AttributeKind.TASKGROUP
    )[life]
    groups = groups_at(trace, window.end_row)
    unit = TICKET_UNIT if choice == "currencies" else PROCESS_UNIT
    return ideal_in_groups(groups, group_of_process, weight, demand, cpus, unit)


def _demands(sums: Mapping[str, Integers], ended: Mask, elapsed_ns: Integers) -> Floats:
    """Returns how much CPU time each process demanded in its window of this length, in CPUs.

    A process that ended demanded what it ran. A process still alive would have run more if it had
    never waited. Of its waiting time, it would have run the fraction running ÷ (running + blocked).
    This is 1 for processes that never blocked or never ran, and small for processes that mostly
    sleep.
    """
    running, waiting, blocked = (
        sums[column].astype(np.float64) for column in ("running_ns", "waiting_ns", "blocked_ns")
    )
    waiting = np.where(ended, 0, waiting)
    active_ns = running + blocked
    running_fraction = np.divide(running, active_ns, out=np.ones_like(active_ns), where=running > 0)
    demand: Floats = (running + waiting * running_fraction) / np.maximum(elapsed_ns, 1)
    return demand


def _weights(
    trace: TraceFacts,
    life_table: LifeTable,
    windows: Windows,
    life: Integers,
    choices: Sequence[Weights],
    run: Integers,
) -> Integers:
    """Returns the weights of these lives, which depend on the choices of their runs."""
    weight = np.ones(len(life), np.int64)
    end_row = windows.end_row[windows.runs.of_pids(life_table.pid)]
    for choice in dict.fromkeys(choices):
        if choice != "equal":
            kind = _WEIGHT_ATTRIBUTES[choice]
            chosen = np.array([other == choice for other in choices])[run]
            values = _attribute_values(trace, life_table, end_row, kind)[life[chosen]]
            weight[chosen] = weight_of(kind, values)
    return weight


def _attribute_values(
    trace: TraceFacts, life_table: LifeTable, end_row: int | Integers, kind: AttributeKind
) -> Integers:
    return attribute(trace, life_table, kind, end_row, ATTRIBUTE_DEFAULTS[kind])


def weight_of(kind: AttributeKind, values: Integers) -> Integers:
    """Returns the weights for these values of an attribute; at least 1."""
    if kind == AttributeKind.NICE:
        return NICE_WEIGHTS[np.clip(values, NICE_FIRST, NICE_LAST) - NICE_FIRST]
    return np.maximum(values, 1)


def chosen_weights(trace: TraceFacts, window: Window) -> Weights:
    """Returns what determines weights: the attribute that the policy shares by, or else an attribute
    that the workload set.
    """
    (shares_by,) = _shares_by(trace, Windows([window], facts_of_run(trace)))
    return _chosen_weights(trace, window, shares_by)


def _chosen_weights(trace: TraceFacts, window: Window, shares_by: int | None) -> Weights:
    """Returns what determines weights, if the policy shares by this attribute."""
    if shares_by == SHARES_BY_CURRENCIES:
        return "currencies"
    for choice, kind in KINDS.items():
        if kind == shares_by:
            return choice
    rows = trace.rows(Kind.ATTRIBUTE)
    first, end = np.searchsorted(rows, (window.first_row, window.end_row + 1))
    used = set(trace.at("first", rows[first:end]).tolist())
    wishes: tuple[Weights, ...] = ("weight", "tickets", "nice")
    return next((attribute for attribute in wishes if KINDS[attribute] in used), "equal")


def _shares_by(trace: TraceFacts, windows: Windows) -> list[int | None]:
    """Returns, for each run, the attribute that the policy shares by when the window ends.

    SHARES_EQUAL if it uses none, None if unknown.
    """
    rows = trace.rows(Kind.POLICY, Kind.TUNABLE)
    last_rows = np.searchsorted(rows, windows.end_row, side="right") - 1
    if not len(rows):
        return [None] * len(windows)
    is_known_run = (last_rows >= 0) & (rows[last_rows] >= windows.runs.first_row)
    attributes = trace.at("process", rows[last_rows]).tolist()
    return [
        attribute if is_known else None
        for attribute, is_known in zip(attributes, is_known_run.tolist(), strict=True)
    ]


def attributes_set(trace: TraceFacts, window: Window) -> tuple[str, ...]:
    """Returns the attributes set for the workload's processes until the window's end, in numerical
    order.

    Attributes of the root process itself do not count.
    """
    rows = trace.rows(Kind.ATTRIBUTE)
    rows = rows[rows <= window.end_row]
    if window.root_pid is not None:
        rows = rows[trace.at("process", rows) != window.root_pid]
    kinds = set(trace.at("first", rows).tolist())
    return tuple(kind.name.lower() for kind in AttributeKind if kind in kinds)


def _fractions_of_sum(values: Floats) -> Floats | float:
    """Returns each value's fraction of the sum; NaN if the sum is 0."""
    total = steady_sum(values)
    return values / total if total > 0 else np.nan
