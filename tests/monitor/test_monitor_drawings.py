# SPDX-License-Identifier: MIT
"""Tests the drawn modules of the monitor's page in a real browser, with invented systems
(monitor_drawings.js): without a server, at the test's pace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from page_site import served
from page_waits import until
from schedlab.base.toolchain.policies import read_catalogue
from schedlab.base.toolchain.tools import BROWSERS, find_browser
from schedlab.monitor.files import PAGE_FOLDER

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSER = find_browser()
pytestmark = [
    pytest.mark.skipif(
        not BROWSER,
        reason=f"NO BROWSER: the monitor's drawings are NOT TESTED. Install one of {BROWSERS}",
    ),
    pytest.mark.xdist_group("browser"),
]

TEST_ANNOTATION = "The task with the strangest name is next."
SITE: list[str] = []
"""The site's address, while it is served."""
TELEPHONE, DESKTOP, PROJECTOR = (390, 844), (1280, 900), (1920, 1080)
LAST_ROW = 12
"""Pixels from a time line's bottom up to its last row."""
FRAME_PAGE = """<!DOCTYPE html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="icon.svg"><link rel="stylesheet" href="theme.css">
<link rel="stylesheet" id="dark" href="dark.css">
STYLES
<body data-enlarged=""><main><section class="system shown" id="content"></section></main>
<p class="unseen" id="announcements"></p><script type="module" src="made-up.js"></script>"""
STYLES = re.findall(
    r'<link rel="stylesheet" href="styles/.*>', (PAGE_FOLDER / "index.html").read_text()
)


@pytest.fixture(scope="module", autouse=True)
def site() -> Iterator[None]:
    """Returns the server of the page's files."""
    policies = [asdict(policy) for policy in read_catalogue().values()]
    policies.append({**policies[0], "name": "unheard-of", "number": None, "order": TEST_ANNOTATION})
    files = {
        "policies.js": f"export const policies = {json.dumps(policies)};".encode(),
        "index.html": FRAME_PAGE.replace("STYLES", "".join(STYLES)).encode(),
        "session_connection.js": Path(__file__).with_name("drawings_connection.js").read_bytes(),
        "made-up.js": Path(__file__).with_name("monitor_drawings.js").read_bytes(),
        "trace/made-up.pftrace": b"the trace",
    }
    with served(files) as address:
        SITE.append(address)
        yield


@contextmanager
def shown(
    browser: Browser,
    modules: str,
    size: tuple[int, int] = DESKTOP,
    systems: dict[str, dict[str, Any]] | None = None,
    **more: Any,
) -> Iterator[Page]:
    """Returns a page with these modules for each system. Its console must stay empty."""
    systems = systems or {"a": {}}
    query = {"modules": modules, "systems": ",".join(systems)}
    query |= {f"system-{name}": json.dumps(settings) for name, settings in systems.items()}
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **more)
    page = context.new_page()
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
    page.goto(f"{SITE[-1]}?{urlencode(query)}")
    page.wait_for_selector("html[data-ready]", state="attached")
    try:
        yield page
    finally:
        context.close()
    assert trouble == []


def play(page: Page, frames: int = 5, duration_ms: int = 200, system: str = "a") -> None:
    page.evaluate(
        """async ([system, frames, ns]) => {
            for (let at = 0; at < frames; at++) { lab.show(system, ns); await lab.drawn(); }
        }""",
        [system, frames, duration_ms * 1_000_000],
    )


def drawn(page: Page, module: str = "timeline", system: str = "a") -> Any:
    """Returns the module's description of its drawing, after pending drawing is done."""
    return page.evaluate(
        """async (name) => {
            await lab.drawn();
            const { panel, module } = lab.panels.get(name);
            return (module.canvas ?? panel.body).drawn;
        }""",
        f"{module}-{system}",
    )


def wait_for(page: Page, module: str, condition: Any, system: str = "a") -> Any:
    """Returns the drawing's description once it meets the condition. The page's policy
    forbids Playwright's wait_for_function().
    """

    def read_state() -> Any:
        state = drawn(page, module, system)
        return state if state and condition(state) else None

    return until(page, read_state, lambda: drawn(page, module, system))


def colours(page: Page, module: str) -> int:
    """Returns the number of distinct colours on the canvas."""
    return int(
        page.evaluate(
            """async (name) => {
                await lab.drawn();
                const { canvas, surface } = lab.panels.get(name).module;
                surface.draw();
                const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                return new Set(new Uint32Array(data.buffer)).size;
            }""",
            f"{module}-a",
        )
    )


# --- the time line


def test_time_line_draws_runs_in_lanes_and_levels(browser: Browser) -> None:
    systems = {"a": {"cpus": 2, "policy": "mlfq"}}
    with shown(browser, "timeline", systems=systems, reduced_motion="reduce") as page:
        play(page, 5)
        drawing = drawn(page)
        assert (drawing["lanes"], drawing["levels"], drawing["live"]) == (2, [3, 2, 1, 0], True)
        assert drawing["bars"] > 50
        assert drawing["thin"] == 0
        assert colours(page, "timeline") > 6
        page.evaluate("() => lab.made.get('a').mark('policy', 'policy lottery')")
        play(page, 1)
        assert drawn(page)["labels"][0] == "◆ policy lottery"
        box = page.locator(".timeline canvas").bounding_box()
        assert box
        x = page.evaluate("() => lab.panels.get('timeline-a').module.labels[0].x")
        page.evaluate("() => lab.view.freeze()")
        page.mouse.move(box["x"] + x, box["y"] + 30)
        assert "policy lottery, 1.000 s" in page.inner_text(".drawing-tip")
        assert "2 CPUs from" in (page.get_attribute("canvas", "aria-label") or "")


def test_the_ticket_that_was_drawn_is_one_of_the_winners(browser: Browser) -> None:
    """The draws are random; the strip shows all tickets, each in its correct number."""
    with shown(browser, "queues", systems={"a": {"policy": "lottery", "cpus": 1}}) as page:
        result = page.evaluate(
            """async () => {
                const { ticketStrip } = await import("./drawing/ticket_strip.js");
                let wrong = 0;
                let lost = 0;
                for (let round = 0; round < 300; round++) {
                    const length = 2 + (round % 9);
                    const tickets = Array.from({ length }, (_, at) => 1 + ((round * 7 + at * 13) % 40));
                    const total = tickets.reduce((sum, each) => sum + each, 0);
                    const ticket = (round * 37) % total;
                    let sum = 0;
                    const won = tickets.findIndex((each) => (sum += each) > ticket);
                    const others = tickets.map((each, at) => [at + 1, each]).filter((_, at) => at !== won);
                    const { parts, drawn } = ticketStrip([won + 1, tickets[won]], others, 0, ticket);
                    let end = 0;
                    const at = parts.find(([, each]) => (end += each) > drawn);
                    if (at[0] !== won + 1) wrong += 1;
                    if (parts.length !== tickets.length || drawn !== ticket + 0.5) lost += 1;
                }
                const many = ticketStrip([1, 5], [[2, 10]], 200, 150);
                return { wrong, lost, many };
            }"""
        )
        assert (result["wrong"], result["lost"]) == (0, 0)
        many = result["many"]["parts"]
        won = [part[0] for part in many].index(1)
        assert sum(part[1] for part in many) == 215
        assert sum(part[1] for part in many[:won]) <= 150 < sum(part[1] for part in many[: won + 1])


def test_demotions_and_boosts_are_named_and_drawn(browser: Browser) -> None:
    """Annotations of levels show demotions, boosts and the remaining allotment."""
    with shown(browser, "timeline,queues", systems={"a": {"policy": "mlfq", "cpus": 1}}) as page:
        page.evaluate(
            """() => {
                const made = lab.made.get("a");
                const run = (pid, begin, end, level, how) => [0, pid, begin * 1e6, end * 1e6, level, how, 0];
                made.advance(200e6);
                const frame = made.frame();
                frame.number = 1;
                frame.now_ns = 700e6;
                frame.timeline.runs = [
                    run(3, 0, 80, 3, 2), run(4, 80, 160, 3, 2), run(3, 160, 260, 2, 2), run(4, 260, 360, 2, 2),
                    run(5, 360, 370, 3, 1), run(3, 400, 440, 3, 2), run(4, 440, 460, 3, 2), run(5, 460, 470, 3, 1),
                    run(3, 500, 520, 3, 0), run(6, 520, 540, 3, 2), run(6, 540, 560, 1, 2),
                ];
                frame.marks = [{ time_ns: 530e6, kind: "attribute", text: "priority", pid: 6 }];
                window.socket.say(frame);
            }"""
        )
        page.wait_for_timeout(100)
        result = page.evaluate(
            """() => {
                const { story } = lab.stateOf("a");
                return { events: story.events, at: story.atLevel(3) };
            }"""
        )
        events = [
            (event["kind"], event["time_ns"] / 1e6, event["pid"]) for event in result["events"]
        ]
        assert events == [("demotion", 80, 3), ("demotion", 160, 4), ("boost", 400, 3)]
        assert result["at"] == {"level": 3, "ran": 60e6}
        seen = drawn(page)
        assert "▲ boost: all to the top level" in seen["labels"]
        assert set(seen["demotions"]) == {"demoted to 2"}


def test_pointer_selects_the_wait(browser: Browser) -> None:
    """The pointer selects a wait where the row's process does not run. Where it runs, or the
    wait has no breakdown, the pointer selects the process.
    """
    with shown(browser, "timeline,waits", systems={"a": {"policy": "rr", "cpus": 1}}) as page:
        play(page, 3)
        layout = page.evaluate(
            """async () => {
                lab.view.fit();
                await lab.drawn();
                const { module } = lab.panels.get("timeline-a");
                const state = lab.stateOf("a");
                const { begin, end, pid } = state.runs[0];
                const row = module.canvas.drawn.processes.at(-1);
                const runs = [...pid].indexOf(row);
                const waits = [...pid].findIndex((each, at) => at > runs && each !== row);
                const middle = (at) => (begin[at] + end[at]) / 2;
                return { row, range: module.canvas.drawn, times: [middle(waits), middle(runs)] };
            }"""
        )
        box = page.locator(".timeline canvas").bounding_box()
        assert box
        span, left = layout["range"]["end"] - layout["range"]["begin"], layout["range"]["left"]
        for time_ns in (*layout["times"], layout["times"][0]):
            part = (time_ns - layout["range"]["begin"]) / span
            across = box["x"] + left + part * (box["width"] - left)
            page.mouse.click(across, box["y"] + box["height"] - LAST_ROW)
            page.evaluate("() => lab.drawn()")
            if time_ns == layout["times"][1]:
                page.evaluate("() => { lab.stateOf('a').info.no_blame = 'not here'; }")
        requests = [
            request for request in page.evaluate("() => lab.asked") if request["do"] == "blame"
        ]
        assert [request["pid"] for request in requests] == [layout["row"]]
        pixel = span / (box["width"] - left)
        assert requests[0]["at_ns"] == pytest.approx(layout["times"][0], abs=2 * pixel)


def test_time_line_pans_and_zooms_by_keys_wheel_and_drag(browser: Browser) -> None:
    with shown(browser, "timeline") as page:
        play(page, 10)
        page.focus(".timeline")
        full_view = drawn(page)
        page.keyboard.press("+")
        near = drawn(page)
        assert near["end"] - near["begin"] == pytest.approx(
            (full_view["end"] - full_view["begin"]) / 1.5
        )
        page.keyboard.press("ArrowLeft")
        panned = drawn(page)
        assert panned["live"] is False
        assert panned["begin"] < near["begin"]
        page.keyboard.press("0")
        fitted = drawn(page)
        assert fitted["begin"] <= 0
        assert fitted["end"] >= 2e9
        box = page.locator(".timeline canvas").bounding_box()
        assert box
        page.mouse.move(box["x"] + 600, box["y"] + 80)
        page.mouse.wheel(0, -400)
        page.wait_for_timeout(50)
        turned = drawn(page)
        assert turned["end"] - turned["begin"] < (fitted["end"] - fitted["begin"]) * 0.7
        page.mouse.down()
        page.mouse.move(box["x"] + 700, box["y"] + 80, steps=4)
        page.mouse.up()
        assert drawn(page)["begin"] < turned["begin"]
        assert drawn(page)["selected"] == 0  # a drag is not a click


def test_time_line_follows_pauses_and_moves_by_keys(browser: Browser) -> None:
    with shown(browser, "timeline", reduced_motion="reduce", device_scale_factor=3) as page:
        play(page, 5)
        first = drawn(page)
        assert first["end"] == pytest.approx(1.02e9)
        sharp = "(it) => Math.abs(it.width - 3 * it.clientWidth) <= 1"
        assert page.locator(".timeline canvas").evaluate(sharp)
        page.focus(".timeline")
        page.keyboard.press("p")
        play(page, 5)
        stopped = drawn(page)
        assert (stopped["live"], stopped["end"]) == (False, pytest.approx(first["end"]))
        page.keyboard.press("n")
        first = drawn(page)["focus"]
        page.keyboard.press("n")
        assert drawn(page)["focus"]["begin"] > first["begin"]
        page.keyboard.press("b")
        assert drawn(page)["focus"] == first
        page.keyboard.press("ArrowDown")
        assert drawn(page)["focus"]["cpu"] == first["cpu"] + 1
        page.keyboard.press("Enter")
        assert f"({drawn(page)['selected']})" in page.inner_text("#announcements")
        page.keyboard.press("l")
        assert drawn(page)["end"] == pytest.approx(2.02e9)
        page.click("text=Table")
        drawn(page)
        rows = page.locator(".timeline-table tbody tr")
        seen = page.evaluate(
            """() => {
                const { begin, end } = lab.panels.get("timeline-a").module.canvas.drawn;
                return lab.stateOf("a").runs.flatMap((track) => [...Array(track.length).keys()]
                    .filter((at) => track.end[at] > begin && track.begin[at] < end)).length;
            }"""
        )
        assert rows.count() == seen > 100
        rows.nth(0).locator("button").click()
        assert drawn(page)["selected"] > 0
        page.evaluate("() => lab.add('a', { cpus: 1 })")  # it restarts
        play(page, 2)
        assert (drawn(page)["lanes"], drawn(page)["live"]) == (1, True)
        page.click("[aria-label^='Fold']")
        drawings = "() => lab.panels.get('timeline-a').module.surface.drawings"
        before = page.evaluate(drawings)
        play(page, 5)
        assert before == page.evaluate(drawings)


def test_time_lines_of_two_systems_show_the_same_time(browser: Browser) -> None:
    systems: dict[str, dict[str, Any]] = {"a": {"cpus": 1}, "b": {"cpus": 4, "policy": "lottery"}}
    with shown(browser, "timeline", systems=systems) as page:
        for _ in range(4):
            play(page, 1)
            play(page, 1, system="b")
        page.focus("#timeline-b .timeline")
        page.keyboard.press("ArrowLeft")
        one, other = drawn(page), drawn(page, system="b")
        assert (one["begin"], one["end"]) == (other["begin"], other["end"])
        assert one["live"] is other["live"] is False
        heights = page.locator(".timeline").evaluate_all(
            "(all) => all.map((it) => it.clientHeight)"
        )
        play(page, 1)
        heights = page.locator(".timeline").evaluate_all(
            "(all) => all.map((it) => it.clientHeight)"
        )
        assert abs(heights[0] - heights[1]) < 2


# --- the run queues


def test_queues_show_who_waits_at_which_level(browser: Browser) -> None:
    systems = {"a": {"policy": "mlfq", "processes": 9, "cpus": 2}}
    with shown(browser, "queues", systems=systems) as page:
        play(page, 6)
        drawing = drawn(page, "queues")
        frame = page.evaluate("() => lab.stateOf('a').frame.cpus")
        assert drawing["shelves"] == [3, 2, 1, 0]  # the largest is served first
        assert sorted(drawing["running"]) == sorted(
            cpu["running"] for cpu in frame if cpu["running"]
        )
        waiting = sorted(task[0] for cpu in frame for task in cpu["queue"])
        assert sorted(drawing["waiting"]) == waiting
        assert colours(page, "queues") > 6
        play(page, 3)
        assert drawn(page, "queues")["waiting"] != drawing["waiting"]
        assert "CPU 0" in (page.get_attribute(".queues canvas", "aria-label") or "")


QUEUES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"policy": "unheard-of", "cpus": 1}, {"policy": "unheard-of"}, TEST_ANNOTATION),
    ({"policy": "lottery", "cpus": 1}, {"shelves": [-1]}, "one ticket"),
    ({"policy": "rr", "cpus": 1, "processes": 1500}, {"cards": 1}, ""),
    ({"policy": "rr", "cpus": 3, "processes": 8, "shared": True}, {"cards": 4}, ""),
    ({"policy": "mlfq", "cpus": 64, "processes": 400, "slice_ns": 1_000_000}, {"cards": 64}, ""),
    ({"policy": "priority"}, {"shelves": [0, 1, 2, 3]}, ""),
]


@pytest.mark.parametrize(("system", "expected", "words"), QUEUES)
def test_queues_of_any_policy_and_machine(
    browser: Browser, system: dict[str, Any], expected: dict[str, Any], words: str
) -> None:
    with shown(browser, "queues", systems={"a": system}) as page:
        play(page, 4, 20)
        drawing = drawn(page, "queues")
        assert {key: drawing[key] for key in expected} == expected
        assert words in page.inner_text(".drawing-notice")
        queues = page.evaluate("() => lab.stateOf('a').frame.cpus.map((cpu) => cpu.queue.length)")
        if expected != {"cards": 64}:  # lower values are not counted
            assert len(drawing["waiting"]) + drawing["more"] == sum(queues)
        last = page.evaluate("() => lab.stateOf('a').decisions.items.at(-1)")
        if system["policy"] == "lottery":
            assert drawing["drawn"] == [{key: last[key] for key in ("cpu", "pid", "remark")}]


# --- shares


def test_shares_come_to_their_ideals(browser: Browser) -> None:
    systems = {"a": {"policy": "lottery", "processes": 4, "cpus": 1, "slice_ns": 1_000_000}}
    with shown(browser, "shares", systems=systems) as page:
        play(page, 2)
        wait_for(page, "shares", lambda drawing: drawing["slices"] == 8)
        play(page, 1, 4000)
        page.wait_for_timeout(1000)
        play(page, 1, 2000)
        wait_for(page, "shares", lambda drawing: drawing["samples"] >= 2 and drawing["ends"] == 4)
        rows = page.locator(".shares-list tbody tr")
        assert rows.count() == 4
        assert "Tickets" in page.inner_text(".shares-list thead")
        assert rows.nth(0).inner_text().split()[:4] == ["sh", "6", "40", "40.0"]
        assert page.locator(".shares-pies canvas, .shares-lines canvas").count() == 2
        inked = page.locator(".shares-pies canvas").evaluate(
            """(it) => new Set(new Uint32Array(
                it.getContext("2d").getImageData(0, 0, it.width, it.height).data.buffer)).size"""
        )
        assert inked > 5
