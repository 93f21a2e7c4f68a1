# SPDX-License-Identifier: MIT
"""Tests that generated files of the repository match their current sources."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from vl_convert import svg_to_png

from committed_policies import policies_in_progress
from mistake_table import PAGE, table
from schedlab.base.toolchain import committed
from schedlab.base.toolchain.policies import build_policy_list
from schedlab.base.toolchain.tools import require_compiler
from schedlab.monitor.standalone.build import BYTES_MAX, FILE, hash_in, hash_of, sources
from schedlab_tools.budgets import decision_costs
from schedlab_tools.documents import (
    api_list,
    costs,
    lessons,
    linux_agreement,
    make,
    questions,
    readme_animation,
    screens,
    scx_agreement,
    trace_definitions,
)
from schedlab_tools.documents.gallery import pages, study_presets, trials
from schedlab_tools.documents.make import HELP, help_text
from schedlab_tools.documents.marked_parts import marked, with_marked, write
from schedlab_tools.questions import QUESTIONS, read_results


def test_self_contained_page_is_current() -> None:
    """If this fails, run `./schedlab page` and commit page/schedlab.html."""
    if new := policies_in_progress():
        pytest.skip(f"{', '.join(new)}: commit the policy, then ./schedlab page")
    page = FILE.read_text(encoding="utf-8")
    assert hash_in(page) == hash_of(sources())
    assert committed.read_page_hash(page) == committed.sources_hash()
    assert len(page.encode()) <= BYTES_MAX
    if require_compiler().is_pinned:
        assert f'<meta name="compiler" content="{require_compiler().description()}">' in page


def test_the_screens_are_of_the_pinned_compiler() -> None:
    """If this fails, run `./schedlab dev docs screens`."""
    if not require_compiler().is_pinned:
        pytest.skip("SCHEDLAB_CLANG names another compiler")
    assert screens.HASHES_FILE.read_text() == screens.made_text()


def test_the_pictures_of_the_gallery(tmp_path: Path) -> None:
    """If this fails, run `./schedlab dev docs gallery`."""
    stored_traces = pages.TRACES.read_text()
    made_traces = trials.traces(tmp_path, trials.setups_of(stored_traces))
    assert trials.hashes_text(made_traces) == stored_traces


def test_the_moving_picture_is_what_the_simulator_does() -> None:
    """If this fails, run `./schedlab dev docs stairs` and review the picture."""
    drawn = readme_animation.picture()
    assert make.STAIRS_PICTURE.read_text() == drawn
    assert drawn.count(">boost<") == 1
    assert len(set(re.findall(r"(\S+ ms|0 ns) at the median", drawn))) == 2


def test_the_moving_picture_needs_no_animation() -> None:
    drawn = make.STAIRS_PICTURE.read_text()
    uncovered, covers = re.subn('<rect class="ground cover"[^>]*/>', "", drawn)
    assert covers == 2
    assert svg_to_png(drawn) == svg_to_png(uncovered)


def test_the_table_and_the_picture_of_costs() -> None:
    """If this fails, run `./schedlab dev docs costs`."""
    stored = decision_costs()
    assert marked(costs.DOCUMENT.read_text("utf-8"), costs.PART) == costs.table(stored)
    assert costs.PICTURE.read_text() == costs.picture(stored)


def test_the_catalogue_of_policies() -> None:
    """If this fails, run `./schedlab dev docs policies`."""
    if new := policies_in_progress():
        pytest.skip(f"{', '.join(new)}: commit the policy, then ./schedlab dev docs policies")
    assert committed.committed_policy_list() == build_policy_list()


def test_the_document_of_the_studies() -> None:
    """If this fails, run `./schedlab dev docs studies` and review the changes."""
    assert make.DOCUMENT.read_text(encoding="utf-8") == make.text()


def test_the_reference_of_the_api() -> None:
    """If this fails, run `./schedlab dev docs api`."""
    assert api_list.DOCUMENT.read_text(encoding="utf-8") == api_list.text()


def test_the_help_that_needs_no_python() -> None:
    """If this fails, run `./schedlab dev docs help`."""
    assert HELP.read_text(encoding="utf-8") == help_text()


@pytest.mark.parametrize("file", trace_definitions.FILES, ids=lambda file: file.name)
def test_the_definitions_of_the_trace(file: Path) -> None:
    """If this fails, run `./schedlab dev docs trace-format`."""
    assert file.read_text(encoding="utf-8") == trace_definitions.FILES[file]()


@pytest.mark.parametrize("policy", trials.policies())
def test_the_code_in_the_gallery(policy: str) -> None:
    """If this fails, run `./schedlab dev docs gallery-code`."""
    if policy in policies_in_progress():
        pytest.skip(
            f"commit the policy, then write docs/gallery/{policy}.md and ./schedlab dev docs gallery"
        )
    page = pages.page_of(policy).read_text()
    assert marked(page, "code") == pages.code(page, policy)


@pytest.mark.parametrize("preset", study_presets.study_presets(), ids=lambda preset: preset.policy)
def test_the_page_of_a_study_preset(preset: study_presets.StudyPreset) -> None:
    """If this fails, run `./schedlab dev docs study-presets`."""
    assert preset.file.read_text("utf-8") == study_presets.page(preset)
    assert study_presets.stored_table() == study_presets.table()


def test_the_page_of_lessons() -> None:
    """If this fails, run `./schedlab dev docs lessons`."""
    data = lessons.load_data()
    assert lessons.PAGE.read_text("utf-8") == lessons.page(data)
    for lesson in lessons.lessons():
        assert lesson.picture.read_text("utf-8") == lessons.picture(lesson, data)


def test_the_page_of_agreement_with_linux() -> None:
    """If this fails, run `./schedlab dev docs linux-agreement`."""
    assert linux_agreement.DOCUMENT.read_text("utf-8") == linux_agreement.text()


def test_the_pages_of_questions() -> None:
    """If this fails, run `./schedlab dev docs questions`."""
    rows = read_results()
    for question in QUESTIONS:
        assert questions.page_of(question).read_text("utf-8") == questions.page(question, rows)
        assert questions.picture_of(question).read_text("utf-8") == questions.picture(
            question, rows
        )
    index = questions.INDEX.read_text("utf-8")
    assert marked(index, questions.PART) == questions.index(rows)


def test_the_agreement_of_sched_ext_with_linux() -> None:
    """If this fails, run `./schedlab dev bench scx-agreement` and `dev docs scx-agreement`."""
    assert marked(scx_agreement.DOCUMENT.read_text(), scx_agreement.PART) == scx_agreement.block()


def test_the_table_of_mistakes() -> None:
    """If this fails, set SCHEDLAB_GOLDEN=write to rewrite the table."""
    if os.environ.get("SCHEDLAB_GOLDEN") == "write":
        write(PAGE, with_marked(PAGE.read_text(), "mistakes", table()))
    assert marked(PAGE.read_text(), "mistakes") == table()
