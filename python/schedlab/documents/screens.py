# SPDX-License-Identifier: MIT
"""What a browser shows, for pages that speak of it. A picture differs a little each time, since the page is alive."""

from __future__ import annotations

from playwright.sync_api import Page, sync_playwright

from schedlab.documents.shown import shown
from schedlab.errors import SchedlabError
from schedlab.page.build import FILE
from schedlab.paths import ROOT
from schedlab.toolchain.tools import find_browser

PICTURES = ROOT / "docs"
_SIZE = (1440, 900)
_LOADING_MS, _WATCHED_MS = 1000, 6000
SCREENS = {PICTURES / name: setup for name, setup in shown()["screens"].items()}
"""Files, and what the page is opened with."""


def make() -> None:
    """Writes all of them. SchedlabError: there is no browser."""
    browser = find_browser()
    if not browser:
        raise SchedlabError("there is no Chromium: `./schedlab doctor` says how to install it")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for file, setup in SCREENS.items():
            page = chromium.new_page(viewport={"width": _SIZE[0], "height": _SIZE[1]})
            page.goto(FILE.as_uri() + setup)
            _go_on(page)
            page.wait_for_timeout(_WATCHED_MS)
            page.screenshot(path=file)
            page.close()
        chromium.close()


def _go_on(page: Page) -> None:
    """A lesson goes on to its second step, which is the first where something has happened."""
    button = page.get_by_role("button", name="To the next step")
    page.wait_for_timeout(_LOADING_MS)
    if button.is_visible():
        button.click()
