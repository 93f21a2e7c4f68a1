# SPDX-License-Identifier: MIT
"""A long page becomes an index and pages, and loses nothing by it."""

from __future__ import annotations

import polars as pl

from schedlab.report.model import Cell, Column, Page, Section, Table, Text
from schedlab.report.splitting import divided

TALL, SHORT = 300, 5
"""Rows of 30 pixels."""


def table(name: str, rows: int, is_list: bool = False) -> Table:
    row = (Cell("rr"), Cell("1.0 [0.9, 1.1]"))
    columns = (Column("policy"), Column("mean"))
    return Table(name, name, columns, (row,) * rows, pl.DataFrame({"x": [1]}), is_list=is_list)


def section(name: str, rows: int, *below: Section) -> Section:
    return Section(name.title(), (Text("Words."), table(name, rows)), below)


def names(page: Page) -> list[str]:
    return [block.name for block in page.blocks() if isinstance(block, Table)]


def test_a_page_that_is_not_long_stays_as_it_is() -> None:
    page = Page("p", "Page", "Lead.", tuple(section(f"s{n}", SHORT) for n in range(9)))
    assert divided(page) == [page]


def test_the_tallest_sections_have_pages_to_which_the_index_leads() -> None:
    own = (
        section("first", TALL),
        section("tall", TALL),
        section("low", SHORT),
        section("big", TALL),
    )
    index, tall, big = divided(Page("p", "Page", "Lead.", own))
    assert [names(each) for each in (index, tall, big)] == [["first", "low"], ["tall"], ["big"]]
    assert [each.title for each in index.sections] == ["First", "Tall", "Low", "Big"]
    (text,) = index.sections[1].blocks
    assert isinstance(text, Text)
    assert text.markdown == "[Tall](#p-tall), on a page of its own: 1 table."
    assert (tall.name, tall.above) == ("p-tall", "p")
    assert tall.lead == "A part of [Page](#p): 1 table."


def test_a_part_that_is_long_itself_is_divided_again() -> None:
    below = tuple(section(f"b{n}", TALL) for n in range(4))
    pages = divided(
        Page("p", "Page", "Lead.", (section("first", SHORT), section("all", 0, *below)))
    )
    assert {each.above for each in pages} == {"", "p"}
    assert sorted(name for each in pages for name in names(each)) == sorted(
        ["first", "all", "b0", "b1", "b2", "b3"]
    )
    assert len({each.name for each in pages}) == len(pages) > 3


def test_a_list_counts_as_tall_as_it_is_shown() -> None:
    page = Page("p", "Page", "", (Section("One", (table("l", 5000, is_list=True),)),))
    assert divided(page) == [page]
