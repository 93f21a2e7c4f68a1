# SPDX-License-Identifier: MIT
"""Tests how runs of sched_ext are compared, and that the stored runs of the guest are complete."""

from __future__ import annotations

import pytest

from schedlab_tools.scx_agreement import (
    CASES,
    TaskRun,
    compare,
    guest_calls,
    read_guest_runs,
    stored_tasks,
)

LINUX = (TaskRun("a", "SEBP", 100), TaskRun("b", "EBPE", 200))


def test_equal_runs_agree() -> None:
    agreement = compare(LINUX, LINUX)
    assert agreement.callbacks == (8, 8)
    assert agreement.transitions == 1
    assert agreement.turnaround == 0


def test_differences_are_parts_of_the_longer_run() -> None:
    """b has the transitions EB, BP and PE on Linux, and EB and BP in the simulator."""
    agreement = compare(LINUX, (TaskRun("a", "SEBP", 110), TaskRun("b", "EBP", 190)))
    assert agreement.callbacks == (8, 7)
    assert agreement.transitions == pytest.approx(5 / 6)
    assert agreement.uninterrupted == pytest.approx(5 / 6)
    assert agreement.turnaround == pytest.approx(0.1)


def test_interruptions_are_left_out() -> None:
    """On Linux, a is stopped once and continues."""
    agreement = compare([TaskRun("a", "EBPBP", 100)], [TaskRun("a", "EBP", 100)])
    assert agreement.transitions == pytest.approx(2 / 4)
    assert agreement.uninterrupted == 1


def test_runs_with_other_tasks_are_not_compared() -> None:
    with pytest.raises(ValueError, match="zip"):
        compare(LINUX, LINUX[:1])


def test_callbacks_in_a_console() -> None:
    console = "attach: attached\ncallback 12 0 vtime_enqueue 7\ncallback 15 1 vtime_init 0\n"
    assert guest_calls(console, "vtime") == [("enqueue", 7), ("init", 0)]


def test_the_runs_of_the_guest_are_of_the_current_schedulers() -> None:
    """If this fails, run `./schedlab dev bench scx-agreement` and `./schedlab dev docs scx-agreement`."""
    stored = read_guest_runs()
    assert set(stored) == set(CASES)
    for case in CASES:
        assert stored[case]["inputs"] == case.inputs
        assert len(stored_tasks(stored[case])) == 4
