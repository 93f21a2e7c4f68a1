# SPDX-License-Identifier: MIT
"""What the studies published: each figure with its study, table, row and column."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

PUBLISHED = Path(__file__).with_name("published.csv")


@dataclass(frozen=True)
class Figure:
    """One number of a table, as it was printed."""

    study: int
    table: int
    row: str
    column: str
    text: str
    unit: str

    @property
    def value(self) -> float:
        return float(self.text)


def published(study: int, table: int) -> list[Figure]:
    """All figures of a table, row by row."""
    return [each for each in all_published() if (each.study, each.table) == (study, table)]


def all_published() -> list[Figure]:
    """In the order of the file."""
    with PUBLISHED.open(newline="") as file:
        return [
            Figure(
                int(line["study"]),
                int(line["table"]),
                line["row"],
                line["column"],
                line["value"],
                line["unit"],
            )
            for line in csv.DictReader(file)
        ]
