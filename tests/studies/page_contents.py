# SPDX-License-Identifier: MIT
"""Reads what stands on a report's page."""

from __future__ import annotations

import re
from dataclasses import replace

from schedlab.report.model import Cell, Page, Table, Text


def tables_of(page: Page) -> dict[str, Table]:
    """By name."""
    return {block.name: block for block in page.blocks() if isinstance(block, Table)}


def texts_of(page: Page) -> str:
    """The lead and all texts, one after another, each paragraph and each item a line."""
    texts = [page.lead, *(b.markdown for b in page.blocks() if isinstance(b, Text))]
    return re.sub(r"(?<=\S)\n *(?![-*\s])", " ", "\n".join(texts))


def opening_of(page: Page) -> str:
    """What the page says before its first table: the lead, and the texts of its first section."""
    return texts_of(replace(page, sections=page.sections[:1]))


def cells_of(table: Table, labels: int = 1) -> dict[tuple[str, ...], Cell]:
    """By the row's labels (those that are printed once hold for the rows below, too), then the
    column's group and title."""
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
    """As printed, except commas between thousands."""
    joined = re.sub(r"(?<=\d),(?=\d{3})", "", text)
    return set(re.findall(r"(?<![\d.])\d+(?:\.\d+)?", joined))
