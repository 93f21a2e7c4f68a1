# SPDX-License-Identifier: MIT
"""Tests the standalone page, opened as a file: simulations, recordings, links and refusals."""

from __future__ import annotations

import base64
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from conftest import ROOT
from kept_runs import keep_simulated
from page_waits import PATIENCE_S
from schedlab.base.toolchain import committed
from schedlab.base.toolchain.build import MODULE, SIMULATOR, build
from schedlab.monitor.standalone.build import make_policy, page_of
from schedlab.report.charts import theme
from simulator_command import write_workload

SLOW = "&cpus=2&seed=1&workload=two-hogs&workload=interactive&pace=0.01"
MANY = "#policy=rr&policy=mlfq&policy=lottery&policy=stride" + SLOW


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the page, built from this checkout."""
    build(str(MODULE.relative_to(ROOT)))
    file = tmp_path_factory.mktemp("page") / "schedlab.html"
    file.write_text(page_of(MODULE.read_bytes()))
    return file


@pytest.fixture
def page(browser: Browser, file: Path) -> Iterator[Page]:
    """Opens the page. It requests only itself and has no errors. It is tall enough to show
    all panels, because hidden panels are not drawn.
    """
    page = browser.new_page(viewport={"width": 1280, "height": 4000})
    page.set_default_timeout(PATIENCE_S * 1000)
    wrong: list[str] = []
    requested_urls: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "console", lambda message: wrong.append(message.text) if message.type == "error" else None
    )
    page.on("request", lambda request: requested_urls.append(request.url))
    yield page
    page.close()
    assert wrong == []
    assert {
        address.split("#")[0]
        for address in requested_urls
        if not address.startswith(("blob:", "data:"))
    } == {file.as_uri()}


def opened(page: Page, file: Path, link: str = "") -> Page:
    page.goto(f"{file.as_uri()}{link}")
    page.wait_for_selector(".strip-clock")
    return page


def clocks(page: Page) -> list[str]:
    return page.locator(".strip-clock").all_text_contents()


def stand(page: Page) -> None:
    page.click("button[aria-label=Pause]")
    page.wait_for_selector("button[aria-label='Go on']")


def step(page: Page, button: str, until: str) -> None:
    """Presses the button, and waits until all clocks have changed, or show this time."""
    before = clocks(page)
    page.click(f"button[aria-label^='{button}']")
    page.wait_for_function(
        "([before, until]) => [...document.querySelectorAll('.strip-clock')].every((each, at) =>"
        " until ? each.textContent === until : each.textContent !== before[at])",
        arg=[before, until],
    )


@pytest.mark.parametrize("text", ["", "<<<<<<< one", "[]", "{}"])
def test_a_catalogue_that_cannot_be_read_serves_nobody(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "catalogue.json"
    file.write_text(text)
    monkeypatch.setattr(committed, "CATALOGUE", file)
    for cached_function in (committed._serves, committed._catalogue):
        cached_function.cache_clear()
    try:
        assert committed.committed_listing() is None
        assert committed.committed_policies() == ()
    finally:
        for cached_function in (committed._serves, committed._catalogue):
            cached_function.cache_clear()


def test_compiled_policies_are_reused_while_sources_are_unchanged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = committed.committed_module()
    assert module and module[:4] == b"\0asm"
    monkeypatch.setattr(committed, "sources_hash", lambda: "another")
    committed._serves.cache_clear()
    try:
        assert committed.committed_module() is None
        assert committed.committed_listing() is None
    finally:
        committed._serves.cache_clear()


def test_all_sources_count(tmp_path: Path) -> None:
    for folder in ("page", "abi", "policies", "sim", "model", "tools"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.html"))
    script = tmp_path / "page" / "sources.sh"

    def hash_now() -> str:
        return subprocess.run(["sh", str(script)], check=True, capture_output=True).stdout.decode()

    before = hash_now()
    assert before.strip() == committed.sources_hash()
    (tmp_path / "policies" / "of-mine.c").write_text("int own;\n")
    added = hash_now()
    (tmp_path / "policies" / "of-mine.c").rename(tmp_path / "policies" / "renamed.c")
    assert len({before, added, hash_now()}) == 3
    (tmp_path / "policies" / "renamed.c").unlink()
    assert hash_now() == before


def test_it_simulates_side_by_side_in_step(page: Page, file: Path) -> None:
    opened(page, file, MANY)
    page.wait_for_function("() => document.querySelectorAll('#system-d tbody tr').length > 3")
    stand(page)
    page.wait_for_timeout(300)  # the last frame of each has arrived
    policies = ["rr", "mlfq", "lottery", "stride"]
    assert page.locator(".strip-policy").all_text_contents() == policies
    dots = page.locator(".strip-policy").evaluate_all(
        "all => all.map(each => getComputedStyle(each, '::before').backgroundColor)"
    )
    colours = (theme.policy_look(policy).colour for policy in policies)
    assert dots == [f"rgb{tuple(bytes.fromhex(colour[1:]))}" for colour in colours]
    assert len(set(clocks(page))) == 1
    page.set_viewport_size({"width": 1440, "height": 4000})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    cut = "all => all.filter(each => each.scrollWidth > each.clientWidth).map(each => each.textContent)"
    assert page.locator(".strip h2, .panel h3").evaluate_all(cut) == []


def test_steps_back_show_the_earlier_state(page: Page, file: Path) -> None:
    """The moment is the same, and so are the processes and their figures."""
    opened(page, file, MANY)
    stand(page)
    page.select_option("select[aria-label='Length of a step']", "tick")
    page.click("button[aria-label='One step']")  # exact to the tick
    page.wait_for_timeout(500)
    seen = []
    for _ in range(3):
        step(page, "One step", "")
        page.wait_for_timeout(200)
        seen.append((clocks(page)[0], page.inner_text("#processes-b-body .rows")))
    assert len({processes for _, processes in seen}) == 3
    for clock, processes in reversed(seen[:-1]):
        step(page, "Step back", clock)
        page.wait_for_timeout(200)
        assert page.inner_text("#processes-b-body .rows") == processes


def test_a_recording_opens_at_its_beginning_and_is_sought(
    page: Page, file: Path, tmp_path: Path
) -> None:
    """Its last frame has the recording's figures."""
    trace = tmp_path / "trace.bin"
    text = "program root\n  group root\n  loop 40\n    run 3ms\n    sleep 2ticks\n  end\n"
    played = write_workload(tmp_path, text, 10_000_000)
    words = ["--policy", "mlfq", "--tick", "10000000", "--trace", str(trace), "--trace-queues"]
    subprocess.run([SIMULATOR, *words, played], check=True, capture_output=True)
    opened(page, file)
    page.click("text=Setup")
    page.set_input_files("input[type=file]", str(trace))
    page.wait_for_selector("h2 >> text=recorded")
    assert page.locator(".strip-policy").all_text_contents() == ["mlfq"]
    assert page.locator(".strip-life").all_text_contents() == ["‖ paused"]
    page.fill("input[aria-label='Go to this second of the systems\\' time']", "0.5")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('.strip-clock').textContent === '0.50 s'")


def dropped(page: Page, *files: Path) -> None:
    """Drops them on the page, as a mouse does."""
    page.evaluate(
        """(files) => {
            const dataTransfer = new DataTransfer();
            for (const [name, text] of files) {
                const bytes = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
                dataTransfer.items.add(new File([bytes], name));
            }
            const options = { dataTransfer, bubbles: true, cancelable: true };
            for (const kind of ["dragover", "drop"]) {
                const taken = !document.querySelector("main").dispatchEvent(new DragEvent(kind, options));
                if (!taken) throw new Error(`${kind} is left to the browser, which would leave the page`);
            }
        }""",
        [[file.name, base64.b64encode(file.read_bytes()).decode()] for file in files],
    )


def test_a_trace_is_dropped_on_the_page_with_its_manifest(
    page: Page, file: Path, tmp_path: Path
) -> None:
    keep_simulated(tmp_path, 1, policy="lottery:thesis")
    opened(page, file)
    dropped(page, tmp_path / "trace.bin", tmp_path / "manifest.json")
    page.wait_for_selector("h2 >> text=lottery:thesis, recorded")
    assert page.locator(".strip-life").all_text_contents() == ["‖ paused"]
    dropped(page, tmp_path / "manifest.json")
    page.wait_for_selector("text=Drop a trace (trace.bin of a run)")


def test_user_policy_can_be_chosen(page: Page, file: Path, tmp_path: Path) -> None:
    made = make_policy("stride", tmp_path / "of-mine.wasm")
    opened(page, file)
    page.click("text=Setup")
    page.set_input_files("input[type=file]", str(made))
    page.wait_for_selector("text=/Added: .*stride/")
    page.goto(f"{file.as_uri()}#policy=stride&workload=two-hogs")
    page.wait_for_function(
        "() => document.querySelector('.strip-policy')?.textContent === 'stride'"
    )


def test_the_address_holds_the_setup(page: Page, file: Path) -> None:
    opened(page, file)
    page.click("text=Setup")
    page.select_option("select[aria-label='Policy of a']", "stride")
    page.select_option("select[aria-label='Policy of b']", "")
    page.fill("input[aria-label='Tunables of a']", "slice=3")
    page.fill("dialog.setup textarea", "program root\n  loop\n    run 3ms\n  end\n")
    page.click("dialog.setup button[type=submit]")
    page.wait_for_function("() => document.querySelectorAll('.strip').length === 1")
    link = page.url
    assert "policy=stride%2Cslice%3D3" in link
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_function(
        "() => document.querySelector('#system-a tbody')?.innerText.includes('root')"
    )
    assert page.locator(".tunables input").first.input_value() == "3"


@pytest.mark.parametrize(
    ("link", "expected_message"),
    [
        ("#policy=nothing", "nothing: unknown policy"),
        ("#policy=rr&cpus=0", "0 CPUs: out of range"),
        ("#policy=rr&workload=nothing", "nothing: unknown workload"),
        ("#policy=rr&text=program+a%0A+run+3m", "own-text:2: 3m: expected a time"),
        ("#policy=rr,slice=x", "slice"),
    ],
)
def test_wrong_link_is_explained(page: Page, file: Path, link: str, expected_message: str) -> None:
    """The page shows the same content as without a link."""
    opened(page, file, link)
    assert expected_message in page.inner_text("#notices")
    assert page.locator(".strip-policy").all_text_contents() == ["rr", "mlfq"]


@pytest.mark.parametrize(
    ("content", "expected_message"),
    [
        (b"no trace", "not a schedlab trace"),
        (struct.pack("<8s4I", b"SCHEDLAB", 2, 64, 32, 1).ljust(64, b"\0"), "has version 2"),
        (struct.pack("<8s4I", b"SCHEDLAB", 1, 64, 32, 0).ljust(64, b"\0"), "header is damaged"),
    ],
)
def test_what_is_no_trace_is_refused(
    page: Page, file: Path, tmp_path: Path, content: bytes, expected_message: str
) -> None:
    """The previous content continues."""
    trace = tmp_path / "trace.bin"
    trace.write_bytes(content)
    opened(page, file)
    page.click("text=Setup")
    page.set_input_files("input[type=file]", str(trace))
    page.wait_for_selector(f"text={expected_message}")
    assert len(clocks(page)) == 2


def test_the_page_runs_no_text(browser: Browser, file: Path) -> None:
    """This covers injected scripts and compiled texts."""
    page = browser.new_page()
    opened(page, file)
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.ran = 1";
            document.head.append(script);
        }"""
    )
    refused = page.evaluate(
        """() => new Promise((resolve) => setTimeout(() => {
            try {
                resolve(Function("return false")());
            } catch (error) {
                resolve(error instanceof EvalError);
            }
        }))"""
    )
    assert refused
    assert page.evaluate("() => window.ran") is None
    page.close()
