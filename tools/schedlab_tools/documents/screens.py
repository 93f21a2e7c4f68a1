# SPDX-License-Identifier: MIT
"""Takes screenshots of pages in a browser. They differ slightly each time, because the pages are animated."""

import hashlib
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Page, sync_playwright

from schedlab.base.files.atomic import file_hash
from schedlab.base.toolchain.committed import PAGE as FILE
from schedlab.base.toolchain.tools import find_browser, require_compiler
from schedlab.errors import SchedlabError
from schedlab.machines import SIMULATOR
from schedlab.paths import ROOT
from schedlab.report import reproduction
from schedlab_tools.documents.marked_parts import printed_output, write
from schedlab_tools.documents.shown_policies import shown

PICTURES = ROOT / "docs"
_SIZE = (1440, 900)
_REPORT_HEIGHT = 2500
"""Height of the start of the first page: findings, goals, pictures and studies."""
_LOADING_MS, _WATCHED_MS = 1000, 6000
SCREENS = {PICTURES / name: setup for name, setup in shown()["screens"].items()}
"""Files, and the arguments for opening the standalone page."""
REPORTS = {PICTURES / name: words for name, words in shown()["reports"].items()}
"""Files, and the command for the report in them."""
HASHES_FILE = PICTURES / "screens.txt"
"""The hash of each picture, the hash of what it was made from, and the compiler behind what it shows."""
_PAGE = ROOT / "python" / "schedlab" / "monitor"
_PAGE_PARTS = ("page/**/*.js", "page/*.html", "page/styles/*.css", "lessons/*.json")
_COMMENT = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)
_TEXT = re.compile(r"""["'`>]([^"'`<>\n]*\w \w[^"'`<>\n]*)["'`<]""")
"""A text of several words in a page's source, so that new names of modules change no hash."""


def make() -> None:
    """Writes all screenshots. Raises SchedlabError if there is no browser, or if a run fails."""
    browser = find_browser()
    if not browser:
        raise SchedlabError("there is no Chromium: `./schedlab doctor` says how to install it")
    with sync_playwright() as playwright, TemporaryDirectory(prefix="schedlab-") as folder:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": _SIZE[0], "height": _SIZE[1]})
        for file, setup in SCREENS.items():
            page.goto("about:blank")
            page.goto(FILE.as_uri() + setup)
            _advance_lesson(page)
            page.wait_for_timeout(_WATCHED_MS)
            page.screenshot(path=file)
        for file, words in REPORTS.items():
            report = _report(words, Path(folder) / file.stem)
            page.set_viewport_size({"width": _SIZE[0], "height": _REPORT_HEIGHT})
            page.goto((report / "index.html").as_uri())
            page.wait_for_selector("html[data-charts=drawn]")
            page.screenshot(path=file)
        chromium.close()
    write(HASHES_FILE, made_text())


def made_text() -> str:
    """Returns what MADE says of the pictures that are there, if this compiler was behind them."""
    origins = {**dict.fromkeys(SCREENS, _page_hash()), **dict.fromkeys(REPORTS, _plan_hash())}
    return "".join(
        f"{file_hash(file)}  {origin}  {file.name}  {require_compiler().description()}\n"
        for file, origin in origins.items()
    )


def _page_hash() -> str:
    """Returns the hash of what the monitor's page shows: its texts, its styles, and how it is opened."""
    texts = {repr(list(SCREENS.values()))}
    for file in (file for part in _PAGE_PARTS for file in _PAGE.glob(part)):
        text = file.read_text("utf-8")
        texts.update([text] if file.suffix == ".css" else _TEXT.findall(_COMMENT.sub("", text)))
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()[:16]


def _plan_hash() -> str:
    """Returns the hash of the runs that a report of all studies has now: workloads, policies, CPUs and seeds."""
    request = reproduction.ReproductionRequest((), "quick", machine=SIMULATOR)
    runs = reproduction.make_plans(request, ROOT)[1].runs
    titles = [f"{run.workload_title}: {run.title}, seed {run.seed}" for run in runs]
    return hashlib.sha256("\n".join(titles).encode()).hexdigest()[:16]


def _report(words: list[str], out: Path) -> Path:
    """Runs studies, and returns their report's folder."""
    printed_output("schedlab", *words, "--out", str(out))
    return out / "report"


def _advance_lesson(page: Page) -> None:
    """Advances a lesson to its second step, the first one with activity."""
    page.wait_for_timeout(_LOADING_MS)
    if "lesson=" in page.url:
        page.get_by_role("button", name="Go to the next step").click()
