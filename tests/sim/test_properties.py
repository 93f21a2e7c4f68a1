# SPDX-License-Identifier: MIT
"""Tests that all policies keep their invariants: stateful tests of the simulator by Hypothesis.

Each test draws programs and external acts on 1 to 16 CPUs. Hypothesis shrinks a failing case and
prints its acts. `--hypothesis-profile long` tries many more cases, and different ones each time.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from golden_stories import policies_and_presets
from scheduling_machine import Scheduler
from simulator_command import built

EXAMPLES = 30
OF_A_PRESET = 10
"""Examples per preset: most of its code is the policy's, which the policy's own examples test."""
STEPS = 25


@pytest.fixture(autouse=True, scope="module")
def _library() -> None:
    built("sim/libschedlab-sim.so")


def is_long() -> bool:
    """Returns whether the profile is `long`."""
    return settings.get_current_profile_name() == "long"


def bounds(examples: int = EXAMPLES) -> settings:
    """Returns the settings of the profile `long`, or of a few fixed cases."""
    patient = settings(
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        print_blob=False,
    )
    if is_long():
        return patient
    return settings(
        patient, derandomize=True, database=None, max_examples=examples, stateful_step_count=STEPS
    )


@pytest.mark.parametrize("policy", policies_and_presets())
def test_laws_hold(policy: str) -> None:
    machine = type("Machine", (Scheduler,), {"policy": policy})
    examples = OF_A_PRESET if ":" in policy else EXAMPLES
    run_state_machine_as_test(machine, settings=bounds(examples))


@pytest.mark.parametrize("policy", ["rr", "mlfq"])
def test_laws_hold_while_policies_are_switched(policy: str) -> None:
    machine = type("Machine", (Scheduler,), {"policy": policy, "switches": True})
    run_state_machine_as_test(machine, settings=bounds())


@pytest.mark.parametrize("policy", ["lottery", "lottery:thesis", "lottery:linux", "hybrid"])
def test_draws_are_fair_in_the_long_run(policy: str) -> None:
    """Each case has hundreds of draws, enough for a bias to become visible."""
    machine = type("Machine", (Scheduler,), {"policy": policy, "patience": 50})
    run_state_machine_as_test(machine, settings=settings(bounds(), stateful_step_count=8))
