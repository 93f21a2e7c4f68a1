# SPDX-License-Identifier: MIT
"""What enqueue and pick cost grows with the number of tasks no faster than promised."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from policy_build import run
from schedlab.machines import Boot
from schedlab.machines.spike import Spike
from schedlab.paths import ROOT
from schedlab.toolchain.build import build

PROGRAM = Path("build/policy_cost.elf")

pytestmark = [pytest.mark.spike, pytest.mark.xdist_group("policy-cost")]

GROWTH_ALLOWED = {
    "rr": 1.02,
    "wrr": 1.1,
    "priority": 1.1,
    "mlfq": 1.1,
    "lottery": 2.0,
    "stride": 2.0,
    "cfs": 2.0,
}
"""What enqueue and pick may cost with 4,096 tasks, over their cost with 64: O(1) or O(log n)."""

Costs = dict[tuple[str, str, int], int]


@pytest.fixture(scope="module")
def costs() -> Costs:
    """Instructions by row, policy and number of tasks."""
    build(str(PROGRAM))
    command = Spike().command(Boot(ROOT / PROGRAM, None, 1, 64, "", traced=False))
    first, second = run(*command), run(*command)
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    rows = re.findall(r"^bench (\S+) (\S+) (\d+) (\d+)$", first.stdout, re.MULTILINE)
    return {(row, policy, int(tasks)): int(cost) for row, policy, tasks, cost in rows}


@pytest.mark.parametrize("policy", GROWTH_ALLOWED)
def test_cost_grows_no_faster_than_promised(costs: Costs, policy: str) -> None:
    few = costs["enqueue+pick", policy, 64]
    many = costs["enqueue+pick", policy, 4096]
    assert many <= GROWTH_ALLOWED[policy] * few


def test_a_table_scan_costs_as_much_as_there_are_tasks(costs: Costs) -> None:
    few = costs["enqueue+pick", "rr:table-scan", 64]
    assert costs["enqueue+pick", "rr:table-scan", 4096] > 20 * few
