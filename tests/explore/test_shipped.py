# SPDX-License-Identifier: MIT
"""No short sequence of operations breaks a rule of a policy that ships; of round-robin, none does at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from built_once import build_once
from conftest import ROOT
from schedlab.machines import explored
from schedlab.machines.explored import Explored, Limits

SHIPPED = sorted(path.stem for path in (ROOT / "policies").glob("*.c"))
QUICK = ("edf", "lottery")
"""One that asks for times, and one that draws: of each policy the compiler takes a CPU second."""
DEPTH = 5


def explore(policy: str, limits: Limits, tunables: str = "") -> Explored:
    source = Path("policies") / f"{policy}.c"
    build_once("explorer", EXPLORED=str(source))
    return explored.run(ROOT / source, explored.words_of(ROOT / source), policy, tunables, limits)


@pytest.mark.parametrize("slice_ticks", [1, 3])
def test_no_sequence_breaks_a_rule_of_round_robin(slice_ticks: int) -> None:
    """Of any length: there are no other states."""
    found = explore("rr", Limits(tasks=3, memory_mib=64), f"slice={slice_ticks}")
    assert found.end == "complete"
    assert found.states == {1: 1_067, 3: 7_647}[slice_ticks]


@pytest.mark.parametrize(
    "policy",
    [
        policy if policy in QUICK else pytest.param(policy, marks=pytest.mark.long)
        for policy in SHIPPED
        if policy != "rr"
    ],
)
def test_no_short_sequence_breaks_a_rule(policy: str) -> None:
    found = explore(policy, Limits(tasks=3, depth=DEPTH, memory_mib=64))
    assert (found.end, found.depth) == ("depth", DEPTH)
    assert found.states > 100
