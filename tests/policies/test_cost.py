# SPDX-License-Identifier: MIT
"""Tests `./schedlab dev bench`: the cost of enqueue and pick grows with the number of tasks
as promised, and the kernel's operations meet their targets.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import Any

import pytest

from committed_policies import policies_in_progress
from conftest import Command
from schedlab.paths import ROOT
from schedlab_tools.benchmarks.simulator import decision_instructions
from schedlab_tools.budgets import DECISION, exceeded, read_budgets

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
"""The maximum cost of enqueue and pick with 4,096 tasks, relative to 64 tasks: O(1) or O(log n)."""

Costs = dict[tuple[str, int], int]


@pytest.fixture(scope="module")
def benchmark(schedlab: Command) -> dict[str, Any]:
    """Returns the command's output and status. It runs once, because the policies take 20 CPU
    seconds.
    """
    result = schedlab("dev", "bench", "--json", timeout=600)
    output: dict[str, Any] = json.loads(result.stdout)
    return {**output, "status": result.returncode}


@pytest.fixture(scope="module")
def costs(benchmark: dict[str, Any]) -> Costs:
    """Returns instructions by policy and number of tasks."""
    return {
        (row["policy"], int(tasks)): cost
        for row in benchmark["policies"]
        for tasks, cost in row["mean"].items()
    }


def test_benchmark_meets_its_aims_or_names_the_missed_ones(benchmark: dict[str, Any]) -> None:
    measured = {row["name"] for row in benchmark["operations"]}
    expected = set(json.loads((ROOT / "bench" / "baselines.json").read_text())["rows"])
    assert measured >= expected
    assert not [row for row in benchmark["operations"] if "worse" in row["verdict"]]
    (rr,) = (row for row in benchmark["policies"] if row["policy"] == "rr")
    assert rr["verdict"] == "met"
    assert benchmark["tracing"]["cost"] <= benchmark["tracing"]["aim"] == 0.03
    assert benchmark["decoding"] == []
    verdicts = [row["verdict"] for row in (*benchmark["operations"], *benchmark["policies"])]
    assert benchmark["status"] == (0 if set(verdicts) <= {"", "met"} else 1)


@pytest.mark.parametrize("policy", GROWTH_ALLOWED)
def test_cost_grows_no_faster_than_promised(costs: Costs, policy: str) -> None:
    few, many = costs[policy, 64], costs[policy, 4096]
    assert many <= GROWTH_ALLOWED[policy] * few


def test_table_scan_costs_grow_with_tasks(costs: Costs) -> None:
    assert costs["rr:table-scan", 4096] > 20 * costs["rr:table-scan", 64]


OPERATIONS = ROOT / "studies" / "5" / "operations.csv"
OPERATION_GROWTH = {
    "wrr:arrays": 1.1,
    "wrr:linux": 1.1,
    "cfs": 2.5,
    "lottery:linux": 2.5,
    "lottery:equal-lfsr": 64.0,
}
"""The maximum cost of each operation with 4,096 tasks, relative to 64: O(1), O(log n), O(n)."""


def test_study_5_shows_what_each_operation_costs(benchmark: dict[str, Any]) -> None:
    """SCHEDLAB_GOLDEN=write rewrites the file. A constant cost must not grow, another must."""
    rows = [row for row in benchmark["policies"] if row["policy"] in OPERATION_GROWTH]
    costs = {
        (row["policy"], operation): (by_tasks["64"], by_tasks["4096"])
        for row in rows
        for operation, by_tasks in row["operations"].items()
    }
    assert {name for _, name in costs} == {"pick", "enqueue", "dequeue", "change"}
    for (policy, operation), (few, many) in costs.items():
        assert many <= OPERATION_GROWTH[policy] * few, (policy, operation)
    few, many = costs["lottery:equal-lfsr", "pick"]
    assert many > 20 * few
    if os.environ.get("SCHEDLAB_GOLDEN") == "write":
        lines = [f"{','.join(name)},{few},{many}" for name, (few, many) in costs.items()]
        OPERATIONS.write_text("\n".join(["policy,operation,64 tasks,4096 tasks", *lines, ""]))
    rows_stored = [line.split(",") for line in OPERATIONS.read_text().splitlines()[1:]]
    stored = {(policy, name): (int(few), int(many)) for policy, name, few, many in rows_stored}
    assert stored.keys() == costs.keys()
    for name, cost in costs.items():
        assert stored[name] == pytest.approx(cost, rel=0.01), name


def test_kernel_and_policies_keep_to_their_budgets(benchmark: dict[str, Any], costs: Costs) -> None:
    """If this fails, make it faster, or decide for the new counts: `./schedlab dev bench --write`,
    then `./schedlab dev docs costs`.
    """
    kernel = {("kernel", row["name"], 0): row["instructions"] for row in benchmark["operations"]}
    decisions = {(policy, DECISION, tasks): count for (policy, tasks), count in costs.items()}
    simulator = {key: count for key, count in read_budgets().items() if key[0] == "simulator"}
    assert simulator
    assert exceeded(kernel | decisions | simulator, policies_in_progress()) == []


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind")
def test_the_simulator_keeps_to_its_budgets() -> None:
    budgets = read_budgets()
    measured = decision_instructions()
    assert measured.keys() == {key for key in budgets if key[0] == "simulator"}
    assert exceeded(budgets | measured) == []


def test_a_count_that_changes_by_more_than_a_hundredth_is_named() -> None:
    budgets = read_budgets()
    key = ("kernel", "fork-exit-wait", 0)
    allowed = budgets[key] // 100
    for change in (allowed, -allowed):
        assert exceeded(budgets | {key: budgets[key] + change}) == []
    for change in (allowed + 1, -allowed - 1):
        assert "fork-exit-wait" in exceeded(budgets | {key: budgets[key] + change})[0]
    assert "no before" in exceeded(budgets | {("kernel", "other", 0): 1})[0].replace(
        "instructions, ", ""
    )
    without = {other: count for other, count in budgets.items() if other != key}
    assert "no instructions" in exceeded(without)[0]
