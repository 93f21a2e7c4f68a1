# SPDX-License-Identifier: MIT
"""Renders the list of SQL tables for docs/tables.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from schedlab.analysis.tables import TABLE_DESCRIPTIONS, Column

PART = "tables"
"""The name of the marked part."""


def block() -> str:
    """Returns the part: the columns that several tables share, followed by a section for each table."""
    uses = Counter(column for table in TABLE_DESCRIPTIONS.values() for column in table.columns)
    shared = {column for column, count in uses.items() if count > 1}
    sections = ["\n".join(["### Shared columns", "", *_rows(filter(shared.__contains__, uses))])]
    for table in TABLE_DESCRIPTIONS.values():
        common = ", ".join(f"`{column.name}`" for column in table.columns if column in shared)
        lines = [f"### {table.name}", "", f"A row: {table.row}. Shared columns: {common}."]
        special = [column for column in table.columns if column not in shared]
        if special:
            lines += ["", *_rows(special)]
        sections.append("\n".join(lines))
    return "\n\n" + "\n\n".join(sections) + "\n\n"


def _rows(columns: Iterable[Column]) -> list[str]:
    """Returns a row of a Markdown table for each column."""
    rows = [f"| `{column.name}` | {column.type_} | {column.meaning} |" for column in columns]
    return ["| column | type | meaning |", "|---|---|---|", *rows]
