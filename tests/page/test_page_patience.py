# SPDX-License-Identifier: MIT
"""Tests how long the playground waits for its workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from schedlab.monitor.standalone.modules import bundled

PATIENCE_MS = 1500


@pytest.mark.parametrize(
    ("times_ms", "outcomes"),
    [([700] * 4, ["fulfilled"] * 4), ([100, 60_000, 100], ["fulfilled", "rejected", "rejected"])],
)
def test_waiting_for_earlier_requests_is_not_late(
    browser: Browser, times_ms: list[int], outcomes: list[str]
) -> None:
    """Formerly a link's decision was lost on a busy machine: the compiler was stopped for being late
    while it did what had been requested before.
    """
    page = browser.new_page()
    page.evaluate(f"() => {{ {bundled(Path(__file__).with_name('patience.js'), {})} }}")
    actual = page.evaluate("(inputs) => outcomes(...inputs)", [PATIENCE_MS, times_ms])
    page.close()
    assert actual == outcomes
