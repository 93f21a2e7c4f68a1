# SPDX-License-Identifier: MIT
"""Tests links that open a run's configuration for changes: their content, and when there is
none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from kept_runs import keep_figures
from schedlab.machines.folder import WORKLOAD_FILE
from schedlab.paths import ROOT
from schedlab.report import trials
from schedlab.report.html import write_pages
from schedlab.report.markdown import write_document
from schedlab.report.markup import OPEN_TRIAL_TEXT, without_trials
from schedlab.report.model import Page, Report, Section, Text, Trial
from schedlab.report.player_pages import trial_address
from schedlab.runs.collection import read_collection

HOGS = ROOT / "workloads" / "files" / "monitor" / "two-hogs.json"


def stored_setups(path: Path, file: Path | None = None, **more: Any) -> list[Any]:
    """Returns runs of these policies; of a workload file, if one is given."""
    for policy in more.pop("policies", ("rr", "mlfq")):
        folder = keep_figures(path, policy=policy, **more)
        if file:
            (folder / WORKLOAD_FILE).write_bytes(file.read_bytes())
    return list(read_collection([path]).repeated.values())


def test_a_document_has_no_link_that_leads_nowhere(tmp_path: Path) -> None:
    trial = Trial("`hog` under `rr`", ("rr",), 1, 1, 10_000_000, "hog")
    text = "It is slow. [Try it](try:slow): `hog`"
    page = Page("index", "First", "", (Section("One", (Text(text),)),), trials={"slow": trial})
    report = Report("r", (page,))
    assert without_trials(text) == "It is slow."
    caption = f"Tick 1 ms. [{OPEN_TRIAL_TEXT}](try:slow). Levels: highest first."
    assert without_trials(caption) == "Tick 1 ms. Levels: highest first."
    assert "try:" not in write_document(report, tmp_path).read_text()
    write_pages(report, tmp_path)
    assert (
        f'href="{trial_address(trial)}"'.replace("&", "&amp;")
        in (tmp_path / "index.html").read_text()
    )


def test_a_link_opens_the_page_with_its_setup(browser: Browser, tmp_path: Path) -> None:
    """The link uses the copy in the repository, regardless of the current sources."""
    (setup,) = stored_setups(
        tmp_path / "runs", HOGS, experiment="mine", cpus=3, policies=("mlfq:four-quanta",),
        manifest={"with": {"tasks.hog.instance": "5"}},
    )  # fmt: skip
    trial = trials.trial_of_setups([setup])
    assert trial
    page = Page("index", "First", "", (), trials={trials.PAGE_TRIAL: trial})
    write_pages(Report("r", (page,)), tmp_path)
    view = browser.new_page()
    wrong: list[str] = []
    view.on("pageerror", lambda error: wrong.append(str(error)))
    view.goto((tmp_path / "index.html").as_uri())
    view.get_by_role("link", name="Try it").click()
    view.wait_for_selector(".strip-clock")
    assert view.locator(".strip-policy").all_text_contents() == ["mlfq:four-quanta"]
    view.click("text=Setup")
    assert view.locator(".setup-machine input").first.input_value() == "3"
    assert view.locator(".setup textarea").input_value() == trial.text
    assert wrong == []
    view.close()
