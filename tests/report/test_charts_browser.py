# SPDX-License-Identifier: MIT
"""Tests charts in a browser: drawn without console messages, on a dark page; zoom and legends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from schedlab.base.toolchain.tools import BROWSERS, find_browser
from schedlab.report.html import charts_script
from schedlab.report.specifications import page_specification
from test_charts import MAKERS, made

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSER = find_browser()
pytestmark = [
    pytest.mark.skipif(not BROWSER, reason=f"no browser is here: install {BROWSERS[0]}"),
    pytest.mark.xdist_group("charts in a browser"),
]
INK = "rgb(221, 226, 231)"


@pytest.fixture(scope="module")
def page_and_messages(browser: Browser) -> tuple[Page, list[str]]:
    """Returns all charts on one dark page, and the browser's messages."""
    figures = "".join(
        f'<figure class="chart" id="{name}"><div class="drawing" style="width: 100%"></div>'
        f'<script type="application/json">{json.dumps(page_specification(made(name)))}</script>'
        '<p class="files"></p></figure>'
        for name in MAKERS
    )
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.set_content(f'<body style="background: #101317; color: {INK}">{figures}</body>')
    page.add_script_tag(content=charts_script())
    page.wait_for_selector("html[data-charts=drawn]", state="attached", timeout=60_000)
    return page, messages


def test_the_console_is_silent(page_and_messages: tuple[Page, list[str]]) -> None:
    page, messages = page_and_messages
    assert messages == []
    assert page.locator("figure .drawing svg").count() == len(MAKERS)


@pytest.mark.parametrize("name", MAKERS)
def test_a_chart_has_marks_in_the_ink_of_its_page(
    page_and_messages: tuple[Page, list[str]], name: str
) -> None:
    page, _ = page_and_messages
    drawing = page.locator(f"#{name} svg")
    assert drawing.locator(".mark-rect path, .mark-line path, .mark-symbol path").count() > 1
    colours = drawing.evaluate(
        "svg => [...svg.querySelectorAll('text')].map(text => getComputedStyle(text).fill)"
    )
    assert colours and set(colours) == {INK}
