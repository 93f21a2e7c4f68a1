# SPDX-License-Identifier: MIT
"""Tests the studies' data: published figures, ideal values, and contradictions.

`compare_with_texts.py` compares the data with the studies' texts, on machines that have them.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from itertools import product

import pytest

from schedlab.paths import ROOT
from schedlab.studies import (
    published,
    read_figures,
    select,
)
from schedlab.studies.figures import COLUMNS
from schedlab.studies.ideal_times import (
    CPUS,
    TIMING_TESTS,
    ideal_completion,
    ideal_reported,
    smallest_mean_turnaround,
)
from schedlab.studies.study import Contradiction, find_studies

# The data file.


def test_the_file_is_in_order() -> None:
    """It has all studies, kinds and sources; CPU counts where the place states them."""
    figures = select()
    assert {figure.study for figure in figures} == {1, 2, 3, 4, 5, 6}
    assert {figure.kind for figure in figures} == {"measurement", "expectation", "claim", "setting"}
    assert {figure.source for figure in figures} == {"study", "authors", "rerun"}
    for figure in figures:
        named = re.fullmatch(r"(\d) CPUs?", figure.column)
        assert figure.cpus == (int(named[1]) if named else None), figure
    assert {(figure.row, figure.text) for figure in figures if not figure.is_number} == {
        ("Low Process Count", "not finished"),
        ("Starvation Check", "not reached"),
        ("priority 0", "infty"),
        ("priority 0", "unlimited"),
    }


def test_policies_are_ours() -> None:
    """Each is a built-in policy or one of its presets; every measured figure has one."""
    names = set()
    for path in [*(ROOT / "policies").glob("*.c"), *(ROOT / "policies/studies").glob("*.c")]:
        policy = path.stem.removeprefix("study-")
        match = re.search(
            r"struct preset \w+_presets\[\] = \{(.*?)^\};", path.read_text(), re.M | re.S
        )
        presets = re.findall(r'^    \{"([\w-]+)",', match[1], re.M) if match else []
        names |= {policy} | {f"{policy}:{preset}" for preset in presets}
    for figure in select():
        if figure.policy is not None:
            assert figure.policy in names, figure
        else:
            assert figure.kind == "setting", figure


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
    """The error names the line and the mistake."""
    bad = dict(zip(COLUMNS, GOOD, strict=True)) | {column: text}
    with pytest.raises(ValueError, match=f"line 3: .*{error}"):
        read_figures(as_csv([[*GOOD[:2], "2 CPUs", *GOOD[3:]], list(bad.values())]), 1)


def as_csv(rows: list[list[str]], heading: tuple[str, ...] = COLUMNS) -> io.StringIO:
    file = io.StringIO()
    csv.writer(file).writerows([heading, *rows])
    file.seek(0)
    return file


# Ideal values.


def test_least_mean_turnaround_is_the_least() -> None:
    """Compares all ways to assign few processes to CPUs, each CPU's shortest first."""
    for work in ([1, 2, 3], [5, 1, 1, 4], [2, 2, 2, 7, 1]):
        for cpus in (1, 2, 3):
            best = min(
                sum(turnarounds(work, choice, cpus)) / len(work)
                for choice in product(range(cpus), repeat=len(work))
            )
            assert smallest_mean_turnaround(work, cpus) == pytest.approx(best)
    with pytest.raises(ValueError, match="must be a process"):
        smallest_mean_turnaround([], 1)


def turnarounds(work: list[int], choice: tuple[int, ...], cpus: int) -> list[float]:
    """Returns the turnarounds if process i runs on CPU choice[i]."""
    ends = []
    for cpu in range(cpus):
        now = 0.0
        for burst in sorted(
            burst for burst, chosen in zip(work, choice, strict=True) if chosen == cpu
        ):
            now += burst
            ends.append(now)
    return ends


def test_no_published_time_is_better_than_ideal() -> None:
    """This holds under every scheduler of study 1, on one to five CPUs."""
    for table in (1, 2):
        times = [figure for figure in published(1, table) if figure.quantity == "completion"]
        assert {figure.row for figure in times} == {test.row for test in TIMING_TESTS[table]}
        for figure in times:
            assert figure.cpus is not None
            # The size of the work is derived from one cell of 86 ticks, which includes some
            # overhead: under priorities the same work took 84. And the study reports whole ticks.
            least = ideal_reported(table, figure.row, figure.cpus) * 84 / 86
            assert figure.value + 0.5 >= least, figure
    assert ideal_completion(1, "CPU-heavy", 1) == pytest.approx(86)
    assert ideal_completion(1, "Starvation Check", 1) == pytest.approx(43.0, abs=0.03)
    assert ideal_completion(1, "I/O-bound", 5) == 20
    assert ideal_completion(2, "I/O-bound", 1) == pytest.approx(22.5)
    assert {ideal_reported(2, "Mixed Load", cpus) for cpus in CPUS} == {50}
    mixed = [ideal_completion(1, "Mixed Load", cpus) for cpus in CPUS]
    assert mixed == pytest.approx([107.5, 53.75, 50, 50, 50])
    with pytest.raises(KeyError):
        ideal_completion(1, "Nothing", 1)


# Contradictions.


CONTRADICTIONS = [
    (study.number, contradiction)
    for study in find_studies()
    for contradiction in study.contradictions
]


def test_contradictions_are_listed_once() -> None:
    """Each has a name, a reason, and at least two places; a contradiction of number theory
    needs no second.
    """
    names = Counter((study, contradiction.name) for study, contradiction in CONTRADICTIONS)
    assert max(names.values()) == 1
    assert {study for study, _ in CONTRADICTIONS} == {1, 2, 3, 4, 5}
    for _, contradiction in CONTRADICTIONS:
        assert contradiction.reason.endswith(".")
        assert contradiction.checked.endswith(".")
        assert len(contradiction.statements) > 1 or contradiction.name in (
            "not-drawn",
            "tickets-of-b",
        )
        assert all(
            statement.numbers or statement.words for statement in contradiction.statements
        ), contradiction
    concerned = [
        contradiction.name
        for _, contradiction in CONTRADICTIONS
        if contradiction.concerns("section 2.1")
    ]
    assert concerned == ["mixed-what-takes-long"]


@pytest.mark.parametrize(("study", "contradiction"), CONTRADICTIONS)
def test_contradictions_quote_the_tables_correctly(
    study: int, contradiction: Contradiction
) -> None:
    for statement in contradiction.statements:
        kind, _, number = statement.place.partition(" ")
        if kind == "table":
            rows = [e for e in published(study, int(number)) if statement.row in ("", e.row)]
            assert set(statement.numbers) <= {e.text for e in rows}, statement
