# SPDX-License-Identifier: MIT
"""Measures how long a change of a policy takes on the playground, from the last key to the new schedule."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from threading import Thread

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

EDITS = 20
_LINK = "#v=1&workload=mixed&cpus=2&span_ms=1000"
_PATIENCE_MS = 180_000
_EDIT = """text => {
    const state = document.querySelector("#result .state");
    delete state.dataset.took;
    document.execCommand("insertText", false, text);
}"""


def measure() -> list[Aim]:
    """Returns the times of a first edit, and of later edits of a policy with a workload of one second."""
    need_extra("test")
    need_extra("monitor")
    need("browser")
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(prefix="schedlab-") as folder, sync_playwright() as playwright:
        place = make_playground(Path(folder) / "page")
        browser = playwright.chromium.launch(
            executable_path=str(find_browser()), args=["--no-sandbox"]
        )
        with server_of(place) as server, working("measuring the playground") as update:
            Thread(target=server.serve_forever, daemon=True).start()
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{server.server_address[1]}/{_LINK}")
            page.wait_for_selector("#result .state[data-took]", timeout=_PATIENCE_MS)
            page.click(".cm-content")
            page.keyboard.press("Control+End")
            times = []
            for number in range(1 + EDITS):
                update(f"measuring the playground: edit {number} of {EDITS}")
                begin = time.perf_counter()
                page.evaluate(_EDIT, f"// {number}\\n")
                page.wait_for_selector("#result .state[data-took]", timeout=_PATIENCE_MS)
                times.append(time.perf_counter() - begin)
            server.shutdown()
        browser.close()
    first, *later = times
    return [
        Aim("first edit, with the start of the compiler", first, 10, "s"),
        Aim(f"median of {EDITS} later edits", statistics.median(later), 1.5, "s"),
        Aim(f"95 % of {EDITS} later edits", sorted(later)[int(0.95 * len(later)) - 1], 2, "s"),
    ]


@click.command()
@json_option
def playground(as_json: bool) -> None:
    """Measure how long an edit takes on the playground, from its last key to the new schedule.

    In real time, on a headless browser of this host: compare only figures of a quiet host. Exit status 1 if an aim is
    not met.
    """
    aims = measure()
    finish(as_json, [aim.to_dict() for aim in aims], [_table(aims)], aims)


def _table(aims: list[Aim]) -> Table:
    table = new_table(
        "An edit on the playground (real time)", "what", ">seconds", ">aim", "verdict"
    )
    for aim in aims:
        table.add_row(aim.name, f"{aim.value:.2f}", f"{aim.most:g}", aim.verdict)
    return table
