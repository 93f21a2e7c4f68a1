# SPDX-License-Identifier: MIT
"""Tests the entitlement of grouped processes against time distributed piece by piece."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedlab.metrics import ideal_shares
from schedlab.metrics.shares import (
    PROCESS_UNIT,
    WEIGHT_UNIT,
    TaskGroup,
    groups_at,
    ideal_in_groups,
)
from schedlab.trace import GroupField, Kind
from trace_simulator import Record, Script, load

PIECES = 4000
"""The number of pieces of a CPU."""


def handed_out(
    groups: list[TaskGroup], of: list[int], weights: list[int], demands: list[float], cpus: int
) -> list[float]:
    """Distributes time piece by piece. From the root down, each piece goes to the eligible child
    with the least time for its weight. A child is eligible if it has demand and has not reached
    its limit.
    """
    got, group_got = [0] * len(of), [0] * len(groups)
    most = [PIECES * min(demand, 1.0) for demand in demands]

    def wants(number: int) -> bool:
        if group_got[number] + 1 > groups[number].most * PIECES:
            return False
        return any(got[i] + 1 <= most[i] for i, at in enumerate(of) if at == number) or any(
            wants(child)
            for child in range(number + 1, len(groups))
            if groups[child].parent == number
        )

    for _ in range(cpus * PIECES):
        if not wants(0):
            break
        number, chosen = 0, -1
        while chosen < 0:
            group_got[number] += 1
            process_candidates = [
                (got[i] / (weights[i] * PROCESS_UNIT), 0, i)
                for i, at in enumerate(of)
                if at == number and got[i] + 1 <= most[i]
            ]
            within = [
                (group_got[child] / (groups[child].weight * WEIGHT_UNIT), 1, child)
                for child in range(number + 1, len(groups))
                if groups[child].parent == number and wants(child)
            ]
            _, is_group, place = min(process_candidates + within)
            number, chosen = (place, -1) if is_group else (number, place)
        got[chosen] += 1
    return [pieces / PIECES for pieces in got]


@st.composite
def trees(draw: st.DrawFn) -> list[TaskGroup]:
    groups = [TaskGroup()]
    for number in range(1, draw(st.integers(1, 5))):
        groups.append(
            TaskGroup(
                draw(st.integers(0, number - 1)),
                draw(st.sampled_from((50, 100, 300))),
                draw(st.sampled_from((0, 0, 20_000_000, 150_000_000))),
            )
        )
    return groups


@given(trees(), st.data(), st.integers(1, 3))
@settings(max_examples=12)
def test_ideal_in_groups_is_what_pieces_come_to(
    groups: list[TaskGroup], data: st.DataObject, cpus: int
) -> None:
    count = data.draw(st.integers(1, 6))
    of = data.draw(st.lists(st.integers(0, len(groups) - 1), min_size=count, max_size=count))
    weights = data.draw(
        st.lists(st.sampled_from((335, 1024, 3121)), min_size=count, max_size=count)
    )
    demands = data.draw(st.lists(st.sampled_from((0.1, 0.5, 1.0)), min_size=count, max_size=count))
    got = ideal_in_groups(groups, np.array(of), weights, demands, cpus)
    assert got.tolist() == pytest.approx(
        handed_out(groups, of, weights, demands, cpus), abs=8 / PIECES
    )


def test_without_groups_it_is_what_weights_say() -> None:
    weights, demands = [1024, 820, 15], [1.0, 0.2, 1.0]
    got = ideal_in_groups([TaskGroup()], np.array([0, 3, 0]), weights, demands, 1)
    assert got == pytest.approx(ideal_shares(weights, demands, 1))


def test_users_share_and_a_quota_is_no_more() -> None:
    """One user has one process, another three, and a third a tenth of a CPU; the first two
    receive 45 % each.
    """
    users = [TaskGroup(), TaskGroup(), TaskGroup(), TaskGroup(0, 100, 10_000_000)]
    got = ideal_in_groups(users, np.array([1, 2, 2, 2, 3]), [1024] * 5, [1.0] * 5, 1)
    assert got == pytest.approx([0.45, 0.15, 0.15, 0.15, 0.1])


def test_groups_are_as_they_were_set_last() -> None:
    """Group 2 is not set, but its number lies between two groups that are."""
    settings = [
        (1, GroupField.WEIGHT, 300),
        (3, GroupField.PARENT, 1),
        (3, GroupField.QUOTA, 5_000_000),
        (3, GroupField.PERIOD, 20_000_000),
        (1, GroupField.WEIGHT, 200),
    ]
    records = [
        Record(0, 0, 0, Kind.START, 0, 0, 0),
        *(
            Record(1, 1 + index, number, Kind.TASK_GROUP, 0, field, value)
            for index, (number, field, value) in enumerate(settings)
        ),
    ]
    trace = load(records, Script(cpus=1))
    at = int(trace.rows(Kind.TASK_GROUP)[-2])
    assert groups_at(trace, at) == [
        *(TaskGroup(), TaskGroup(0, 300), TaskGroup()),
        TaskGroup(1, 100, 5_000_000, 20_000_000),
    ]
    assert groups_at(trace, at + 1)[1].weight == 200
