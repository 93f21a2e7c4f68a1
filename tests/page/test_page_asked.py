# SPDX-License-Identifier: MIT
"""Tests the answers of the page's session to requests about one system, all systems, or a
departed one.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from schedlab.monitor.standalone.modules import bundled


@pytest.mark.parametrize(
    ("letters", "system", "answer"),
    [
        ("ab", "b", {"result": "b"}),
        ("ab", "*", {"result": {"a": "a", "b": "b"}}),
        ("a", "b", {"refused": "system b no longer exists"}),
    ],
)
def test_departed_system_has_no_answer(
    browser: Browser, letters: str, system: str, answer: dict[str, object]
) -> None:
    """Formerly a panel requested its tunables, and treated the answer for no systems as a list."""
    page = browser.new_page()
    page.evaluate(f"() => {{ {bundled(Path(__file__).with_name('asked.js'), {})} }}")
    message = {"do": "explain", "system": system}
    actual = page.evaluate(
        "([letters, message]) => asked([...letters], message)", [letters, message]
    )
    page.close()
    assert actual == answer
