# SPDX-License-Identifier: MIT
"""A report for a paper: LaTeX that compiles whatever the texts are, and figures of the sizes of papers."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report_samples import sample_report, table
from schedlab.base.toolchain.policies import known_policies
from schedlab.report import build, charts, drawing, latex
from schedlab.report.model import Cell, Table
from schedlab.report.specifications import for_paper
from test_charts import runs

POINTS_PER_MM, PIXELS_PER_MM = 72 / 25.4, 96 / 25.4


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paper")
    first = build.write(sample_report(), folder, ("latex",))
    assert first == folder / "latex" / "report.tex"
    return first.parent


def test_each_table_and_figure_has_its_file(paper: Path) -> None:
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


@pytest.mark.parametrize("name", ["lines", "ecdf-panels"])
def test_a_legend_leaves_narrow_plots_their_width(name: str) -> None:
    """Of many policies, as many names stand side by side as a column of a paper has room for."""
    rows = runs(tuple(f"{policy}:a-preset" for policy in known_policies()), 2)
    chart = {
        "lines": lambda: charts.lines(
            "c", rows, x="cpus", y="ticks", x_title="CPUs", y_title="ticks", title="t", caption=""
        ),
        "ecdf-panels": lambda: charts.ecdf(
            "c",
            rows,
            value="ticks",
            panel="group",
            x_title="ticks",
            y_title="%",
            title="t",
            caption="",
        ),
    }[name]()
    wanted = 85 * PIXELS_PER_MM
    width = re.search(r'width="([\d.]+)"', drawing.narrowed(for_paper(chart), wanted))
    assert width and float(width[1]) == pytest.approx(wanted, rel=0.05)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])))
def test_text_has_nothing_that_latex_obeys(text: str) -> None:
    told = latex.plain(text)
    without_commands = re.sub(
        r"\\(text[a-z]+\{\}|ensuremath\{(\\[a-z]+|-|\^\{\w\})\}|[#$%&_{}])", "", told
    )
    assert not re.search(r"[\\#$%&_^~]", without_commands.replace("~", "")), told
    assert without_commands.count("{") == without_commands.count("}")


def test_a_list_is_left_to_its_csv(tmp_path: Path) -> None:
    report = sample_report()
    listed = replace(table("listed"), is_list=True)
    (section, *others) = report.pages[0].sections
    page = replace(report.pages[0], sections=(replace(section, blocks=(listed,)), *others))
    build.write(replace(report, pages=(page,)), tmp_path, ("latex",))
    assert not (tmp_path / "latex" / "listed.tex").exists()
    assert "listed" not in (tmp_path / "latex" / "report.tex").read_text()


def test_numbers_are_for_siunitx_and_words_are_not() -> None:
    for text, told in (
        ("1,234.5", "\\num{1234.5}"),
        ("−3", "\\num{-3}"),
        ("12 of 40", "12 of 40"),
        ("50 %", "50 \\%"),
    ):
        assert latex._cell(Cell(text), {}) == told


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no pdflatex is here: NOT COMPILED")
def test_it_compiles(paper: Path) -> None:
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "report.tex"],
        cwd=paper,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
