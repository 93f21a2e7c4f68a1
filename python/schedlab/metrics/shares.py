# SPDX-License-Identifier: MIT
"""What processes got of the CPUs, and what they should get."""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl

from schedlab.metrics.fairness import steady_sum
from schedlab.metrics.ideal import Floats, ideal_shares
from schedlab.metrics.lives import LifeTable, attribute
from schedlab.metrics.task_groups import PROCESS_UNIT, TICKET_UNIT, groups_at, ideal_in_groups
from schedlab.metrics.window import Window
from schedlab.trace import AttributeKind, Facts, Kind
from schedlab.trace.format import SHARES_BY_CURRENCIES, SHARES_EQUAL
from schedlab.trace.model import Integers

Weights = Literal["tickets", "weight", "nice", "groups", "currencies", "equal"]
"""`groups`: a process's own weight is that of its nice value, within its group; `currencies`: its
tickets are."""
IN_GROUPS: tuple[Weights, ...] = ("groups", "currencies")

ATTRIBUTE_DEFAULTS = {
    AttributeKind.TICKETS: 1,
    AttributeKind.WEIGHT: 5,
    AttributeKind.NICE: 0,
    AttributeKind.TASKGROUP: 0,
}
"""TICKETS_DEFAULT, WEIGHT_DEFAULT and NICE_DEFAULT of policies/policy.h, and the root."""

KINDS: dict[Weights, AttributeKind] = {
    "tickets": AttributeKind.TICKETS,
    "weight": AttributeKind.WEIGHT,
    "nice": AttributeKind.NICE,
    "groups": AttributeKind.TASKGROUP,
}
_OWN_WEIGHTS: dict[Weights, AttributeKind] = {
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
"""Of NICE_FIRST to NICE_LAST: those of policies/nice_weights.h."""


def with_shares(
    processes: pl.DataFrame, trace: Facts, who: LifeTable, window: Window, weights: Weights | None
) -> pl.DataFrame:
    """Adds, for the workload's processes, what they got of the CPUs, what the policy can give them at best, and how
    far they are off what the workload asks for by its attributes."""
    workload = processes.filter(pl.col("role") == "workload")
    life = workload["life"].to_numpy()
    choice = weights or chosen_weights(trace, window)
    weight = _weights(trace, who, window, life, choice)
    demand = _demands(workload, window)
    asked = ideal = _part(_allotted(trace, who, window, life, choice, weight, demand))
    if not weights and _shares_by(trace, window) == SHARES_EQUAL:
        ideal = _part(ideal_shares(np.ones(len(life), np.int64), demand, trace.header.cpus))
    running = workload["running_ns"].to_numpy()
    shares = pl.DataFrame(
        {
            "life": life,
            "weight": weight,
            "demand_cpus": demand,
            "share": _part(running.astype(np.float64)),
            "ideal_share": ideal,
            "asked_share": asked,
        }
    ).with_columns(share_error_points=(pl.col("share") - pl.col("asked_share")) * 100)
    return processes.join(shares, on="life", how="left", maintain_order="left")


def _allotted(
    trace: Facts,
    who: LifeTable,
    window: Window,
    life: Integers,
    choice: Weights,
    weight: Integers,
    demand: Floats,
) -> Floats:
    """Returns the CPUs that each process should get by its weight."""
    if choice not in IN_GROUPS:
        return ideal_shares(weight, demand, trace.header.cpus)
    of = _values(trace, who, window, life, AttributeKind.TASKGROUP)
    groups = groups_at(trace, window.end_row)
    unit = TICKET_UNIT if choice == "currencies" else PROCESS_UNIT
    return ideal_in_groups(groups, of, weight, demand, trace.header.cpus, unit)


def _demands(workload: pl.DataFrame, window: Window) -> Floats:
    """How much of a CPU each process asked for.

    One that ended has got all that it asked for: what it ran. One that goes on would
    have run more, had it never waited: of the time it waited, the part that it runs
    when it does not wait, running ÷ (running + blocked). That is all of it for one
    that never blocks (or never ran), and little for one that mostly sleeps.
    """
    running, waiting, blocked = (
        workload[column].to_numpy().astype(np.float64)
        for column in ("running_ns", "waiting_ns", "blocked_ns")
    )
    waiting = np.where(workload["exit_ns"].is_null().to_numpy(), waiting, 0)
    known = running + blocked
    part = np.divide(running, known, out=np.ones_like(known), where=running > 0)
    demand: Floats = (running + waiting * part) / max(window.elapsed_ns, 1)
    return demand


def _weights(
    trace: Facts, who: LifeTable, window: Window, life: Integers, choice: Weights
) -> Integers:
    if choice == "equal":
        return np.ones(len(life), np.int64)
    kind = _OWN_WEIGHTS[choice]
    return weight_of(kind, _values(trace, who, window, life, kind))


def _values(
    trace: Facts, who: LifeTable, window: Window, life: Integers, kind: AttributeKind
) -> Integers:
    return attribute(trace, who, kind, window.end_row, ATTRIBUTE_DEFAULTS[kind])[life]


def weight_of(kind: AttributeKind, values: Integers) -> Integers:
    """The weights that these values of an attribute are, 1 at least."""
    if kind == AttributeKind.NICE:
        return NICE_WEIGHTS[np.clip(values, NICE_FIRST, NICE_LAST) - NICE_FIRST]
    return np.maximum(values, 1)


def chosen_weights(trace: Facts, window: Window) -> Weights:
    """What gives the processes their weights: the attribute by which the policy shares, else the one
    that the workload set."""
    shares_by = _shares_by(trace, window)
    if shares_by == SHARES_BY_CURRENCIES:
        return "currencies"
    for choice, kind in KINDS.items():
        if kind == shares_by:
            return choice
    rows = trace.rows(Kind.ATTRIBUTE)
    used = set(trace.at("first", rows[rows <= window.end_row]).tolist())
    wishes: tuple[Weights, ...] = ("weight", "tickets", "nice")
    return next((wish for wish in wishes if KINDS[wish] in used), "equal")


def _shares_by(trace: Facts, window: Window) -> int | None:
    """The attribute by which the policy shares when the window ends; SHARES_EQUAL: by none. None: it is not known."""
    said = np.concatenate((trace.rows(Kind.POLICY), trace.rows(Kind.TUNABLE)))
    said = said[said <= window.end_row]
    return int(trace.at("process", said.max(keepdims=True))[0]) if len(said) else None


def attributes_set(trace: Facts, window: Window) -> tuple[str, ...]:
    """Returns the attributes that the workload's processes were given by the window's end, in the order of their
    numbers. The root's own do not count."""
    rows = trace.rows(Kind.ATTRIBUTE)
    rows = rows[rows <= window.end_row]
    if window.root_pid is not None:
        rows = rows[trace.at("process", rows) != window.root_pid]
    kinds = set(trace.at("first", rows).tolist())
    return tuple(kind.name.lower() for kind in AttributeKind if kind in kinds)


def _part(values: Floats) -> pl.Series:
    """Each value's part of the sum; null if that is 0."""
    total = steady_sum(values)
    if total <= 0:
        return pl.Series([None] * len(values), dtype=pl.Float64)
    return pl.Series(values / total)
