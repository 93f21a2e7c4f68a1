# SPDX-License-Identifier: MIT
"""How the tone of a cell is shown: never by its colour alone."""

from __future__ import annotations

from schedlab.report.model import Table, Tone

SIGNS: dict[Tone, str] = {"good": "✓", "bad": "≠", "failed": "✕"}
"""Signs that stand before a cell's text."""
MEANINGS: dict[Tone, str] = {
    "good": "near its ideal",
    "bad": "off its ideal",
    "failed": "a run failed",
}


def used_tones(table: Table) -> dict[str, str]:
    """Sign and meaning of each tone in it that has a sign, in a fixed order."""
    used = {cell.tone for row in table.rows for cell in row}
    return {SIGNS[tone]: meaning(table, tone) for tone in SIGNS if tone in used}


def meaning(table: Table, tone: Tone) -> str:
    """Returns what a tone says in this table."""
    return table.meanings.get(tone, MEANINGS[tone])
