# SPDX-License-Identifier: MIT
"""Controls the monitor's page in a browser: start.py schedlab_tools.soak.visitor BROWSER SERVER_LOG.

The page's address is in the server's log; the page's memory use is printed. It ends by SIGTERM, or
with status 1 at the first message on the page's console.
"""

from __future__ import annotations

import re
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from playwright.sync_api import Locator

TIMEOUT_S = 300
SIZE = (1500, 2000)
"""Large enough to show, and therefore draw, all panels."""
POLICY_PANEL = "#policy-a"
"""The panel of the first system's policy."""
REPORT_S, STEER_S = 5.0, 60.0
_ADDRESS = re.compile(r"^https?://\S+$", re.MULTILINE)


def address_in(log: Path) -> str:
    """Returns the page's address as soon as the server logs it. Raises TimeoutError."""
    limit = time.monotonic() + TIMEOUT_S
    while time.monotonic() < limit:
        match = _ADDRESS.search(log.read_text(errors="replace"))
        if match:
            return match[0]
        time.sleep(0.1)
    raise TimeoutError(f"the monitor printed no address within {TIMEOUT_S} s")


def report_progress(session: Any, frames: int) -> None:
    """Prints the page's memory use after garbage collection."""
    session.send("HeapProfiler.collectGarbage")
    heap = session.send("Runtime.getHeapUsage")
    document = session.send("Memory.getDOMCounters")
    print(
        f"soak steered={frames} js_heap_bytes={int(heap['usedSize'])}"
        f" dom_nodes={document['nodes']} dom_listeners={document['jsEventListeners']}",
        flush=True,
    )


def steer(choice: Locator, turn: int) -> None:
    """Selects the next policy that the page offers."""
    offered = choice.locator("option").evaluate_all("options => options.map(each => each.value)")
    choice.select_option(offered[turn % len(offered)])


def main(browser: str, log: Path) -> int:
    """Runs until a signal or a message on the console; returns the exit status."""
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    trouble: list[str] = []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=browser,
            args=["--no-sandbox"],
            handle_sigterm=False,
            handle_sigint=False,
        )
        page = chromium.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
        page.set_default_timeout(TIMEOUT_S * 1000)
        page.on("console", lambda message: trouble.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.goto(address_in(log))
        choice = page.locator(POLICY_PANEL).get_by_label("Policy", exact=True)
        choice.wait_for()
        session = page.context.new_cdp_session(page)
        steered, next_steer = 0, time.monotonic() + STEER_S
        while not ended and not trouble:
            report_progress(session, steered)
            if time.monotonic() >= next_steer:
                steer(choice, steered)
                steered, next_steer = steered + 1, next_steer + STEER_S
            page.wait_for_timeout(REPORT_S * 1000)
        if not trouble:
            chromium.close()
    for line in trouble:
        print(line, file=sys.stderr)
    return 1 if trouble else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], Path(sys.argv[2])))
