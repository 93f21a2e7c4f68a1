# SPDX-License-Identifier: MIT
"""Groups of tasks: what they have been set to, and what each process should get in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from schedlab.metrics.ideal import Floats, max_min
from schedlab.trace import Facts, GroupField, Kind
from schedlab.trace.model import Integers

WEIGHT_DEFAULT, PERIOD_DEFAULT = 100, 100_000_000
"""GROUP_WEIGHT_DEFAULT and GROUP_PERIOD_DEFAULT of policies/policy.h."""
WEIGHT_UNIT = 1024
"""What a group of weight 100 has, a process of nice 0 has: 100 times 1,024."""
PROCESS_UNIT = 100
TICKET_UNIT = WEIGHT_UNIT
"""A ticket of a process counts as much as 1 of a group's weight."""


@dataclass
class TaskGroup:
    """A group; at first as one is that was not set."""

    parent: int = 0
    weight: int = WEIGHT_DEFAULT
    quota_ns: int = 0
    """0: no limit."""
    period_ns: int = PERIOD_DEFAULT

    @property
    def most(self) -> float:
        """The CPUs that its limit allows it."""
        return self.quota_ns / self.period_ns if self.quota_ns else np.inf


def groups_at(trace: Facts, row: int) -> list[TaskGroup]:
    """Returns the groups as they are at a row of the events, by their numbers; the root always is there."""
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
    of: Integers,
    weights: npt.ArrayLike,
    demands: npt.ArrayLike,
    cpus: float,
    unit: int = PROCESS_UNIT,
) -> Floats:
    """The weighted max-min allocation level by level: how many CPUs each process should get.

    `of`: the group of each process; `weights` are those of their nice values, or, in units of
    TICKET_UNIT, their tickets. What a group should get is shared among its processes and the groups
    within it; none gets more than it asks for, no process more than one CPU, and no group more than
    its limit.
    """
    wish = np.minimum(np.asarray(demands, np.float64), 1.0)
    weight = np.asarray(weights, np.float64) * unit
    of = np.where(of < len(groups), of, 0)
    wishes = np.zeros(len(groups))
    for number in reversed(range(len(groups))):
        wishes[number] += wish[of == number].sum()
        wishes[number] = min(wishes[number], groups[number].most)
        if number:
            wishes[groups[number].parent] += wishes[number]
    allotted = np.zeros(len(groups))
    allotted[0] = min(wishes[0], cpus)
    allocation = np.zeros(len(wish))
    for number in range(len(groups)):
        own = np.flatnonzero(of == number)
        within = [
            each for each in range(1, len(groups)) if groups[each].parent == number and wishes[each]
        ]
        if not allotted[number]:
            continue
        shares = max_min(
            np.concatenate((weight[own], [groups[each].weight * WEIGHT_UNIT for each in within])),
            np.concatenate((wish[own], wishes[within])),
            allotted[number],
        )
        allocation[own] = shares[: len(own)]
        allotted[within] = shares[len(own) :]
    return allocation
