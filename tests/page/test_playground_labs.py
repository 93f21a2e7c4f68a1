# SPDX-License-Identifier: MIT
"""Tests labs in the playground as students use them, with the real compiler and simulator."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, Locator, Page, expect

from conftest import ROOT
from playground_page import open_page, served_playground
from schedlab.commands.cli import cli
from schedlab.courses.grading.page_data import page_data
from schedlab.monitor.standalone.playground import installed_packages

pytestmark = pytest.mark.xdist_group("mistakes in the playground")

expect.set_options(timeout=60_000)
FIRST_COMPILE_MS = 400_000
"""The browser prepares 75 MB of the compiler, and compiles twice, on a host of any speed."""
LAB = ROOT / "labs" / "round-robin"
SOLUTION = (LAB / "solution.c").read_text()
LESSONS = json.loads((ROOT / "page/playground/lessons.json").read_text())
VISIBLE_POINTS = 14
TRANSITIONS_END = (
    "async () => { await Promise.all(document.getAnimations().map(({ finished }) => finished)); }"
)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    labs = page_data(["round-robin", "aging"])
    with served_playground(tmp_path_factory.mktemp("playground"), labs) as address:
        yield address


@pytest.fixture(scope="module")
def page(browser: Browser, address: str) -> Iterator[Page]:
    """Returns a page with the lab's start file and a ready compiler."""
    with open_page(browser, address) as page:
        expect(page.locator("#result .state")).to_contain_text("First difference at")
        page.get_by_label("Lesson", exact=True).select_option("lab:round-robin")
        expect(page.locator(".lab-pane h2")).to_have_text("Round-robin")
        yield page


def check(page: Page) -> Locator:
    page.get_by_role("tab", name="tests").click()
    page.get_by_role("button", name="Check: grade it").click()
    return page.locator(".lab-state")


def write(page: Page, source: str) -> None:
    page.get_by_role("tab", name="policy.c").click()
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(source)


def test_the_start_file_is_graded_by_the_visible_tests(page: Page) -> None:
    expect(check(page)).to_have_text(
        "5.64 of 14 points; 8 more cannot be judged here.", timeout=FIRST_COMPILE_MS
    )
    rows = page.locator(".lab-tests > li").all_inner_texts()
    assert rows[0].startswith("in-turn: failed")
    assert (
        "Failed: the same decisions as the solution's (0.27 of 5 points): after 1 of 18" in rows[0]
    )
    assert rows[2:4] == [
        "sleepers (hidden, 6 points): not run here",
        "pushed-off (hidden, 2 points): not run here",
    ]
    assert rows[4].startswith("changes: passed")
    option = page.locator("option", has_text="Round-robin")
    expect(option).to_have_text("Round-robin (5.64 of 14 points)")


def test_the_text_has_no_markup_left(page: Page) -> None:
    text = page.locator(".lab-pane details")
    assert text.locator("code", has_text="start.c").count()
    assert text.locator("ol > li").count() == 2
    assert "`" not in text.inner_text()
    assert text.locator("pre").count() == 0
    assert "./schedlab grade" not in text.inner_text()


def test_the_text_checks_by_a_button_instead_of_a_command(page: Page) -> None:
    page.get_by_role("tab", name="policy.c").click()
    page.locator(".lab-pane details").get_by_role("button", name="Check your source").click()
    expect(page.get_by_role("tab", name="tests")).to_have_attribute("aria-selected", "true")
    expect(page.locator(".lab-state")).to_contain_text("14 points", timeout=FIRST_COMPILE_MS)


def test_the_shown_test_sets_workload_and_tunables(page: Page) -> None:
    page.get_by_role("tab", name="tests").click()
    page.get_by_role("button", name="Show the workload of slice").click()
    page.get_by_role("tab", name="workload").click()
    assert "fork b" in page.get_by_label("The workload, in words").input_value()
    page.get_by_role("tab", name="settings").click()
    sliders = page.locator(".settings input[type=range]")
    assert [slider.input_value() for slider in sliders.all()] == ["3"]  # none of rr's


def test_an_expectation_of_the_kernel_is_not_judged(page: Page) -> None:
    lesson, title = page.get_by_label("Lesson", exact=True), page.locator(".lab-pane h2")
    lesson.select_option("lab:aging")
    expect(title).to_have_text("Priorities with aging")
    write(page, (ROOT / "labs/aging/solution.c").read_text())
    expect(check(page)).to_contain_text("more cannot be judged here", timeout=FIRST_COMPILE_MS)
    preempts = page.locator(".lab-tests > li", has_text="preempts")
    expect(preempts.locator("li", has_text="Not judged here: ")).to_have_count(1)
    assert preempts.inner_text().startswith("preempts: passed")
    lesson.select_option("lab:round-robin")
    expect(title).to_have_text("Round-robin")


def test_a_compile_error_is_shown_with_its_line(page: Page) -> None:
    expect(check(page)).to_contain_text("points", timeout=FIRST_COMPILE_MS)
    old = page.locator(".lab-grade > .stale")
    expect(old).to_have_count(0)
    write(page, SOLUTION.replace("task_list.h", "task_heap.h"))
    expect(old).to_have_count(1)
    expect(check(page)).to_contain_text("It does not compile: line 6: 'task_heap.h' file not found")
    write(page, SOLUTION.replace("policy_turns", "policy_others"))
    expect(check(page)).to_contain_text("It does not compile: it defines no policy_turns")


def test_a_check_can_be_cancelled(page: Page) -> None:
    write(page, SOLUTION + "/* cancelled */\n")
    state = check(page)
    page.get_by_role("button", name="Stop checking").click()
    expect(page.get_by_role("button", name="Check: grade it")).to_be_enabled()
    expect(state).not_to_contain_text("points")
    page.wait_for_timeout(500)
    expect(state).not_to_contain_text("points")


def test_a_fault_has_its_line(page: Page) -> None:
    match = re.search(r"POLICY_FUNCTION [\w ]*\*?turns_pick\(.*?\n\{\n", SOLUTION, re.DOTALL)
    assert match
    head = SOLUTION[: match.end()]
    loop = "    for (volatile int i = 0;; i = i) { }"
    write(page, f"{head}{loop}\n{SOLUTION[match.end() :]}")
    expect(check(page)).to_contain_text("0 of 14 points", timeout=FIRST_COMPILE_MS)
    expect(page.locator(".lab-tests")).to_contain_text(
        f"Failed: line {head.count(chr(10)) + 1}: pick()"
    )
    write(page, f"{head}    return NULL;\n{SOLUTION[match.end() :]}")
    expect(check(page)).to_contain_text("0 of 14 points", timeout=FIRST_COMPILE_MS)
    expect(page.locator(".lab-tests")).to_contain_text(
        f"Failed: line {head.count(chr(10)) - 1}: pick(): policy turns broke a rule: its pick() returned"
    )


def test_the_solution_is_done_and_stays_in_the_browser(page: Page, address: str) -> None:
    write(page, SOLUTION)
    expect(check(page)).to_contain_text(
        f"{VISIBLE_POINTS} of {VISIBLE_POINTS} points", timeout=FIRST_COMPILE_MS
    )
    expect(page.locator("option", has_text="Round-robin (done)")).to_have_count(1)
    again = page.context.new_page()
    again.goto(address)
    again.get_by_label("Lesson", exact=True).select_option("lab:round-robin")
    expect(again.locator(".cm-content")).to_contain_text("SPDX-License-Identifier")
    again.get_by_role("tab", name="tests").click()
    again.get_by_role("button", name="Replace the source by the lab's start file").click()
    expect(again.locator(".cm-content")).to_contain_text("As it stands")
    again.close()


def test_a_link_opens_the_lab_and_changes_no_progress(page: Page, address: str) -> None:
    page.evaluate("localStorage.clear()")
    link = copied_link(page)
    assert "lab=round-robin" in link
    other = page.context.new_page()
    other.goto(link)
    expect(other.locator(".lab-pane h2")).to_have_text("Round-robin")
    expect(check(other)).to_contain_text(
        "Change the linked source to keep your progress.", timeout=FIRST_COMPILE_MS
    )
    assert other.evaluate("localStorage.length") == 0
    other.close()


def copied_link(page: Page) -> str:
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#notices")).to_contain_text("The link is copied.")
    return str(page.evaluate("navigator.clipboard.readText()"))


def test_a_lesson_is_sent_as_a_link(page: Page, address: str) -> None:
    mine = {**LESSONS[0], "name": "mine", "title": "My lesson"}
    sender = page.context.new_page()
    sender.goto(address)
    expect(sender.locator("#result .state")).to_contain_text("First difference at")
    sender.evaluate(DROP, json.dumps(mine))
    expect(sender.locator(".lesson-verdicts")).to_contain_text("Not met")
    sender.get_by_role("tab", name="settings").click()
    sender.get_by_role("slider", name=re.compile("^slice")).fill("1")
    expect(sender.locator(".lesson-verdicts")).not_to_contain_text("Not met")
    count, link = sender.evaluate("localStorage.length"), copied_link(sender)
    sender.evaluate("localStorage.clear()")
    receiver = page.context.new_page()
    receiver.goto(link)
    expect(receiver.locator(".lesson-pane h2").first).to_have_text("My lesson")
    expect(receiver.locator(".lesson-verdicts")).to_contain_text("Met")
    assert (count, receiver.evaluate("localStorage.length")) == (1, 0)
    receiver.close()
    sender.close()


DROP = """text => {
    const files = new DataTransfer();
    files.items.add(new File([text], "lesson.json"));
    dispatchEvent(new DragEvent("drop", { dataTransfer: files }));
}"""


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("v=1&base=rr&lab=nosuch", "the lab nosuch, which is not in this playground"),
        ("v=1&base=rr&lesson=nosuch", "the lesson nosuch, which is not in this playground"),
        ("v=1&base=rr&lab=constructor", "the lab constructor, which is not"),
    ],
)
def test_a_wrong_link_is_refused(page: Page, address: str, link: str, reason: str) -> None:
    other = page.context.new_page()
    other.goto(f"{address}#{link}")
    expect(other.locator("#notices [role=alert]")).to_contain_text(reason)
    other.close()


def test_axe_finds_no_barrier_in_a_lab(page: Page) -> None:
    axe = installed_packages() / "node_modules" / "axe-core" / "axe.min.js"
    write(page, (LAB / "start.c").read_text())
    expect(check(page)).to_contain_text("5.64 of 14", timeout=FIRST_COMPILE_MS)
    page.evaluate(axe.read_text())
    for width in (1400, 390):
        page.set_viewport_size({"width": width, "height": 844})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            for title in ("policy.c" if width > 800 else "schedule", "tests"):
                page.get_by_role("tab", name=title).click()
                page.evaluate(TRANSITIONS_END)
                violations = page.evaluate(
                    "async () => (await axe.run()).violations.map(({ id }) => id)"
                )
                assert violations == [], (width, scheme, title)
                assert page.evaluate("document.documentElement.scrollWidth") <= width


def copy_of_the_lab(folder: Path) -> Path:
    shutil.copytree(LAB, folder)
    return folder


def test_wrong_labs_are_refused_in_words(tmp_path: Path) -> None:
    course = copy_of_the_lab(tmp_path / "one" / "course")
    same = copy_of_the_lab(tmp_path / "two" / "course")
    no_text = copy_of_the_lab(tmp_path / "no-text")
    (no_text / "README.md").unlink()
    wrong = copy_of_the_lab(tmp_path / "wrong")
    (wrong / "solution.c").write_text((wrong / "start.c").read_text())
    for words, reason in (
        (["--lab", "nosuch"], "nosuch: contains no lab.json"),
        (["--lab", str(course), "--lab", str(same)], "two labs have folders called course"),
        (["--lab", str(no_text)], "README.md: No such file or directory"),
        (["--lab", str(wrong)], "the lab's own solution fails"),
    ):
        result = CliRunner().invoke(cli, ["page", "--out", str(tmp_path / "page"), *words])
        assert result.exit_code
        assert reason in f"{result.exception} {result.output}"
        assert not (tmp_path / "page").exists()
    for words, advice in (
        ([], "add --out DIR or --serve"),
        (["--policy", "rr", "--out", str(tmp_path / "page")], "leave out --policy or --lab"),
    ):
        result = CliRunner().invoke(cli, ["page", "--lab", str(course), *words])
        reason = f"--lab: only the playground has labs; {advice}"
        assert reason in f"{result.exception} {result.output}"
