# SPDX-License-Identifier: MIT
"""Long pages become an index and pages: each of the longest sections has a page of its own, linked by the index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from schedlab.display.names import slug
from schedlab.report import layout
from schedlab.report.markup import title_markdown
from schedlab.report.model import Block, Chart, Page, Section, Table, Text
from schedlab.report.wording import counted, listed

LONG = 25_000
"""A page that is about this tall, in pixels where a window is 1440 wide, is divided."""
_REST = 12_000
"""So tall an index may be."""
LIST_ROWS = 100
"""The number of a list's rows that a page shows at first; as in templates/report.js."""
_WORTH = 1_500
"""A section that is less tall has no page of its own."""
_CHART, _TABLE, _HEADING = 480, 190, 110
"""Pixels: a chart; a table apart from its rows; a heading."""
_ROW, _LINE = 30, 27
_INTERVAL = 17
"""What the interval below a number adds."""
_LETTERS = 72
"""Letters of a line of text."""


def divided(page: Page) -> list[Page]:
    """Returns the page itself if it is not long; else the index, and then its parts."""
    if _height(page.sections) <= LONG:
        return [page]
    moved = set(_to_be_moved(page.sections))
    parts = {
        number: _part(page, section)
        for number, section in enumerate(page.sections)
        if number in moved
    }
    index = replace(
        page,
        sections=tuple(
            _leading_to(parts[number], section) if number in parts else section
            for number, section in enumerate(page.sections)
        ),
    )
    return [index, *(each for part in parts.values() for each in divided(part))]


def _to_be_moved(sections: Sequence[Section]) -> Iterable[int]:
    """Yields the numbers of sections, the tallest first, until the rest is short; never the first one, in which a page
    says what it is about."""
    heights = {number: _height([section]) for number, section in enumerate(sections)}
    rest = sum(heights.values())
    for number in sorted(list(heights)[1:], key=lambda number: -heights[number]):
        if rest <= _REST or heights[number] < _WORTH:
            return
        rest -= heights[number]
        yield number


def _part(page: Page, section: Section) -> Page:
    own = (Section("", section.blocks),) if section.blocks else ()
    return Page(
        f"{page.name}-{slug(section.title)}",
        section.title,
        f"A part of [{title_markdown(page.title)}](#{page.name}): {_counted(section)}.",
        (*own, *section.sections),
        above=page.above or page.name,
    )


def _leading_to(part: Page, section: Section) -> Section:
    within = [title_markdown(each.title) for each in section.sections]
    told = f" It has {listed(within)}." if within else ""
    link = f"[{title_markdown(part.title)}](#{part.name})"
    return Section(
        section.title, (Text(f"{link}, on a page of its own: {_counted(section)}.{told}"),)
    )


def _counted(section: Section) -> str:
    blocks = list(Page("", "", "", (section,)).blocks())
    tables = sum(isinstance(each, Table) for each in blocks)
    charts = sum(isinstance(each, Chart) for each in blocks)
    told = [
        counted(number, what) for number, what in ((tables, "table"), (charts, "picture")) if number
    ]
    return listed(told) or "text"


def _height(sections: Sequence[Section]) -> int:
    """Returns about how tall sections are together."""
    return sum(
        _HEADING + sum(map(_block_height, each.blocks)) + _height(each.sections)
        for each in sections
    )


def _block_height(block: Block) -> int:
    if isinstance(block, Text):
        return _LINE * (1 + len(block.markdown) // _LETTERS)
    if isinstance(block, Chart):
        return _CHART
    table = layout.fitted(block)
    rows = min(len(table.rows), LIST_ROWS) if table.is_list else len(table.rows)
    interval = any(layout.lines(cell)[1] for row in table.rows for cell in row)
    parts = len(layout.parts(table))
    return _TABLE + parts * rows * (_ROW + (_INTERVAL if interval else 0))
