# SPDX-License-Identifier: MIT
"""A stand-in page for ui.perfetto.dev: it receives a trace, and puts the received data into
its title.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

_ADDRESS = "https://ui.perfetto.dev/"
_PAGE = """<!DOCTYPE html><script>
let asked = 0;
addEventListener("message", (event) => {
    if (event.data === "PING") {
        asked += 1;
        if (asked > 2) event.source.postMessage("PONG", event.origin);
    } else if (event.data.perfetto) {
        const { buffer, title, fileName } = event.data.perfetto;
        document.title = JSON.stringify({ bytes: [...new Uint8Array(buffer)], title, fileName });
    }
});
</script>"""


def stand_in_for_perfetto(page: Page) -> None:
    """Makes windows of the page open this page instead of Perfetto's."""
    page.context.route(f"{_ADDRESS}**", _answer)


def _answer(route: Route) -> None:
    from playwright.sync_api import Error

    with suppress(Error):  # the window may be closed already
        route.fulfill(body=_PAGE, content_type="text/html")
