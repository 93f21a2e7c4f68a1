# SPDX-License-Identifier: MIT
"""Splits long pages: each of the largest sections moves to a separate
page, and an index links them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from schedlab.base.display.names import slug
from schedlab.base.display.numbers import format_count
from schedlab.report.markup import title_markdown
from schedlab.report.model import Block, Chart, Page, Section, Table, Text
from schedlab.report.trials import PAGE_TRIAL
from schedlab.report.wording import listed

FIGURES_MAX = 20
"""Maximum number of tables and charts of a page. Pages with more are split."""


def split_page(page: Page) -> list[Page]:
    """Returns the pages that replace a page: the page itself if it is short, otherwise an index and the parts."""
    moved_numbers = _choose_moved_sections(page.sections)
    if not moved_numbers:
        return [page]
    pages = {number: _part_page(page, page.sections[number]) for number in sorted(moved_numbers)}
    index = replace(
        page,
        sections=tuple(
            _link_section(pages[number], section) if number in pages else section
            for number, section in enumerate(page.sections)
        ),
    )
    return [index, *(part_section for part in pages.values() for part_section in split_page(part))]


def _choose_moved_sections(sections: Sequence[Section]) -> set[int]:
    """Returns the indices of the sections to move, largest first, until the rest is short.

    The first section stays, because it introduces the page. Sections with a single table or chart
    also stay.
    """
    sizes = {number: len(_figures(section)) for number, section in enumerate(sections)}
    remaining, moved = sum(sizes.values()), set()
    for number in sorted(list(sizes)[1:], key=lambda number: -sizes[number]):
        if remaining <= FIGURES_MAX or sizes[number] < 2:
            break
        remaining -= sizes[number]
        moved.add(number)
    return moved


def _figures(section: Section) -> list[Block]:
    """Returns the tables and charts of a section."""
    section_blocks = Page("", "", "", (section,)).blocks()
    return [block for block in section_blocks if not isinstance(block, Text)]


def _part_page(page: Page, section: Section) -> Page:
    """Returns the page to which a section moves."""
    subsections = (Section("", section.blocks),) if section.blocks else ()
    return Page(
        f"{page.name}-{slug(section.title)}",
        section.title,
        f"A part of [{title_markdown(page.title)}](#{page.name}): {_count_figures(section)}.",
        (*subsections, *section.sections),
        above=page.above or page.name,
        trials={name: trial for name, trial in page.trials.items() if name != PAGE_TRIAL},
    )


def _link_section(part: Page, section: Section) -> Section:
    """Returns the section that replaces a moved section and links to its page."""
    subsection_titles = [title_markdown(subsection.title) for subsection in section.sections]
    sentence = f" It has {listed(subsection_titles)}." if subsection_titles else ""
    link = f"[{title_markdown(part.title)}](#{part.name})"
    return Section(
        section.title, (Text(f"{link}, on a separate page: {_count_figures(section)}.{sentence}"),)
    )


def _count_figures(section: Section) -> str:
    """Returns in words how many tables and charts the section has."""
    figures = _figures(section)
    tables = sum(isinstance(figure, Table) for figure in figures)
    charts = sum(isinstance(figure, Chart) for figure in figures)
    return listed(
        [
            format_count(number, what)
            for number, what in ((tables, "table"), (charts, "picture"))
            if number
        ]
    )
