# SPDX-License-Identifier: MIT
"""Tests that a paper report has a picture per choice, where a page lets the reader choose."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from report_samples import line_chart
from schedlab.report import build
from schedlab.report.model import Page, Report, Section


def test_they_stand_in_documents_for_paper_alone(tmp_path: Path) -> None:
    stills = (line_chart("of-rr", "Of rr"), line_chart("of-mlfq", "Of mlfq"))
    chart = replace(line_chart("any", "Choose"), still=stills)
    page = Page("first", "First", "Lead.", (Section("A", (line_chart("before"), chart)),))
    report = Report("r", (page,))
    build.write_formats(report, tmp_path, ("html", "markdown"))
    text = (tmp_path / "report.md").read_text()
    assert "**Figure 2.1.** Of rr" in text and "**Figure 2.2.** Of mlfq" in text
    assert (
        "files/of-mlfq.svg" in text and "files/any.svg" not in text and '<a id="any"></a>' in text
    )
    html = (tmp_path / "index.html").read_text()
    assert 'id="any"' in html and "Of rr" not in html
    names = {path.name for path in (tmp_path / "files").iterdir()}
    assert {"any.svg", "of-rr.svg", "of-rr.csv", "of-mlfq.png"} <= names
    assert pl.read_csv(tmp_path / "files" / "of-rr.csv").height
