# SPDX-License-Identifier: MIT
"""Runs in a line for the host's CPUs."""

from __future__ import annotations

from schedlab.runs.waiting import Waiting


def begun(waiting: Waiting[str]) -> list[str]:
    return [item for item, _ in waiting.begin()]


def test_the_first_come_first_as_far_as_cpus_go() -> None:
    waiting = Waiting([(name, 1) for name in "abcde"], 2)
    assert begun(waiting) == ["a", "b"]
    assert begun(waiting) == []
    waiting.give_back(1)
    assert begun(waiting) == ["c"]
    waiting.give_back(2)
    assert begun(waiting) == ["d", "e"]
    assert not waiting


def test_one_that_needs_less_overtakes() -> None:
    waiting = Waiting([("a", 3), ("b", 4), ("c", 1), ("d", 2)], 4)
    assert begun(waiting) == ["a", "c"]
    waiting.give_back(1)
    assert begun(waiting) == []
    waiting.give_back(3)
    assert begun(waiting) == ["b"]
    waiting.give_back(4)
    assert begun(waiting) == ["d"]


def test_no_items_are_an_empty_line() -> None:
    assert not Waiting([], 2)
