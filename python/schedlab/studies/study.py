# SPDX-License-Identifier: MIT
"""Reads the folders of the studies, which describe each study as data.

study.yaml contains the citation, published.csv the figures, and contradictions.yaml what is
inconsistent. costs.yaml contains what took longer on its machine (schedlab.studies.costs).
experiments.yaml contains the simulator's experiments (schedlab.studies.simulated). YAML values are
texts, as they were printed. The study's page in a report is a module of schedlab.report.studies.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from schedlab.base.files.reading import read_text
from schedlab.errors import FileRefused
from schedlab.paths import STUDIES_FOLDER
from schedlab.studies.figures import PUBLISHED_FILE, Figure, read

Entry = TypeVar("Entry")
ContradictionKind = Literal["number", "conclusion", "comparison", "method", "expectation"]
"""`number`: two numbers for one thing. `conclusion`: contradicted by its numbers. `comparison`: of
things that differ in more than the compared property. `method`: a measure that does not show what
it should. `expectation`: impossible to meet.
"""


@dataclass(frozen=True)
class Statement:
    """What one place of a study says, paraphrased."""

    place: str
    """`table 3` or `section 5.3`."""
    statement: str
    numbers: tuple[str, ...] = ()
    """Numbers that occur together there: in this row of the table, or in one paragraph of the section."""
    row: str = ""
    """The row of a table; empty for any row."""
    words: tuple[str, ...] = ()
    """Terms that occur in that paragraph."""

    def __str__(self) -> str:
        """Returns the statement, with the numbers that its sentence omits."""
        omitted_numbers = [
            number
            for number in self.numbers
            if number not in re.findall(r"[\d.]*\d", self.statement)
        ]
        return f"{self.place}: {self.statement}" + (
            f" ({', '.join(omitted_numbers)})" if omitted_numbers else ""
        )


@dataclass(frozen=True)
class Contradiction:
    """Statements of a study that contradict each other."""

    name: str
    sort: ContradictionKind
    statements: tuple[Statement, ...]
    reason: str
    checked: str
    """The source of the check: the text, the authors' programs, or runs of schedlab."""

    def __str__(self) -> str:
        """Returns the places, followed by the reason."""
        places = "; ".join(str(statement) for statement in self.statements)
        return f"{places[0].upper()}{places[1:]}. {self.reason}"

    def concerns(self, place: str) -> bool:
        """True if the contradiction concerns this table or section."""
        return any(statement.place == place for statement in self.statements)


@dataclass(frozen=True)
class Study:
    """A study's folder, whose name is the study's number."""

    folder: Path

    @property
    def number(self) -> int:
        """The study's number in all of schedlab."""
        return int(self.folder.name)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The content of study.yaml. Raises FileRefused."""
        facts = read_yaml(self.folder / "study.yaml")
        if not isinstance(facts, dict) or not isinstance(facts.get("citation"), str):
            raise FileRefused(f"{self.folder / 'study.yaml'}: expected `citation`, a text")
        return facts

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """The figures, in the order of the file. Raises FileRefused."""
        return tuple(read(self.folder / PUBLISHED_FILE, self.number))

    @cached_property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """The contradictions; empty without a file. Raises FileRefused."""
        expected = "a list of contradictions, each with name, sort, statements, reason and checked"
        return read_list(self.folder / "contradictions.yaml", _parse_contradiction, expected)


def find_studies(folder: Path = STUDIES_FOLDER) -> tuple[Study, ...]:
    """Returns all studies with a folder, sorted by number."""
    return _find_studies(folder)


@cache
def _find_studies(folder: Path) -> tuple[Study, ...]:
    unsorted_studies = [
        Study(path) for path in folder.iterdir() if path.name.isdecimal() and path.is_dir()
    ]
    return tuple(sorted(unsorted_studies, key=lambda study: study.number))


def find_study(number: int) -> Study:
    """Returns the study with this number. Raises KeyError."""
    for study in find_studies():
        if study.number == number:
            return study
    raise KeyError(f"study {number} does not exist")


def read_yaml(path: Path) -> Any:
    """Returns a file's content with all values as texts. Raises FileRefused."""
    import yaml

    try:
        return yaml.load(read_text(path), yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise FileRefused(f"{path}: {' '.join(str(error).split())}") from None


def read_list(
    path: Path, parse_entry: Callable[[dict[str, Any]], Entry], expected: str
) -> tuple[Entry, ...]:
    """Returns the result of `parse_entry` for each member of a file's list; empty without a file. Raises
    FileRefused with the expectation.
    """
    if not path.exists():
        return ()
    try:
        return tuple(parse_entry(apply_merge_key(entry)) for entry in read_yaml(path))
    except (AttributeError, TypeError, KeyError, ValueError) as error:
        raise FileRefused(f"{path}: expected {expected}: {error}") from None


def apply_merge_key(entry: dict[str, Any]) -> dict[str, Any]:
    """Applies YAML's merge key, which is text like all others."""
    values = {key: value for key, value in entry.items() if key != "<<"}
    return {**apply_merge_key(entry["<<"]), **values} if "<<" in entry else values


def _parse_contradiction(entry: dict[str, Any]) -> Contradiction:
    """Returns the contradiction of an entry of contradictions.yaml."""
    if entry["sort"] not in get_args(ContradictionKind):
        raise ValueError(f"{entry['name']}: unknown sort {entry['sort']}")
    return Contradiction(
        **{**entry, "statements": tuple(map(parse_statement, entry["statements"]))}
    )


def parse_statement(entry: dict[str, Any]) -> Statement:
    """Returns the statement of an entry of a study's files, where its sentence is called `says`."""
    fields = {"statement" if name == "says" else name: value for name, value in entry.items()}
    lists = {name: tuple(entry.get(name, ())) for name in ("numbers", "words")}
    return Statement(**{**fields, **lists})
