# SPDX-License-Identifier: MIT
"""Tests that the simulator's stories equal those of the kernel and of the tests' model.

In the scenario of ties many events share one tick. Its story is pinned in tests/golden, without
costs and with the kernel's costs. Random scenarios on up to 16 CPUs are compared with the model, an
independent program: every decision at every tick.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from golden_stories import (
    MEASURING,
    golden_file,
    is_pinned,
    model_schedule,
    policies_and_presets,
    simulator_schedule,
)

CPUS = (1, 2, 3, 4, 5, 8, 16)
RANDOM_MIX = 1_000_000
"""Random scenarios with this number or a higher one only compute (tests/scenario/random.h)."""

FOUND = (
    ("314", "priority:proposed", 8),  # the model called an idle CPU twice, the kernel calls another
    (
        "1073",
        "rr:table-scan",
        5,
    ),  # the model gave away the slot of a process that had not been reaped
    ("1590", "lottery:equal-lfsr", 2),
)
"""Former differences between simulator and model."""


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("policy", policies_and_presets())
def test_ties_are_settled_as_pinned(tmp_path: Path, policy: str, cpus: int) -> None:
    story = simulator_schedule(tmp_path, "ties", policy, cpus)
    if is_pinned(policy):
        assert story == golden_file(policy, cpus).read_text()


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize(
    "policy",
    [policy for policy in policies_and_presets() if is_pinned(policy) and policy not in MEASURING],
)
def test_costs_settle_no_tie(tmp_path: Path, policy: str, cpus: int) -> None:
    """On the kernel all steps also take time, and CPUs tick at the same moment for this purpose."""
    story = simulator_schedule(tmp_path, "ties", policy, cpus, "kernel,stagger=0")
    assert story == golden_file(policy, cpus).read_text()


def check_scenario(folder: Path, scenario: str, policy: str, cpus: int) -> None:
    by_model, _ = model_schedule(folder, scenario, policy, cpus)
    by_simulator = simulator_schedule(folder, scenario, policy, cpus)
    assert by_simulator == by_model, f"scenario {scenario}, {policy}, {cpus} CPUs"


@pytest.mark.parametrize(("scenario", "policy", "cpus"), FOUND)
def test_former_differences(tmp_path: Path, scenario: str, policy: str, cpus: int) -> None:
    check_scenario(tmp_path, scenario, policy, cpus)


@pytest.mark.parametrize("policy", policies_and_presets())
def test_random_scenarios(tmp_path: Path, policy: str) -> None:
    """This includes processes that only compute, whose shares are equal tick by tick."""
    begin = 1000 * policies_and_presets().index(policy)
    for number, cpus in enumerate(CPUS, begin):
        check_scenario(tmp_path, str(number), policy, cpus)
    for number, cpus in enumerate(CPUS[:2], RANDOM_MIX + begin):
        check_scenario(tmp_path, str(number), policy, cpus)
