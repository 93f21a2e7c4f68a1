# SPDX-License-Identifier: MIT
"""Tests footnotes that state a cause: the named runs exist, and the size of the effect is given."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from schedlab.errors import FileRefused
from schedlab.report.studies import notes_1, page_1
from schedlab.studies import select
from schedlab.studies.causes import CAUSES_FILE, Cause, cause_of, read_causes
from schedlab.studies.experiments import EXPERIMENTS
from schedlab.studies.study import find_studies

EVERY = [cause for study in find_studies() for cause in read_causes(study.number)]
NO_CAUSE = {"constant", "chance"}
"""Footnotes that state no cause: output of the study's program, and random variation."""


@pytest.mark.parametrize("cause", EVERY, ids=lambda cause: f"{cause.study}-{cause.name}")
def test_its_runs_exist_and_its_effect_is_stored(cause: Cause) -> None:
    for named in (cause.experiment, cause.counterpart):
        experiment, _, policy = named.partition(" ")
        assert experiment in EXPERIMENTS, named
        if policy:
            assert policy in EXPERIMENTS[experiment].grid_by_policy("full"), named
    assert cause.experiment != cause.counterpart
    assert cause.effects
    assert any(before != after for before, after in cause.effects.values())


@pytest.mark.parametrize("cause", EVERY, ids=lambda cause: f"{cause.study}-{cause.name}")
def test_it_covers_the_figures_that_it_names(cause: Cause) -> None:
    figures = [figure for figure in select(study=cause.study, source="study") if cause_of(figure)]
    covered = [figure for figure in figures if cause_of(figure) == cause]
    if cause.places:
        assert {figure.column for figure in covered} == set(cause.effects)
        assert {figure.row for figure in covered} == set(cause.rows)
    else:
        assert not covered


WORDED = {
    1: ((notes_1.TIME_FOOTNOTES.keys() | notes_1.SHARE_FOOTNOTES.keys()) - NO_CAUSE)
    | {"stays-cpu-heavy"},  # TimingQueries.imbalances() shows what it changes
    4: {"phase"},  # authors_output.phase_footnote()
}
"""Causes by study whose footnotes the page words, because causes.yaml is too short for them."""


@pytest.mark.parametrize("study", [study.number for study in find_studies()])
def test_footnotes_that_a_page_words_have_a_cause_in_the_file(study: int) -> None:
    named = {cause.name for cause in read_causes(study) if not cause.places}
    assert named == WORDED.get(study, set())


def test_no_other_page_words_a_footnote_of_a_measured_value() -> None:
    """A new footnote such as `notes={"measured": …}` needs a cause in the file and a line above."""
    worded = {
        path.name
        for path in Path(page_1.__file__).parent.glob("page_*.py")
        if re.search(
            r'notes=\{\s*"(measured|study_costs)"|"measured": (?!None)\w', path.read_text()
        )
    }
    assert worded == {"page_1.py", "page_2.py", "page_3.py", "page_4.py"}


def test_a_wrong_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / CAUSES_FILE).write_text("- {name: a, says: b}")
    with pytest.raises(FileRefused, match=r"causes\.yaml"):
        read_causes(7, tmp_path)
