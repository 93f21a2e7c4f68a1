# SPDX-License-Identifier: MIT
"""The studies' published figures: the data file holds what the studies print."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest

from schedlab.paths import ROOT
from schedlab.studies import Figure, all_published, published

STUDIES = Path(os.environ.get("SCHEDLAB_STUDIES") or ROOT.parent / "shared" / "studies")
"""Where the studies' texts are, on machines that have them."""


def study_text(number: int) -> str:
    """The text of a study; the test is skipped where it is not there."""
    paths = list(STUDIES.glob(f"{number}-*.txt"))
    if not paths:
        pytest.skip(f"{STUDIES} does not hold study {number}")
    return paths[0].read_text()


def printed_table(text: str, table: int) -> dict[tuple[str, str], str]:
    """The cells of a table by row and column, and what its title says is expected."""
    found = re.search(rf"^Table {table}: [^\n]*$\n+((?:^\|.*$\n)+)", text, re.MULTILINE)
    assert found, f"no table {table}"
    heading, _, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in found[1].splitlines()
    )
    cells = {
        (row[0], column): cell
        for row in rows
        for column, cell in zip(heading[1:], row[1:], strict=True)
    }
    expected = re.search(r"Expected: ([^)]*)\)", found[0].splitlines()[0])
    if expected:
        wishes = [wish.strip(" %") for wish in expected[1].split(",")]
        cells |= {(row[0], "expected"): wish for row, wish in zip(rows, wishes, strict=True)}
    return cells


def tables() -> list[tuple[int, int]]:
    """Study and table of all figures."""
    return list(dict.fromkeys((each.study, each.table) for each in all_published()))


@pytest.mark.parametrize(("study", "table"), tables())
def test_figures_are_those_of_the_study(study: int, table: int) -> None:
    """Each cell as it is printed, none left out, none made up."""
    ours = {(each.row, each.column): each.text for each in published(study, table)}
    assert ours == printed_table(study_text(study), table)


def test_each_figure_is_there_once() -> None:
    """A place names one number."""
    places = Counter((each.study, each.table, each.row, each.column) for each in all_published())
    assert max(places.values()) == 1
    assert all(each.value >= 0 and each.unit for each in all_published())


def test_study_1_measures_shares_on_one_to_five_cpus() -> None:
    """Tables 3 to 8. Columns add up to 100 %, but for one: Low Process Count on 2 CPUs."""
    columns: dict[tuple[int, str], list[Figure]] = {}
    for each in all_published():
        if each.study == 1 and each.column != "expected":
            columns.setdefault((each.table, each.column), []).append(each)
    assert len(columns) == 6 * 5
    sums = {place: sum(each.value for each in column) for place, column in columns.items()}
    assert sums.pop((3, "2 CPUs")) == pytest.approx(93.1)
    assert all(99.5 <= total <= 100.5 for total in sums.values()), sums
