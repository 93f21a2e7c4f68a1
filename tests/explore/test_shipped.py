# SPDX-License-Identifier: MIT
"""Tests that no short sequence of operations breaks a rule of a shipped policy.

For round-robin, no sequence of any length does.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from built_once import build_once
from conftest import ROOT
from schedlab.machines import exploration
from schedlab.machines.exploration import ExplorationResult, Limits

SHIPPED = sorted(path.stem for path in (ROOT / "policies").glob("*.c"))
QUICK = ("edf", "lottery")
"""A policy that reads times and a policy that draws; each policy takes a CPU second to compile."""
DEPTH = 5


def built(policy: str) -> Path:
    source = Path("policies") / f"{policy}.c"
    build_once("explorer", EXPLORED=str(source))
    return ROOT / source


def explore(policy: str, limits: Limits, tunables: str = "") -> ExplorationResult:
    source = built(policy)
    return exploration.run_exploration(
        source, exploration.find_host_fields_read(source), policy, tunables, limits
    )


@pytest.mark.parametrize("slice_ticks", [1, 3])
def test_no_sequence_breaks_a_rule_of_round_robin(slice_ticks: int) -> None:
    """Sequences have any length, since all states are visited; each takes about 40 bytes."""
    explored = explore("rr", Limits(tasks=3, memory_mib=1), f"slice={slice_ticks}")
    assert explored.end == "complete"
    assert explored.states == {1: 1_067, 3: 7_647}[slice_ticks]


@pytest.mark.long
@pytest.mark.parametrize("preset", ["thesis", "passes"])
def test_a_law_knows_the_quirks_of_a_studys_levels(preset: str) -> None:
    """A fast lane precedes level 0; if tasks age by passes, their levels are unknown."""
    source = built("studies/study-priority")
    limits = Limits(tasks=3, depth=6, memory_mib=256)
    words = exploration.find_host_fields_read(source)
    assert (
        exploration.run_exploration(source, words, f"priority:{preset}", "", limits).end == "depth"
    )


@pytest.mark.parametrize(
    "policy",
    [
        policy if policy in QUICK else pytest.param(policy, marks=pytest.mark.long)
        for policy in SHIPPED
        if policy != "rr"
    ],
)
def test_no_short_sequence_breaks_a_rule_and_times_may_be_moved(policy: str) -> None:
    limits = Limits(tasks=3, depth=DEPTH, memory_mib=64)
    explored = explore(policy, limits)
    assert (explored.end, explored.depth) == ("depth", DEPTH)
    assert explored.states > 50, "amps has 51, to which all tasks and times are alike"
    assert exploration.is_time_invariant(built(policy), explored.words, policy, limits=limits)
