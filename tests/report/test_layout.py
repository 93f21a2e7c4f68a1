# SPDX-License-Identifier: MIT
"""Tables fit their page: what is cut keeps its keys and loses no column, one row stands upright."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from schedlab.report import html, markdown
from schedlab.report.layout import PAGE, characters, fitted, parts
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
    own = tuple(range(min(keys, len(columns))))
    found = parts(table)
    assert all(part[: len(own)] == own for part in found)
    others = [number for part in found for number in part[len(own) :]]
    assert others == list(range(len(own), len(columns)))
    for part in found:
        assert characters(table, part) <= PAGE or len(part) <= len(own) + 1


def test_a_table_of_one_row_stands_upright() -> None:
    columns = [Column("policy"), Column("mean", "turnaround"), Column("maximum", "turnaround")]
    row = (Cell("rr"), Cell("3.0", why="slow"), Cell("9.0 [8.0, 10.0]", "bad"))
    table = replace(of(columns, 1), rows=(row,))
    found = fitted(table)
    assert [[cell.text for cell in line] for line in found.rows] == [
        ["policy", "rr"],
        ["turnaround: mean", "3.0"],
        ["turnaround: maximum", "9.0 [8.0, 10.0]"],
    ]
    assert [line[1] for line in found.rows] == list(row)
    two = of(columns, 2)
    assert fitted(two) is two
    report = Report("x", (Page("index", "x", "", (Section("s", (table,)),)),))
    page = html._PageWriter(report, report.pages[0], Numbering(report)).html()
    assert "<thead>" not in page
    assert "turnaround: maximum" in page
    assert "| turnaround: mean | 3.0" in markdown._Document(report).text()


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
