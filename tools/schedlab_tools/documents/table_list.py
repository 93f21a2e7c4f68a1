# SPDX-License-Identifier: MIT
"""The list of tables that docs/tables.md has."""

from __future__ import annotations

from schedlab.analysis.tables import DESCRIBED

PART = "tables"
"""The name of the marked part."""


def block() -> str:
    """Returns the part: a section for each table, from what schedlab.analysis.tables says of it."""
    sections = []
    for table in DESCRIBED.values():
        rows = [f"| `{each.name}` | {each.type_} | {each.meaning} |" for each in table.columns]
        head = [
            f"### {table.name}",
            "",
            f"A row: {table.row}.",
            "",
            "| column | | |",
            "|---|---|---|",
        ]
        sections.append("\n".join([*head, *rows]))
    return "\n\n" + "\n\n".join(sections) + "\n\n"
