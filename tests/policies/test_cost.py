# SPDX-License-Identifier: MIT
"""What enqueue and pick cost grows with the number of tasks no faster than promised."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from policy_build import run

from schedlab.build import build
from schedlab.machines.spike import find_spike
from schedlab.paths import ROOT

PROGRAM = Path("build/policy_cost.elf")
CONSTANT = {"rr", "priority", "mlfq", "wrr"}
LOGARITHMIC = {"lottery", "stride"}

pytestmark = [pytest.mark.spike, pytest.mark.xdist_group("policy-cost")]

Costs = dict[tuple[str, str, int], int]


@pytest.fixture(scope="module")
def costs() -> Costs:
    """Instructions by row, policy and number of tasks."""
    build(str(PROGRAM))
    command = [find_spike().path, "-m64", "--isa=rv64imac_zicsr_zicntr", str(ROOT / PROGRAM)]
    first, second = run(*command), run(*command)
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    rows = re.findall(r"^bench (\S+) (\S+) (\d+) (\d+)$", first.stdout, re.MULTILINE)
    return {(row, policy, int(tasks)): int(cost) for row, policy, tasks, cost in rows}


def test_cost_grows_no_faster_than_promised(costs: Costs) -> None:
    policies = {policy for _, policy, _ in costs}
    assert "rr" in policies
    for policy in policies & CONSTANT:
        few = costs["enqueue+pick", policy, 64]
        many = costs["enqueue+pick", policy, 4096]
        assert many <= 1.1 * few, f"{policy} is not O(1): {few} and {many} instructions"
    for policy in policies & LOGARITHMIC:
        few = costs["enqueue+pick", policy, 64]
        many = costs["enqueue+pick", policy, 4096]
        assert many <= 2 * few, f"{policy} is not O(log n): {few} and {many} instructions"


def test_a_table_scan_costs_as_much_as_there_are_tasks(costs: Costs) -> None:
    few = costs["enqueue+pick", "rr:table-scan", 64]
    assert costs["enqueue+pick", "rr:table-scan", 4096] > 20 * few
