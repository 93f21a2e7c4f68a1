# SPDX-License-Identifier: MIT
"""The folders of the studies, which hold what is known of each as data.

study.yaml cites it; published.csv has its figures, contradictions.yaml what does not fit together
in it; costs.yaml is what took longer on its machine (schedlab.studies.costs); experiments.yaml what
the simulator runs of it (schedlab.studies.simulated). All values of YAML are texts, as they were
printed. Its page of a report is a module of schedlab.report.studies.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from schedlab.base.files.reading import read_text
from schedlab.errors import FileRefused
from schedlab.paths import STUDIES
from schedlab.studies.figures import PUBLISHED, Figure, read

Made = TypeVar("Made")
Sort = Literal["number", "conclusion", "comparison", "method", "expectation"]
"""Two numbers for one thing; a conclusion that its numbers deny; two things compared that differ
in more than what is compared; a measure that does not tell what it is said to; an expectation
that cannot be met."""


@dataclass(frozen=True)
class Statement:
    """What one place says, in our words."""

    place: str
    """`table 3` or `section 5.3`."""
    says: str
    numbers: tuple[str, ...] = ()
    """The numbers that stand together there: in this row of the table, or in one paragraph of the
    section."""
    row: str = ""
    """The row of a table; empty: anywhere in it."""
    words: tuple[str, ...] = ()
    """Terms that stand in that paragraph."""

    def __str__(self) -> str:
        """The statement, with those numbers that `says` leaves out."""
        more = [each for each in self.numbers if each not in re.findall(r"[\d.]*\d", self.says)]
        return f"{self.place}: {self.says}" + (f" ({', '.join(more)})" if more else "")


@dataclass(frozen=True)
class Contradiction:
    """Statements of a study that cannot all be meant."""

    name: str
    sort: Sort
    statements: tuple[Statement, ...]
    reason: str
    checked: str
    """Against what it was checked again: the text, the authors' programs, runs of ours."""

    def __str__(self) -> str:
        """Places, and then the reason."""
        places = "; ".join(str(each) for each in self.statements)
        return f"{places[0].upper()}{places[1:]}. {self.reason}"

    def concerns(self, place: str) -> bool:
        """Should a reader of this table or section know it?"""
        return any(statement.place == place for statement in self.statements)


@dataclass(frozen=True)
class Study:
    """A folder that is named by the study's number."""

    folder: Path

    @property
    def number(self) -> int:
        """The number by which the study is known everywhere."""
        return int(self.folder.name)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """All that study.yaml says. Raises FileRefused."""
        facts = read_yaml(self.folder / "study.yaml")
        if not isinstance(facts, dict) or not isinstance(facts.get("citation"), str):
            raise FileRefused(f"{self.folder / 'study.yaml'}: expected a citation, as a text")
        return facts

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """The figures, in the order of the file. Raises FileRefused."""
        return tuple(read(self.folder / PUBLISHED, self.number))

    @cached_property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """None if there is no such file. Raises FileRefused."""
        expected = "a list of contradictions, each with name, sort, statements, reason and checked"
        return read_list(self.folder / "contradictions.yaml", _contradiction, expected)


def studies(folder: Path = STUDIES) -> tuple[Study, ...]:
    """All that have a folder there, by their numbers."""
    return _studies(folder)


@cache
def _studies(folder: Path) -> tuple[Study, ...]:
    found = [Study(path) for path in folder.iterdir() if path.name.isdecimal() and path.is_dir()]
    return tuple(sorted(found, key=lambda each: each.number))


def study_numbered(number: int, folder: Path = STUDIES) -> Study:
    """The study of this number. Raises KeyError."""
    for each in studies(folder):
        if each.number == number:
            return each
    raise KeyError(f"there is no study {number}")


def read_yaml(path: Path) -> Any:
    """All that a file says; every value is a text. Raises FileRefused."""
    import yaml

    try:
        return yaml.load(read_text(path), yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise FileRefused(f"{path}: {' '.join(str(error).split())}") from None


def read_list(
    path: Path, make: Callable[[dict[str, Any]], Made], expected: str
) -> tuple[Made, ...]:
    """What is made of each member of a file's list; none if there is no such file. Raises FileRefused, which says
    what was expected."""
    if not path.exists():
        return ()
    try:
        return tuple(make(merged(each)) for each in read_yaml(path))
    except (AttributeError, TypeError, KeyError, ValueError) as error:
        raise FileRefused(f"{path}: expected {expected}: {error}") from None


def merged(said: dict[str, Any]) -> dict[str, Any]:
    """With what it has from another, by YAML's merge key, which is a text like all others."""
    own = {key: value for key, value in said.items() if key != "<<"}
    return {**merged(said["<<"]), **own} if "<<" in said else own


def _contradiction(read_from: dict[str, Any]) -> Contradiction:
    if read_from["sort"] not in get_args(Sort):
        raise ValueError(f"{read_from['name']}: {read_from['sort']} is no sort")
    return Contradiction(
        **{**read_from, "statements": tuple(map(_statement, read_from["statements"]))}
    )


def _statement(read_from: dict[str, Any]) -> Statement:
    lists = {name: tuple(read_from.get(name, ())) for name in ("numbers", "words")}
    return Statement(**{**read_from, **lists})
