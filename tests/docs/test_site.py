# SPDX-License-Identifier: MIT
"""Tests the site of the documents: refusals, strictness, and search without a server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from refused import refusal
from schedlab.errors import SchedlabError

if sys.version_info < (3, 11):
    pytest.skip("Sphinx needs Python 3.11", allow_module_level=True)

from schedlab_tools.documents import site

pytestmark = pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app")

INDEX = "# Documents\n\n## All\n\n### Reference: look\n\n| a | b |\n|---|---|\n| x | [words](words.md#a-boost) |\n"
WORDS = "# Words\n\n## A boost\n\nLifts tasks; see [the code](../policies/a.c).\n"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a small checkout: two documents and a source."""
    monkeypatch.setattr(site, "ROOT", tmp_path / "checkout")
    for name, text in {
        "README.md": "# A lab\n",
        "docs/README.md": INDEX,
        "docs/words.md": WORDS,
        "policies/a.c": "/* A boost. */\nint a;\n",
    }.items():
        path = site.ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return site.ROOT


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    assert f"--site {tmp_path}: contains other files" in refusal(
        "dev", "docs", "--site", str(tmp_path)
    )
    assert "is a file" in refusal("dev", "docs", "--site", str(tmp_path / "mine"))
    assert "cannot be made" in refusal("dev", "docs", "--site", str(tmp_path / "mine" / "site"))
    assert [path.read_text() for path in tmp_path.iterdir()] == ["kept"]


@pytest.mark.parametrize("planted", ["[x](words.md#no-boost)", "[x](none.md)"])
def test_broken_links_are_named_and_change_nothing(
    checkout: Path, tmp_path: Path, planted: str
) -> None:
    (checkout / "docs" / "words.md").write_text(f"{WORDS}\n{planted}\n")
    with pytest.raises(SchedlabError, match=r"docs/words\.md:7: WARNING"):
        site.build(tmp_path / "site")
    assert not (tmp_path / "site").exists()


@pytest.mark.usefixtures("checkout")
def test_links_and_search_work_without_a_server(browser: Browser, tmp_path: Path) -> None:
    site.build(tmp_path / "site")
    page = browser.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto((tmp_path / "site" / "index.html").as_uri())
    page.get_by_role("link", name="words", exact=True).click()
    assert page.url.endswith("/docs/words.html#a-boost")
    page.get_by_role("link", name="the code").click()
    assert page.locator("h1").inner_text().startswith("policies/a.c")
    page.get_by_role("textbox", name="Search").fill("boost")
    page.keyboard.press("Enter")
    page.locator("#search-results li a", has_text="policies/a.c").wait_for()
    assert {url.partition(":")[0] for url in requests} <= {"file", "data"}
    page.close()
