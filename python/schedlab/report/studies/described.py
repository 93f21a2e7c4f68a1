# SPDX-License-Identifier: MIT
"""What a study's tables.yaml says of a table or picture: values, and texts with slots.

Values are expressions over the study's queries, in which the names of `each` stand for one of
their lists' values. Texts have the slots of the page. docs/reports.md has an example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import jinja2
from jinja2 import meta

from schedlab.errors import FileRefused
from schedlab.report.studies.queries import Queries

_LANGUAGE = jinja2.Environment(undefined=jinja2.StrictUndefined)

Values = dict[str, Any]
Fill = Callable[[str, Values], str]
"""Fills the slots of a text; the values are names that it may use besides those of the page."""


class Described:
    """One table or picture."""

    def __init__(self, name: str, queries: Queries, fill: Fill) -> None:
        self.name = name
        self.said: Mapping[str, Any] = queries.study.tables[name]
        self._fill = fill
        self._own: Values = self.said.get("values", {})
        self._names = {
            each: getattr(queries, each) for each in dir(queries) if not each.startswith("_")
        } | self._own
        self.title = self.filled(self.said.get("title", ""), {})
        self.caption = self.filled(self.said.get("caption", ""), {})

    def value(self, expression: str, row: Values) -> Any:
        """What an expression comes to."""
        names, compiled = _compiled(expression)
        known = self._names | row if names else {}
        return compiled({each: known[each] for each in names if each in known})

    def each_of(self, said: Mapping[str, Any], row: Values) -> Iterator[Values]:
        """Of each combination of the lists that `each` names, those for which `where` holds. A list
        may depend on the values of those before it."""
        yield from self._combined(
            list(said.get("each", {}).items()), said.get("where", "true"), row
        )

    def _combined(self, lists: list[tuple[str, str]], where: str, row: Values) -> Iterator[Values]:
        if not lists:
            if self.value(where, row):
                yield row
            return
        (name, expression), *others = lists
        for value in self.value(expression, row):
            yield from self._combined(others, where, {**row, name: value})

    def filled(self, text: str, row: Values) -> str:
        """The text on one line, with its slots filled."""
        filled = self._fill(text, self._own | row) if "{" in text else text
        return " ".join(filled.split())


@cache
def _compiled(expression: str) -> tuple[frozenset[str], Callable[[Values], Any]]:
    """Returns the names that it uses, and what computes it: most take less time than to be given all names."""
    compiled = _LANGUAGE.compile_expression(expression, undefined_to_none=False)
    used = meta.find_undeclared_variables(_LANGUAGE.parse(f"{{{{ {expression} }}}}"))
    return frozenset(used), compiled


@contextmanager
def refusing(name: str, queries: Queries) -> Iterator[None]:
    """Raises FileRefused, with the table's name, for what is no table and no picture."""
    try:
        yield
    except (jinja2.TemplateError, KeyError, TypeError, ValueError) as error:
        where = queries.study.folder / "tables.yaml"
        raise FileRefused(f"{where}: {name}: {type(error).__name__}: {error}") from None


def listed(found: Any) -> list[Any]:
    """One, or several."""
    return found if isinstance(found, list) else [found]
