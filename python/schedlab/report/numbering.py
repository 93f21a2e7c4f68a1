# SPDX-License-Identifier: MIT
"""Numbers a report's tables, figures and footnotes, and defines the
signs of cells, for all formats.
"""

from schedlab.report.model import Chart, Page, Report, Table, Tone

TONE_SIGNS: dict[Tone, str] = {"good": "✓", "bad": "≠", "failed": "✕"}
"""Signs before a cell's text."""
TONE_MEANINGS: dict[Tone, str] = {
    "good": "near its ideal",
    "bad": "off its ideal",
    "failed": "a run failed",
}


def used_tones(table: Table) -> dict[str, str]:
    """Returns sign and meaning of each tone with a sign that the table uses, in a fixed order."""
    table_tones = {cell.tone for row in table.rows for cell in row}
    return {
        TONE_SIGNS[tone]: tone_meaning(table, tone) for tone in TONE_SIGNS if tone in table_tones
    }


def tone_meaning(table: Table, tone: Tone) -> str:
    """Returns the meaning of a tone in this table."""
    return table.meanings.get(tone, TONE_MEANINGS[tone])


class Numbering:
    """Numbers the tables and figures of a whole report."""

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
        """Returns the page that contains a table or chart."""
        return self._pages.get(name)


def number_notes(table: Table) -> dict[str, int]:
    """Returns the footnotes of a table's cells in reading order. Equal texts share one number."""
    reasons = (cell.why for row in table.rows for cell in row if cell.why)
    return {why: number for number, why in enumerate(dict.fromkeys(reasons), start=1)}
