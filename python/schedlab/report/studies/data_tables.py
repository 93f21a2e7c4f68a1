# SPDX-License-Identifier: MIT
"""Tables that tables.yaml of a study describes.

Each has a title, rows, and columns or parts; rows and cells are expressions over the study's
queries, in which the names of `each` stand for a row's values. What is `like` another table has
all that it does not say itself from there. docs/reports.md has an example.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import jinja2
import polars as pl

from schedlab.errors import FileRefused
from schedlab.report.model import Cell, Column, Table
from schedlab.report.studies.queries import Queries
from schedlab.report.studies.texts import cell, measured_table
from schedlab.report.study_tables import NOTHING, Comparison, Line, Measured, compared_table
from schedlab.studies import Figure

_LANGUAGE = jinja2.Environment(undefined=jinja2.StrictUndefined)
_COMPARED = ("study", "here", "ideal", "expected", "rerun", "near")

Values = dict[str, Any]


def table_of(name: str, queries: Queries) -> Table:
    """Raises FileRefused, with the table's name, for what is no table."""
    tables = queries.study.tables
    try:
        said = tables[name]
        return _Maker(name, {**tables.get(said.get("like"), {}), **said}, queries).table()
    except (jinja2.TemplateError, KeyError, TypeError, ValueError) as error:
        where = queries.study.folder / "tables.yaml"
        raise FileRefused(f"{where}: {name}: {type(error).__name__}: {error}") from None


class _Maker:
    """Makes one table."""

    def __init__(self, name: str, said: Mapping[str, Any], queries: Queries) -> None:
        self.name = name
        self.said = said
        self.names = {
            each: getattr(queries, each) for each in dir(queries) if not each.startswith("_")
        } | said.get("values", {})
        self.title = self._text("title")
        self.caption = self._text("caption")

    def table(self) -> Table:
        if "statements" in self.said:
            return self._statements()
        return self._compared() if "parts" in self.said else self._measured()

    def _text(self, what: str) -> str:
        return " ".join(_LANGUAGE.from_string(self.said.get(what, "")).render(self.names).split())

    def _value(self, expression: str, row: Values) -> Any:
        return _LANGUAGE.compile_expression(expression, undefined_to_none=False)(
            **self.names, **row
        )

    def _rows(self, said: Mapping[str, Any], row: Values) -> Iterator[Values]:
        """Of each combination of the lists that `each` names, those for which `where` holds."""
        lists = [self._value(each, row) for each in said.get("each", {}).values()]
        for combined in product(*lists):
            values = {**row, **dict(zip(said.get("each", {}), combined, strict=True))}
            if "where" not in said or self._value(said["where"], values):
                yield values

    def _filled(self, text: str, row: Values) -> str:
        return _LANGUAGE.from_string(text).render(**self.names, **row)

    def _measured(self) -> Table:
        columns = [
            (column, values) for column in self.said["columns"] for values in self._rows(column, {})
        ]
        return measured_table(
            self.name,
            self.title,
            self.said["label"],
            [
                (
                    Column(
                        self._filled(column["title"], values),
                        self._filled(column.get("group", ""), values),
                    ),
                    int(self._value(column.get("digits", "1"), values)),
                )
                for column, values in columns
            ],
            {
                self._filled(rows["label"], row): [
                    self._number(column["cell"], {**values, **row}) for column, values in columns
                ]
                for rows in _listed(self.said["rows"])
                for row in self._rows(rows, {})
            },
            self.caption,
            [bool(self._value(column.get("muted", "false"), values)) for column, values in columns],
        )

    def _number(self, expression: str, row: Values) -> Measured:
        found = self._value(expression, row)
        return found if isinstance(found, Measured) else Measured((float(found),))

    def _compared(self) -> Table:
        lines = [
            Line(
                tuple(self._filled(each, row) for each in rows["labels"]),
                {
                    self._filled(title, values): self._comparison(part, values)
                    for title, part in self.said["parts"].items()
                    for values in self._rows(part, row)
                },
            )
            for rows in _listed(self.said["rows"])
            for row in self._rows(rows, {})
        ]
        return compared_table(self.name, self.title, self.said["labels"], lines, self.caption)

    def _comparison(self, said: Mapping[str, Any], row: Values) -> Comparison:
        values = {each: self._value(said[each], row) for each in _COMPARED if each in said}
        ideal = values.get("ideal")
        notes = {
            kind: note
            for kind, text in said.get("notes", {}).items()
            if (note := self._filled(text, row).strip())
        }
        if isinstance(ideal, Measured):
            values["ideal"] = ideal.mean
        return Comparison(
            **values,
            decimals=int(self._value(said.get("digits", "1"), row)),
            differs=said.get("differs", ""),
            notes=notes,
        )

    def _statements(self) -> Table:
        """What a study says, what its figures come to, and what ours do."""
        headings = self.said["columns"]
        rows = [
            (statement, values)
            for statement in self.said["statements"]
            for values in self._rows(statement, {})
        ]
        found = [
            tuple(self._cell(statement.get(heading), statement, values) for heading in headings)
            for statement, values in rows
        ]
        cells = [tuple(cell_ for cell_, _ in row) for row in found]
        shared = int(self.said.get("shared", "0"))
        """Columns whose texts are printed once for the rows that share them."""
        texts: list[tuple[str, ...]] = [tuple(each.text for each in row[:shared]) for row in cells]
        shown = [
            (*(Cell("") for _ in range(shared)), *row[shared:]) if shared and above == own else row
            for above, own, row in zip([(), *texts], texts, cells, strict=False)
        ]
        return Table(
            self.name,
            self.title,
            tuple(
                Column(each, align="right" if each in self.said.get("right", ()) else "left")
                for each in headings
            ),
            tuple(shown),
            pl.DataFrame(
                {
                    heading: _alike([behind for _, behind in column])
                    for heading, column in zip(headings, zip(*found, strict=True), strict=True)
                }
            ),
            self.caption,
        )

    def _cell(self, said: Any, statement: Mapping[str, Any], row: Values) -> tuple[Cell, Any]:
        """And what stands behind it."""
        if said is None:
            return Cell(NOTHING), NOTHING
        if isinstance(said, str):
            text = self._filled(said, row)
            return Cell(text), text
        found = self._value(said["is"], row)
        digits = int(said.get("digits", "1"))
        if isinstance(found, Measured):
            shown = cell(found, digits)
            return shown, (shown.text, found.mean)
        text = (
            NOTHING
            if found is None
            else found.text
            if isinstance(found, Figure | Cell)
            else found
            if isinstance(found, str)
            else f"{found:.{digits}f}"
        )
        why = self._filled(said.get("why", ""), row)
        return found if isinstance(found, Cell) else Cell(text, why=why), text


def _alike(column: list[Any]) -> list[Any]:
    """Numbers, if nothing else stands there; else texts."""
    if all(isinstance(each, tuple) for each in column):
        return [mean for _, mean in column]
    return [each[0] if isinstance(each, tuple) else each for each in column]


def _listed(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]
