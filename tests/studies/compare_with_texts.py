# SPDX-License-Identifier: MIT
"""Compares the data of the studies with the studies' texts, on machines that have them.

    SCHEDLAB_STUDIES=FOLDER ./schedlab test tests/studies/compare_with_texts.py

FOLDER holds one text for each study, such as 3-title.txt, and baselines.md with the measurements of
the studies' programs. No other test reads anything outside the repository.
"""

from __future__ import annotations

import csv
import os
import re
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from page_contents import numbers
from schedlab.studies import Figure, published, select
from schedlab.studies.study import Contradiction, Statement, find_studies
from schedlab_tools.documents.gallery.study_presets import StudyPreset, study_presets

TEXTS = Path(os.environ["SCHEDLAB_STUDIES"])
CONTRADICTIONS = [
    (study.number, contradiction)
    for study in find_studies()
    for contradiction in study.contradictions
]


@cache
def study_text(number: int) -> str:
    """Returns the text of a study."""
    (path,) = TEXTS.glob(f"{number}-*.txt")
    return path.read_text(encoding="utf-8")


@cache
def baselines() -> str:
    """Returns the measurements of the studies' programs."""
    path = TEXTS.parent / "baselines.md"
    return path.read_text(encoding="utf-8")


@cache
def sections(study: int) -> dict[str, str]:
    """Returns a study's text by section number; subsections are separate."""
    heading = re.compile(r"^(?:#+ )?(\d{1,2}(?:\.\d+)*) (?!/\*)[A-Z*/][^\n]*$", re.MULTILINE)
    text = study_text(study)
    headings = list(heading.finditer(text))
    ends = [match.start() for match in headings[1:]] + [len(text)]
    return {match[1]: text[match.start() : end] for match, end in zip(headings, ends, strict=True)}


def section(study: int, number: str) -> str:
    return sections(study)[number]


def appendix(study: int, number: str) -> str:
    """Returns a study's text from an appendix on."""
    return study_text(study).partition(f"APPENDIX {number}\n")[2]


def paragraphs(text: str) -> list[str]:
    """Returns the text between empty lines as one line each. The items of a list are separate
    paragraphs.

    A paragraph that continues in lower case is joined with its predecessor, because a page ended
    there.
    """
    blocks = re.split(r"\n\s*\n(?![a-z])|\n(?=- |\d+\. |\| |• )", text)
    return [re.sub(r"\s+", " ", block) for block in blocks]


def of_texts(source: str = "study") -> list[Figure]:
    """Returns the figures of studies whose texts are available; other studies are only cited."""
    cited = {study.number for study in find_studies() if study.facts.get("text") == "cited"}
    return [figure for figure in select() if figure.study not in cited and figure.source == source]


def test_tables_are_those_of_the_study() -> None:
    """Each row of the data is the printed cells of one line, in order, without omissions."""
    rows: dict[tuple[int, str, str], list[str]] = defaultdict(list)
    expected: dict[tuple[int, str], list[str]] = defaultdict(list)
    for figure in of_texts():
        if figure.place.startswith("table"):
            if figure.kind == "expectation":
                expected[figure.study, figure.place.removeprefix("table ")].append(figure.text)
            else:
                rows[figure.study, figure.place, figure.row].append(figure.text)
    assert len(rows) > 50
    for location, texts in rows.items():
        lines = study_text(location[0]).splitlines()
        cells = [re.split(r"%? *(?:[|\t]| [–-] ) *", line) for line in lines]
        assert any(
            texts == c[index : index + len(texts)] for c in cells for index in range(len(c))
        ), location
    for (study, table), texts in expected.items():
        title = re.search(
            rf"^Table {table}: .*Expected: ([^)]*)\)$", study_text(study), re.MULTILINE
        )
        assert title and [column_title.strip(" %") for column_title in title[1].split(",")] == texts


@pytest.mark.parametrize(("table", "columns"), [(1, 4), (2, 2), (3, 3), (4, 2)])
def test_study_5s_tables_of_words_are_those_of_the_study(table: int, columns: int) -> None:
    (study,) = (study for study in find_studies() if study.number == 5)
    lines = re.sub(r"</?code>|\$|\\(?=log)", "", study_text(5)).splitlines()
    with (study.folder / f"table-{table}.csv").open(encoding="utf-8", newline="") as file:
        rows = [row[:columns] for row in list(csv.reader(file))[1:]]
    assert rows
    for row in rows:
        assert any(line.split("\t")[-columns:] == row for line in lines), row


def test_numbers_stand_in_the_texts() -> None:
    """Figures outside tables are in their section; the authors' and the reruns' figures are
    in the baselines.
    """
    for figure in of_texts():
        kind, _, number = figure.place.partition(" ")
        if kind == "section":
            text = section(figure.study, number)
            assert figure.text in numbers(text) or figure.text in text, figure
    for figure in [*of_texts("authors"), *of_texts("rerun")]:
        assert figure.text in numbers(baselines()) or figure.text in baselines(), figure


@pytest.mark.parametrize(
    ("study", "contradiction"),
    CONTRADICTIONS,
    ids=[f"{study}-{contradiction.name}" for study, contradiction in CONTRADICTIONS],
)
def test_contradictions_stand_in_the_study(study: int, contradiction: Contradiction) -> None:
    """All numbers and terms of a statement are in one paragraph or one row of its place."""
    for statement in contradiction.statements:
        assert is_supported(study, statement), statement
        changed = [*statement.numbers[:-1], "".join(statement.numbers[-1:]) + "07"]
        assert not is_supported(study, replace(statement, numbers=tuple(changed)))


@pytest.mark.parametrize("preset", study_presets(), ids=lambda preset: preset.policy)
def test_rules_of_presets_stand_in_the_study(preset: StudyPreset) -> None:
    """All numbers of a statement of a rule are in its section."""
    for statement in preset.rule:
        other = re.match(r"study (\d), ", statement.place)
        study = int(other[1]) if other else preset.study.number
        text = section(study, statement.place.rpartition("section ")[2])
        assert numbers(statement.statement) <= numbers(text), statement


def is_supported(study: int, statement: Statement) -> bool:
    """Returns True if the place contains the statement."""
    kind, _, number = statement.place.partition(" ")
    if kind == "table":
        cells = [
            figure for figure in published(study, int(number)) if statement.row in ("", figure.row)
        ]
        return set(statement.numbers) <= {cell.text for cell in cells}
    place = appendix(study, number) if kind == "appendix" else section(study, number)
    return any(
        set(statement.numbers) <= numbers(text) and all(word in text for word in statement.words)
        for text in paragraphs(place)
    )
