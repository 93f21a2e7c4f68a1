# SPDX-License-Identifier: MIT
"""The studies: what they print is what we have, what is ideal, and what does not fit together.

Without the studies' texts and the baselines beside them (SCHEDLAB_STUDIES names the folder), the
tests that compare with them are skipped.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import product

import pytest

from schedlab.paths import ROOT
from schedlab.studies import (
    Figure,
    all_published,
    published,
    read_figures,
)
from schedlab.studies.figures import COLUMNS
from schedlab.studies.ideal import (
    CPUS,
    TIMING_TESTS,
    ideal_completion,
    ideal_told,
    least_mean_turnaround,
)
from schedlab.studies.pack import Contradiction, Statement, studies
from study_texts import baselines, numbers, paragraphs, section, study_text


def of_texts(source: str = "study") -> list[Figure]:
    """The figures of those studies whose texts are kept: of others they are as they are cited."""
    cited = {study.number for study in studies() if study.facts.get("text") == "cited"}
    return [each for each in all_published() if each.study not in cited and each.source == source]


def test_tables_are_those_of_the_study() -> None:
    """Each row of ours is the printed cells of one line, in their order, none left out."""
    rows: dict[tuple[int, str, str], list[str]] = defaultdict(list)
    expected: dict[tuple[int, str], list[str]] = defaultdict(list)
    for each in of_texts():
        if each.place.startswith("table"):
            if each.kind == "expectation":
                expected[each.study, each.place.removeprefix("table ")].append(each.text)
            else:
                rows[each.study, each.place, each.row].append(each.text)
    assert len(rows) > 50
    for where, texts in rows.items():
        lines = study_text(where[0]).splitlines()
        cells = [re.split(r"%? *(?:[|\t]| [–-] ) *", line) for line in lines]
        assert any(texts == c[at : at + len(texts)] for c in cells for at in range(len(c))), where
    for (study, table), texts in expected.items():
        title = re.search(
            rf"^Table {table}: .*Expected: ([^)]*)\)$", study_text(study), re.MULTILINE
        )
        assert title and [wish.strip(" %") for wish in title[1].split(",")] == texts


def test_numbers_stand_in_the_texts() -> None:
    """Those that no table holds in their section, and the authors' and the reruns' in the baselines."""
    for each in of_texts():
        kind, _, number = each.place.partition(" ")
        if kind == "section":
            text = section(each.study, number)
            assert each.text in numbers(text) or each.text in text, each
    for each in [*of_texts("authors"), *of_texts("rerun")]:
        assert each.text in numbers(baselines()) or each.text in baselines(), each


# The data file, without the texts.


def test_the_file_is_in_order() -> None:
    """All studies, all kinds, all sources; CPUs where the place says so."""
    figures = all_published()
    assert {each.study for each in figures} == {1, 2, 3, 4, 5, 6}
    assert {each.kind for each in figures} == {"measurement", "expectation", "claim", "setting"}
    assert {each.source for each in figures} == {"study", "authors", "rerun"}
    for each in figures:
        named = re.fullmatch(r"(\d) CPUs?", each.column)
        assert each.cpus == (int(named[1]) if named else None), each
    assert {(each.row, each.text) for each in figures if not each.finished} == {
        ("Low Process Count", "not finished"),
        ("Starvation Check", "not reached"),
        ("priority 0", "infty"),
    }


def test_policies_are_ours() -> None:
    """Each is a policy of ours or one of its presets; all that is measured has one."""
    names = set()
    for path in [*(ROOT / "policies").glob("*.c"), *(ROOT / "policies/studies").glob("*.c")]:
        policy = path.stem.removeprefix("study-")
        found = re.search(
            r"struct preset \w+_presets\[\] = \{(.*?)^\};", path.read_text(), re.M | re.S
        )
        presets = re.findall(r'^    \{"([\w-]+)",', found[1], re.M) if found else []
        names |= {policy} | {f"{policy}:{preset}" for preset in presets}
    for each in all_published():
        if each.policy is not None:
            assert each.policy in names, each
        else:
            assert each.kind == "setting", each


GOOD = ["table 3", "A", "1 CPU", "measurement", "share", "%", "50.4", "1", "", "study"]


@pytest.mark.parametrize(
    ("column", "text", "error"),
    [
        ("row", "", "row is missing"),
        ("unit", "", "unit is missing"),
        ("kind", "guess", "guess"),
        ("source", "hearsay", "hearsay"),
        ("value", "many", "many is not a number"),
        ("value", "-1", "-1 is not a number"),
        ("value", "1.", "is not a number"),
        ("value", "nan", "is not a number"),
        ("cpus", "0", "must be a CPU"),
    ],
)
def test_a_bad_line_is_an_error(column: str, text: str, error: str) -> None:
    """It names the line and what is wrong."""
    bad = dict(zip(COLUMNS, GOOD, strict=True)) | {column: text}
    with pytest.raises(ValueError, match=f"line 3: .*{error}"):
        read_figures(as_csv([[*GOOD[:2], "2 CPUs", *GOOD[3:]], list(bad.values())]), 1)


def as_csv(rows: list[list[str]], heading: tuple[str, ...] = COLUMNS) -> io.StringIO:
    file = io.StringIO()
    csv.writer(file).writerows([heading, *rows])
    file.seek(0)
    return file


# What is ideal.


def test_least_mean_turnaround_is_the_least() -> None:
    """Of all ways to assign few processes to CPUs, each CPU's shortest first."""
    for work in ([1, 2, 3], [5, 1, 1, 4], [2, 2, 2, 7, 1]):
        for cpus in (1, 2, 3):
            best = min(
                sum(turnarounds(work, choice, cpus)) / len(work)
                for choice in product(range(cpus), repeat=len(work))
            )
            assert least_mean_turnaround(work, cpus) == pytest.approx(best)
    with pytest.raises(ValueError, match="must be a process"):
        least_mean_turnaround([], 1)


def turnarounds(work: list[int], choice: tuple[int, ...], cpus: int) -> list[float]:
    """If process i runs on CPU choice[i]."""
    ends = []
    for cpu in range(cpus):
        now = 0.0
        for each in sorted(
            each for each, chosen in zip(work, choice, strict=True) if chosen == cpu
        ):
            now += each
            ends.append(now)
    return ends


def test_no_published_time_is_better_than_ideal() -> None:
    """Under no scheduler of study 1, on one to five CPUs."""
    for table in (1, 2):
        times = [each for each in published(1, table) if each.quantity == "completion"]
        assert {each.row for each in times} == {test.row for test in TIMING_TESTS[table]}
        for each in times:
            assert each.cpus is not None
            # The size of the work is taken from the 86 ticks of one cell, which hold some overhead:
            # under priorities the same work took 84. And the study tells whole ticks.
            least = ideal_told(table, each.row, each.cpus) * 84 / 86
            assert each.value + 0.5 >= least, each
    assert ideal_completion(1, "CPU-heavy", 1) == pytest.approx(86)
    assert ideal_completion(1, "Starvation Check", 1) == pytest.approx(43.0, abs=0.03)
    assert ideal_completion(1, "I/O-bound", 5) == 20
    assert ideal_completion(2, "I/O-bound", 1) == pytest.approx(22.5)
    assert {ideal_told(2, "Mixed Load", cpus) for cpus in CPUS} == {50}
    mixed = [ideal_completion(1, "Mixed Load", cpus) for cpus in CPUS]
    assert mixed == pytest.approx([107.5, 53.75, 50, 50, 50])
    with pytest.raises(KeyError):
        ideal_completion(1, "Nothing", 1)


# What does not fit together.


CONTRADICTIONS = [(study.number, each) for study in studies() for each in study.contradictions]


def test_contradictions_are_told_once() -> None:
    """Each has a name, a reason, and two places or more; one of number theory needs no second."""
    names = Counter((study, each.name) for study, each in CONTRADICTIONS)
    assert max(names.values()) == 1
    assert {study for study, _ in CONTRADICTIONS} == {1, 2, 3, 4, 5}
    for _, each in CONTRADICTIONS:
        assert each.reason.endswith(".")
        assert each.checked.endswith(".")
        assert len(each.statements) > 1 or each.name in ("not-drawn", "tickets-of-b")
        assert all(said.numbers or said.words for said in each.statements), each
    concerned = [each.name for _, each in CONTRADICTIONS if each.concerns("section 2.1")]
    assert concerned == ["mixed-what-takes-long"]


@pytest.mark.parametrize(
    ("study", "each"),
    CONTRADICTIONS,
    ids=[f"{study}-{each.name}" for study, each in CONTRADICTIONS],
)
def test_contradictions_stand_in_the_study(study: int, each: Contradiction) -> None:
    """All numbers and terms of a statement in one paragraph or one row of its place."""
    for statement in each.statements:
        assert stands(study, statement), statement
        changed = [*statement.numbers[:-1], "".join(statement.numbers[-1:]) + "07"]
        assert not stands(study, replace(statement, numbers=tuple(changed)))


def stands(study: int, statement: Statement) -> bool:
    """Is that what the place says?"""
    kind, _, number = statement.place.partition(" ")
    if kind == "table":
        cells = [each for each in published(study, int(number)) if statement.row in ("", each.row)]
        return set(statement.numbers) <= {each.text for each in cells}
    return any(
        set(statement.numbers) <= numbers(text) and all(word in text for word in statement.words)
        for text in paragraphs(section(study, number))
    )
