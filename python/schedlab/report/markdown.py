# SPDX-License-Identifier: MIT
"""Writes a report as one Markdown document, for a paper's appendix."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from schedlab.base.display.markdown import literal
from schedlab.report import files
from schedlab.report.layout import column_heading, fit_table
from schedlab.report.markup import title_markdown, without_html, without_trials
from schedlab.report.model import Block, Cell, Chart, Page, Report, Section, Table, Text
from schedlab.report.numbering import TONE_SIGNS, Numbering, number_notes, used_tones

DOCUMENT_FILE = "report.md"


def write_document(report: Report, folder: Path) -> Path:
    """Writes the document next to the existing `files`."""
    path = folder / DOCUMENT_FILE
    path.write_text(_Document(report).text())
    return path


class _Document:
    """Writes a report as one Markdown document."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.numbering = Numbering(report)

    def text(self) -> str:
        return "\n\n".join(part for part in self._parts() if part) + "\n"

    def _parts(self) -> Iterator[str]:
        """Yields the parts of the document, which blank lines separate."""
        yield f"# {title_markdown(self.report.title)}"
        for page in self.report.pages:
            yield from self._page(page)
        yield "---"
        yield "\n".join(
            f"- {literal(name)}: {literal(value)}" for name, value in self.report.facts.items()
        )

    def _page(self, page: Page) -> Iterator[str]:
        yield f"{_anchor(page.name)}\n\n## {title_markdown(page.title)}"
        yield self._markdown(page.lead)
        menu = self.report.menu
        if page is menu[0] and len(menu) > 1:
            yield "\n".join(
                f"- [{title_markdown(other.title)}](#{other.name})" for other in menu[1:]
            )
        for section in page.sections:
            yield from self._section(section, 3)

    def _section(self, section: Section, level: int) -> Iterator[str]:
        """Yields the parts of a section. `level`: the level of its heading."""
        yield f"{'#' * level} {title_markdown(section.title)}" if section.title else ""
        for block in section.blocks:
            yield from self._block(block)
        for below in section.sections:
            yield from self._section(below, min(level + 1, 6))

    def _block(self, block: Block) -> Iterator[str]:
        """Yields the parts of a text, table or chart."""
        if isinstance(block, Text):
            text = self._markdown(block.markdown)
            yield text if block.tone == "plain" else _quote_text(text)
            return
        yield _anchor(block.name)
        for shown in block.on_paper if isinstance(block, Chart) else (block,):
            yield from self._figure(shown)

    def _figure(self, block: Table | Chart) -> Iterator[str]:
        """Yields the label, the content and the files of a table or chart."""
        yield f"**{self.numbering.labels[block.name]}.** {title_markdown(block.title)}"
        if isinstance(block, Table):
            yield self._table(fit_table(block))
        else:
            address = f"{files.FILES_FOLDER}/{block.name}.svg"
            yield f"![{literal(block.description)}]({address})"
        yield self._markdown(block.caption)
        yield _file_links(block)

    def _markdown(self, text: str) -> str:
        """Returns text unchanged: anchors have the names of their
        blocks, so links need no change.
        """
        return without_html(without_trials(text))

    def _table(self, table: Table) -> str:
        notes = number_notes(table)
        lines = [
            _table_line(title_markdown(column_heading(column)) for column in table.columns),
            _table_line("---" if column.align == "left" else "---:" for column in table.columns),
        ]
        for number, row in enumerate(table.rows):
            if number in table.sections:
                lines.append(_table_line("" for _ in table.columns))
            lines.append(_table_line(_cell_markdown(cell, table.name, notes) for cell in row))
        parts = ["\n".join(lines)]
        tones = used_tones(table)
        if tones:
            parts.append(", ".join(f"{sign} {meaning}" for sign, meaning in tones.items()))
        parts += [
            f"[^{table.name}-{number}]: {_one_line(self._markdown(why))}"
            for why, number in notes.items()
        ]
        return "\n\n".join(parts)


def _anchor(name: str) -> str:
    """Returns an HTML anchor to which links to the name lead."""
    return f'<a id="{name}"></a>'


def _cell_markdown(cell: Cell, table: str, notes: dict[str, int]) -> str:
    text = literal(cell.text)
    text = f"[{text}]({cell.link})" if cell.link else text
    sign = f"{TONE_SIGNS[cell.tone]} " if cell.tone in TONE_SIGNS else ""
    mark = f"[^{table}-{notes[cell.why]}]" if cell.why else ""
    return f"{sign}{text}{mark}"


def _table_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _quote_text(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _file_links(block: Table | Chart) -> str:
    """Returns links to the files of a table or chart."""
    kinds: Sequence[str] = files.DATA_KINDS
    if isinstance(block, Chart):
        kinds = (*files.PICTURE_KINDS, *files.DATA_KINDS)
    links = (f"[{kind.upper()}]({files.FILES_FOLDER}/{block.name}.{kind})" for kind in kinds)
    return " · ".join(links)
