# SPDX-License-Identifier: MIT
"""The monitor's page in a real browser, beside a stand-in for its server: every panel follows the
frames, every control asks for what it should, and nothing is lost, overlooked or out of reach."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from contrast import CONTRAST_SCRIPT
from hostile_names import NAMES
from monitor_stand_in import ABILITIES, MadeUpSystem, StandIn
from page_waits import PATIENCE_S, until
from schedlab.base.toolchain.tools import BROWSERS, find_browser
from schedlab.monitor.files import PAGE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

BROWSER = find_browser()
pytestmark = [
    pytest.mark.skipif(
        not BROWSER,
        reason=f"NO BROWSER: the monitor's page is NOT TESTED. Install one of {BROWSERS}",
    ),
    # One browser serves all tests of this file.
    pytest.mark.xdist_group("monitor_page"),
]

TELEPHONE, DESKTOP, PROJECTOR = (390, 844), (1280, 800), (1920, 1080)
ROOMY = (1300, 1700)
"""All panels are to be seen, and so drawn, of one system."""
DRAWINGS = ("timeline", "queues", "shares", "metrics", "waits")
"""Folded where they are not looked at: to draw takes a while without a graphics card."""
PANELS = (
    *("timeline", "queues", "policy", "shares", "processes", "metrics"),
    *("waits", "decisions", "selections", "log", "workloads", "cost"),
)
COLUMNS = (
    *("pid", "name", "state", "share", "cpu", "level", "priority", "tickets", "weight"),
    *("slice_left_ns", "wait_now_ns", "waiting_ns", "run_ns", "selections"),
)
"""Of the table, as if a user had chosen them: else it has those of which the policy makes use."""
CONTRAST = 4.5
"""WCAG 2.1, 1.4.3: of text to its ground."""
GRAPHIC_CONTRAST = 3.0
"""WCAG 2.1, 1.4.11: of what one fills in, to its ground."""


@contextmanager
def opened(
    browser: Browser,
    stand_in: StandIn,
    size: tuple[int, int] = ROOMY,
    scheme: Any = "light",
    allowed: str = "",
    folded: tuple[str, ...] = DRAWINGS,
) -> Iterator[Page]:
    """The page, with its first frames. It may ask the stand-in alone, and say nothing on the console
    but what is `allowed`."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme=scheme,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    layout = json.dumps({"folded": folded, "enlarged": ""})
    page.add_init_script(f"localStorage['schedlab-columns'] ??= {json.dumps(json.dumps(COLUMNS))}")
    page.add_init_script(f"localStorage['schedlab-layout'] ??= {json.dumps(layout)}")
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
    page.on("request", lambda request: note_foreign(request.url, stand_in, trouble))
    page.goto(stand_in.address)
    wait_for_frames(page)
    try:
        yield page
    finally:
        context.close()
    assert [each for each in trouble if not allowed or allowed not in each] == []


def note_foreign(address: str, stand_in: StandIn, trouble: list[str]) -> None:
    if not address.startswith((f"http://127.0.0.1:{stand_in.port}/", "data:", "blob:")):
        trouble.append(f"request: {address}")


def panel(page: Page, name: str, system: str = "a") -> Locator:
    return page.locator(f"#{name}-{system}")


def wait_for_frames(page: Page) -> None:
    until(page, "[...document.querySelectorAll('.strip-policy')].at(-1)?.textContent")


def text_of(selector: str) -> str:
    """A script for it."""
    return f"document.querySelector({json.dumps(selector)})?.textContent"


def changes(page: Page, selector: str, act: Callable[[], object] = lambda: None) -> None:
    """Waits until what is there says something else."""
    before = page.evaluate(text_of(selector))
    act()
    until(page, f"{text_of(selector)} !== {json.dumps(before)}")


def sent(page: Page, stand_in: StandIn, act: str, count: int = 1) -> dict[str, Any]:
    """What the page asked for, as soon as it has come."""
    asked = until(page, lambda: stand_in.asked_to(act)[count - 1 :], lambda: stand_in.asked)
    return asked[0]


def overflow(page: Page) -> int:
    """Pixels that the page is wider than the screen."""
    script = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    return int(page.evaluate(script))


# --- what is shown


def test_each_module_is_there_and_follows_the_frames(browser: Browser) -> None:
    with StandIn(systems=1) as stand_in, opened(browser, stand_in, folded=()) as page:
        for name in PANELS:
            assert panel(page, name).locator("h3").inner_text()
            assert panel(page, name).locator(".panel-about").inner_text()
        changes(page, ".strip-clock")
        changes(page, "#processes-a .cell-run_ns")
        changes(page, "#decisions-a tbody td")
        changes(page, "#selections-a .bar-value")
        changes(page, "#cost-a .facts div:nth-child(3) dd")
        made = stand_in.made[0]
        changes(page, "#log-a .log", lambda: stand_in.call(lambda: made.say("panic: not really")))
        panel(page, "log").get_by_text("panic: not really").wait_for()
        changes(
            page, "#workloads-a .groups", lambda: stand_in.call(lambda: made.fork("new", "77", 0))
        )
        panel(page, "workloads").get_by_label("Kill group 77: new").wait_for()


def test_names_are_shown_and_do_nothing(browser: Browser) -> None:
    """Raw ones, as no server of ours sends them: that each is drawn and said, and none is obeyed."""
    with StandIn(systems=1) as stand_in, opened(browser, stand_in, folded=()) as page:
        made = stand_in.made[0]

        def fork() -> None:
            for name in NAMES:
                made.fork(name, name, 0)
                made.say(name)

        count = "Number(document.querySelector('#processes-a .panel-note').textContent)"
        before = int(page.evaluate(count))
        stand_in.call(fork)
        until(page, f"{count} >= {before + len(NAMES)}")
        for _ in range(3):
            changes(page, ".strip-clock")
        assert page.evaluate("typeof attack") == "undefined"
        assert (
            page.evaluate("document.querySelectorAll('img[src=x], a[href^=javascript]').length")
            == 0
        )


def test_a_row_says_all_of_its_process(browser: Browser) -> None:
    with StandIn(systems=1) as stand_in, opened(browser, stand_in, PROJECTOR) as page:
        stand_in.playing = False
        row = panel(page, "processes").get_by_role("row").filter(has_text="compile")
        for part in ("7", "compile", "%", "15"):
            assert part in row.inner_text()
        share = row.locator(".cell-share").get_attribute("aria-label")
        assert share
        assert "ideal" in share
        assert panel(page, "processes").get_by_text("steer").count() == 0, "it is the monitor's own"
        panel(page, "processes").get_by_label("own").check()
        panel(page, "processes").get_by_text("steer").wait_for()


def test_a_lesson_waits_until_its_machine_has_started(browser: Browser) -> None:
    """It has frames before, but does nothing that it is asked."""
    lesson = {"title": "A lesson", "policies": "mlfq", "steps": [{"text": "Look."}]}
    able = tuple(each for each in ABILITIES if each != "setup")  # so it is not begun anew
    stand_in = StandIn(systems=1, lesson=lesson, abilities=able)
    made = stand_in.made[0]
    made.life = "starting"
    stand_in.refusals = {"pause": "it does not run: starting"}

    def start() -> None:
        made.life = "running"
        stand_in.refusals = {}

    with stand_in, opened(browser, stand_in) as page:
        page.wait_for_timeout(500)
        stand_in.call(start)
        page.locator("#lesson").get_by_text("1 of 1").wait_for()


def test_a_lesson_asks_when_the_moment_that_it_sought_is_shown(browser: Browser) -> None:
    """What is shown until then is later, here by 50 us and one decision: the next one is the same again."""
    question = {
        "question": "Next?",
        "options": ["hog", "init"],
        "answer": "init",
        "because": "It is.",
    }
    step = {"text": "Look.", "until": {"time": "0.1ms"}, "ask": question}
    lesson = {"title": "A lesson", "policies": "mlfq", "steps": [step]}
    able = tuple(each for each in ABILITIES if each != "setup")
    stand_in = StandIn(systems=1, lesson=lesson, abilities=able)
    made = stand_in.made[0]

    def decide(duration: int) -> None:
        if duration and made.paused:
            made.note_decision(0, made.processes[1], [], 0, "")

    def go_on() -> None:
        made.now = 150_000
        made.note_decision(0, made.processes[1], [], 0, "")

    def seek(time_ns: int) -> None:
        stand_in.send_frames()  # as it stands, before it goes there
        stand_in.playing = False
        MadeUpSystem.seek(made, time_ns)

    made.advance, made.seek = decide, seek  # type: ignore[method-assign]
    with stand_in, opened(browser, stand_in) as page:
        sent(page, stand_in, "resume")
        stand_in.call(go_on)
        assert sent(page, stand_in, "seek") == {"time_ns": 100_000}
        page.wait_for_timeout(200)
        assert not page.get_by_label("Answer: init").is_visible()
        stand_in.playing = True
        page.get_by_label("Answer: init").click()
        page.locator("#lesson").get_by_text("Yes: init.").wait_for()


def test_side_by_side_each_has_its_own(browser: Browser) -> None:
    with StandIn() as stand_in, opened(browser, stand_in, PROJECTOR) as page:
        assert page.locator("#system-a .strip-policy").inner_text() == "mlfq"
        assert page.locator("#system-b .strip-policy").inner_text() == "lottery"
        for system in "ab":
            assert panel(page, "processes", system).is_visible()
        assert not page.locator("#tabs").is_visible()
        panel(page, "processes", "b").get_by_role("row").filter(has_text="compile").click()
        panel(page, "processes", "b").locator(".row.selected").wait_for()  # drawn a frame later
        assert panel(page, "processes", "b").locator(".row.selected").count() == 1
        assert panel(page, "processes", "a").locator(".row.selected").count() == 0


def test_a_recording_at_its_end_says_so_and_is_played_again(browser: Browser) -> None:
    with StandIn(systems=1, end_ns=2_000_000_000) as stand_in, opened(browser, stand_in) as page:
        page.get_by_text("■ at its end").wait_for()
        page.get_by_label("Play it from its beginning").click()
        assert sent(page, stand_in, "seek") == {"time_ns": 0}
        sent(page, stand_in, "resume")


def test_nothing_of_a_panel_lies_above_the_line_at_the_top(browser: Browser) -> None:
    with StandIn(systems=1) as stand_in, opened(browser, stand_in, DESKTOP) as page:
        top = "const top = document.querySelector('.top').getBoundingClientRect();"
        scroll = "document.querySelector('#decisions-a .decisions th').getBoundingClientRect().top"
        page.evaluate(f"scrollTo(0, scrollY + {scroll} - 20)")
        covered = f"""(() => {{ {top}
            for (let x = 5; x < top.width; x += 20)
                if (!document.elementFromPoint(x, top.height / 2).closest('.top')) return x;
            return -1;
        }})()"""
        assert page.evaluate(covered) == -1
        head = "document.querySelector('.head-group').getBoundingClientRect().top"
        page.evaluate(f"scrollTo(0, {head} + scrollY - 20)")
        assert page.evaluate(covered) == -1


def test_side_by_side_the_verdict_comes_first(browser: Browser) -> None:
    with StandIn() as stand_in, opened(browser, stand_in, PROJECTOR) as page:
        a, b = stand_in.made
        better = b.metrics
        b.metrics = lambda: {**better(), "wakeup_median_ns": 0.0}  # type: ignore[method-assign]
        figure = page.locator(".verdict-figure").first
        figure.get_by_text("Wake-up, median").wait_for()
        assert figure.locator(".good").inner_text() == "0 ns"
        assert "against 0 ns b lottery" in figure.inner_text()
        table = page.locator(".verdict-table")
        assert table.locator("thead tr").nth(1).locator("th").all_inner_texts()[:2] == ["a", "b"]
        for each in (a, b):
            each.processes[7].name = "link"  # as one that was forked, and then runs another program
        table.get_by_text("link 7").click()
        page.locator("#processes-b .row.selected").wait_for()
        assert page.locator("#processes-a .row.selected").count() == 1
        assert len(a.running) == 2


def test_a_lecture_has_four_panels_in_large_letters(browser: Browser) -> None:
    with StandIn(systems=1) as stand_in, opened(browser, stand_in, PROJECTOR, folded=()) as page:
        page.keyboard.press("m")
        seen = [name for name in PANELS if panel(page, name).is_visible()]
        assert seen == ["timeline", "queues", "processes", "decisions"]
        for place in (".row .name-words", ".decisions td.why"):
            size = page.locator(place).first.evaluate(
                "(it) => parseFloat(getComputedStyle(it).fontSize)"
            )
            assert size >= 20
        assert page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)") == 24
        page.keyboard.press("m")
        assert panel(page, "metrics").is_visible()


def test_the_reason_of_a_decision_is_not_cut_off(browser: Browser) -> None:
    with StandIn(systems=1) as stand_in, opened(browser, stand_in, DESKTOP, folded=()) as page:
        panel(page, "decisions").scroll_into_view_if_needed()
        why = page.locator("#decisions-a td.why").first
        why.wait_for()
        assert why.evaluate("(it) => it.scrollWidth <= it.clientWidth")


def test_a_click_means_what_was_pressed(browser: Browser) -> None:
    """Its row is elsewhere, and another one in its place, before the press is let go."""
    with StandIn(systems=1) as stand_in, opened(browser, stand_in, PROJECTOR) as page:
        stand_in.playing = False
        made = stand_in.made[0]
        table = panel(page, "processes")
        table.get_by_label("Tickets: sort").click()
        row = table.get_by_role("row").filter(has_text="compile")
        row.locator(".name-words").hover()
        place = row.get_attribute("data-place")

        def change() -> None:
            next(each for each in made.processes.values() if each.name == "compile").tickets = 1
            made.fork("another", "another", 0)
            stand_in.send_frames()

        page.mouse.down()
        stand_in.call(change)
        moved = f"#processes-a .row:not([data-place='{place}'])"
        page.locator(moved).filter(has_text="compile").wait_for()
        page.mouse.up()
        assert "compile" in table.locator(".row.selected").inner_text()


def test_a_process_that_has_ended_is_not_acted_on(browser: Browser) -> None:
    """Nor is what is shown in its place."""
    with StandIn(systems=1) as stand_in, opened(browser, stand_in, PROJECTOR) as page:
        made = stand_in.made[0]
        table = panel(page, "processes")
        table.get_by_label("groups").check()
        name = table.get_by_text("compile", exact=True)
        name.click()
        table.locator(".row.selected").wait_for()
        pid = next(each.pid for each in made.processes.values() if each.name == "compile")
        stand_in.call(lambda: stand_in.do_kill(made, {"pid": pid}))
        name.wait_for(state="hidden")
        for _ in range(2):
            page.keyboard.press("Delete")
        page.keyboard.press("Enter")
        changes(page, ".strip-clock")
        assert stand_in.asked_to("kill") == []
        assert table.locator(".edit-field").is_hidden()


def test_a_change_by_others_is_seen(browser: Browser) -> None:
    with StandIn(systems=1) as stand_in, opened(browser, stand_in) as page:
        made = stand_in.made[0]
        stand_in.call(lambda: stand_in.do_tunable(made, {"name": "levels", "value": 7}))
        levels = panel(page, "policy").get_by_label("levels", exact=True)
        until(page, "document.querySelector('#tunable-a-levels')?.value === '7'")
        assert "≠" in panel(page, "policy").locator(".tunable.changed").inner_text()
        stand_in.call(lambda: stand_in.do_policy(made, {"policy": "lottery:thesis"}))
        until(
            page,
            "document.querySelector('#policy-a .policy-choice select').value === 'lottery:thesis'",
        )
        assert "Preset:" in panel(page, "policy").locator(".policy-meaning").inner_text()
        panel(page, "policy").get_by_label("generator", exact=True).wait_for()
        assert levels.count() == 0
        until(
            page, "document.querySelector('#announcements').textContent.includes('lottery:thesis')"
        )


# --- what is asked


def test_the_policy_and_its_tunables_are_set(browser: Browser) -> None:
    with StandIn() as stand_in, opened(browser, stand_in) as page:
        policy = panel(page, "policy", "b")
        policy.get_by_label("Policy", exact=True).select_option("mlfq:four-quanta")
        assert sent(page, stand_in, "policy") == {"system": "b", "policy": "mlfq:four-quanta"}
        levels = policy.get_by_label("levels", exact=True)
        levels.fill("3")
        levels.press("Enter")
        wanted = {"system": "b", "name": "levels", "value": 3}
        assert sent(page, stand_in, "tunable") == wanted
        policy.get_by_label("Set levels back").click()
        assert sent(page, stand_in, "tunable", 2) == wanted | {"value": 4}
        levels.fill("99")
        levels.press("Enter")
        error = policy.locator("#tunable-b-levels-error")
        error.wait_for()
        assert "1 to" in error.inner_text()
        assert levels.get_attribute("aria-invalid") == "true"
        assert len(stand_in.asked_to("tunable")) == 2
        stand_in.refusals["tunable"] = "the kernel says no"
        levels.fill("5")
        levels.press("Enter")
        policy.get_by_text("the kernel says no").wait_for()
        stand_in.refusals["policy"] = "no such policy here"
        policy.get_by_label("Policy", exact=True).select_option("rr")
        policy.get_by_text("no such policy here").wait_for()
        until(page, "document.querySelector('#policy-b select').value === 'mlfq:four-quanta'")


def test_attributes_are_set_in_the_table(browser: Browser) -> None:
    with StandIn(systems=1) as stand_in, opened(browser, stand_in, PROJECTOR) as page:
        table = panel(page, "processes")
        row = table.get_by_role("row").filter(has_text="compile")
        row.locator(".cell-tickets").dblclick()
        field = table.get_by_label("tickets of compile (7)")
        assert field.input_value() == "15"
        field.fill("0")
        field.press("Enter")
        table.get_by_text("tickets: 1 to 1000000").wait_for()
        field.fill("55")
        field.press("Enter")
        wanted = {"system": "a", "pid": 7, "kind": "tickets", "value": 55}
        assert sent(page, stand_in, "attribute") == wanted
        row.locator(".cell-tickets", has_text="55").wait_for()
        assert field.is_hidden()

        table.get_by_label("groups").check()
        group = table.get_by_role("row").filter(has_text="× 5")
        group.locator(".cell-weight").dblclick()
        field = table.locator(".edit-field")
        field.fill("9")
        field.press("Enter")
        wanted = {"system": "a", "group": "five", "kind": "weight", "value": 9}
        assert sent(page, stand_in, "attribute", 2) == wanted
        stand_in.refusals["attribute"] = "it has ended"
        group.locator(".cell-weight").dblclick()
        field.press("Enter")
        table.get_by_text("it has ended").wait_for()
        field.press("Escape")
        assert field.is_hidden()


def test_processes_are_killed_at_the_second_press(browser: Browser) -> None:
    with StandIn(systems=1) as stand_in, opened(browser, stand_in) as page:
        table = panel(page, "processes")
        row = table.get_by_role("row").filter(has_text="compile")
        row.hover()
        row.locator(".kill").click()
        table.get_by_text("Kill?").wait_for()
        assert stand_in.asked_to("kill") == []
        row.locator(".kill").click()
        assert sent(page, stand_in, "kill") == {"system": "a", "pid": 7}
        row.wait_for(state="detached")
        panel(page, "workloads").get_by_label("Kill group five:").click()
        assert sent(page, stand_in, "kill", 2) == {"system": "a", "group": "five"}
        stand_in.refusals["kill"] = "init cannot be killed"
        panel(page, "workloads").get_by_label("Kill group init:").click()
        panel(page, "workloads").get_by_text("init cannot be killed").wait_for()


def test_workloads_are_started_and_systems_begun_anew(browser: Browser) -> None:
    with StandIn() as stand_in, opened(browser, stand_in) as page:
        workloads = panel(page, "workloads", "b")
        workloads.get_by_label("Start: two CPU-bound processes").click()
        assert sent(page, stand_in, "start") == {"workload": "two-hogs"}
        workloads.get_by_label("on all systems").uncheck()
        workloads.get_by_text("Of the studies").click()
        workloads.get_by_label("Start: study4 trace").click()
        assert sent(page, stand_in, "start", 2) == {"system": "b", "workload": "study4-trace"}
        workloads.get_by_label("CPUs").fill("65")
        workloads.get_by_text("Start again", exact=True).click()
        workloads.get_by_text("CPUs: 1 to 64.").wait_for()
        workloads.get_by_label("CPUs").fill("3")
        workloads.get_by_label("Seed").fill("9")
        workloads.get_by_label("Policy to begin with").select_option("stride")
        workloads.get_by_label("Workload to begin with").select_option("hog")
        workloads.get_by_text("Start again", exact=True).click()
        wanted = {"system": "b", "cpus": 3, "seed": 9, "tick_ns": 10_000_000}
        wanted |= {"policy": "stride", "workloads": ["hog"]}
        assert sent(page, stand_in, "restart") == wanted
        until(page, "document.querySelector('#title-b').textContent.includes('3 CPUs')")
        until(page, f"{text_of('#system-b .strip-policy')} === 'stride'")
        stand_in.refusals["start"] = "no memory"
        panel(page, "workloads", "a").get_by_label("Start: one CPU-bound process").click()
        panel(page, "workloads", "a").get_by_text("no memory").wait_for()


def test_time_is_in_ones_hand(browser: Browser) -> None:
    with StandIn() as stand_in, opened(browser, stand_in) as page:
        page.get_by_label("Pause", exact=True).click()
        assert sent(page, stand_in, "pause") == {}
        page.get_by_label("Go on", exact=True).wait_for()
        assert "paused" in page.locator("#system-b .strip-life").inner_text()
        page.get_by_label("How far a step goes").select_option("decision")
        page.get_by_label("One step").click()
        assert sent(page, stand_in, "step") == {"kind": "decision"}
        page.get_by_label("Step back").click()
        assert sent(page, stand_in, "step", 2) == {"kind": "decision", "back": True}
        page.get_by_label("Go on", exact=True).click()
        assert sent(page, stand_in, "resume") == {}
        pace = page.get_by_label("Pace of the systems")
        pace.press("End")
        assert sent(page, stand_in, "pace") == {"speed": 0}
        assert pace.get_attribute("aria-valuetext") == "at full speed"
        assert page.get_by_label("Place in the recording").is_hidden()
        page.get_by_label("Go to this second").fill("0.25")
        page.get_by_label("Go to this second").press("Enter")
        assert sent(page, stand_in, "seek") == {"time_ns": 250_000_000}
        stand_in.refusals["resume"] = "it has ended"
        stand_in.refusals["pause"] = "it has ended"
        page.locator(".play").click()
        page.locator(".notice.bad", has_text="it has ended").wait_for()


def test_what_if_from_here(browser: Browser) -> None:
    with StandIn(systems=1) as stand_in, opened(browser, stand_in) as page:
        here = panel(page, "policy")
        here.get_by_label("Policy from here on").select_option("mlfq")
        here.get_by_label("Tunables from here on").fill("boost=7")
        here.get_by_text("What if from here?").click()
        wanted = {"system": "a", "policy": "mlfq", "settings": "boost=7"}
        assert sent(page, stand_in, "branch") == wanted
        page.get_by_text("Kept in runs/futures").wait_for()
        stand_in.refusals["branch"] = "its past was another"
        here.get_by_text("What if from here?").click()
        here.get_by_text("its past was another").wait_for()
    with StandIn(systems=1, no_branches="QEMU") as stand_in, opened(browser, stand_in) as page:
        ask = panel(page, "policy").get_by_label("Compute the other future")
        assert ask.is_disabled()
        assert ask.get_attribute("title") == "QEMU"
        assert panel(page, "policy").locator(".what-if-why").inner_text() == "QEMU"


def test_waits_are_taken_apart(browser: Browser) -> None:
    shown = tuple(name for name in DRAWINGS if name != "waits")
    with StandIn(systems=1) as stand_in, opened(browser, stand_in, folded=shown) as page:
        here = panel(page, "waits")
        here.locator(".waits-choice button").first.click()
        here.get_by_label("Which waits").select_option(label="for another process")
        here.get_by_text("Take apart").click()
        asked = sent(page, stand_in, "blame")
        assert (asked["system"], asked["kinds"], asked["at_ns"]) == ("a", ["blocked"], None)
        here.get_by_text("2 waits, 50.0 ms in all, 10.0 ms of it while a CPU idled").wait_for()
        told = here.locator(".blame-wait").inner_text().replace("\xa0", " ")
        for words in (
            *("0.050000 s, after a wake-up: 40.0 ms", "hog 7 ran on CPU 1", "75.0 %", "25.0 %"),
            *("all of it", "100.0 %", "CPU 0 idled for 10.0 ms", "1 of 4 choices", "level 2"),
        ):
            assert words in told
        exact = here.locator(".blame-sum .waits-time").get_attribute("title")
        assert exact == "40,000,000 ns"
        here.get_by_text("Show its beginning").click()
        assert sent(page, stand_in, "look") == {"system": "a", "time_ns": 50_000_000}
        until(page, "document.activeElement.closest('.panel')?.dataset.panel === 'policy'")
        here.locator(".waits-moment.link").first.focus()
        page.keyboard.press("Enter")
        asked = sent(page, stand_in, "blame", 2)
        assert asked["kinds"] == ["response", "wake-up", "turn", "blocked"]
        assert asked["at_ns"] >= 0
        here.get_by_text("s it waited:").wait_for()
        stand_in.refusals["blame"] = "it is kept no more"
        here.get_by_text("Take apart").click()
        here.get_by_text("it is kept no more").wait_for()


def test_where_no_wait_can_be_taken_apart_it_is_said(browser: Browser) -> None:
    with StandIn(systems=1, no_blame="not here") as stand_in:
        shown = tuple(name for name in DRAWINGS if name != "waits")
        with opened(browser, stand_in, folded=shown) as page:
            here = panel(page, "waits")
            here.locator(".waits-choice button").first.click()
            here.get_by_text("not here").wait_for()
            assert here.get_by_text("Take apart").is_hidden()
            here.locator(".waits-list .waits-moment").first.wait_for()
            assert here.locator(".waits-moment.link").count() == 0


def test_a_place_in_a_recording_is_gone_to(browser: Browser) -> None:
    with StandIn(systems=1, end_ns=4_000_000_000) as stand_in, opened(browser, stand_in) as page:
        place = page.get_by_label("Place in the recording")
        place.fill("500")
        assert sent(page, stand_in, "seek") == {"time_ns": 2_000_000_000}
        until(page, "document.querySelector('.seek-place').ariaValueText?.endsWith('of 4.000 s')")


def test_what_cannot_be_done_is_not_offered(browser: Browser) -> None:
    with StandIn(systems=1, abilities=("pause",)) as stand_in, opened(browser, stand_in) as page:
        for label in ("One step", "Pace of the systems", "Go to this second"):
            assert page.get_by_label(label).is_hidden()
        assert panel(page, "policy").get_by_label("Policy", exact=True).is_disabled()
        assert panel(page, "workloads").get_by_text("Start again", exact=True).is_hidden()
        assert panel(page, "workloads").locator(".chip").first.is_disabled()
        assert panel(page, "processes").locator(".kill:not([hidden])").count() == 0
        panel(page, "processes").locator(".cell-tickets").first.dblclick()
        assert panel(page, "processes").locator(".edit-field").is_hidden()


def test_what_is_shown_is_recorded_and_reported(browser: Browser) -> None:
    with StandIn() as stand_in, opened(browser, stand_in) as page:
        page.get_by_label("Record all systems").click()
        assert sent(page, stand_in, "record") == {"on": True}
        page.get_by_label("End the recording").click()
        assert sent(page, stand_in, "record", 2) == {"on": False}
        page.get_by_text("Recorded: runs/monitor-1").first.wait_for()
        page.get_by_label("Make the report").click()
        link = page.get_by_role("link", name="open it")
        assert link.get_attribute("href") == "/report/secret/index.html"
        page.get_by_label("A file for ui.perfetto.dev").click()
        page.get_by_role("link", name="save it").nth(1).wait_for()
        assert [each["system"] for each in stand_in.asked_to("perfetto")] == ["a", "b"]


# --- what goes wrong


def test_a_lost_connection_is_shown_and_made_again(browser: Browser) -> None:
    with StandIn(systems=1) as stand_in, opened(browser, stand_in) as page:
        page.wait_for_timeout(2100)  # history is asked for at most every two seconds
        stand_in.drop()
        page.get_by_text("The connection to the monitor is lost").wait_for()
        stand_in.call(lambda: stand_in.made[0].say("said while nobody listened"))
        page.get_by_text("The connection to the monitor is lost").wait_for(state="hidden")
        until(page, "document.querySelector('#announcements').textContent.includes('is back')")
        panel(page, "log").get_by_text("said while nobody listened").wait_for()
        changes(page, ".strip-clock")


def test_an_ended_monitor_is_told_apart(browser: Browser) -> None:
    stand_in = StandIn(systems=1)
    with stand_in:
        context = opened(browser, stand_in, allowed="WebSocket connection")
        page = context.__enter__()
    page.get_by_text("Tries again in").wait_for()
    page.get_by_label("Try to connect now").click()
    page.locator("#policy-a .policy-choice select").select_option("rr")
    panel(page, "policy").get_by_text("There is no connection").wait_for()
    again = StandIn(systems=1, port=stand_in.port)
    with again:
        page.get_by_label("Try to connect now").click()
        page.get_by_text("Tries again in").wait_for(state="hidden")
        changes(page, ".strip-clock")
        context.__exit__(None, None, None)


def test_a_failed_system_says_why_and_is_started_again(browser: Browser) -> None:
    with StandIn() as stand_in, opened(browser, stand_in) as page:
        made = stand_in.made[1]
        made.message = "panic: out of tea\nat 0x80001234"
        made.life = "failed"
        banner = page.locator("#system-b > .banner")
        banner.wait_for()
        assert "Simulator b, 4 CPUs has failed." in banner.inner_text()
        assert "panic: out of tea" in banner.inner_text()
        assert page.locator("#system-a > .banner").is_hidden()
        banner.get_by_label("Start the system again").click()
        assert sent(page, stand_in, "restart") == {"system": "b"}
        banner.wait_for(state="hidden")


# --- thousands


def test_thousands_of_rows_are_sorted_and_found(browser: Browser) -> None:
    with StandIn(4096, systems=1) as stand_in, opened(browser, stand_in) as page:
        table = panel(page, "processes")
        assert table.locator(".panel-note").inner_text() == "4,095"
        assert table.get_by_role("grid").get_attribute("aria-rowcount") == "4096"
        assert page.locator("#processes-a .rows .row").count() < 60
        first = table.locator(".row[data-place='0']")
        table.get_by_label("PID: sort").click()
        first.get_by_text("4096").wait_for()
        table.get_by_role("grid").evaluate("grid => { grid.scrollTop = grid.scrollHeight; }")
        table.locator(".row[data-place='4094']").get_by_text("init").wait_for()
        assert page.locator("#processes-a .rows .row").count() < 60
        table.get_by_role("searchbox").fill("worker-17")
        until(
            page,
            "document.querySelector('#processes-a .panel-note').textContent === '102 of 4,095'",
        )
        table.get_by_role("searchbox").fill("nobody at all")
        table.get_by_text("No process matches").wait_for()


def test_the_page_does_not_grow(browser: Browser) -> None:
    with StandIn(systems=1) as stand_in, opened(browser, stand_in) as page:
        made = stand_in.made[0]
        panel(page, "log").scroll_into_view_if_needed()

        def say_much() -> None:
            for number in range(6000):
                made.say(f"line {number}")

        stand_in.call(say_much)
        panel(page, "log").get_by_text("line 5999", exact=True).wait_for()
        assert page.locator("#log-a .log > div").count() == 2000
        sizes = page.evaluate(
            """async () => {
                const store = await import("./store.js");
                const list = new store.Bounded(10);
                for (let item = 0; item < 100; item++) list.add(item);
                const track = new store.Track(64);
                for (let at = 0; at < 1000; at++) track.add(at * 10, at * 10 + 5, at);
                track.add(9990, 9999, 999);
                const log = store.stateOf("a").log.items.length;
                return [list.items.length, list.items.at(-1), list.since(98), track.length,
                    track.end[track.length - 1], track.pid[track.firstAfter(9985)], log];
            }"""
        )
        assert sizes[0] <= 13
        assert sizes[1:3] == [99, [98, 99]]
        assert sizes[3] <= 64
        assert sizes[4:6] == [9999, 999]
        assert sizes[6] <= 2500


# --- keyboard


def test_everything_by_keyboard(browser: Browser) -> None:
    with StandIn(systems=1) as stand_in, opened(browser, stand_in) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("Space")
        assert sent(page, stand_in, "pause") == {}
        page.get_by_label("Go on", exact=True).wait_for()
        page.keyboard.press(".")
        assert sent(page, stand_in, "step") == {"kind": "event"}
        page.keyboard.press(",")
        assert sent(page, stand_in, "step", 2) == {"kind": "event", "back": True}
        page.keyboard.press("]")
        assert sent(page, stand_in, "pace") == {"speed": 2}
        page.keyboard.press("r")
        assert sent(page, stand_in, "record") == {"on": True}
        page.keyboard.press("?")
        page.get_by_role("dialog").get_by_text("filter processes").wait_for()
        page.keyboard.press("Escape")
        assert page.get_by_role("dialog").is_hidden()
        page.keyboard.press("/")
        page.keyboard.type("comp")
        assert panel(page, "processes").locator(".rows .row:not([hidden])").count() == 1
        page.keyboard.press("ArrowDown")
        panel(page, "processes").locator(".row.selected", has_text="compile").wait_for()
        page.keyboard.press("t")
        field = panel(page, "processes").get_by_label("tickets of compile (7)")
        assert field.evaluate("field => field === document.activeElement")
        page.keyboard.type("21")
        page.keyboard.press("Enter")
        assert sent(page, stand_in, "attribute")["value"] == 21
        field.wait_for(state="hidden")
        page.keyboard.press("Delete")
        page.keyboard.press("Delete")
        assert sent(page, stand_in, "kill") == {"system": "a", "pid": 7}


def test_panels_are_folded_enlarged_and_stay_so(browser: Browser) -> None:
    with StandIn(systems=1) as stand_in, opened(browser, stand_in) as page:
        page.keyboard.press("9")
        assert page.evaluate("document.activeElement.id") == "selections-a"
        page.keyboard.press("f")
        assert not panel(page, "selections").locator(".panel-body").is_visible()
        page.keyboard.press("5")
        page.keyboard.press("e")
        assert panel(page, "processes").is_visible()
        assert not panel(page, "policy").is_visible()
        page.reload()
        wait_for_frames(page)
        assert not panel(page, "policy").is_visible()
        page.keyboard.press("Escape")
        assert panel(page, "policy").is_visible()
        assert not panel(page, "selections").locator(".panel-body").is_visible()
        panel(page, "selections").get_by_label("Unfold Selections").click()
        assert panel(page, "selections").locator(".panel-body").is_visible()


# --- for everybody


@pytest.mark.parametrize("size", [TELEPHONE, DESKTOP, PROJECTOR])
@pytest.mark.parametrize("systems", [1, 2])
def test_it_fits_any_screen(browser: Browser, size: tuple[int, int], systems: int) -> None:
    with StandIn(systems=systems) as stand_in, opened(browser, stand_in, size, folded=()) as page:
        assert overflow(page) <= 0
        for name in PANELS:
            box = panel(page, name).bounding_box()
            assert box
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= size[0]
            assert box["height"] > 100
        if systems == 2 and size == TELEPHONE:
            assert not panel(page, "policy", "b").is_visible()
            page.get_by_role("tab", name="Simulator b").click()
            assert panel(page, "policy", "b").is_visible()
            assert not panel(page, "policy", "a").is_visible()
            assert overflow(page) <= 0


UNNAMED = """() => [...document.querySelectorAll('button, input, select, summary, [role=grid]')]
    .filter(each => each.checkVisibility() && !each.getAttribute('aria-label'))
    .filter(each => !each.labels?.length && !each.textContent.trim())
    .map(each => each.outerHTML)"""
DOUBLED = """() => { const ids = [...document.querySelectorAll('[id]')].map(each => each.id);
    return ids.filter((id, place) => ids.indexOf(id) !== place); }"""
DANGLING = """() => [...document.querySelectorAll('[aria-labelledby], [aria-describedby], [aria-controls]')]
    .flatMap(each => ['aria-labelledby', 'aria-describedby', 'aria-controls']
        .flatMap(name => (each.getAttribute(name) ?? '').split(' ').filter(Boolean)))
    .filter(id => !document.getElementById(id))"""


def test_everything_has_a_name(browser: Browser) -> None:
    with StandIn() as stand_in, opened(browser, stand_in) as page:
        page.locator(".tunable").first.wait_for(state="attached")
        assert page.evaluate(UNNAMED) == []
        assert page.evaluate(DOUBLED) == []
        assert page.evaluate(DANGLING) == []
        assert page.locator("h1").count() == 1
        assert page.locator("main").count() == 1


def test_nothing_in_the_page_runs_that_is_not_a_file() -> None:
    """So that a rule (Content-Security-Policy) may forbid what is smuggled in."""
    html = (PAGE / "index.html").read_text()
    assert " style=" not in html
    assert "<style" not in html
    assert re.findall(r" on\w+=", html) == []
    assert len(re.findall("<script", html)) == len(re.findall("<script src=", html))


FAINT_WORDS = f"""least => {{ {CONTRAST_SCRIPT}
    const seen = element => element.checkVisibility() && getComputedStyle(element).opacity === '1';
    const says = element => [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    return [...document.querySelectorAll('body *:not(svg *, option, optgroup, script, noscript)')]
        .filter(element => !element.disabled && says(element) && seen(element))
        .map(element => [contrast(getComputedStyle(element).color, ground(element)), element])
        .filter(([value]) => value < least)
        .map(([value, element]) => `${{value.toFixed(2)}} ${{element.className}} ${{element.textContent}}`); }}"""
FAINT_EDGES = f"""least => {{ {CONTRAST_SCRIPT}
    return [...document.querySelectorAll('select, input[type=number], input[type=search]')]
        .filter(field => !field.disabled && field.checkVisibility())
        .map(field => [contrast(getComputedStyle(field).borderTopColor, ground(field.parentElement)), field])
        .filter(([value]) => value < least)
        .map(([value, field]) => `${{value.toFixed(2)}} ${{field.className}}`); }}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_by_day_and_night(browser: Browser, scheme: str) -> None:
    with StandIn() as stand_in, opened(browser, stand_in, PROJECTOR, scheme) as page:
        dark = page.evaluate("document.documentElement.dataset.theme")
        assert dark == scheme
        stand_in.made[1].life = "failed"
        page.locator("#system-b > .banner").wait_for()
        panel(page, "processes").get_by_role("row").filter(has_text="compile").click()
        assert page.evaluate(FAINT_WORDS, CONTRAST) == []
        assert page.evaluate(FAINT_EDGES, GRAPHIC_CONTRAST) == []
        page.get_by_label("Help, and all keys").click()
        assert page.evaluate(FAINT_WORDS, CONTRAST) == []


def test_the_theme_is_chosen_and_kept(browser: Browser) -> None:
    with StandIn(systems=1) as stand_in, opened(browser, stand_in, scheme="dark") as page:
        ground = "getComputedStyle(document.body).backgroundColor"
        dark = page.evaluate(ground)
        page.get_by_label("Theme: as the system has it").click()
        light = page.evaluate(ground)
        assert light != dark
        page.reload()
        page.get_by_label("Theme: light").wait_for()
        assert page.evaluate(ground) == light
        page.get_by_label("Theme: light").click()
        assert page.evaluate(ground) == dark
        page.get_by_label("Theme: dark").click()
        page.get_by_label("Theme: as the system has it").wait_for()
        assert page.evaluate(ground) == dark
        page.emulate_media(color_scheme="light")
        until(page, f"{ground} === {json.dumps(light)}")


def test_what_a_panel_shows_is_said_beside_it(browser: Browser) -> None:
    with StandIn(systems=1) as stand_in, opened(browser, stand_in) as page:
        hint = panel(page, "metrics").get_by_label("What Metrics shows")
        hint.focus()
        page.keyboard.press("Tab")
        page.keyboard.press("Shift+Tab")
        page.locator(".tip", has_text="Jain's index").wait_for()
        page.keyboard.press("Escape")
        assert page.locator(".tip").is_hidden()
        hint.hover()
        page.locator(".tip", has_text="Jain's index").wait_for()
