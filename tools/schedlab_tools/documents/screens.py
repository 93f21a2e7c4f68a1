# SPDX-License-Identifier: MIT
"""Takes screenshots of pages in a browser. They differ slightly each time, because the pages are animated."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Page, sync_playwright

from schedlab.base.files.atomic import file_hash
from schedlab.base.toolchain.committed import PAGE as FILE
from schedlab.base.toolchain.tools import compiler, find_browser
from schedlab.errors import SchedlabError
from schedlab.paths import ROOT
from schedlab_tools.documents.command_output import printed_output
from schedlab_tools.documents.marked_parts import write
from schedlab_tools.documents.shown_policies import shown

PICTURES = ROOT / "docs"
_SIZE = (1440, 900)
_REPORT_HEIGHT = 2500
"""Height of the start of the first page: findings, goals, pictures and studies."""
_LOADING_MS, _WATCHED_MS = 1000, 6000
SCREENS = {PICTURES / name: setup for name, setup in shown()["screens"].items()}
"""Files, and the arguments for opening the standalone page."""
REPORTS = {PICTURES / name: words for name, words in shown()["reports"].items()}
"""Files, and the command for the report in them."""
MADE = PICTURES / "screens.txt"
"""The hash of each picture, and the compiler behind what it shows."""


def make() -> None:
    """Writes all screenshots. Raises SchedlabError if there is no browser, or if a run fails."""
    browser = find_browser()
    if not browser:
        raise SchedlabError("there is no Chromium: `./schedlab doctor` says how to install it")
    with sync_playwright() as playwright, TemporaryDirectory(prefix="schedlab-") as folder:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": _SIZE[0], "height": _SIZE[1]})
        for file, setup in SCREENS.items():
            page.goto("about:blank")
            page.goto(FILE.as_uri() + setup)
            _go_on(page)
            page.wait_for_timeout(_WATCHED_MS)
            page.screenshot(path=file)
        for file, words in REPORTS.items():
            report = _report(words, Path(folder) / file.stem)
            page.set_viewport_size({"width": _SIZE[0], "height": _REPORT_HEIGHT})
            page.goto((report / "index.html").as_uri())
            page.wait_for_selector("html[data-charts=drawn]")
            page.screenshot(path=file)
        chromium.close()
    write(MADE, made_text())


def made_text() -> str:
    """Returns what MADE says of the pictures that are there, if this compiler was behind them."""
    return "".join(
        f"{file_hash(file)}  {file.name}  {compiler().description()}\n"
        for file in (*SCREENS, *REPORTS)
    )


def _report(words: list[str], out: Path) -> Path:
    """Runs studies, and returns their report's folder."""
    printed_output("schedlab", *words, "--out", str(out))
    return out / "report"


def _go_on(page: Page) -> None:
    """Advances a lesson to its second step, the first one with activity."""
    page.wait_for_timeout(_LOADING_MS)
    if "lesson=" in page.url:
        page.get_by_role("button", name="To the next step").click()
