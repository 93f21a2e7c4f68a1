# SPDX-License-Identifier: MIT
"""Reads the content of a report's page."""

from __future__ import annotations

import re
from dataclasses import replace

from schedlab.report.model import Cell, Page, Table, Text


def tables_of(page: Page) -> dict[str, Table]:
    """Returns the tables by name."""
    return {block.name: block for block in page.blocks() if isinstance(block, Table)}


def texts_of(page: Page) -> str:
    """Returns the lead and all texts in order; each paragraph and each item is a line."""
    texts = [page.lead, *(b.markdown for b in page.blocks() if isinstance(b, Text))]
    return re.sub(r"(?<=\S)\n *(?![-*\s])", " ", "\n".join(texts))


def opening_of(page: Page) -> str:
    """Returns the page's text before its first table: the lead and the texts of its first
    section.
    """
    return texts_of(replace(page, sections=page.sections[:1]))


def cells_of(table: Table, labels: int = 1) -> dict[tuple[str, ...], Cell]:
    """Returns cells by the row's labels, then by the column's group and title. A label
    printed once also applies to the rows below.
    """
    cells: dict[tuple[str, ...], Cell] = {}
    above = [""] * labels
    for row in table.rows:
        above = [cell.text or old for cell, old in zip(row[:labels], above, strict=True)]
        for column, cell in zip(table.columns[labels:], row[labels:], strict=True):
            key = (*above, column.group, column.title)
            assert key not in cells, f"{table.name} has two cells {key}"
            cells[key] = cell
    return cells


def numbers(text: str) -> set[str]:
    """Returns numbers as printed, except for commas between thousands."""
    joined = re.sub(r"(?<=\d),(?=\d{3})", "", text)
    return set(re.findall(r"(?<![\d.])\d+(?:\.\d+)?", joined))
