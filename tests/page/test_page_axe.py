# SPDX-License-Identifier: MIT
"""Checks the standalone page's accessibility by axe-core, which npm downloads: only with --long."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from kept_runs import keep_simulated
from page_waits import PATIENCE_S
from schedlab.base.toolchain.build import wasm_module
from schedlab.monitor.standalone.build import page_of

pytestmark = pytest.mark.long

AXE = "axe-core@4.14.1"
LOADS = "&cpus=2&seed=1&workload=two-hogs&workload=interactive&pace=0.1"
DESKTOP, TELEPHONE = (1280, 3000), (390, 844)
VIOLATIONS = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
    .flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(" ")}`))"""


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Returns axe-core's script."""
    npm = shutil.which("npm")
    if not npm:
        pytest.skip("there is no npm, which downloads axe-core")
    folder = tmp_path_factory.mktemp("axe")
    words = [npm, "pack", AXE]
    result = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode:
        pytest.skip(f"npm cannot download {AXE}: {result.stderr[-200:]}")
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        script = archive.extractfile("package/axe.min.js")
        assert script
        return script.read().decode()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the page, built from this checkout."""
    file = tmp_path_factory.mktemp("page") / "schedlab.html"
    file.write_text(page_of(wasm_module()))
    return file


@pytest.fixture(params=[DESKTOP, TELEPHONE], ids=["desktop", "telephone"])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """Opens an empty page without the security policy, which would forbid axe-core."""
    width, height = request.param
    context = browser.new_context(bypass_csp=True, viewport={"width": width, "height": height})
    page = context.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    yield page
    context.close()


def opened(page: Page, file: Path, link: str) -> None:
    page.goto(f"{file.as_uri()}{link}")
    page.wait_for_selector(".strip-clock")
    page.wait_for_timeout(2000)  # all panels are drawn


def violations(page: Page, axe: str) -> list[str]:
    page.evaluate(axe)
    found: list[str] = page.evaluate(VIOLATIONS)
    return found


@pytest.mark.parametrize(
    "link", [f"#policy=mlfq{LOADS}", f"#policy=rr&policy=lottery{LOADS}", "#lesson=mlfq"]
)
def test_systems_and_their_setup_are_accessible(
    page: Page, file: Path, axe: str, link: str
) -> None:
    opened(page, file, link)
    assert violations(page, axe) == []
    page.click("text=Setup")
    assert violations(page, axe) == []


def test_a_recording_is_accessible(page: Page, file: Path, axe: str, tmp_path: Path) -> None:
    keep_simulated(tmp_path, 1, policy="mlfq")
    opened(page, file, f"#policy=rr{LOADS}")
    page.click("text=Setup")
    page.set_input_files("input[type=file]", [tmp_path / "trace.bin", tmp_path / "manifest.json"])
    page.wait_for_selector("h2 >> text=recorded")
    page.wait_for_timeout(2000)  # all panels are drawn
    assert violations(page, axe) == []
