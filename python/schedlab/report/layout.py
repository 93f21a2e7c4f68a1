# SPDX-License-Identifier: MIT
"""Fits tables to a page: splits wide tables between columns, and transposes single rows."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from schedlab.report.model import Cell, Column, Table

PAGE = 119
"""Width of a page in characters of a table, in a window of 1440 pixels."""
LONG = 36
"""Minimum length in characters of a cell's text that may wrap."""
_SMALL = 0.82
"""Width of a letter of an interval, relative to other letters."""
_PADDING = 3
"""Space between two columns, in characters."""
_INTERVAL = re.compile(r"(.*\S) (\[[^\[\]]+\])")

Part = tuple[int, ...]
"""The column numbers of a part of a table."""


def lines(cell: Cell) -> tuple[str, str]:
    """Returns the large text of a cell, and the interval below it."""
    match = _INTERVAL.fullmatch(cell.text)
    return (match[1], match[2]) if match else (cell.text, "")


def characters(table: Table, part: Part) -> int:
    """Returns the approximate width of these columns in characters."""
    return sum(_width(table, number) + _PADDING for number in part)


def _width(table: Table, column: int) -> int:
    """Returns a column's width in characters: its longest text, or
    the longest word of its heading.
    """
    words = table.columns[column].title.split(" ")
    printed = [lines(row[column]) for row in table.rows]
    longest = max((longest_line(large) for large, _ in printed), default=0)
    small = max((math.ceil(_SMALL * len(interval)) for _, interval in printed), default=0)
    return max(min(longest, LONG), small, *map(len, words))


def longest_line(text: str) -> int:
    """Returns the length of the longest line of a text."""
    return max(map(len, text.split("\n")))


def parts(table: Table) -> list[Part]:
    """Splits a table that is wider than the page. Each part repeats the key columns.

    Columns with a common heading stay together if the page is wide enough.
    """
    everything = tuple(range(len(table.columns)))
    keys = everything[: table.keys]
    if table.is_list or characters(table, everything) <= PAGE or keys == everything:
        return [everything]
    room = PAGE - characters(table, keys)
    made: list[Part] = []
    current: Part = ()
    for row_range in _inseparable(table, everything[table.keys :], room):
        if current and characters(table, current + row_range) > room:
            made.append(current)
            current = ()
        current += row_range
    return [keys + part for part in (*made, current)]


def _inseparable(table: Table, columns: Part, room: int) -> Iterator[Part]:
    for group, members in groupby(columns, lambda number: table.columns[number].group):
        together = tuple(members)
        if group and characters(table, together) <= room:
            yield together
        else:
            yield from ((number,) for number in together)


def fitted(table: Table) -> Table:
    """Returns the table as it is shown: a single row is transposed,
    with the headings on the left.
    """
    if len(table.rows) != 1 or len(table.columns) < 3:
        return table
    return replace(
        table,
        columns=(Column("", align="left"), Column("", align="left")),
        rows=tuple(
            (Cell(heading(column)), cell)
            for column, cell in zip(table.columns, table.rows[0], strict=True)
        ),
        sections=(),
        keys=1,
        is_list=False,
    )


def heading(column: Column) -> str:
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
