# SPDX-License-Identifier: MIT
"""Tests the pages of reports in a real browser without a network: drawn, readable and complete."""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from contrast import CONTRAST_SCRIPT
from page_waits import until
from perfetto_stand_in import stand_in_for_perfetto
from report_samples import REAL_RUNS, report_of_small_runs, sample_report, small_runs
from schedlab.base.toolchain.tools import BROWSERS, find_browser
from schedlab.report import build, layout
from schedlab.report.model import Chart, Report, Table
from schedlab.runs import collection as runs

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSER = find_browser()
pytestmark = [
    pytest.mark.skipif(
        not BROWSER,
        reason=f"NO BROWSER: the pages of reports are NOT TESTED. Install one of {BROWSERS}",
    ),
    # One browser serves all tests of this file.
    pytest.mark.xdist_group(REAL_RUNS),
]

Scheme = Literal["light", "dark"]
TELEPHONE, DESKTOP, PROJECTOR = (390, 844), (1280, 900), (1920, 1080)
CONTRAST = 4.5
"""WCAG 2.1, 1.4.3: text against its background."""
GRAPHIC_CONTRAST = 3.0
"""WCAG 2.1, 1.4.11: axes and marks."""


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    build.write_formats(sample_report(), folder, ("html",), pictures=True)
    return folder


@contextmanager
def opened(
    browser: Browser,
    file: Path,
    size: tuple[int, int] = DESKTOP,
    scheme: Scheme = "light",
    scripts: bool = True,
    allowed: str = "file:",
) -> Iterator[Page]:
    """Opens a page and draws all charts. It may request only files and `allowed` addresses,
    and its console must stay empty.
    """
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme=scheme,
        offline=True,
        java_script_enabled=scripts,
    )
    page = context.new_page()
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
    page.on("requestfailed", lambda request: trouble.append(f"failed: {request.url}"))
    page.on("request", lambda request: note_foreign(request.url, trouble, allowed))
    page.goto(file.as_uri())
    if scripts:
        page.wait_for_function(
            "!document.querySelector('figure.chart')"
            " || document.documentElement.dataset.charts === 'drawn'"
        )
    try:
        yield page
    finally:
        context.close()
    assert trouble == []


def note_foreign(address: str, trouble: list[str], allowed: str) -> None:
    if not address.startswith(("file://", "data:", allowed)):
        trouble.append(f"request: {address}")


def check_rendered(page: Page, report_page: Any) -> None:
    """Checks that each table and each chart of the model is visible."""
    for block in report_page.blocks():
        if isinstance(block, Table):
            cells = page.locator(f"#{block.name} tbody td, #{block.name} tbody th")
            shown = layout.fit_table(block)
            parts = layout.split_columns(shown)
            assert cells.count() == len(shown.rows) * sum(map(len, parts)), block.name
            assert page.locator(f"#{block.name} table").count() == len(parts)
            assert page.locator(f"#{block.name} table").first.bounding_box()
        elif isinstance(block, Chart):
            assert marks_of(page, block.name) > 0, f"chart {block.name} has no mark"
            box = page.locator(f"#{block.name} .drawing svg").bounding_box()
            assert box and box["width"] > 100 and box["height"] > 30, block.name


def marks_of(page: Page, name: str) -> int:
    """Returns the shapes that show data, without axes, legends and backgrounds."""
    script = """name => [...document.getElementById(name).querySelectorAll(
        '.mark-line path, .mark-rect path, .mark-symbol path, .mark-rule line, .mark-area path')]
        .filter(mark => !mark.closest('.role-axis, .role-legend, .role-title'))
        .filter(mark => mark.getBBox().width + mark.getBBox().height > 0).length"""
    return int(page.evaluate(script, name))


def overflow(page: Page) -> int:
    """Returns the horizontal overflow of the page, in pixels."""
    script = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    return int(page.evaluate(script))


# --- the sample


@pytest.mark.parametrize(
    ("size", "scheme", "number"),
    [
        (TELEPHONE, "light", 0),
        (TELEPHONE, "dark", 1),
        (DESKTOP, "dark", 0),
        (PROJECTOR, "light", 1),
    ],
)
def test_all_is_drawn_on_any_screen(
    browser: Browser, sample: Path, size: tuple[int, int], scheme: Scheme, number: int
) -> None:
    file = sample / ("index.html", "second.html")[number]
    with opened(browser, file, size, scheme) as page:
        check_rendered(page, sample_report().pages[number])
        assert overflow(page) <= 0
        assert page.evaluate("typeof attack") == "undefined"
        assert page.title()


def contrasts(page: Page, selector: str, attribute: str) -> list[float]:
    """Returns each element's contrast with its background, for this property of its computed
    style.
    """
    contrast_ratios: list[float] = page.evaluate(
        f"""([selector, attribute]) => {{ {CONTRAST_SCRIPT}
        return [...document.querySelectorAll(selector)]
            .map(each => [getComputedStyle(each)[attribute], each])
            .filter(([colour]) => colour !== 'none')
            .map(([colour, each]) => contrast(colour, ground(each))); }}""",
        [selector, attribute],
    )
    assert contrast_ratios, f"nothing is {selector}"
    return contrast_ratios


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_and_charts_can_be_read_by_day_and_night(
    browser: Browser, sample: Path, scheme: Scheme
) -> None:
    words = (
        *("h1", ".lead", ".text p", "td", "td.good", "td.bad", "td.failed", "td.muted", "small"),
        *(".caption p", ".notes li", ".legend", "figcaption", ".number", "main a", "footer dd"),
        *(".contents a", ".pages a", "thead th", ".warning p"),
    )
    with opened(browser, sample / "second.html", DESKTOP, scheme) as page:
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        red = int(re.findall(r"\d+", ground)[0])
        assert red > 200 if scheme == "light" else red < 60
        for selector in words:
            assert min(contrasts(page, selector, "color")) >= CONTRAST, selector
        assert min(contrasts(page, ".drawing svg text", "fill")) >= CONTRAST
        assert min(contrasts(page, ".drawing .mark-line path", "stroke")) >= GRAPHIC_CONTRAST


def test_without_scripts_pictures_are_shown(browser: Browser, sample: Path) -> None:
    with opened(browser, sample / "second.html", scripts=False) as page:
        for name in ("line", "column"):
            picture = page.locator(f"#{name} noscript img, #{name} img")
            assert picture.count() == 1
            assert picture.get_attribute("alt")
            box = picture.bounding_box()
            assert box and box["width"] > 100 and box["height"] > 50, "the file is there"


# --- real runs


@pytest.mark.spike
def test_a_report_of_real_runs_is_drawn(browser: Browser) -> None:
    report: Report = build.make_report(runs.read_collection([small_runs()]))
    first = report_of_small_runs()[0] / "index.html"
    assert any(isinstance(block, Chart) for page in report.pages for block in page.blocks())
    for number, made in enumerate(report.pages):
        file = first if number == 0 else first.with_name(f"{made.name}.html")
        for size, scheme in ((TELEPHONE, "dark"), (DESKTOP, "light")):
            with opened(browser, file, size, scheme) as page:  # type: ignore[arg-type]
                check_rendered(page, made)
                assert overflow(page) <= 0
                if size != TELEPHONE:
                    assert cut_off(page) == []
    check_list(browser, first.with_name("runs.html"))
    check_traces(browser, first.parent)
    check_ring(browser, next(first.parent.glob("workload-mixed*.html")))


def cut_off(page: Page) -> list[str]:
    """Returns the figures of tables that need scrolling in a window of 1440 pixels."""
    page.set_viewport_size({"width": 1440, "height": 900})
    script = """() => [...document.querySelectorAll("figure.table .scroll")]
        .filter(box => box.scrollWidth > box.clientWidth)
        .map(box => box.closest("figure").id)"""
    return list(page.evaluate(script))


def check_list(browser: Browser, file: Path) -> None:
    """A reader sorts and filters the list of runs, then visits a workload's page and returns."""
    with opened(browser, file) as page:
        rows = page.locator("#all-runs tbody tr:not([hidden])")
        field = page.get_by_role("searchbox").nth(1)
        assert rows.count() == 9
        field.fill("thesis  2cpu")
        assert rows.count() == 2
        assert page.locator("#all-runs output").inner_text() == "2 of 9 rows"
        field.fill("./schedlab monitor")  # not shown by any row before it is opened
        assert rows.count() == 0
        field.fill("")
        more = page.locator("#all-runs details.more").first
        more.locator("summary").click()
        assert more.locator("dt").all_inner_texts() == ["run", "monitor", "Perfetto", "trace"]
        took = page.locator("#all-runs thead th").nth(6)
        took.get_by_role("button").click()
        values = "cells => cells.map(cell => Number(cell.dataset.rank))"
        ranks = page.locator("#all-runs tbody td:nth-child(7)").evaluate_all(values)
        assert ranks == sorted(ranks)
        assert took.get_attribute("aria-sort") == "ascending"
        took.get_by_role("button").click()
        ranks = page.locator("#all-runs tbody td:nth-child(7)").evaluate_all(values)
        assert ranks == sorted(ranks, reverse=True)
        page.locator("#all-workloads tbody a").first.click()
        assert "./schedlab run --workload" in page.locator("main pre").inner_text()
        assert page.locator(".pages [aria-current]").inner_text() == "All runs"
        page.locator(".above a").click()
        assert page.locator("h1").inner_text() == "All runs"


def check_ring(browser: Browser, file: Path) -> None:
    """A click on a wait of a curve opens its picture."""
    with opened(browser, file) as page:
        page.locator("figure[id^=latencies] .mark-symbol.role-mark path").first.click()
        page.wait_for_url(re.compile(r"#(p99|longest)-wait-"))
        assert page.locator(":target svg").count() == 1


def check_traces(browser: Browser, folder: Path) -> None:
    """A click sends a run's trace to Perfetto from served pages, and saves it from files."""
    trace_file = next(folder.glob("play/*.perfetto-trace.gz"))
    link = f"a[href$='{trace_file.name}']"
    playing = f"play/{trace_file.name.partition('.')[0]}.html"
    with browser.new_page() as page:  # a download is a request that fails
        page.goto((folder / "runs.html").as_uri())
        page.locator(f"details:has({link}) summary").click()
        with page.expect_download() as download:
            page.locator(link).click()
        assert download.value.path().read_bytes() == trace_file.read_bytes()
    handler = partial(QuietFiles, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, browser.new_page() as page:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stand_in_for_perfetto(page)
        for place, before in (("runs.html", f"details:has({link}) summary"), (playing, "b")):
            page.goto(f"http://127.0.0.1:{server.server_port}/{place}", wait_until="networkidle")
            page.locator(before).click()
            with page.context.expect_page() as window:
                page.locator(link).click()
            got = json.loads(title_with_json(window.value))
            assert (bytes(got["bytes"]), got["fileName"]) == (
                trace_file.read_bytes(),
                trace_file.name,
            )
        server.shutdown()
    assert b"mixed" in gzip.decompress(trace_file.read_bytes())


def title_with_json(window: Page) -> str:
    return until(window, lambda: title if (title := window.title()).startswith("{") else None)


class QuietFiles(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None: ...
