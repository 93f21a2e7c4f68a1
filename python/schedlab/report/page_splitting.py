# SPDX-License-Identifier: MIT
"""Splits long pages: each of the largest sections moves to a separate
page, and an index links them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from schedlab.base.display.names import slug
from schedlab.base.display.numbers import counted
from schedlab.report.markup import title_markdown
from schedlab.report.model import Block, Chart, Page, Section, Table, Text
from schedlab.report.trials import NAME
from schedlab.report.wording import listed

FIGURES_MAX = 20
"""Maximum number of tables and charts of a page. Pages with more are split."""


def divided(page: Page) -> list[Page]:
    """Returns the pages that replace a page: the page itself if it is short, otherwise an index and the parts."""
    moved = _moved(page.sections)
    if not moved:
        return [page]
    parts = {number: _part(page, page.sections[number]) for number in sorted(moved)}
    index = replace(
        page,
        sections=tuple(
            _leading_to(parts[number], section) if number in parts else section
            for number, section in enumerate(page.sections)
        ),
    )
    return [index, *(part_section for part in parts.values() for part_section in divided(part))]


def _moved(sections: Sequence[Section]) -> set[int]:
    """Returns the indices of the sections to move, largest first, until the rest is short.

    The first section stays, because it introduces the page. Sections with a single table or chart
    also stay.
    """
    sizes = {number: len(_figures(section)) for number, section in enumerate(sections)}
    rest, moved = sum(sizes.values()), set()
    for number in sorted(list(sizes)[1:], key=lambda number: -sizes[number]):
        if rest <= FIGURES_MAX or sizes[number] < 2:
            break
        rest -= sizes[number]
        moved.add(number)
    return moved


def _figures(section: Section) -> list[Block]:
    blocks = Page("", "", "", (section,)).blocks()
    return [block for block in blocks if not isinstance(block, Text)]


def _part(page: Page, section: Section) -> Page:
    subsections = (Section("", section.blocks),) if section.blocks else ()
    return Page(
        f"{page.name}-{slug(section.title)}",
        section.title,
        f"A part of [{title_markdown(page.title)}](#{page.name}): {_counted(section)}.",
        (*subsections, *section.sections),
        above=page.above or page.name,
        trials={name: trial for name, trial in page.trials.items() if name != NAME},
    )


def _leading_to(part: Page, section: Section) -> Section:
    within = [title_markdown(subsection.title) for subsection in section.sections]
    sentence = f" It has {listed(within)}." if within else ""
    link = f"[{title_markdown(part.title)}](#{part.name})"
    return Section(
        section.title, (Text(f"{link}, on a separate page: {_counted(section)}.{sentence}"),)
    )


def _counted(section: Section) -> str:
    figures = _figures(section)
    tables = sum(isinstance(figure, Table) for figure in figures)
    charts = sum(isinstance(figure, Chart) for figure in figures)
    return listed(
        [
            counted(number, what)
            for number, what in ((tables, "table"), (charts, "picture"))
            if number
        ]
    )
