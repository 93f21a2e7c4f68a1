# SPDX-License-Identifier: MIT
"""Provides the studies' figures, with their place, meaning and source."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, get_args

from schedlab.base.files.reading import read_text
from schedlab.errors import FileRefused
from schedlab.paths import STUDIES_FOLDER

if TYPE_CHECKING:
    import polars as pl

PUBLISHED_FILE = "published.csv"
"""The file of published figures in each study's folder."""

Kind = Literal["measurement", "expectation", "claim", "setting"]
"""A result; the study's expectation of a fair scheduler; a claim derived in its text; or a setting
of its scheduler or workload.
"""

Source = Literal["study", "authors", "rerun"]
"""The study's text; its authors' unpublished output; or the study's programs, rerun for schedlab."""

INFINITE_LENGTHS = ("infty", "unlimited")
"""Lengths in studies that are not numbers, as printed."""

COLUMNS = (
    "place",
    "row",
    "column",
    "kind",
    "quantity",
    "unit",
    "value",
    "cpus",
    "policy",
    "source",
)


@dataclass(frozen=True)
class Figure:
    """One number, or the reason for its absence."""

    study: int
    place: str
    """`table 3`, `figure 4`, `section 5.1`: its place in the study. A figure of the authors or of a
    rerun has the place of the original.
    """
    row: str
    column: str
    kind: Kind
    quantity: str
    unit: str
    text: str
    """The figure as printed: 33.0 has one digit more than 33. It may be `not finished`."""
    cpus: int | None
    """None if the study does not state it."""
    policy: str | None
    """The built-in policy and preset that correspond to the measured scheduler. None for no
    scheduler, or for Linux's CFS if it is not a built-in one.
    """
    source: Source

    def __str__(self) -> str:
        """Returns the figure as printed."""
        return self.text

    @property
    def is_number(self) -> bool:
        """True if the figure is a number."""
        return _is_number(self.text)

    @property
    def value(self) -> float:
        """The number. Raises ValueError for a run that did not finish."""
        if not self.is_number:
            raise ValueError(f"study {self.study}, {self.place}, {self.row}: {self.text}")
        return float(self.text)

    @property
    def decimals(self) -> int:
        """Decimals of the printed figure."""
        return len(self.text.partition(".")[2])


def published(study: int, table: int) -> list[Figure]:
    """Returns the figures of a study's table row by row, including its expectations."""
    return select(study=study, place=f"table {table}", source="study")


def select(
    *,
    study: int | None = None,
    place: str | None = None,
    kind: Kind | None = None,
    quantity: str | None = None,
    source: Source | None = None,
) -> list[Figure]:
    """Returns the figures that match all criteria, in the order of the file."""
    return [
        figure
        for figure in _published_figures()
        if study in (None, figure.study)
        and place in (None, figure.place)
        and kind in (None, figure.kind)
        and quantity in (None, figure.quantity)
        and source in (None, figure.source)
    ]


@cache
def _published_figures() -> tuple[Figure, ...]:
    files = sorted(
        STUDIES_FOLDER.glob(f"*/{PUBLISHED_FILE}"), key=lambda path: int(path.parent.name)
    )
    return tuple(figure for path in files for figure in read(path, int(path.parent.name)))


def frame() -> pl.DataFrame:
    """Returns all figures as a table with the files' columns; `value` is null if it is not a number."""
    import polars as pl

    rows = [
        {**asdict(figure), "value": figure.value if figure.is_number else None}
        for figure in _published_figures()
    ]
    return pl.DataFrame(
        rows,
        schema={
            "study": pl.Int64,
            **dict.fromkeys((*COLUMNS, "text"), pl.String),
            "cpus": pl.Int64,
            "value": pl.Float64,
        },
    )


def read(path: Path, study: int) -> list[Figure]:
    """Returns the figures in a study's file. Raises FileRefused."""
    try:
        return read_figures(io.StringIO(read_text(path), newline=""), study)
    except (ValueError, csv.Error) as error:
        raise FileRefused(f"{path}: {error}") from None


def read_figures(lines: Iterable[str], study: int) -> list[Figure]:
    """Parses CSV with the columns of COLUMNS. Raises ValueError, which names the line."""
    reader = csv.DictReader(lines, restkey="too many", strict=True)
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise ValueError(f"the columns must be {','.join(COLUMNS)}")
    figures: dict[tuple[object, ...], Figure] = {}
    for row in reader:
        try:
            figure = _parse_figure(row, study)
            key = _figure_key(figure)
            if key in figures:
                raise ValueError("this place has a figure already")
        except ValueError as error:
            raise ValueError(f"line {reader.line_num}: {error}") from None
        figures[key] = figure
    return list(figures.values())


def _figure_key(figure: Figure) -> tuple[object, ...]:
    return (
        figure.study,
        figure.place,
        figure.row,
        figure.column,
        figure.quantity,
        figure.source,
    )


def _parse_figure(row: Mapping[str, str | None], study: int) -> Figure:
    """Returns the figure of a line of published.csv. Raises ValueError."""
    if tuple(row) != COLUMNS or None in row.values():
        raise ValueError(f"expected {len(COLUMNS)} columns")
    cells = cast("Mapping[str, str]", row)
    for name in COLUMNS:
        if not cells[name] and name not in ("cpus", "policy"):
            raise ValueError(f"{name} is missing")
    if cells["kind"] not in get_args(Kind) or cells["source"] not in get_args(Source):
        raise ValueError(f"unknown kind {cells['kind']} or source {cells['source']}")
    if (
        cells["source"] == "study"
        and not _is_number(cells["value"])
        and cells["value"] not in INFINITE_LENGTHS
    ):
        raise ValueError(f"{cells['value']} is not a number")
    cpus = int(cells["cpus"]) if cells["cpus"] else None
    if cpus is not None and cpus < 1:
        raise ValueError("there must be a CPU")
    return Figure(
        study,
        cells["place"],
        cells["row"],
        cells["column"],
        cast("Kind", cells["kind"]),
        cells["quantity"],
        cells["unit"],
        cells["value"],
        cpus,
        cells["policy"] or None,
        cast("Source", cells["source"]),
    )


def _is_number(text: str) -> bool:
    """True for a non-negative decimal number; studies print no others."""
    integer, _, fraction = text.partition(".")
    return (integer + fraction).isdecimal() and integer.isdecimal() and not text.endswith(".")
