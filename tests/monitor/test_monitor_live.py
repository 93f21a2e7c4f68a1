# SPDX-License-Identifier: MIT
"""Tests the whole monitor: the kernel on QEMU, the monitor's server, and a real browser.
Effects of the page's controls are read back from the kernel's sched_status.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from page_waits import PATIENCE_S, until
from schedlab import paths
from schedlab.base.toolchain.build import wasm_module
from schedlab.base.toolchain.policies import PolicyChoice
from schedlab.base.toolchain.tools import BROWSERS, find_browser
from schedlab.monitor.server import Server
from schedlab.monitor.session import Session
from schedlab.monitor.system import Refused, Setup, Status, System
from schedlab.monitor.system_factory import read_choices, software_facts
from schedlab.runs.parts import build_parts
from test_monitor_page import panel, wait_for_frames

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSER = find_browser()
pytestmark = [
    pytest.mark.qemu,
    pytest.mark.skipif(
        not BROWSER,
        reason=f"NO BROWSER: the monitor's page is NOT TESTED. Install one of {BROWSERS}",
    ),
    pytest.mark.xdist_group("monitor_page"),
]
T = TypeVar("T")


class Monitor:
    """A session and its server in a separate thread."""

    def __init__(self, setup: Setup) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.session, self.server = self.do(self._begin(setup))
        self.running = asyncio.run_coroutine_threadsafe(self.session.run(), self.loop)

    async def _begin(self, setup: Setup) -> tuple[Session, Server]:
        session = Session([setup], read_choices(), software=software_facts(setup))
        return session, Server(session)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE_S)

    @property
    def system(self) -> System:
        system = self.session.systems["a"].system
        assert system is not None
        return system

    def status(self) -> Status:
        """Returns the kernel's status. On a busy host its console may lose a line; then the
        status is requested again.
        """
        try:
            return self.do(self.system.read_status())
        except Refused:
            return self.do(self.system.read_status())

    def close(self) -> None:
        self.running.cancel()
        self.do(self._end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    async def _end(self) -> None:
        await self.server.close()
        await self.session.close()


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitor]:
    build_parts(("kernel", "disk", "simulator", "mkfs"))
    wasm_module()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "RUNS_FOLDER", tmp_path_factory.mktemp("runs"))
        monitor = Monitor(Setup("qemu", PolicyChoice("rr"), workloads=("two-hogs", "interactive")))
        try:
            yield monitor
        finally:
            monitor.close()


@pytest.fixture(scope="module")
def page(browser: Browser, monitor: Monitor) -> Iterator[Page]:
    """Returns the page; its console must stay empty throughout."""
    context = browser.new_context(viewport={"width": 1500, "height": 2000}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
    page.goto(monitor.server.url)
    wait_for_frames(page)
    yield page
    context.close()
    assert trouble == []


def row(page: Page, name: str) -> Any:
    return panel(page, "processes").get_by_role("row").filter(has_text=name).first


def test_what_the_kernel_does_is_seen(page: Page, monitor: Monitor) -> None:
    row(page, "hog").wait_for()
    row(page, "typist").wait_for()
    panel(page, "decisions").get_by_text("hog").first.wait_for()
    panel(page, "selections").get_by_text("hog").first.wait_for()
    clock = page.locator(".strip-clock")
    before = clock.inner_text()
    until(page, lambda: clock.inner_text() != before)
    # The typist's wake-up latencies are measured; watching adds a little to them.
    panel(page, "metrics").get_by_text("wake-ups").wait_for()
    cost = panel(page, "cost").get_by_text("within 5 %")
    cost.wait_for()


def test_a_policy_and_its_tunable_reach_the_kernel(page: Page, monitor: Monitor) -> None:
    policy = panel(page, "policy")
    policy.get_by_label("Policy", exact=True).select_option("mlfq:four-quanta")
    until(page, lambda: monitor.status().policy == "mlfq:four-quanta")
    levels = policy.get_by_label("boost", exact=True)
    levels.fill("77")
    levels.press("Enter")
    until(page, lambda: monitor.status().changed == {"boost": 77})
    policy.get_by_label("Policy", exact=True).select_option("lottery")
    until(page, lambda: monitor.status().policy == "lottery")
    page.locator(".strip-policy", has_text="lottery").wait_for()


def test_what_is_shown_becomes_a_run_and_a_report(page: Page, monitor: Monitor) -> None:
    page.get_by_label("Record all systems").click()
    page.get_by_label("End the recording").wait_for()
    page.wait_for_timeout(1500)
    page.get_by_label("End the recording").click()
    page.get_by_text("Recorded:").first.wait_for()
    (run_folder,) = monitor.session.recorded_folders
    assert (run_folder / "trace.bin").stat().st_size > 10_000
    assert (run_folder / "manifest.json").is_file()
    page.get_by_label("Make a report").click()
    link = page.get_by_role("link", name="open it")
    link.wait_for()
    report = page.context.new_page()
    report.goto(f"http://127.0.0.1:{monitor.server.port}{link.get_attribute('href')}")
    report.get_by_text("two-hogs").first.wait_for()
    report.close()


def test_a_lost_connection_is_made_again(page: Page, monitor: Monitor) -> None:
    async def drop() -> None:
        for client in list(monitor.server.clients):
            client.close()

    monitor.do(drop())
    lost = page.get_by_text("Connection to the monitor lost")
    lost.wait_for()
    lost.wait_for(state="hidden")
    clock = page.locator(".strip-clock")
    before = clock.inner_text()
    until(page, lambda: clock.inner_text() != before)
