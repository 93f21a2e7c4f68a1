# SPDX-License-Identifier: MIT
"""Tests that tables fit their page: a split table keeps its keys and all columns, and a
single row is shown upright.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from schedlab.report import html, markdown
from schedlab.report.layout import PAGE_CHARACTERS, split_columns, width_in_characters
from schedlab.report.model import Cell, Column, Page, Report, Section, Table
from schedlab.report.numbering import Numbering

WORDS = st.text("abc", min_size=1, max_size=30)
COLUMNS = st.lists(
    st.builds(Column, WORDS, st.sampled_from(["", "", "one", "two"])), min_size=1, max_size=25
)


def of(columns: list[Column], rows: int = 2, **more: object) -> Table:
    row = tuple(Cell(f"{'x' * len(column.title)}") for column in columns)
    table = Table("wide", "Wide", tuple(columns), (row,) * rows, pl.DataFrame({"x": [1]}))
    return replace(table, **more)  # type: ignore[arg-type]


@given(COLUMNS, st.integers(1, 3))
def test_a_part_has_the_keys_and_all_parts_have_every_column_once(
    columns: list[Column], keys: int
) -> None:
    table = of(columns, keys=keys)
    key_columns = tuple(range(min(keys, len(columns))))
    table_parts = split_columns(table)
    assert all(part[: len(key_columns)] == key_columns for part in table_parts)
    others = [number for part in table_parts for number in part[len(key_columns) :]]
    assert others == list(range(len(key_columns), len(columns)))
    for part in table_parts:
        assert (
            width_in_characters(table, part) <= PAGE_CHARACTERS or len(part) <= len(key_columns) + 1
        )


def test_a_cell_leads_to_a_page_in_html_and_markdown() -> None:
    columns = [Column("workload"), Column("runs")]
    table = replace(of(columns), rows=((Cell("a", link="#other"), Cell("1")),) * 2)
    pages = (
        Page("index", "First", "", (Section("s", (table,)),)),
        Page("other", "Other", "", (), above="index"),
    )
    report = Report("x", pages)
    assert [page.name for page in report.menu] == ["index"]
    numbering = Numbering(report)
    first, other = (html._PageWriter(report, page, numbering).html() for page in pages)
    assert '<a href="other.html">a</a>' in first
    assert '<p class="above"><a href="index.html">First</a></p>' in other
    assert "[a](#other)" in markdown._Document(report).text()
