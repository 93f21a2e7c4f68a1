# SPDX-License-Identifier: MIT
"""Tests the Linux verifier's demands on a policy against its BPF object, without Linux."""

from __future__ import annotations

from pathlib import Path

import pytest

from mistaken_policy import SOURCE, line_of
from schedlab.base.toolchain.verifier import estimate_hook_costs
from schedlab.errors import RuleBroken


def test_an_unguarded_loop_is_named_with_its_line() -> None:
    with pytest.raises(RuleBroken) as error:
        estimate_hook_costs(SOURCE)
    assert "mistaken_search() has a loop without LOOP_GUARD, at tests/mistakes/mistaken.c:" in str(
        error.value
    )
    line = int(str(error.value).rpartition(":")[2])
    assert line_of("POLICY_FUNCTION void mistaken_search") < line <= line_of("state->turns[0]++")


def test_a_loop_within_a_loop_is_named_with_both_lines_and_costs_more(tmp_path: Path) -> None:
    """For example, each task's turn searches all tasks; the inner loop may be in a function."""
    costs = {}
    for name, turns in (("single", "1"), ("nested", "each->slot")):
        source = tmp_path / f"{name}.c"
        text = SOURCE.read_text().replace("policy_mistaken", f"policy_{name}")
        inner = f"""
    task_t *each = state->tasks.first;
    uint64_t count = LOOP_START(0);
    for (; each && LOOP_GUARD; each = each->next)
        for (count = LOOP_START(0); count < {turns} && LOOP_GUARD; count++)
            state->turns[1] += each->slot ^ count;
"""
        begin, end = (
            text.index("    task_t *task = state->tasks.first;"),
            text.index("POLICY_FUNCTION task_t *mistaken_pick"),
        )
        source.write_text(text[:begin] + inner + "}\n\n" + text[end:])
        costs[name] = next(cost for cost in estimate_hook_costs(source) if cost.hook == "pick")
    lines = (tmp_path / "nested.c").read_text().splitlines()
    outer = next(n for n, line in enumerate(lines, 1) if "each = each->next" in line)
    assert [int(place.rpartition(":")[2]) for place in costs["nested"].loops] == [outer, outer + 1]
    assert len(costs["single"].loops) == 1
    assert costs["nested"].instructions > costs["single"].instructions
