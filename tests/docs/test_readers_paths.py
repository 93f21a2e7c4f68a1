# SPDX-License-Identifier: MIT
"""What a reader looks for is there: an answer to each row of doctor, each lesson, each document."""

from __future__ import annotations

import re

import pytest

from conftest import ROOT
from schedlab.base.toolchain.tools import BROWSERS
from schedlab.commands.examination import examine
from schedlab.paths import SHARED

DOCS = ROOT / "docs"


def section(name: str, title: str) -> str:
    text = (DOCS / name).read_text()
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_each_row_of_doctor_has_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SHARED, "/none")
    table = section("faq.md", "What to do about a message of doctor")
    answered = {
        name
        for row in re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)
        for name in row.split(", ")
    }
    findings = examine()
    assert len(findings) > 20
    for finding in findings:
        name = re.sub(r"-\d+$", "", finding.name)
        if finding.purpose == "Python library":
            name = "a Python library"
        elif name in BROWSERS:
            name = "a browser"
        elif name == "Python":
            continue  # it is what doctor runs by
        assert name in answered, f"docs/faq.md does not say what to do about doctor's {name}"


def test_each_lesson_is_on_the_path_of_teachers() -> None:
    path = section("README.md", "Teach")
    for lesson in (ROOT / "python/schedlab/monitor/lessons").glob("*.json"):
        assert f"`{lesson.stem}`" in path


def test_three_paths_and_a_list_lead_to_each_document() -> None:
    text = (DOCS / "README.md").read_text()
    titles = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert titles == ["Teach", "Measure Linux", "Publish", "All documents"]
    listed = section("README.md", "All documents")
    for page in DOCS.glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in listed, page.name
