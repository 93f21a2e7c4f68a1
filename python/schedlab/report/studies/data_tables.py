# SPDX-License-Identifier: MIT
"""Tables that tables.yaml of a study describes, in one of three forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from schedlab.report.model import Cell, Column, Table
from schedlab.report.studies.described import Described, Values, listed
from schedlab.report.studies.texts import MeasuredCell, cell, measured_table
from schedlab.report.study_tables import NOTHING, Comparison, Line, Measured, compared_table
from schedlab.studies import Figure

_COMPARED = (
    "study",
    "here",
    "on_costs",
    "ideal",
    "expected",
    "rerun",
    "near",
    "near_theirs",
    "shows_ideal",
)


class DescribedTable(Described):
    """Makes one table."""

    def table(self) -> Table:
        """Raises what `described.refusing` makes FileRefused of."""
        if "statements" in self.said:
            return self._statements()
        return self._compared() if "parts" in self.said else self._measured()

    def _measured(self) -> Table:
        columns = [
            (column, values)
            for column in self.said["columns"]
            for values in self.each_of(column, {})
        ]
        return measured_table(
            self.name,
            self.title,
            self.said["labels"],
            [
                Column(
                    self.filled(column["title"], values),
                    self.filled(column.get("group", ""), values),
                )
                for column, values in columns
            ],
            [
                (
                    [self.filled(each, row) for each in rows["labels"]],
                    [self._measured_cell(column, {**own, **row}) for column, own in columns],
                )
                for rows in listed(self.said["rows"])
                for row in self.each_of(rows, {})
            ],
            self.caption,
        )

    def _measured_cell(self, column: Mapping[str, Any], values: Values) -> MeasuredCell:
        return MeasuredCell(
            self._number(column["cell"], values),
            int(self.value(column.get("digits", "1"), values)),
            bool(self.value(column.get("muted", "false"), values)),
        )

    def _number(self, expression: str, row: Values) -> Measured:
        found = self.value(expression, row)
        return found if isinstance(found, Measured) else Measured((float(found),))

    def _compared(self) -> Table:
        lines = [
            Line(
                tuple(self.filled(each, row) for each in rows["labels"]),
                {
                    self.filled(title, values): self._comparison(part, values)
                    for title, part in self.said["parts"].items()
                    for values in self.each_of(part, row)
                },
            )
            for rows in listed(self.said["rows"])
            for row in self.each_of(rows, {})
        ]
        return compared_table(self.name, self.title, self.said["labels"], lines, self.caption)

    def _comparison(self, said: Mapping[str, Any], row: Values) -> Comparison:
        values = {each: self.value(said[each], row) for each in _COMPARED if each in said}
        ideal = values.get("ideal")
        notes = {
            kind: note
            for kind, text in said.get("notes", {}).items()
            if (note := self.filled(text, row))
        }
        if isinstance(ideal, Measured):
            values["ideal"] = ideal.mean
        return Comparison(
            **values,
            decimals=int(self.value(said.get("digits", "1"), row)),
            differs=said.get("differs", ""),
            notes=notes,
        )

    def _statements(self) -> Table:
        """What a study says, what its figures come to, and what ours do."""
        headings = self.said["columns"]
        rows = [
            (statement, values)
            for statement in self.said["statements"]
            for values in self.each_of(statement, {})
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
        """A cell, and what stands behind it."""
        if said is None:
            return Cell(NOTHING), NOTHING
        if isinstance(said, str):
            text = self.filled(said, row)
            return Cell(text), text
        found = self.value(said["is"], row)
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
        why = self.filled(said.get("why", ""), row)
        return found if isinstance(found, Cell) else Cell(text, why=why), text


def _alike(column: list[Any]) -> list[Any]:
    """Numbers, if nothing else stands there; else texts."""
    if all(isinstance(each, tuple) for each in column):
        return [mean for _, mean in column]
    return [each[0] if isinstance(each, tuple) else each for each in column]
