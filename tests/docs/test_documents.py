# SPDX-License-Identifier: MIT
"""What the documents show is what comes out, and a reader finds every one of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from conftest import ROOT
from schedlab import __version__
from schedlab.base.toolchain.tools import compiler
from schedlab.commands.examination import examine, libraries
from schedlab.errors import SchedlabError
from schedlab_tools.documents import first_run, screens, stairs
from schedlab_tools.documents.make import parts
from schedlab_tools.documents.marked import marked, with_marked

MEASURED_WITH = 19
DOCS = ROOT / "docs"
INDEX = (DOCS / "README.md").read_text()
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


def test_the_moving_picture_is_what_the_simulator_does() -> None:
    """Else: `./schedlab dev docs stairs`, and look at it."""
    drawn = stairs.picture()
    assert (DOCS / "stairs.svg").read_text() == drawn
    assert drawn.count(">boost<") == 1
    assert len(set(re.findall(r"(\S+ ms|0 ns) at the median", drawn))) == 2


def test_the_readme_has_what_the_first_run_prints() -> None:
    """Else: `./schedlab dev docs run`, and look at what has changed."""
    if compiler().version != MEASURED_WITH:
        pytest.skip(f"its times are those of a kernel that clang {MEASURED_WITH} compiled")
    assert marked((ROOT / "README.md").read_text(), first_run.PART) == first_run.block()


def test_a_part_is_replaced_and_the_rest_stays() -> None:
    document = "a <!-- x -->old<!-- end --> b <!-- y -->other<!-- end -->"
    new = with_marked(document, "x", "new")
    assert new == document.replace("old", "new")
    assert marked(new, "y") == "other"
    with pytest.raises(SchedlabError, match="<!-- z -->"):
        marked(document, "z")


def test_what_docs_makes_is_there() -> None:
    made = [file for part in parts().values() for file in part.files]
    assert [file for file in made if not file.is_file()] == []
    assert set(screens.SCREENS) <= set(made)


def test_the_index_names_every_page() -> None:
    told = set(re.findall(r"\]\(([\w-]+\.md)", INDEX))
    assert told == {page.name for page in DOCS.glob("*.md")} - {"README.md"}


def test_every_picture_is_shown() -> None:
    shown = {
        (page.parent / name).resolve()
        for page in PAGES
        for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text())
    }
    assert shown == {file for kind in ("*.svg", "*.png") for file in DOCS.glob(kind)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]*)(?:#[^)]*)?\)", page.read_text()):
        if not re.match(r"https?:", target):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_rows_of_tables_stand_apart(page: Path) -> None:
    """A table whose lines were wrapped as those of a paragraph is shown as one."""
    lines = [line.strip() for line in page.read_text().splitlines() if line.startswith("|")]
    assert [line for line in lines if "|---" in line and not re.fullmatch(r"[|:-]+", line)] == []
    assert [line for line in lines if not line.endswith("|")] == []


def test_the_answers_know_each_row_of_doctor() -> None:
    """Whatever is missing on a reader's host."""
    text = (DOCS / "faq.md").read_text()
    common = {each.name for each in libraries()} - {"libraries of the tests"}
    rows = {re.sub(r"-\d+$", "", each.name) for each in examine()} - common - {"Python"}
    browsers = {"chromium-headless-shell", "chromium", "google-chrome"}
    rows = {"a browser" if row in browsers else row for row in rows}
    assert [row for row in rows if row not in text] == []


def test_the_citation_is_of_this_release() -> None:
    told = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert told["version"] == __version__
    assert told["license"] == "MIT"
