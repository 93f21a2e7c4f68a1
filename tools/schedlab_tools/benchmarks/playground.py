# SPDX-License-Identifier: MIT
"""Measures the playground in a browser: loading, from the last key of an edit to the new schedule, and frames."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import click
from rich.table import Table

from schedlab.base.display.activity import working
from schedlab.base.display.terminal import new_table
from schedlab.base.toolchain.needs import need, need_extra
from schedlab.base.toolchain.tools import find_browser
from schedlab.commands.options import json_option
from schedlab.monitor.standalone.playground import make_playground
from schedlab.monitor.standalone.serving import server_of
from schedlab_tools.benchmarks.results import finish
from schedlab_tools.targets import Aim

if TYPE_CHECKING:
    from playwright.sync_api import Browser

EDITS = 20
_LINK = "#v=1&workload=mixed&cpus=2&span_ms=1000"
_LARGE_LINK = "#v=1&cpus=8&span_ms=1000"
_FORKS = "  fork hog\n  fork editor\n" * 32
_LARGE_WORKLOAD = f"""program root
{_FORKS}  wait all
program hog
  loop
    run 100ms
  end
program editor
  loop
    run 2ms
    sleep 20ms
  end
"""
"""64 tasks for 8 CPUs."""
_LOADS = 5
_FRAMES = 120
_READY = "#result .state[data-took]"
_TIMEOUT_MS = 180_000
_EDIT = """text => new Promise(resolve => {
    const state = document.querySelector("#result .state");
    delete state.dataset.took;
    const begin = performance.now();
    const observer = new MutationObserver(() => {
        if (!state.dataset.took) return;
        observer.disconnect();
        requestAnimationFrame(() => resolve((performance.now() - begin) / 1000));
    });
    observer.observe(state, { attributes: true });
    document.execCommand("insertText", false, text);
})"""
"""Edits the source, and returns the seconds until the new schedule is drawn."""
_ZOOM = """frames => new Promise(resolve => {
    const canvas = document.querySelector(".schedule-canvas");
    const times = [];
    const step = (time) => {
        times.push(time);
        if (times.length > frames) return resolve(times.slice(1).map((end, index) => end - times[index]));
        const key = times.length % 20 < 10 ? "+" : "-";
        canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
        requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
})"""
"""Zooms the schedule at each frame, and returns the milliseconds between frames."""


def measure() -> list[Aim]:
    """Returns the times of loading, of a first edit and later edits (s), and of frames (ms)."""
    need_extra("test")
    need_extra("monitor")
    need("browser")
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder, sync_playwright() as playwright:
        path = make_playground(Path(folder) / "page")
        browser = playwright.chromium.launch(
            executable_path=str(find_browser()), args=["--no-sandbox"]
        )
        with server_of(path) as server, working("measuring the playground") as update:
            Thread(target=server.serve_forever, daemon=True).start()
            address = f"http://127.0.0.1:{server.server_address[1]}/"
            loads = [load_time(browser, address) for _ in range(_LOADS)]
            first, *later = edit_times(browser, address, update)
            update("measuring the playground: frames")
            frames = frame_times(browser, address)
            server.shutdown()
        browser.close()
    return [
        Aim(f"loading, median of {_LOADS}", statistics.median(loads), 2, "s"),
        Aim("first edit, with the start of the compiler", first, 10, "s"),
        Aim(f"median of {EDITS} later edits", statistics.median(later), 1.5, "s"),
        Aim(f"95 % of {EDITS} later edits", sorted(later)[int(0.95 * len(later)) - 1], 2, "s"),
        Aim(f"mean of {_FRAMES} frames, 8 CPUs, 64 tasks", statistics.mean(frames), 17, "ms"),
    ]


def load_time(browser: Browser, address: str) -> float:
    """Returns the seconds until a new visitor sees both schedules. The compiler is not loaded."""
    with browser.new_context() as context:
        page = context.new_page()
        begin = time.perf_counter()
        page.goto(address)
        page.wait_for_selector(_READY, timeout=_TIMEOUT_MS)
        return time.perf_counter() - begin


def edit_times(browser: Browser, address: str, update: Callable[[str], None]) -> list[float]:
    """Returns the seconds of each edit; the first loads the compiler."""
    page = browser.new_page()
    page.goto(address + _LINK)
    page.wait_for_selector(_READY, timeout=_TIMEOUT_MS)
    page.click(".cm-content")
    page.keyboard.press("Control+End")
    times = []
    for number in range(1 + EDITS):
        update(f"measuring the playground: edit {number} of {EDITS}")
        times.append(page.evaluate(_EDIT, f"// {number}\\n"))
        page.wait_for_selector("#result .state[data-complete]", timeout=_TIMEOUT_MS)
    page.close()
    return times


def frame_times(browser: Browser, address: str) -> list[float]:
    """Returns the milliseconds between frames while a large schedule is zoomed."""
    page = browser.new_page()
    page.goto(address + _LARGE_LINK)
    page.wait_for_selector(_READY, timeout=_TIMEOUT_MS)
    page.get_by_role("tab", name="workload").click()
    page.evaluate("delete document.querySelector('#result .state').dataset.took")
    page.get_by_label("The workload, in words").fill(_LARGE_WORKLOAD)
    page.wait_for_selector(_READY, timeout=_TIMEOUT_MS)
    times: list[float] = page.evaluate(_ZOOM, _FRAMES)
    page.close()
    return times


@click.command()
@json_option
def playground(as_json: bool) -> None:
    """Measure the playground: loading, an edit from its last key to the new schedule, and frames.

    In real time, on a headless browser of this host: compare only figures of a quiet host. Exit status 1 if an aim is
    not met.
    """
    aims = measure()
    finish(as_json, [aim.to_dict() for aim in aims], [_table(aims)], aims)


def _table(aims: list[Aim]) -> Table:
    """Returns the table of times with their targets."""
    table = new_table("The playground (real time)", "what", ">value", ">aim", "unit", "verdict")
    for aim in aims:
        table.add_row(aim.name, f"{aim.value:.2f}", f"{aim.most:g}", aim.unit, aim.verdict)
    return table
