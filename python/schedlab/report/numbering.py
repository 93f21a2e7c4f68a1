# SPDX-License-Identifier: MIT
"""The numbers of a report's tables, figures and footnotes, and the signs of its cells, whatever it is written as."""

from __future__ import annotations

from schedlab.report.model import Chart, Page, Report, Table, Tone

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


class Numbering:
    """Tables and figures are counted through the whole report."""

    def __init__(self, report: Report) -> None:
        self.labels: dict[str, str] = {}
        """Labels by name: `Table 3`, `Figure 1`."""
        self.blocks: dict[str, Table | Chart] = {}
        """Tables and charts by name."""
        self._pages: dict[str, Page] = {}
        tables = figures = 0
        for page in report.pages:
            for block in page.blocks():
                if isinstance(block, Table):
                    tables += 1
                    self.labels[block.name] = f"Table {tables}"
                elif isinstance(block, Chart):
                    figures += 1
                    self.labels[block.name] = f"Figure {figures}"
                    for number, still in enumerate(block.still, start=1):
                        self.labels[still.name] = f"Figure {figures}.{number}"
                        self._pages[still.name] = page
                else:
                    continue
                self.blocks[block.name] = block
                self._pages[block.name] = page

    def page_of(self, name: str) -> Page | None:
        """Returns the page on which a table or chart stands."""
        return self._pages.get(name)


def numbered_notes(table: Table) -> dict[str, int]:
    """The footnotes of its cells, in reading order; the same words are one."""
    words = (cell.why for row in table.rows for cell in row if cell.why)
    return {why: number for number, why in enumerate(dict.fromkeys(words), start=1)}
