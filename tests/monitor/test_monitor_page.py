# SPDX-License-Identifier: MIT
"""Tests the monitor's page in a real browser, with simulated systems in a worker of the page. Every
panel follows the frames, every control sends the right request, and no content is lost, hidden
or out of reach.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from contrast import CONTRAST_SCRIPT
from hostile_names import NAMES
from page_site import served
from page_waits import PATIENCE_S, until
from schedlab.base.toolchain.build import wasm_module
from schedlab.base.toolchain.tools import BROWSERS, find_browser
from schedlab.monitor.files import PAGE_FOLDER
from schedlab.monitor.standalone.build import workloads

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
"""Large enough to show, and so to draw, all panels of one system."""
DRAWINGS = ("timeline", "queues", "shares", "metrics", "waits")
"""Panels folded unless inspected: drawing is slow without a graphics card."""
PANELS = (
    *("timeline", "queues", "policy", "shares", "processes", "metrics"),
    *("waits", "decisions", "selections", "log", "workloads", "cost"),
)
COLUMNS = (
    *("pid", "name", "state", "share", "cpu", "level", "priority", "tickets", "weight"),
    *("slice_left_ns", "wait_now_ns", "waiting_ns", "run_ns", "selections"),
)
"""The table's columns, as chosen by a user; by default the table has the columns that the
policy uses.
"""
CONTRAST = 4.5
"""WCAG 2.1, 1.4.3: text against its background."""
GRAPHIC_CONTRAST = 3.0
"""WCAG 2.1, 1.4.11: input fields against their background."""
FIVE = """
program root
  group five
  fork hog
  fork hog
  fork typist
  fork compile
  sleep 1000000s
program hog
  loop
    run 20ms
  end
program typist
  loop
    run 2ms
    sleep 30ms
  end
program compile
  tickets 15
  loop
    run 60ms
    sleep 20ms
  end
"""
COMPILE = 7
"""The PID of `compile`: init, the monitor's process, root, two hogs and typist precede it."""
CROWD = """
program root
  loop 3000
    fork worker
  end
  sleep 1000000s
program worker
  sleep 1000000s
"""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """Returns the address of the page, with a session in it."""
    files = {
        "session_connection.js": Path(__file__).with_name("page_lab.js").read_bytes(),
        "machine.wasm": wasm_module(),
        "palette.json": json.dumps(list(workloads())).encode(),
    }
    with served(files) as address:
        yield address


@pytest.fixture
def opened(browser: Browser, site: str) -> Any:
    """Opens the page with these policies, and waits for its first frames. The page has no
    errors, and requests only its own files.
    """

    @contextmanager
    def open_page(
        policies: str = "mlfq",
        size: tuple[int, int] = ROOMY,
        scheme: Any = "light",
        folded: tuple[str, ...] = DRAWINGS,
        text: str = FIVE,
        **more: Any,
    ) -> Iterator[Page]:
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme=scheme,
            reduced_motion="reduce",
        )
        page = context.new_page()
        page.set_default_timeout(PATIENCE_S * 1000)
        layout = json.dumps({"folded": folded, "enlarged": ""})
        columns = json.dumps(json.dumps(COLUMNS))
        page.add_init_script(f"localStorage['schedlab-columns'] ??= {columns}")
        page.add_init_script(f"localStorage['schedlab-layout'] ??= {json.dumps(layout)}")
        trouble: list[str] = []
        page.on("console", lambda message: trouble.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.on("request", lambda request: note_foreign(request.url, site, trouble))
        systems = [{"policy": policy, "workloads": ["own"]} for policy in policies.split(",")]
        custom_workloads = [{"name": "own", "title": "five processes", "text": text}]
        begin = {"systems": systems, "own": custom_workloads, "pace": 1, **more}
        page.goto(f"{site}?{urlencode({'begin': json.dumps(begin)})}")
        wait_for_frames(page)
        try:
            yield page
        finally:
            context.close()
        assert trouble == []

    return open_page


def note_foreign(address: str, site: str, trouble: list[str]) -> None:
    if not address.startswith((site, "data:", "blob:")):
        trouble.append(f"request: {address}")


def panel(page: Page, name: str, system: str = "a") -> Locator:
    return page.locator(f"#{name}-{system}")


def wait_for_frames(page: Page) -> None:
    until(page, "[...document.querySelectorAll('.strip-policy')].at(-1)?.textContent")


def text_of(selector: str) -> str:
    """Returns a script that reads an element's text."""
    return f"document.querySelector({json.dumps(selector)})?.textContent"


def changes(page: Page, selector: str, act: Callable[[], object] = lambda: None) -> None:
    """Performs an act, and waits until the element's text changes."""
    before = page.evaluate(text_of(selector))
    act()
    until(page, f"{text_of(selector)} !== {json.dumps(before)}")


def requests_of(page: Page, act: str) -> list[dict[str, Any]]:
    """Returns all requests of this kind that the page has sent."""
    requests: list[dict[str, Any]] = page.evaluate(
        "(act) => lab.asked.filter((each) => each.do === act)", act
    )
    return [
        {key: value for key, value in request.items() if key not in ("id", "do")}
        for request in requests
    ]


def sent(page: Page, act: str, count: int = 1) -> dict[str, Any]:
    """Returns the page's request once it has arrived."""
    return until(page, lambda: requests_of(page, act)[count - 1 :], lambda: requests_of(page, act))[
        0
    ]


def refuse(page: Page, act: str, words: str) -> None:
    page.evaluate("([act, words]) => { lab.refusals[act] = words; }", [act, words])


def answer(page: Page, act: str, result: object) -> None:
    """Answers instead of a server, for requests that only a server can serve."""
    page.evaluate("([act, result]) => { lab.answers[act] = result; }", [act, result])


def say(page: Page, do: str, **fields: Any) -> None:
    """Another page sends a request."""
    page.evaluate("(message) => lab.say(message)", {"do": do, "system": "a", **fields})


def touch(page: Page, change: str) -> None:
    """Makes a script change each later `frame` or `hello`."""
    page.evaluate(
        f"""() => {{ lab.touch = (message) => {{
            const [frame, hello] = message.type === "frame" ? [message, null] : [null, message];
            {change}; return message;
        }}; }}"""
    )


def row(page: Page, name: str, system: str = "a") -> Locator:
    return panel(page, "processes", system).get_by_role("row").filter(has_text=name)


def overflow(page: Page) -> int:
    """Returns the horizontal overflow of the page, in pixels."""
    script = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    return int(page.evaluate(script))


# --- content


def test_panels_follow_the_frames_and_escape_names(opened: Any) -> None:
    """The hostile names are raw, unlike those from a session of schedlab."""
    with opened(folded=()) as page:
        for name in PANELS:
            assert panel(page, name).locator("h3").inner_text()
            assert panel(page, name).locator(".panel-about").inner_text()
        changes(page, ".strip-clock")
        changes(page, "#processes-a .rows")
        changes(page, "#decisions-a tbody td")
        changes(page, "#selections-a .bar-value")
        say(page, "start", workload="hog")
        changes(page, "#workloads-a .groups")
        touch(page, "frame?.log.push('panic: not really'); lab.touch = (message) => message")
        panel(page, "log").get_by_text("panic: not really").first.wait_for()
        names = json.dumps(NAMES)
        touch(
            page,
            f"""if (frame) {{
                const [names, {{ processes, number }}] = [{names}, frame];
                processes.name = [...processes.pid].map((_, at) => names[(at + number) % names.length]);
                processes.group = processes.name;
                frame.log = names;
            }}""",
        )
        for _ in range(12):
            changes(page, ".strip-clock")
        assert page.evaluate("typeof attack") == "undefined"
        forged = "document.querySelectorAll('img[src=x], a[href^=javascript]').length"
        assert page.evaluate(forged) == 0


def test_side_by_side_columns_and_the_verdict_first(opened: Any) -> None:
    with opened("mlfq,lottery", PROJECTOR) as page:
        assert page.locator("#system-a .strip-policy").inner_text() == "mlfq"
        assert page.locator("#system-b .strip-policy").inner_text() == "lottery"
        assert not page.locator("#tabs").is_visible()
        row(page, "compile", "b").click()
        panel(page, "processes", "b").locator(".row.selected").wait_for()  # drawn a frame later
        assert panel(page, "processes", "a").locator(".row.selected").count() == 0
        touch(
            page,
            """if (frame) {
                const median = frame.system === "b" ? 0 : 5e6;
                const same = { wakeup_p99_ns: 9e6, wakeup_maximum_ns: 9e6, wakeup_median_ns: median };
                Object.assign(frame.metrics, same);
            }""",
        )
        figure = page.locator(".verdict-figure").first
        figure.get_by_text("Wake-up, median").wait_for()
        until(page, lambda: "against 0 ns b lottery" in figure.inner_text())
        assert figure.locator(".good").inner_text() == "0 ns"
        page.locator(".verdict-table").get_by_text(f"typist {COMPILE - 1}").click()
        page.locator("#processes-a .row.selected").wait_for()
        assert page.locator("#processes-b .row.selected").count() == 1


def test_a_click_means_what_was_pressed(opened: Any) -> None:
    """Before the button is released, the row moves and another takes its place."""
    with opened(size=PROJECTOR) as page:
        page.get_by_label("Pause", exact=True).click()
        page.get_by_label("Go on", exact=True).wait_for()
        panel(page, "processes").get_by_label("Tickets: sort").click()
        pressed = row(page, "compile")
        pressed.locator(".name-words").hover()
        place = pressed.get_attribute("data-place")
        page.mouse.down()
        say(page, "attribute", pid=COMPILE - 1, kind="tickets", value=99)
        moved = f"#processes-a .row:not([data-place='{place}'])"
        page.locator(moved).filter(has_text="compile").wait_for()
        page.mouse.up()
        selected = panel(page, "processes").locator(".row.selected")
        selected.wait_for()
        assert "compile" in selected.inner_text()


def test_a_process_that_has_ended_is_not_acted_on(opened: Any) -> None:
    """Nor does the act affect the process shown in its place."""
    with opened(size=PROJECTOR) as page:
        table = panel(page, "processes")
        name = table.get_by_text("compile", exact=True)
        name.click()
        table.locator(".row.selected").wait_for()
        say(page, "kill", pid=COMPILE)
        name.wait_for(state="hidden")
        for _ in range(2):
            page.keyboard.press("Delete")
        page.keyboard.press("Enter")
        changes(page, ".strip-clock")
        assert requests_of(page, "kill") == []
        assert table.locator(".edit-field").is_hidden()


def test_a_change_by_others_is_seen(opened: Any) -> None:
    with opened() as page:
        policy = panel(page, "policy")
        policy.get_by_label("levels", exact=True).wait_for()
        say(page, "tunable", name="levels", value=7)
        until(page, "document.querySelector('#tunable-a-levels')?.value === '7'")
        assert "≠" in policy.locator(".tunable.changed").inner_text()
        say(page, "policy", policy="lottery:thesis")
        chosen = "document.querySelector('#policy-a .policy-choice select').value"
        until(page, f"{chosen} === 'lottery:thesis'")
        assert "Preset:" in policy.locator(".policy-meaning").inner_text()
        policy.get_by_label("generator", exact=True).wait_for()
        assert policy.get_by_label("levels", exact=True).count() == 0
        announcement = "document.querySelector('#announcements').textContent"
        until(page, f"{announcement}.includes('lottery:thesis')")


# --- lessons


def lesson_of(**step: Any) -> dict[str, Any]:
    return {"title": "A lesson", "policies": "mlfq", "steps": [{"text": "Look.", **step}]}


def test_a_lesson_waits_until_its_machine_has_started(opened: Any) -> None:
    """The machine has frames before, but ignores requests."""
    with opened() as page:
        refuse(page, "pause", "it does not run: starting")
        touch(page, "if (frame) frame.life = 'starting'")
        say(page, "begin", systems=[{"policy": "mlfq"}], lesson=lesson_of())
        page.wait_for_timeout(500)
        assert requests_of(page, "pause") == []
        page.evaluate("() => { lab.refusals = {}; lab.touch = (message) => message; }")
        page.locator("#lesson").get_by_text("1 of 1").wait_for()


def test_a_lesson_asks_when_the_moment_that_it_sought_is_shown(opened: Any) -> None:
    """Until then the page shows a later state: the frame of that moment arrives after the
    answer.
    """
    question = {
        "question": "Next?",
        "options": ["hog", "typist"],
        "answer": "hog",
        "because": "It is.",
    }
    with opened() as page:
        page.evaluate(
            """() => { lab.touch = (message) => {
                if (message.whole && lab.asked.at(-1)?.do === "seek") lab.late = message;
                return lab.late && message.type === "frame" ? null : message;
            }; }"""
        )
        lesson = lesson_of(until={"event": "demotion"}, ask=question)
        systems = [{"policy": "mlfq", "workloads": ["own"]}]
        say(page, "begin", systems=systems, lesson=lesson)
        until(page, "lab.late")
        page.wait_for_timeout(200)
        assert not page.get_by_label("Answer: hog").is_visible()
        page.evaluate("() => { lab.show(lab.late); lab.touch = (message) => message; }")
        page.get_by_label("Answer: hog").click()
        page.locator("#lesson").get_by_text("It is.").wait_for()


# --- requests


def test_the_policy_and_its_tunables_are_set(opened: Any) -> None:
    with opened("mlfq,lottery") as page:
        policy = panel(page, "policy", "b")
        choice = policy.get_by_label("Policy", exact=True)
        choice.select_option("mlfq:four-quanta")
        assert sent(page, "policy") == {"system": "b", "policy": "mlfq:four-quanta"}
        levels = policy.get_by_label("levels", exact=True)
        levels.fill("3")
        levels.press("Enter")
        expected = {"system": "b", "name": "levels", "value": 3}
        assert sent(page, "tunable") == expected
        policy.get_by_label("Reset levels").click()
        assert sent(page, "tunable", 2) == expected | {"value": 4}
        error = policy.locator("#tunable-b-levels-error")

        def is_refused() -> bool:
            """Enters a wrong value, which the answer to the reset may overwrite."""
            levels.fill("99")
            levels.press("Enter")
            return error.is_visible()

        until(page, is_refused)
        assert "1 to" in error.inner_text()
        assert levels.get_attribute("aria-invalid") == "true"
        assert len(requests_of(page, "tunable")) == 2
        refuse(page, "policy", "no such policy here")
        choice.select_option("rr")
        policy.get_by_text("no such policy here").wait_for()
        until(page, "document.querySelector('#policy-b select').value === 'mlfq:four-quanta'")


def test_processes_are_changed_and_killed_in_the_table(opened: Any) -> None:
    with opened(size=PROJECTOR) as page:
        table = panel(page, "processes")
        assert "ideal" in str(
            row(page, "compile").locator(".cell-share").get_attribute("aria-label")
        )
        assert row(page, "monitor").count() == 0, "it is there for the monitor's sake"
        table.get_by_label("own").check()
        row(page, "monitor").wait_for()
        row(page, "compile").locator(".cell-tickets").dblclick()
        field = table.get_by_label(f"tickets of compile ({COMPILE})")
        assert field.input_value() == "15"
        field.fill("0")
        field.press("Enter")
        table.get_by_text("tickets: 1 to 1000000").wait_for()
        field.fill("55")
        field.press("Enter")
        expected = {"system": "a", "pid": COMPILE, "kind": "tickets", "value": 55}
        assert sent(page, "attribute") == expected
        row(page, "compile").locator(".cell-tickets", has_text="55").wait_for()
        assert field.is_hidden()

        table.get_by_label("groups").check()
        group = row(page, "× 5")
        group.locator(".cell-weight").dblclick()
        field = table.locator(".edit-field")
        field.fill("9")
        field.press("Enter")
        expected = {"system": "a", "group": "five", "kind": "weight", "value": 9}
        assert sent(page, "attribute", 2) == expected
        refuse(page, "attribute", "it has ended")
        group.locator(".cell-weight").dblclick()
        field.press("Enter")
        table.get_by_text("it has ended").wait_for()
        field.press("Escape")
        table.get_by_label("groups").uncheck()

        row(page, "compile").hover()
        row(page, "compile").locator(".kill").click()
        table.get_by_text("Kill?").wait_for()
        assert requests_of(page, "kill") == []
        row(page, "compile").locator(".kill").dblclick()  # a slow host may have dropped the first
        assert sent(page, "kill") == {"system": "a", "pid": COMPILE}
        row(page, "compile").wait_for(state="detached")
        panel(page, "workloads").scroll_into_view_if_needed()  # otherwise it is not drawn
        panel(page, "workloads").get_by_label("Kill group five:").click()
        assert sent(page, "kill", 2) == {"system": "a", "group": "five"}


def test_workloads_and_systems_can_be_restarted(opened: Any) -> None:
    with opened("mlfq,lottery") as page:
        workloads = panel(page, "workloads", "b")
        workloads.get_by_label("Start two-hogs: two CPU-bound processes").click()
        assert sent(page, "start") == {"workload": "two-hogs"}
        workloads.get_by_label("on all systems").uncheck()
        workloads.get_by_text("From the studies").click()
        workloads.get_by_label("Start study4-trace: study4 trace").click()
        assert sent(page, "start", 2) == {"system": "b", "workload": "study4-trace"}
        workloads.get_by_label("CPUs").fill("1025")
        workloads.get_by_text("Start again", exact=True).click()
        workloads.get_by_text("CPUs: 1 to 1,024.").wait_for()
        workloads.get_by_label("CPUs").fill("3")
        workloads.get_by_label("Seed").fill("9")
        workloads.get_by_label("First policy").select_option("stride")
        workloads.get_by_label("First workload").select_option("hog")
        workloads.get_by_text("Start again", exact=True).click()
        expected = {"system": "b", "cpus": 3, "seed": 9, "tick_ns": 10_000_000}
        expected |= {"policy": "stride", "workloads": ["hog"]}
        assert sent(page, "restart") == expected
        until(page, "document.querySelector('#title-b').textContent.includes('3 CPUs')")
        until(page, f"{text_of('#system-b .strip-policy')} === 'stride'")


def test_time_is_in_ones_hand(opened: Any) -> None:
    with opened("mlfq,lottery") as page:
        page.get_by_label("Pause", exact=True).click()
        assert sent(page, "pause") == {}
        page.get_by_label("Go on", exact=True).wait_for()
        assert "paused" in page.locator("#system-b .strip-life").inner_text()
        page.get_by_label("Length of a step").select_option("decision")
        page.get_by_label("One step").click()
        assert sent(page, "step") == {"kind": "decision"}
        page.get_by_label("Step back").click()
        assert sent(page, "step", 2) == {"kind": "decision", "back": True}
        page.get_by_label("Go on", exact=True).click()
        assert sent(page, "resume") == {}
        pace = page.get_by_label("Speed of the systems")
        pace.press("End")
        assert sent(page, "pace") == {"speed": 0}
        assert pace.get_attribute("aria-valuetext") == "at full speed"
        assert page.get_by_label("Position in the recording").is_hidden()
        page.get_by_label("Go to this second").fill("0.25")
        page.get_by_label("Go to this second").press("Enter")
        assert sent(page, "seek") == {"time_ns": 250_000_000}
        refuse(page, "resume", "it has ended")
        refuse(page, "pause", "it has ended")
        page.locator(".play").click()
        page.locator(".notice.bad", has_text="it has ended").wait_for()


def test_what_if_from_now(opened: Any) -> None:
    with opened() as page:
        policy_panel = panel(page, "policy")
        ask = policy_panel.get_by_label("Run both branches")
        assert ask.is_disabled()
        assert policy_panel.locator(".what-if-why").inner_text() == ask.get_attribute("title") != ""
        touch(page, "hello?.systems.forEach((each) => { each.no_branches = ''; })")
        say(page, "window", seconds=5)
        answer(page, "branch", {"unchanged": "a", "changed": "b", "folder": "runs/futures"})
        policy_panel.get_by_label("Policy from here on").select_option("mlfq")
        policy_panel.get_by_label("Tunables from here on").fill("boost=7")
        policy_panel.get_by_text("What if from here?").click()
        expected = {"system": "a", "policy": "mlfq", "settings": "boost=7"}
        assert sent(page, "branch") == expected
        page.get_by_text("Kept in runs/futures").wait_for()
        refuse(page, "branch", "its past was another")
        policy_panel.get_by_text("What if from here?").click()
        policy_panel.get_by_text("its past was another").wait_for()


def blamed() -> dict[str, Any]:
    """As in docs/monitor.md: one wait of two parts."""
    tick = 10_000_000
    parts = [
        {"words": words, "pid": pid, "cause": cause, "times": 2, "duration_ns": length * tick}
        for words, pid, cause, length in (
            ("hog 7 ran on CPU 1", 7, "ran", 3),
            ("CPU 1 was in the scheduler", 0, "scheduler", 1),
        )
    ]
    choices = [{"time_ns": 9 * tick, "cpu": 1, "words": "it was picked: level 2"}]
    longest = {"kind": "wake-up", "begin_ns": 5 * tick, "end_ns": 9 * tick, "duration_ns": 4 * tick}
    longest |= {"parts": parts, "idle_elsewhere": [{"cpu": 0, "duration_ns": tick}]}
    return {
        "pid": 4,
        "begin_ns": 0,
        "end_ns": 9 * tick,
        "waits": 2,
        "waited_ns": 5 * tick,
        "beside_idle_ns": tick,
        "wakeups_untold": False,
        "longest": [{**longest, "choices": choices, "choices_before": 3}],
    }


def test_waits_are_explained(opened: Any) -> None:
    shown = tuple(name for name in DRAWINGS if name != "waits")
    with opened(folded=shown) as page:
        waits_panel = panel(page, "waits")
        waits_panel.locator(".waits-choice button").first.click()
        waits_panel.get_by_text("./schedlab monitor").wait_for()
        assert waits_panel.get_by_text("Take apart").is_hidden()
        waits_panel.locator(".waits-list .waits-moment").first.wait_for()
        parts = waits_panel.locator(".waits-content .blame-parts").inner_text()
        assert re.search(r"CPU \d", parts), "what the CPU did is reported"
        assert waits_panel.locator(".waits-moment.link").count() == 0
        touch(page, "hello?.systems.forEach((each) => { each.no_blame = ''; })")
        answer(page, "blame", blamed())
        answer(page, "look", 0)
        say(page, "window", seconds=5)
        store = "(await import('./store.js'))"
        until(page, f"(async () => {store}.stateOf('a').info.no_blame === '')()")
        page.evaluate(f"async () => {store}.select('a', 0)")
        waits_panel.locator(".waits-choice button").first.click()
        waits_panel.get_by_label("Which waits").select_option(label="for another process")
        waits_panel.get_by_text("Take apart").click()
        request = sent(page, "blame")
        assert (request["system"], request["kinds"], request["at_ns"]) == ("a", ["blocked"], None)
        waits_panel.get_by_text(
            "2 waits, 50.0 ms in all, 10.0 ms of it while a CPU idled"
        ).wait_for()
        description = waits_panel.locator(".blame-wait").inner_text().replace("\xa0", " ")
        for words in (
            *("0.050000 s, after a wake-up: 40.0 ms", "hog 7 ran on CPU 1", "75.0 %", "25.0 %"),
            *("100.0 %", "CPU 0 idled for 10.0 ms", "1 of 4 decisions", "level 2"),
        ):
            assert words in description
        waits_panel.get_by_text("Go to its beginning").click()
        assert sent(page, "look") == {"system": "a", "time_ns": 50_000_000}
        waits_panel.locator(".waits-moment.link").first.focus()
        page.keyboard.press("Enter")
        request = sent(page, "blame", 2)
        assert request["kinds"] == ["response", "wake-up", "turn", "found", "blocked"]
        assert request["at_ns"] >= 0
        refuse(page, "blame", "it is kept no more")
        waits_panel.get_by_text("Take apart").click()
        waits_panel.get_by_text("it is kept no more").wait_for()


def test_what_cannot_be_done_is_not_offered(opened: Any) -> None:
    with opened() as page:
        touch(page, "hello?.systems.forEach((each) => { each.abilities = ['pause']; })")
        say(page, "window", seconds=5)
        page.get_by_label("One step").wait_for(state="hidden")
        for label in ("Speed of the systems", "Go to this second"):
            assert page.get_by_label(label).is_hidden()
        until(page, lambda: panel(page, "policy").get_by_label("Policy", exact=True).is_disabled())
        assert panel(page, "workloads").get_by_text("Start again", exact=True).is_hidden()
        assert panel(page, "workloads").locator(".chip").first.is_disabled()
        assert panel(page, "processes").locator(".kill:not([hidden])").count() == 0
        panel(page, "processes").locator(".cell-tickets").first.dblclick()
        assert panel(page, "processes").locator(".edit-field").is_hidden()


# --- failures


def test_failed_system_gives_its_reason_and_restarts(opened: Any) -> None:
    with opened("mlfq,lottery") as page:
        failed = "{ life: 'failed', message: 'panic: out of tea\\nat 0x80001234' }"
        touch(page, f"if (frame?.system === 'b') Object.assign(frame, {failed})")
        banner = page.locator("#system-b > .banner")
        banner.wait_for()
        assert "lottery on sim, 2 CPUs has failed." in banner.inner_text()
        assert "panic: out of tea" in banner.inner_text()
        assert page.locator("#system-a > .banner").is_hidden()
        banner.get_by_label("Restart the system").click()
        touch(page, "")
        assert sent(page, "restart") == {"system": "b"}
        banner.wait_for(state="hidden")


# --- thousands


def test_thousands_of_rows_are_sorted_and_searched(opened: Any) -> None:
    with opened(text=CROWD, pace=0) as page:
        table = panel(page, "processes")
        until(page, lambda: table.locator(".panel-note").inner_text() == "3,001")
        assert table.get_by_role("grid").get_attribute("aria-rowcount") == "3002"
        assert page.locator("#processes-a .rows .row").count() < 60
        first = table.locator(".row[data-place='0']")
        table.get_by_label("PID: sort").click()
        first.get_by_text("3003").wait_for()
        table.get_by_role("grid").evaluate("grid => { grid.scrollTop = grid.scrollHeight; }")
        table.locator(".row[data-place='3000']").get_by_text("root").wait_for()
        assert page.locator("#processes-a .rows .row").count() < 60
        note = "document.querySelector('#processes-a .panel-note').textContent"
        for sought, count in (("worker", "3,000 of 3,001"), ("root", "1 of 3,001")):
            table.get_by_role("searchbox").fill(sought)
            until(page, f"{note} === '{count}'")
        table.get_by_role("searchbox").fill("nobody at all")
        table.get_by_text("No process matches").wait_for()


def test_the_page_does_not_grow(opened: Any) -> None:
    with opened() as page:
        panel(page, "log").scroll_into_view_if_needed()
        lines = "Array.from({ length: 6000 }, (_, number) => `line ${number}`)"
        touch(page, f"if (frame) {{ frame.log = {lines}; lab.touch = (message) => message; }}")
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


def test_everything_by_keyboard(opened: Any) -> None:
    with opened() as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.evaluate("document.activeElement.blur()")
        answer(page, "record", None)
        page.keyboard.press("Space")
        assert sent(page, "pause") == {}
        page.get_by_label("Go on", exact=True).wait_for()
        for key, act, count, expected in (
            (".", "step", 1, {"kind": "event"}),
            (",", "step", 2, {"kind": "event", "back": True}),
            ("]", "pace", 1, {"speed": 2}),
            ("r", "record", 1, {"on": True}),
        ):
            page.keyboard.press(key)
            assert sent(page, act, count) == expected
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
        field = panel(page, "processes").get_by_label(f"tickets of compile ({COMPILE})")
        assert field.evaluate("field => field === document.activeElement")
        page.keyboard.type("21")
        page.keyboard.press("Enter")
        assert sent(page, "attribute")["value"] == 21
        field.wait_for(state="hidden")
        page.keyboard.press("Delete")
        page.keyboard.press("Delete")
        assert sent(page, "kill") == {"system": "a", "pid": COMPILE}


def test_panels_and_theme_stay_as_they_were_chosen(opened: Any) -> None:
    with opened(scheme="dark") as page:
        page.keyboard.press("9")
        assert page.evaluate("document.activeElement.id") == "selections-a"
        page.keyboard.press("f")
        assert not panel(page, "selections").locator(".panel-body").is_visible()
        page.keyboard.press("5")
        page.keyboard.press("e")
        assert panel(page, "processes").is_visible()
        assert not panel(page, "policy").is_visible()
        ground = "getComputedStyle(document.body).backgroundColor"
        dark = page.evaluate(ground)
        page.get_by_label("Theme: system").click()
        light = page.evaluate(ground)
        assert light != dark
        page.reload()
        wait_for_frames(page)
        page.get_by_label("Theme: light").wait_for()
        assert page.evaluate(ground) == light
        assert not panel(page, "policy").is_visible()
        page.keyboard.press("Escape")
        assert panel(page, "policy").is_visible()
        assert not panel(page, "selections").locator(".panel-body").is_visible()
        panel(page, "selections").get_by_label("Unfold Selections").click()
        assert panel(page, "selections").locator(".panel-body").is_visible()
        page.get_by_label("Theme: light").click()
        assert page.evaluate(ground) == dark
        page.get_by_label("Theme: dark").click()
        page.get_by_label("Theme: system").wait_for()
        page.emulate_media(color_scheme="light")
        until(page, f"{ground} === {json.dumps(light)}")


# --- accessibility


@pytest.mark.parametrize("size", [TELEPHONE, PROJECTOR])
@pytest.mark.parametrize("policies", ["mlfq", "mlfq,lottery"])
def test_it_fits_any_screen(opened: Any, size: tuple[int, int], policies: str) -> None:
    with opened(policies, size, folded=()) as page:
        assert overflow(page) <= 0
        for name in PANELS:
            box = panel(page, name).bounding_box()
            assert box
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= size[0]
            assert box["height"] > 100
        if "," in policies and size == TELEPHONE:
            assert not panel(page, "policy", "b").is_visible()
            page.get_by_role("tab", name="lottery on sim").click()
            assert panel(page, "policy", "b").is_visible()
            assert not panel(page, "policy", "a").is_visible()
            assert overflow(page) <= 0


def test_nothing_in_the_page_runs_that_is_not_a_file() -> None:
    """So a rule (Content-Security-Policy) may forbid injected scripts."""
    html = (PAGE_FOLDER / "index.html").read_text()
    assert " style=" not in html
    assert "<style" not in html
    assert re.findall(r" on\w+=", html) == []
    assert len(re.findall("<script", html)) == len(re.findall("<script src=", html))


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


MISNAMED = """() => {
    const plain = text => text.replace(/[^\\p{L}\\p{N} ]/gu, '').trim().toLowerCase();
    return [...document.querySelectorAll('button[aria-label]')]
        .filter(each => each.checkVisibility())
        .map(each => [plain(each.innerText), plain(each.ariaLabel)])
        .filter(([words, name]) => !name.includes(words)); }"""
UNREACHED = """() => [...document.querySelectorAll('.panel-body, .banner-words, .log, .waits-list')]
    .filter(each => ['auto', 'scroll'].includes(getComputedStyle(each).overflowY))
    .filter(each => each.tabIndex < 0)
    .map(each => each.id || each.className)"""
LIKE_NAMED = """() => {
    const nameOf = each => each.getAttribute('aria-labelledby').split(' ')
        .map(id => document.getElementById(id).textContent).join(' ');
    const names = [...document.querySelectorAll('section[aria-labelledby]')].map(nameOf);
    return names.filter((name, place) => names.indexOf(name) !== place); }"""
NO_VALUE = """() => [...document.querySelectorAll('[role=meter]:not([aria-valuenow])')]
    .map(each => each.ariaLabel)"""
EMPTY_HEADINGS = """() => [...document.querySelectorAll('th')]
    .filter(each => !each.textContent.trim()).map(each => each.outerHTML)"""


@pytest.mark.parametrize("policies", ["mlfq", "lottery,lottery"])
def test_names_and_regions_are_accessible(opened: Any, policies: str) -> None:
    """A name contains the words that are seen, regions differ in their names, and what scrolls
    takes the focus. A meter has a value before its panel is drawn.
    """
    with opened(policies, DESKTOP, folded=()) as page:
        for script in (MISNAMED, UNREACHED, LIKE_NAMED, NO_VALUE, EMPTY_HEADINGS):
            assert page.evaluate(script) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_has_a_name_and_can_be_read(opened: Any, scheme: str) -> None:
    with opened("mlfq,lottery", PROJECTOR, scheme) as page:
        page.locator(".tunable").first.wait_for(state="attached")
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        for script in (UNNAMED, DOUBLED, DANGLING):
            assert page.evaluate(script) == []
        assert (page.locator("h1").count(), page.locator("main").count()) == (1, 1)
        touch(page, "if (frame?.system === 'b') frame.life = 'failed'")
        page.locator("#system-b > .banner").wait_for()
        row(page, "compile").click()
        page.get_by_label("Pause", exact=True).click()
        assert page.evaluate(FAINT_WORDS, CONTRAST) == []
        assert page.evaluate(FAINT_EDGES, GRAPHIC_CONTRAST) == []
        page.get_by_label("Help, and all keys").click()
        assert page.evaluate(FAINT_WORDS, CONTRAST) == []
