# SPDX-License-Identifier: MIT
"""Opens the playground for its tests, and edits its source as a user does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from conftest import ROOT
from schedlab.monitor.standalone.playground import NO_LABS, make_playground
from schedlab.monitor.standalone.serving import server_of

expect.set_options(timeout=60_000)
FIRST_COMPILE_MS = 180_000
"""The browser prepares 75 MB of the compiler, on a host of any speed."""
RR: str = (ROOT / "policies" / "rr.c").read_text()
TICK = RR[RR.index("POLICY_FUNCTION enum tick_verdict") : RR.index("    state->ticks++;")].rstrip()
TAKE = "    return task_list_take_first_on(&STATE_OF(queue, struct rr_queue)->tasks, cpu);"
PICK = "    if (queue->scheduler->tunable[RR_TABLE_SCAN])\n        return rr_pick_from_table"
TWO_HOGS = urlencode(
    {"v": 1, "base": "rr", "against": "rr", "workload": "two-hogs", "cpus": 1, "span_ms": 300}
)


@contextmanager
def served_playground(folder: Path, labs: Mapping[str, Any] = NO_LABS) -> Iterator[str]:
    """Makes and serves the playground within the block; yields its address."""
    with server_of(make_playground(folder / "page", labs)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@contextmanager
def open_page(browser: Browser, address: str) -> Iterator[Page]:
    """Opens the playground in a wide window within the block. Fails if a script of the page failed."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(address)
    yield page
    assert errors == []
    context.close()


def edited(old: str, new: str) -> tuple[str, int]:
    """Returns round-robin's source with a replacement, and the line of the replacement's last line."""
    assert old in RR
    before, _, after = RR.partition(old)
    return f"{before}{new}{after}", f"{before}{new}".count("\n") + 1


def few(cases: Iterable[Any], count: int) -> list[Any]:
    """Returns cases for parametrize, all but the first `count` of them with --long only: each takes seconds."""
    marks = [(), (pytest.mark.long,)]
    return [pytest.param(case, marks=marks[n >= count]) for n, case in enumerate(cases)]


def state(page: Page) -> Locator:
    return page.locator("#result .state")


def write(page: Page, source: str) -> None:
    """Replaces the source, as by a user who pastes."""
    page.get_by_role("tab", name="policy.c").click()
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(source)


def write_and_run(page: Page, source: str) -> None:
    """Replaces the source, and waits for the complete result."""
    page.evaluate("delete document.querySelector('#result .state').dataset.complete")
    write(page, source)
    expect(page.locator("#result .state[data-complete]")).to_be_visible(timeout=FIRST_COMPILE_MS)
