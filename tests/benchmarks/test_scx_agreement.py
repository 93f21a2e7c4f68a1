# SPDX-License-Identifier: MIT
"""Tests how runs of sched_ext are compared, and that the stored runs of the guest are complete."""

from __future__ import annotations

import pytest

from schedlab_tools.scx_agreement import (
    CASES,
    TaskRun,
    compare,
    read_guest_runs,
    stored_tasks,
)

LINUX = (TaskRun("a", "SEBP", 100), TaskRun("b", "EBPE", 200))


def test_equal_runs_agree() -> None:
    agreement = compare(LINUX, LINUX)
    assert agreement.callbacks == (8, 8)
    assert agreement.transitions == 1
    assert agreement.turnaround == 0


def test_runs_with_other_tasks_are_not_compared() -> None:
    with pytest.raises(ValueError, match="zip"):
        compare(LINUX, LINUX[:1])


def test_the_runs_of_the_guest_are_of_the_current_schedulers() -> None:
    """If this fails, run `./schedlab dev bench scx-agreement` and `./schedlab dev docs scx-agreement`."""
    stored = read_guest_runs()
    assert set(stored) == set(CASES)
    for case in CASES:
        assert stored[case]["inputs"] == case.inputs
        assert len(stored_tasks(stored[case])) == 4
