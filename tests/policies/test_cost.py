# SPDX-License-Identifier: MIT
"""What enqueue and pick cost grows with the number of tasks no faster than promised."""

from __future__ import annotations

import os
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
    done = run(*command)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^bench (\S+) (\S+) (\d+) (\d+)$", done.stdout, re.MULTILINE)
    return {(row, policy, int(tasks)): int(cost) for row, policy, tasks, cost in rows}


@pytest.mark.parametrize("policy", GROWTH_ALLOWED)
def test_cost_grows_no_faster_than_promised(costs: Costs, policy: str) -> None:
    few = costs["enqueue+pick", policy, 64]
    many = costs["enqueue+pick", policy, 4096]
    assert many <= GROWTH_ALLOWED[policy] * few


def test_a_table_scan_costs_as_much_as_there_are_tasks(costs: Costs) -> None:
    few = costs["enqueue+pick", "rr:table-scan", 64]
    assert costs["enqueue+pick", "rr:table-scan", 4096] > 20 * few


PAGE = ROOT / "docs" / "policies.md"
PICTURE = ROOT / "docs" / "policies-cost.svg"
TASKS = (8, 64, 512, 4096)


def test_the_page_has_what_a_decision_costs(costs: Costs) -> None:
    """SCHEDLAB_GOLDEN=write has it written anew, with its picture."""
    policies = dict.fromkeys(policy for _, policy, _ in costs)
    found = {
        policy: [costs["enqueue+pick", policy, tasks] for tasks in TASKS] for policy in policies
    }
    if os.environ.get("SCHEDLAB_GOLDEN") == "write":
        write(found)
    between = PAGE.read_text().partition("<!-- costs -->")[2].partition("<!-- end -->")[0]
    told = re.findall(r"^\| `(\S+)` \| (.+) \|$", between, re.MULTILINE)
    printed = {
        policy: [int(each.replace(",", "")) for each in row.split(" | ")] for policy, row in told
    }
    assert printed.keys() == found.keys()
    for policy, row in found.items():
        assert printed[policy] == pytest.approx(row, rel=0.01), policy


def write(found: dict[str, list[int]]) -> None:
    head = f"| policy | {' | '.join(f'{each:,} tasks' for each in TASKS)} |\n|---|{'---|' * len(TASKS)}"
    rows = [
        f"| `{policy}` | {' | '.join(f'{each:,}' for each in row)} |"
        for policy, row in found.items()
    ]
    table = "\n".join([head, *rows])
    page = PAGE.read_text()
    PAGE.write_text(
        re.sub(
            r"(<!-- costs -->).*?(<!-- end -->)",
            lambda mark: f"{mark[1]}\n{table}\n{mark[2]}",
            page,
            flags=re.S,
        )
    )
    draw(found)


def draw(found: dict[str, list[int]]) -> None:
    """A line a policy, in the colours and dashes that policies have in all charts."""
    import altair as alt
    import polars as pl
    import vl_convert

    from schedlab.report.charts.theme import policy_look

    drawn_as = [policy_look(policy) for policy in found]
    rows = [
        {"policy": policy, "tasks": tasks, "instructions": cost}
        for policy, row in found.items()
        for tasks, cost in zip(TASKS, row, strict=True)
    ]
    chart = (
        alt.Chart(pl.DataFrame(rows), width=560, height=360)
        .mark_line(point=True)
        .encode(
            alt.X("tasks:Q", title="tasks that wait").scale(type="log", base=8).axis(values=TASKS),
            alt.Y("instructions:Q", title="instructions of enqueue() and pick()").scale(type="log"),
            alt.Color("policy:N", sort=None).scale(
                domain=list(found), range=[each.colour for each in drawn_as]
            ),
            alt.StrokeDash("policy:N", sort=None).scale(
                domain=list(found), range=[list(each.dash) for each in drawn_as]
            ),
        )
        .configure_legend(columns=2, symbolLimit=len(found))
    )
    PICTURE.write_text(vl_convert.vegalite_to_svg(chart.to_dict()))
