# SPDX-License-Identifier: MIT
"""Receives what the monitor's page receives, without the panels. A browser runs the page's
session, keeps its frames, and sends a page's requests.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from playwright.async_api import Page, async_playwright

from page_waits import PATIENCE_S
from schedlab.base.toolchain.tools import find_browser
from schedlab.monitor.server import Server
from schedlab.monitor.session import Session
from schedlab.monitor.system import Refused

_WORKER = """address => {
    const worker = new Worker("/session/served_worker.js", { type: "module" });
    const asked = new Map();
    window.lab = {
        frames: {}, whole: {}, hello: null, lost: false, counts: {}, errors: [], missed: 0,
        ask: message => new Promise(resolve => {
            const id = asked.size + 1;
            asked.set(id, resolve);
            worker.postMessage({ id, ...message });
        }),
    };
    worker.addEventListener("error", ({ message }) => lab.errors.push(message));
    worker.addEventListener("message", ({ data }) => {
        if (data.type === "answer") asked.get(data.id)(data);
        else if (data.type === "hello") lab.hello = data;
        else if (data.type === "missed") lab.missed += data.frames;
        else if (data.type === "lost") lab.lost = true;
        else if (data.type === "frame") {
            lab.frames[data.system] = data;
            if (data.whole) lab.whole[data.system] = data;
            lab.counts[data.system] = (lab.counts[data.system] ?? 0) + 1;
        }
    });
    worker.postMessage({ address });
}"""


class LivePage:
    """See the module's docstring."""

    def __init__(self, page: Page) -> None:
        self.page = page

    async def ask(self, do: str, **message: Any) -> Any:
        """Returns the result. Raises Refused with the answer's message."""
        answer = await self.page.evaluate("message => lab.ask(message)", {"do": do, **message})
        if not answer["ok"]:
            raise Refused(answer["error"])
        return answer.get("result")

    async def received(self, what: str) -> Any:
        """Returns a part of its state."""
        return await self.page.evaluate(f"() => lab.{what}")

    async def frame(
        self, is_so: Callable[[dict[str, Any]], object] = lambda frame: True, letter: str = "a"
    ) -> dict[str, Any]:
        """Waits for a frame that meets the condition, and returns it."""
        limit = time.monotonic() + PATIENCE_S
        while time.monotonic() < limit:
            frame = (await self.received("frames")).get(letter)
            if frame and is_so(frame):
                result: dict[str, Any] = frame
                return result
            assert await self.received("errors") == []
            await asyncio.sleep(0.02)
        raise AssertionError("it did not come to that")


@asynccontextmanager
async def live_page(session: Session) -> AsyncIterator[LivePage]:
    """Serves a session that has not started, runs it, and opens a page of it."""
    server = Server(session)
    running = asyncio.ensure_future(session.run())
    try:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=str(find_browser()), args=["--no-sandbox"]
            )
            context = await browser.new_context()
            yield await another_page(await context.new_page(), server)
            assert not running.done(), running.exception()
            await browser.close()
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await server.close()
        await session.close()


async def another_page(page: Page, server: Server) -> LivePage:
    """Opens a second page in the same browser."""
    await page.goto(server.url.replace("/?", "/icon.svg?"))
    await page.evaluate(_WORKER, server.url.replace("http:", "ws:").replace("/?", "/socket?"))
    return LivePage(page)
