# SPDX-License-Identifier: MIT
"""Tests the standalone page, opened as a file: simulations, recordings, links and refusals."""

from __future__ import annotations

import base64
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page

import schedlab.trace
from conftest import ROOT
from kept_runs import keep_simulated
from page_waits import PATIENCE_S
from schedlab.analysis.explanation.explained_waits import WaitQuery, explain
from schedlab.base.display.numbers import duration, milliseconds
from schedlab.base.toolchain import committed
from schedlab.base.toolchain.build import SIMULATOR_PROGRAM, WASM_MODULE, build
from schedlab.base.toolchain.policies import known_policies
from schedlab.monitor.standalone.build import page_of, write_policy_module
from schedlab.report.charts import theme
from simulator_command import write_workload

SLOW = "&cpus=2&seed=1&workload=two-hogs&workload=interactive&pace=0.01"
MANY = "#policy=rr&policy=mlfq&policy=lottery&policy=stride" + SLOW


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the page, built from this checkout."""
    build(*(str(path.relative_to(ROOT)) for path in (WASM_MODULE, SIMULATOR_PROGRAM)))
    file = tmp_path_factory.mktemp("page") / "schedlab.html"
    file.write_text(page_of(WASM_MODULE.read_bytes()))
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
    for cached_function in (committed._is_up_to_date, committed._catalogue):
        cached_function.cache_clear()
    try:
        assert committed.committed_policy_list() is None
        assert committed.committed_policies() == ()
    finally:
        for cached_function in (committed._is_up_to_date, committed._catalogue):
            cached_function.cache_clear()


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


LIMIT_REACHED = 3
GROUPED = """program root
  group roots
  fork hog
  loop 40
    run 3ms
    sleep 2ticks
  end
program hog
  run 80ms
"""


def test_a_recording_opens_full_and_is_sought(page: Page, file: Path, tmp_path: Path) -> None:
    """It stands at its end, all of it is seen, and its last frame has the recording's figures. Its
    longest waits are those of `./schedlab explain`, in the same words. One wait has not ended.
    """
    trace = tmp_path / "trace.bin"
    starving = GROUPED.replace("80ms", "800ms").replace("  fork hog\n", "  fork hog\n  fork hog\n")
    played = write_workload(tmp_path, starving, 10_000_000)
    words = ["--policy", "mlfq", "--tick", "10000000", "--trace", str(trace), "--trace-queues"]
    words += ["--limit", "700000000"]
    ended = subprocess.run([SIMULATOR_PROGRAM, *words, played], check=False, capture_output=True)
    assert ended.returncode == LIMIT_REACHED
    read = schedlab.trace.read(trace)
    opened(page, file)
    page.click("text=Setup")
    page.set_input_files("input[type=file]", str(trace))
    page.wait_for_selector("h2 >> text=recorded")
    assert page.locator(".strip-policy").all_text_contents() == ["mlfq"]
    assert page.locator(".strip-life").all_text_contents() == ["■ at its end"]
    page.wait_for_function(
        "() => document.querySelector('#timeline-a canvas.scrolled-canvas').drawn?.bars > 10"
    )
    drawn = page.evaluate("document.querySelector('#timeline-a canvas.scrolled-canvas').drawn")
    assert drawn["begin"] <= read.begin_ns
    assert drawn["end"] >= read.end_ns
    assert len(drawn["levels"]) > 1
    explained = explain(read, WaitQuery(worst=8), known_policies())
    expected = [
        f"{entry.name}, {entry.wait.kind}, at {milliseconds(entry.wait.begin_ns, 4)}: "
        f"{duration(entry.wait.duration_ns)}{'' if entry.wait.ended else ', not ended'}"
        for entry in explained.longest
        if entry.wait.duration_ns
    ]
    assert [entry.wait.ended for entry in explained.longest].count(False) == 1
    assert page.locator("#waits-a .waits-choice button").all_inner_texts() == expected
    page.locator("#waits-a .waits-choice button").first.click()
    page.wait_for_selector("#waits-a >> text=Its last waits")
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
    assert page.locator(".strip-life").all_text_contents() == ["■ at its end"]
    dropped(page, tmp_path / "manifest.json")
    page.wait_for_selector("text=Drop a trace (trace.bin of a run)")


def test_user_policy_can_be_chosen(page: Page, file: Path, tmp_path: Path) -> None:
    made = write_policy_module("stride", tmp_path / "of-mine.wasm")
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
    page.wait_for_url("**/*policy=stride%2Cslice%3D3*")
    link = page.url
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
        pytest.param("#policy=rr&cpus=0", "0 CPUs: out of range", marks=pytest.mark.long),
        pytest.param(
            "#policy=rr&workload=nothing", "nothing: unknown workload", marks=pytest.mark.long
        ),
        ("#policy=rr&text=program+a%0A+run+3m", "own-text:2: 3m: expected a time"),
        pytest.param("#policy=rr&tick=0", "tick of 0 ms: out of range", marks=pytest.mark.long),
        pytest.param(
            "#policy=rr&tick=4&workload=mixed",
            "mixed needs a tick of 10 ms",
            marks=pytest.mark.long,
        ),
        ("#policy=rr,slice=x", "slice of rr: not a whole number; choose 1 to 1000"),
    ],
)
def test_wrong_link_is_explained(page: Page, file: Path, link: str, expected_message: str) -> None:
    """The page shows the same content as without a link."""
    page.set_viewport_size({"width": 1280, "height": 800})  # fewer panels are drawn
    opened(page, file, link)
    assert expected_message in page.inner_text("#notices")
    assert page.locator(".strip-policy").all_text_contents() == ["rr", "mlfq"]


TEXT = "program root\n  loop\n    run 3ms\n  end\n"


@pytest.mark.parametrize(
    ("field", "value", "expected_message", "mended"),
    [
        ("dialog.setup textarea", "program a\n run 3m\n", "own-text:2: 3m: expected a time", TEXT),
        (
            "[aria-label='Tunables of b']",
            "slice_0=-1",
            "slice_0 of mlfq: -1 is out of range",
            "levels=3",
        ),
        ("[aria-label='Tunables of b']", "slize=1", "slize: unknown tunable of mlfq", "levels=3"),
        pytest.param(
            ".setup-machine label:has-text('Tick') input",
            "0",
            "Tick, ms: out of range; choose 0.1 to 1000",
            "5",
            marks=pytest.mark.long,
        ),
        pytest.param(
            ".setup-machine label:has-text('CPUs') input",
            "",
            "CPUs: out of range; choose 1 to 256",
            "3",
            marks=pytest.mark.long,
        ),
    ],
)
def test_wrong_setup_stays_open_with_the_error_at_its_field(
    page: Page, file: Path, field: str, value: str, expected_message: str, mended: str
) -> None:
    """What was typed is kept, and what runs goes on. The mended setup begins."""
    opened(page, file, "#policy=rr&policy=mlfq&pace=0.1")
    page.click("text=Setup")
    page.fill(field, value)
    page.click("dialog.setup button[type=submit]")
    error = page.locator("dialog.setup .setup-trouble", has_text=expected_message)
    error.wait_for()
    control = page.locator(f"dialog.setup[open] {field.removeprefix('dialog.setup ')}")
    assert control.input_value() == value
    assert control.get_attribute("aria-describedby") == error.get_attribute("id")
    assert control.evaluate("each => each === document.activeElement")
    assert page.locator(".strip-policy").all_text_contents() == ["rr", "mlfq"]
    page.fill(field, mended)
    page.click("dialog.setup button[type=submit]")
    page.wait_for_selector("dialog.setup", state="hidden")


def test_nothing_is_shown_that_needs_a_server(page: Page, file: Path) -> None:
    """This includes the buttons for Perfetto, of which the page cannot make files."""
    opened(page, file, "#policy=rr&workload=two-hogs&pace=0.1")
    assert page.locator("#timeline-a .panel-tools button:visible").count() > 3
    for label in ("ui.perfetto.dev", "Record", "report", "What if"):
        assert page.locator(f"button[aria-label*='{label}']:visible").count() == 0


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


TWO_ENDS = """program root
  fork hog
  fork hog
  wait all
program hog
  run 30ms
"""


@pytest.mark.parametrize("pace", ["0", "1"])
def test_finished_workload_leaves_its_processes(page: Page, file: Path, pace: str) -> None:
    """Time stands still at its end, at any pace, and goes on with another workload."""
    link = urlencode({"policy": "rr", "cpus": 1, "pace": pace, "text": TWO_ENDS})
    opened(page, file, f"#{link}")
    page.wait_for_selector("#system-a > .banner >> text=The workload has ended at 0.070 s.")
    page.wait_for_selector(".strip-life >> text=workload ended")
    rows = page.locator("#processes-a .finished tbody tr")
    assert [row.split()[0] for row in rows.all_inner_texts()] == ["hog", "hog", "root"]
    assert ["30.0 ms" in row for row in rows.all_inner_texts()] == [True, True, False]
    page.wait_for_selector("#waits-a >> text=/hog 5, turn, at .* 10.0 ms/")
    page.wait_for_timeout(300)
    before = clocks(page)
    page.wait_for_timeout(500)
    assert clocks(page) == before == ["0.08 s"] or clocks(page) == before == ["0.07 s"]
    page.click("button[aria-label^='Start two-hogs']")
    page.locator("#processes-a .finished").wait_for(state="hidden")
    page.locator("#system-a > .banner").wait_for(state="hidden")
    page.wait_for_function(
        "() => parseFloat(document.querySelector('.strip-clock').innerText) > 0.2"
    )


def test_systems_whose_workloads_end_apart_stay_in_step(page: Page, file: Path) -> None:
    text = "program root\n  loop 5\n    run 10ms\n    sleep 10ms\n  end\n"
    link = urlencode({"policy": "rr", "cpus": 1, "pace": 1, "text": text})
    opened(page, file, f"#policy=mlfq&{link}")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.strip-life')]"
        ".every((each) => each.textContent.includes('workload ended'))"
    )
    page.wait_for_timeout(300)
    assert len(set(clocks(page))) == 1
