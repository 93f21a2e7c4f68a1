# SPDX-License-Identifier: MIT
"""How a table fits its page: a wide one is cut between columns, one of a single row is turned upright."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from schedlab.report.model import Cell, Column, Table

PAGE = 119
"""Characters of a table that a page has room for, where a window is 1440 pixels wide."""
LONG = 36
"""Characters of a cell, from which on its text may be broken."""
_SMALL = 0.82
"""How wide a letter of an interval is beside others."""
_PADDING = 3
"""Characters' width between two columns."""
_INTERVAL = re.compile(r"(.*\S) (\[[^\[\]]+\])")

Part = tuple[int, ...]
"""The columns of a part of a table, by their numbers."""


def lines(cell: Cell) -> tuple[str, str]:
    """Returns what is printed large, and the interval below it."""
    match = _INTERVAL.fullmatch(cell.text)
    return (match[1], match[2]) if match else (cell.text, "")


def characters(table: Table, part: Part) -> int:
    """Returns about how wide these columns are together."""
    return sum(_width(table, number) + _PADDING for number in part)


def _width(table: Table, column: int) -> int:
    """Returns a column's width, by its longest text and the longest word of its heading."""
    words = table.columns[column].title.split(" ")
    printed = [lines(row[column]) for row in table.rows]
    longest = max((longest_line(large) for large, _ in printed), default=0)
    small = max((math.ceil(_SMALL * len(interval)) for _, interval in printed), default=0)
    return max(min(longest, LONG), small, *map(len, words))


def longest_line(text: str) -> int:
    """Returns the length of a text of several lines."""
    return max(map(len, text.split("\n")))


def parts(table: Table) -> list[Part]:
    """Cuts a table that is wider than the page; each part begins with the columns that say whose row it is.

    Columns with a common heading stay together where the page has room for them.
    """
    everything = tuple(range(len(table.columns)))
    keys = everything[: table.keys]
    if table.is_list or characters(table, everything) <= PAGE or keys == everything:
        return [everything]
    room = PAGE - characters(table, keys)
    made: list[Part] = []
    current: Part = ()
    for together in _inseparable(table, everything[table.keys :], room):
        if current and characters(table, current + together) > room:
            made.append(current)
            current = ()
        current += together
    return [keys + part for part in (*made, current)]


def _inseparable(table: Table, columns: Part, room: int) -> Iterator[Part]:
    for group, members in groupby(columns, lambda number: table.columns[number].group):
        together = tuple(members)
        if group and characters(table, together) <= room:
            yield together
        else:
            yield from ((number,) for number in together)


def fitted(table: Table) -> Table:
    """Returns the table as it is shown: one of a single row has its headings at the side."""
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
    """Returns a column's heading where there is one row of them: the common one stands before its own."""
    return f"{column.group}: {column.title}" if column.group else column.title


def group_starts(columns: Sequence[Column]) -> set[int]:
    """Returns the columns with which a group begins, or the part without a group after one."""
    return {
        number
        for number in range(1, len(columns))
        if columns[number].group != columns[number - 1].group
    }
