# SPDX-License-Identifier: MIT
"""Fits tables to a page: splits wide tables between columns, and transposes single rows."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from schedlab.report.model import Cell, Column, Table

PAGE_CHARACTERS = 119
"""Width of a page in characters of a table, in a window of 1440 pixels."""
LONG_LINE = 36
"""Minimum length in characters of a cell's text that may wrap."""
_SMALL_RATIO = 0.82
"""Width of a letter of an interval, relative to other letters."""
_PADDING = 3
"""Space between two columns, in characters."""
_INTERVAL_PATTERN = re.compile(r"(.*\S) (\[[^\[\]]+\])")

ColumnNumbers = tuple[int, ...]
"""The column numbers of a part of a table."""


def cell_lines(cell: Cell) -> tuple[str, str]:
    """Returns the large text of a cell, and the interval below it."""
    match = _INTERVAL_PATTERN.fullmatch(cell.text)
    return (match[1], match[2]) if match else (cell.text, "")


def width_in_characters(table: Table, part: ColumnNumbers) -> int:
    """Returns the approximate width of these columns in characters."""
    return sum(_column_width(table, number) + _PADDING for number in part)


def _column_width(table: Table, column: int) -> int:
    """Returns a column's width in characters: its longest text, or
    the longest word of its heading.
    """
    words = table.columns[column].title.split(" ")
    printed = [cell_lines(row[column]) for row in table.rows]
    longest = max((longest_line(large) for large, _ in printed), default=0)
    interval_width = max(
        (math.ceil(_SMALL_RATIO * len(interval)) for _, interval in printed), default=0
    )
    return max(min(longest, LONG_LINE), interval_width, *map(len, words))


def longest_line(text: str) -> int:
    """Returns the length of the longest line of a text."""
    return max(map(len, text.split("\n")))


def split_columns(table: Table) -> list[ColumnNumbers]:
    """Splits a table that is wider than the page. Each part repeats the key columns.

    Columns with a common heading stay together if the page is wide enough.
    """
    all_columns = tuple(range(len(table.columns)))
    keys = all_columns[: table.keys]
    if (
        table.is_list
        or width_in_characters(table, all_columns) <= PAGE_CHARACTERS
        or keys == all_columns
    ):
        return [all_columns]
    width_left = PAGE_CHARACTERS - width_in_characters(table, keys)
    finished_parts: list[ColumnNumbers] = []
    current: ColumnNumbers = ()
    for row_range in _column_groups(table, all_columns[table.keys :], width_left):
        if current and width_in_characters(table, current + row_range) > width_left:
            finished_parts.append(current)
            current = ()
        current += row_range
    return [keys + part for part in (*finished_parts, current)]


def _column_groups(table: Table, columns: ColumnNumbers, width_max: int) -> Iterator[ColumnNumbers]:
    """Yields groups of columns that stay together: those with a common heading, if they fit into
    `width_max` characters.
    """
    for group, members in groupby(columns, lambda number: table.columns[number].group):
        together = tuple(members)
        if group and width_in_characters(table, together) <= width_max:
            yield together
        else:
            yield from ((number,) for number in together)


def fit_table(table: Table) -> Table:
    """Returns the table as it is shown: a single row is transposed,
    with the headings on the left.
    """
    if len(table.rows) != 1 or len(table.columns) < 3:
        return table
    return replace(
        table,
        columns=(Column("", align="left"), Column("", align="left")),
        rows=tuple(
            (Cell(column_heading(column)), cell)
            for column, cell in zip(table.columns, table.rows[0], strict=True)
        ),
        sections=(),
        keys=1,
        is_list=False,
    )


def column_heading(column: Column) -> str:
    """Returns a column's one-line heading: the common heading, then the column's."""
    return f"{column.group}: {column.title}" if column.group else column.title


def group_starts(columns: Sequence[Column]) -> set[int]:
    """Returns the numbers of columns where a group begins, or where
    ungrouped columns follow a group.
    """
    return {
        number
        for number in range(1, len(columns))
        if columns[number].group != columns[number - 1].group
    }
