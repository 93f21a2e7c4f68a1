# SPDX-License-Identifier: MIT
"""Tests the report for papers: LaTeX that compiles with any texts, and figures in the sizes
of papers.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report_samples import sample_report
from schedlab.report import build, latex
from schedlab.report.model import Table

POINTS_PER_MM, PIXELS_PER_MM = 72 / 25.4, 96 / 25.4


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paper")
    first = build.write_formats(sample_report(), folder, ("latex",))
    assert first == folder / "latex" / "report.tex"
    return first.parent


def test_tables_and_figures_have_files(paper: Path) -> None:
    document = (paper / "report.tex").read_text()
    for page in sample_report().pages:
        for block in page.blocks():
            if not hasattr(block, "name"):
                continue
            assert f"\\input{{{block.name}}}" in document
            kind = "tab" if isinstance(block, Table) else "fig"
            assert f"\\label{{{kind}:{block.name}}}" in (paper / f"{block.name}.tex").read_text()
    assert "version = {0." in (paper / "schedlab.bib").read_text()


def test_a_table_has_rules_numbers_and_its_notes(paper: Path) -> None:
    text = (paper / "shares.tex").read_text()
    assert text.count("\\toprule") == text.count("\\bottomrule") == text.count("\\begin{tabular}")
    assert (
        "\\ensuremath{\\checkmark}\\,\\num{49.8} {\\footnotesize {[}\\num{48.1}, \\num{51.5}{]}}"
        in text
    )
    assert "\\num{50.0}\\textsuperscript{1}" in text
    assert "\\textsuperscript{1}~The study's program \\emph{spins}: " in text
    assert "\\cmidrule(lr){3-4}\\cmidrule(lr){5-6}" in text


@pytest.mark.parametrize("width", latex.WIDTHS_MM)
def test_figures_are_as_wide_as_a_column_and_a_page(paper: Path, width: int) -> None:
    pictures = sorted(paper.glob(f"*-{width}mm.pdf"))
    assert pictures
    for picture in pictures:
        content = picture.read_bytes()
        box = re.search(rb"/MediaBox ?\[ ?0 0 ([\d.]+) ", content)
        assert box and float(box[1]) == pytest.approx(width * POINTS_PER_MM, abs=0.5), picture
        assert b"/FontFile" in content, "its letters are in it"


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])))
def test_text_has_nothing_that_latex_obeys(text: str) -> None:
    latex_text = latex.escape_latex(text)
    without_commands = re.sub(
        r"\\(text[a-z]+\{\}|ensuremath\{(\\[a-z]+|-|\^\{\w\})\}|[#$%&_{}])", "", latex_text
    )
    assert not re.search(r"[\\#$%&_^~]", without_commands.replace("~", "")), latex_text
    assert without_commands.count("{") == without_commands.count("}")


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no pdflatex is here: NOT COMPILED")
def test_it_compiles(paper: Path) -> None:
    result = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "report.tex"],
        cwd=paper,
        capture_output=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout.decode(errors="replace")[-2000:]
