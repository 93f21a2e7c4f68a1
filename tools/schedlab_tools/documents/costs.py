# SPDX-License-Identifier: MIT
"""Writes the table of what decisions cost into docs/policies.md, and draws it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from schedlab.paths import ROOT
from schedlab.report.charts.theme import policy_look
from schedlab_tools.documents.marked_parts import marked, with_marked, write

DOCUMENT = ROOT / "docs" / "policies.md"
PICTURE = ROOT / "docs" / "policies-cost.svg"
PART = "costs"
TASKS = (8, 64, 512, 4096)
"""Numbers of waiting tasks: the columns of the table."""


def printed() -> dict[str, list[int]]:
    """Returns the instructions in the document's table, by policy, one per number of tasks."""
    rows = re.findall(r"^\| `(\S+)` \| (.+) \|$", marked(DOCUMENT.read_text(), PART), re.MULTILINE)
    return {
        policy: [int(cell.replace(",", "")) for cell in row.split(" | ")] for policy, row in rows
    }


def make(costs_by_policy: Mapping[str, Sequence[int]]) -> None:
    """Writes the table and its picture."""
    head = f"| policy | {' | '.join(f'{count:,} tasks' for count in TASKS)} |"
    rows = [
        f"| `{policy}` | {' | '.join(f'{cost:,}' for cost in row)} |"
        for policy, row in costs_by_policy.items()
    ]
    table = "\n".join([head, f"|---|{'---|' * len(TASKS)}", *rows])
    write(DOCUMENT, with_marked(DOCUMENT.read_text(), PART, f"\n{table}\n"))
    write(PICTURE, picture(costs_by_policy))


def picture(costs_by_policy: Mapping[str, Sequence[int]]) -> str:
    """Returns an SVG with a line per policy, in the colours and dashes of all charts."""
    import altair as alt
    import polars as pl
    import vl_convert

    drawn_as = [policy_look(policy) for policy in costs_by_policy]
    rows = [
        {"policy": policy, "tasks": tasks, "instructions": cost}
        for policy, row in costs_by_policy.items()
        for tasks, cost in zip(TASKS, row, strict=True)
    ]
    chart = (
        alt.Chart(pl.DataFrame(rows), width=560, height=360)
        .mark_line(point=True)
        .encode(
            alt.X("tasks:Q", title="tasks that wait").scale(type="log", base=8).axis(values=TASKS),
            alt.Y("instructions:Q", title="instructions of enqueue() and pick()").scale(type="log"),
            alt.Color("policy:N", sort=None).scale(
                domain=list(costs_by_policy), range=[style.colour for style in drawn_as]
            ),
            alt.StrokeDash("policy:N", sort=None).scale(
                domain=list(costs_by_policy), range=[list(style.dash) for style in drawn_as]
            ),
        )
        .configure_legend(columns=2, symbolLimit=len(costs_by_policy))
    )
    return str(vl_convert.vegalite_to_svg(chart.to_dict()))
