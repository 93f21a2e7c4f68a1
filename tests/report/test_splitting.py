# SPDX-License-Identifier: MIT
"""Tests that a long page becomes an index and pages without losing content."""

from __future__ import annotations

import polars as pl

from schedlab.report.build import FIGURES_MAX, split_page
from schedlab.report.model import Cell, Column, Page, Section, Table, Text, Trial
from schedlab.report.trials import PAGE_TRIAL

LARGE, SMALL = FIGURES_MAX, 1
"""Numbers of tables."""


def table(name: str) -> Table:
    columns = (Column("policy"), Column("mean"))
    return Table(name, name, columns, ((Cell("rr"), Cell("1.0")),), pl.DataFrame({"x": [1]}))


def section(name: str, count: int, *below: Section) -> Section:
    tables = (table(f"{name}-{number}") for number in range(count))
    return Section(name.title(), (Text("Words."), *tables), below)


def names(page: Page) -> list[str]:
    return [block.name for block in page.blocks() if isinstance(block, Table)]


def test_the_largest_sections_have_pages_to_which_the_index_leads() -> None:
    page_sections = (
        section("first", LARGE - 1),
        section("large", LARGE),
        section("low", SMALL),
        section("big", LARGE),
    )
    page = Page("p", "Page", "Lead.", page_sections)
    index, large, big = split_page(page)
    assert len(names(index)) == LARGE
    assert sorted(names(index) + names(large) + names(big)) == sorted(names(page))
    assert [page_section.title for page_section in index.sections] == [
        "First",
        "Large",
        "Low",
        "Big",
    ]
    (text,) = index.sections[1].blocks
    assert isinstance(text, Text)
    assert text.markdown.startswith("[Large](#p-large)")
    assert f"{LARGE} tables" in text.markdown
    assert (large.name, large.above) == ("p-large", "p")
    assert "[Page](#p)" in large.lead


def test_links_of_captions_lead_somewhere_on_all_pages() -> None:
    """A part has the trials of its captions, but not the trial below the lead."""
    hog_trial = Trial("`hog` under `rr`", ("rr",), 1, 1, 10_000_000, "hog")
    sections = (section("first", LARGE), section("large", LARGE))
    page = Page("p", "Page", "Lead.", sections, trials={PAGE_TRIAL: hog_trial, "s3-cpu": hog_trial})
    index, large = split_page(page)
    assert set(index.trials) == {PAGE_TRIAL, "s3-cpu"}
    assert set(large.trials) == {"s3-cpu"}
