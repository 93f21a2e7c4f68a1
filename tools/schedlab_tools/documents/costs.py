# SPDX-License-Identifier: MIT
"""Writes the table of what decisions cost into docs/policies.md, and draws it."""

from collections.abc import Mapping

from schedlab.paths import ROOT
from schedlab.report.charts.theme import policy_look
from schedlab_tools.budgets import decision_costs
from schedlab_tools.documents.marked_parts import with_marked, write

DOCUMENT = ROOT / "docs" / "policies.md"
PICTURE = ROOT / "docs" / "policies-cost.svg"
PART = "costs"
TASKS = (8, 64, 512, 4096)
"""Numbers of waiting tasks: the columns of the table."""


def make() -> None:
    """Writes the table and its picture."""
    costs = decision_costs()
    write(DOCUMENT, with_marked(DOCUMENT.read_text("utf-8"), PART, table(costs)))
    write(PICTURE, picture(costs))


def table(costs: Mapping[str, Mapping[int, int]]) -> str:
    """Returns the table, from the instructions by policy and number of tasks."""
    head = f"| policy | {' | '.join(f'{count:,} tasks' for count in TASKS)} |"
    rows = [
        f"| `{policy}` | {' | '.join(f'{row[tasks]:,}' for tasks in TASKS)} |"
        for policy, row in costs.items()
    ]
    return "\n".join(["", head, f"|---|{'---|' * len(TASKS)}", *rows, ""])


def picture(costs: Mapping[str, Mapping[int, int]]) -> str:
    """Returns an SVG with a line per policy, in the colours and dashes of all charts."""
    import altair as alt
    import polars as pl
    import vl_convert

    drawn_as = [policy_look(policy) for policy in costs]
    rows = [
        {"policy": policy, "tasks": tasks, "instructions": row[tasks]}
        for policy, row in costs.items()
        for tasks in TASKS
    ]
    chart = (
        alt.Chart(pl.DataFrame(rows), width=560, height=360)
        .mark_line(point=True)
        .encode(
            alt.X("tasks:Q", title="tasks that wait").scale(type="log", base=8).axis(values=TASKS),
            alt.Y("instructions:Q", title="instructions of enqueue() and pick()").scale(type="log"),
            alt.Color("policy:N", sort=None).scale(
                domain=list(costs), range=[style.colour for style in drawn_as]
            ),
            alt.StrokeDash("policy:N", sort=None).scale(
                domain=list(costs), range=[list(style.dash) for style in drawn_as]
            ),
        )
        .configure_legend(columns=2, symbolLimit=len(costs))
    )
    return str(vl_convert.vegalite_to_svg(chart.to_dict()))
