# SPDX-License-Identifier: MIT
"""What the tables and their columns mean (described.yaml)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import yaml

_TYPES: Mapping[str, type[pl.DataType]] = {
    "integer": pl.Int64,
    "text": pl.String,
    "yes or no": pl.Boolean,
}


@dataclass(frozen=True)
class Column:
    """A column of a table. Times are nanoseconds since the machine's boot."""

    name: str
    type_: str
    """One of "integer", "text" and "yes or no"."""
    meaning: str


@dataclass(frozen=True)
class Described:
    """A table."""

    name: str
    row: str
    """What has a row in it."""
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pl.Schema:
        """The columns' types, as Polars has them."""
        return pl.Schema({each.name: _TYPES[each.type_] for each in self.columns})


def _described() -> dict[str, Described]:
    text = Path(__file__).with_name("described.yaml").read_text("utf-8")
    content = yaml.safe_load(text)
    shared = content["columns"]

    def column(name: str, own: str | None) -> Column:
        kind, _, meaning = (own or shared[name]).partition(": ")
        return Column(name, kind, meaning)

    return {
        name: Described(
            name, table["row"], tuple(column(*each) for each in table["columns"].items())
        )
        for name, table in content["tables"].items()
    }


DESCRIBED: Mapping[str, Described] = _described()
"""Each table by its name."""
