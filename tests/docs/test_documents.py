# SPDX-License-Identifier: MIT
"""Tests that the documents show real output, and that readers can reach each document."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import ROOT
from schedlab.base.toolchain.tools import BROWSERS
from schedlab.commands.doctor import examine_all
from schedlab.errors import SchedlabError
from schedlab.paths import SHARED_CACHE_VARIABLE
from schedlab_tools.documents import first_run, screens
from schedlab_tools.documents.gallery import pages as gallery
from schedlab_tools.documents.make import parts
from schedlab_tools.documents.marked_parts import marked, with_marked

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


def test_the_readme_has_what_the_first_run_prints() -> None:
    """If this fails, run `./schedlab dev docs run` and review the changes."""
    assert marked((ROOT / "README.md").read_text(), first_run.PART) == first_run.block()


def test_a_part_is_replaced_and_the_rest_stays() -> None:
    document = "a <!-- x -->old<!-- end --> b <!-- y -->other<!-- end -->"
    new = with_marked(document, "x", "new")
    assert new == document.replace("old", "new")
    assert marked(new, "y") == "other"
    with pytest.raises(SchedlabError, match="<!-- z -->"):
        marked(document, "z")


def test_generated_documents_exist() -> None:
    made = [file for part in parts().values() for file in part.files]
    assert [file for file in made if not file.is_file()] == []
    assert set(screens.SCREENS) <= set(made)


def test_every_picture_is_shown() -> None:
    shown = {
        (page.parent / name).resolve()
        for page in PAGES
        for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text())
    }
    pictures = {file for kind in ("*.svg", "*.png") for file in DOCS.rglob(kind)}
    assert shown == {file for file in pictures if file.parent != gallery.FOLDER}


def section(name: str, title: str) -> str:
    text = (DOCS / name).read_text()
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_doctor_rows_have_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SHARED_CACHE_VARIABLE, "/none")
    table = section("faq.md", "What to do about doctor's messages")
    rows = re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)
    answered = {name for row in rows for name in row.split(", ")}
    findings = examine_all()
    assert len(findings) > 20
    for finding in findings:
        name = re.sub(r"-\d+$", "", finding.name)
        if finding.purpose == "Python library":
            name = "a Python library"
        elif name in BROWSERS:
            name = "a browser"
        assert name in answered or name == "Python", f"docs/faq.md has nothing about {name}"


def test_documents_and_lessons_are_listed() -> None:
    listed, lessons = section("README.md", "All documents"), section("README.md", "Teach")
    for page in DOCS.glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in listed, page.name
    for lesson in (ROOT / "python/schedlab/monitor/lessons").glob("*.json"):
        assert f"`{lesson.stem}`" in lessons


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_table_rows_are_separate(page: Path) -> None:
    """A table that is wrapped like a paragraph is rendered as a paragraph."""
    lines = [line.strip() for line in page.read_text().splitlines() if line.startswith("|")]
    assert [line for line in lines if "|---" in line and not re.fullmatch(r"[|:-]+", line)] == []
    assert [line for line in lines if not line.endswith("|")] == []
