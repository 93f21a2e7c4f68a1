# SPDX-License-Identifier: MIT
"""The drawn modules of the monitor's page in a real browser, with systems that are made up
(monitor_drawings.js): without a server, at the test's own pace."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode, urlsplit

import pytest

from conftest import ROOT
from monitor_stand_in import WAY
from page_waits import until
from perfetto_stand_in import stand_in_for_perfetto
from schedlab.base.toolchain.policies import read_catalogue
from schedlab.base.toolchain.tools import BROWSERS, find_browser
from schedlab.monitor.files import PAGE, POLICY
from schedlab.monitor.vega import vega_script
from schedlab.report.html import SHARED, TEMPLATES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

BROWSER = find_browser()
pytestmark = [
    pytest.mark.skipif(
        not BROWSER,
        reason=f"NO BROWSER: the monitor's drawings are NOT TESTED. Install one of {BROWSERS}",
    ),
    pytest.mark.xdist_group("browser"),
]

OWN_WORDS = "The task with the strangest name is next."
SITE: list[str] = []
"""Its address, while it is served."""
TELEPHONE, DESKTOP, PROJECTOR = (390, 844), (1280, 900), (1920, 1080)
LAST_ROW = 12
"""Pixels from a time line's foot up to its last row."""
TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
FRAME_PAGE = """<!DOCTYPE html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="icon.svg"><link rel="stylesheet" href="theme.css">
<link rel="stylesheet" id="dark" href="dark.css">
STYLES
<body data-enlarged=""><main><section class="system shown" id="content"></section></main>
<p class="unseen" id="announcements"></p><script type="module" src="made-up.js"></script>"""
STYLES = re.findall(r'<link rel="stylesheet" href="styles/.*>', (PAGE / "index.html").read_text())


class Files(BaseHTTPRequestHandler):
    """Files of the page under the policy that it must live with, and the test's own."""

    protocol_version = "HTTP/1.1"
    own: ClassVar[dict[str, bytes]] = {}

    def do_GET(self) -> None:
        name = urlsplit(self.path).path.removeprefix("/")
        body = self.own.get(name)
        if body is None:
            body = ((TEMPLATES if name in SHARED else PAGE) / name).read_bytes()
        self.send_response(200)
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Content-Type", f"{TYPES.get(Path(name).suffix, 'text/html')}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: a page that lacks a file says so itself."""


@pytest.fixture(scope="module", autouse=True)
def site() -> Iterator[None]:
    """The server of the page's files."""
    policies = [asdict(policy) for policy in read_catalogue().values()]
    policies.append({**policies[0], "name": "unheard-of", "number": None, "order": OWN_WORDS})
    Files.own = {
        "policies.js": f"export const policies = {json.dumps(policies)};".encode(),
        "": FRAME_PAGE.replace("STYLES", "".join(STYLES)).encode(),
        "way.js": WAY.read_bytes(),
        "made-up.js": (ROOT / "tests" / "monitor" / "monitor_drawings.js").read_bytes(),
        "trace/made-up.pftrace": b"the trace",
        "vega.js": vega_script(),
    }
    server = ThreadingHTTPServer(("127.0.0.1", 0), Files)
    SITE.append(f"http://127.0.0.1:{server.server_port}/")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield
    server.shutdown()
    thread.join()
    server.server_close()


@contextmanager
def context_of(
    browser: Browser, size: tuple[int, int] = DESKTOP, **more: Any
) -> Iterator[BrowserContext]:
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, **more)
    yield context
    context.close()


@contextmanager
def shown(
    browser: Browser,
    modules: str,
    size: tuple[int, int] = DESKTOP,
    systems: dict[str, dict[str, Any]] | None = None,
    **more: Any,
) -> Iterator[Page]:
    """A page with these modules, for each system. Nothing may be said on its console."""
    systems = systems or {"a": {}}
    query = {"modules": modules, "systems": ",".join(systems)}
    query |= {f"system-{name}": json.dumps(settings) for name, settings in systems.items()}
    with context_of(browser, size, **more) as context:
        page = context.new_page()
        trouble: list[str] = []
        page.on("console", lambda message: trouble.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.goto(f"{SITE[-1]}?{urlencode(query)}")
        page.wait_for_selector("html[data-ready]", state="attached")
        yield page
        assert trouble == []


def play(page: Page, frames: int = 5, duration_ms: int = 200, system: str = "a") -> None:
    page.evaluate(
        """async ([system, frames, ns]) => {
            for (let at = 0; at < frames; at++) { lab.show(system, ns); await lab.drawn(); }
        }""",
        [system, frames, duration_ms * 1_000_000],
    )


def drawn(page: Page, module: str = "timeline", system: str = "a") -> Any:
    """What the module says it has drawn, after whatever is due is drawn."""
    return page.evaluate(
        """async (name) => {
            await lab.drawn();
            const { panel, module } = lab.panels.get(name);
            return (module.canvas ?? panel.body).drawn;
        }""",
        f"{module}-{system}",
    )


def wait_for(page: Page, module: str, condition: Any, system: str = "a") -> Any:
    """What is drawn, as soon as it is so. The page's policy forbids Playwright's own way."""

    def found() -> Any:
        there = drawn(page, module, system)
        return there if there and condition(there) else None

    return until(page, found, lambda: drawn(page, module, system))


def colours(page: Page, module: str) -> int:
    """How many different ones the canvas has."""
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
        found = drawn(page)
        assert (found["lanes"], found["levels"], found["live"]) == (2, [3, 2, 1, 0], True)
        assert found["bars"] > 50
        assert found["thin"] == 0
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


def test_what_comes_before_the_answer_for_history_stays(browser: Browser) -> None:
    """A page that comes later asks for the past; frames that are newer than the answer come before it."""
    with shown(browser, "timeline", systems={"a": {"policy": "rr", "cpus": 1}}) as page:
        page.evaluate(
            """() => {
                const made = lab.made.get("a");
                lab.answers.history = () => {
                    const past = made.whole();
                    made.mark("note", "while it was asked");
                    lab.show("a", 200e6);
                    return past;
                };
                made.advance(400e6).frame();
            }"""
        )
        play(page, 1)
        page.wait_for_timeout(50)
        found = page.evaluate(
            """() => {
                const state = lab.stateOf("a");
                const { begin, length } = state.runs[0];
                const known = new Set(begin.slice(0, length));
                const all = lab.made.get("a").kept.map((run) => run[2]);
                const marks = state.marks.items.length;
                return { missing: all.filter((each) => !known.has(each)).length, all: all.length, marks };
            }"""
        )
        assert found["all"] > 60
        assert (found["missing"], found["marks"]) == (0, 1)


def test_the_ticket_that_was_drawn_is_one_of_the_winners(browser: Browser) -> None:
    """Of random draws; and all tickets are on the strip, each as often as there are such."""
    with shown(browser, "queues", systems={"a": {"policy": "lottery", "cpus": 1}}) as page:
        found = page.evaluate(
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
        assert (found["wrong"], found["lost"]) == (0, 0)
        many = found["many"]["parts"]
        won = [part[0] for part in many].index(1)
        assert sum(part[1] for part in many) == 215
        assert sum(part[1] for part in many[:won]) <= 150 < sum(part[1] for part in many[: won + 1])


def test_demotions_and_boosts_are_named_and_drawn(browser: Browser) -> None:
    """What runs tell of levels, by what the policy says of itself: who sank, when all rose, what is left."""
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
        found = page.evaluate(
            """() => {
                const { story } = lab.stateOf("a");
                return { events: story.events, at: story.atLevel(3) };
            }"""
        )
        events = [(each["kind"], each["time_ns"] / 1e6, each["pid"]) for each in found["events"]]
        assert events == [("demotion", 80, 3), ("demotion", 160, 4), ("boost", 400, 3)]
        assert found["at"] == {"level": 3, "ran": 60e6}
        seen = drawn(page)
        assert "▲ boost: all rise" in seen["labels"]
        assert set(seen["demotions"]) == {"sinks to 2"}


def test_each_process_has_a_row_and_one_that_starves_is_told(browser: Browser) -> None:
    with shown(browser, "timeline,processes", systems={"a": {"policy": "rr", "cpus": 1}}) as page:
        page.evaluate(
            """() => {
                const made = lab.made.get("a");
                const columns = made.columns.bind(made);
                made.columns = (policy) => {
                    const told = columns(policy);
                    const at = told.state.indexOf(0);
                    told.wait_now_ns = told.wait_now_ns.map((each, row) => (row === at ? 9e9 : Math.min(each, 1e6)));
                    return told;
                };
            }"""
        )
        play(page, 3)
        assert len(drawn(page)["processes"]) == 6
        page.locator(".row.starves").wait_for()
        assert page.locator(".row.starves").count() == 1


def test_a_wait_is_asked_for_where_it_is_pressed(browser: Browser) -> None:
    """In a row, where its process does not run. Where it does, or no wait can be taken apart, the process is chosen."""
    with shown(browser, "timeline,waits", systems={"a": {"policy": "rr", "cpus": 1}}) as page:
        play(page, 3)
        found = page.evaluate(
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
        span, left = found["range"]["end"] - found["range"]["begin"], found["range"]["left"]
        for time_ns in (*found["times"], found["times"][0]):
            part = (time_ns - found["range"]["begin"]) / span
            across = box["x"] + left + part * (box["width"] - left)
            page.mouse.click(across, box["y"] + box["height"] - LAST_ROW)
            page.evaluate("() => lab.drawn()")
            if time_ns == found["times"][1]:
                page.evaluate("() => { lab.stateOf('a').info.no_blame = 'not here'; }")
        asked = [each for each in page.evaluate("() => lab.asked") if each["do"] == "blame"]
        assert [each["pid"] for each in asked] == [found["row"]]
        pixel = span / (box["width"] - left)
        assert asked[0]["at_ns"] == pytest.approx(found["times"][0], abs=2 * pixel)


def test_columns_are_those_of_which_the_policy_makes_use(browser: Browser) -> None:
    with shown(browser, "processes", systems={"a": {"policy": "mlfq"}}) as page:
        play(page, 2)
        page.locator("[data-key=level]").wait_for()
        keys = page.locator(".head-cell").evaluate_all("(all) => all.map((it) => it.dataset.key)")
        assert "level" in keys
        assert not {"tickets", "weight", "priority"} & set(keys)
        page.evaluate("() => { lab.made.get('a').policy = 'lottery'; }")
        play(page, 1)
        page.locator("[data-key=tickets]").wait_for()
        assert page.locator("[data-key=level]").count() == 0
        page.locator(".menu summary").click()
        page.get_by_label("Weight").check()
        page.locator("[data-key=weight]").wait_for()


def test_enlarged_lanes_fill_the_screen(browser: Browser) -> None:
    with shown(browser, "timeline", systems={"a": {"policy": "rr", "cpus": 2}}) as page:
        play(page, 3)
        before = page.locator(".timeline canvas").bounding_box()
        page.get_by_label("Enlarge timeline").click()
        play(page, 1)
        page.wait_for_timeout(100)
        after = page.locator(".timeline canvas").bounding_box()
        assert before and after
        assert after["height"] > 1.8 * before["height"]
        assert after["height"] > 0.7 * DESKTOP[1]


def test_a_blocked_parent_with_many_tickets_leaves_the_ring_to_others(browser: Browser) -> None:
    with shown(browser, "shares", systems={"a": {"policy": "lottery"}}) as page:
        page.evaluate(
            """() => {
                const made = lab.made.get("a");
                const columns = made.columns.bind(made);
                made.columns = (policy) => {
                    const told = columns(policy);
                    told.tickets[0] = 1e6;
                    told.state[0] = 2;
                    told.ideal[0] = told.share[0] = 0.002;
                    return told;
                };
            }"""
        )
        play(page, 3)
        page.wait_for_timeout(600)
        rows = page.locator(".shares-list tbody tr").all_inner_texts()
        assert len(rows) == 6
        assert not any("1,000,000" in row for row in rows)


def test_all_panels_show_one_frame(browser: Browser) -> None:
    """What a time line shows at its right edge runs in the queues, too, at any moment after a frame."""
    with shown(browser, "timeline,queues", systems={"a": {"policy": "rr", "cpus": 1}}) as page:
        play(page, 6)
        for _ in range(3):
            play(page, 1)
            found = drawn(page)
            now = page.evaluate("() => lab.stateOf('a').frame.now_ns")
            assert found["end"] == pytest.approx(max(now, 0.98e9) + 0.02e9)


def test_levels_stand_in_the_order_in_which_they_are_served(browser: Browser) -> None:
    with shown(browser, "timeline,queues", systems={"a": {"policy": "priority"}}) as page:
        play(page, 4)
        assert drawn(page)["levels"] == [0, 1, 2, 3]
        page.evaluate("() => { lab.made.get('a').policy = 'lottery'; }")
        play(page, 2)
        assert drawn(page)["levels"] == [0, 1, 2, 3]  # its past is still to be seen
        assert drawn(page, "queues")["shelves"] == [-1]


def test_time_line_without_levels_and_with_many_cpus(browser: Browser) -> None:
    systems = {"a": {"cpus": 64, "policy": "lottery", "processes": 200}}
    with shown(browser, "timeline", systems=systems) as page:
        play(page, 3)
        assert drawn(page)["levels"] == []
        box = page.locator(".timeline")
        assert box.evaluate("(it) => it.scrollHeight > it.clientHeight && it.clientHeight < 600")
        assert box.evaluate("(it) => it.querySelector('canvas').clientHeight === it.clientHeight")
        before = drawn(page)["bars"]
        box.evaluate("(it) => { it.scrollTop = 1e6; }")
        assert drawn(page)["bars"] != before  # other CPUs have other runs


def test_time_line_follows_now_and_stands_still(browser: Browser) -> None:
    with shown(browser, "timeline", reduced_motion="reduce") as page:
        play(page, 5)
        first = drawn(page)
        assert first["end"] == pytest.approx(1.02e9)
        page.focus(".timeline")
        page.keyboard.press("p")
        play(page, 5)
        stopped = drawn(page)
        assert stopped["live"] is False
        assert stopped["end"] == pytest.approx(first["end"])
        assert "further on" in page.inner_text(".timeline-foot")
        page.keyboard.press("l")
        followed = drawn(page)
        assert followed["live"] is True
        assert followed["end"] == pytest.approx(2.02e9)


def test_time_line_pans_and_zooms_by_keys_wheel_and_drag(browser: Browser) -> None:
    with shown(browser, "timeline") as page:
        play(page, 10)
        page.focus(".timeline")
        whole = drawn(page)
        page.keyboard.press("+")
        near = drawn(page)
        assert near["end"] - near["begin"] == pytest.approx((whole["end"] - whole["begin"]) / 1.5)
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
        assert drawn(page)["selected"] == 0  # a drag is no click


def test_time_line_zooms_by_two_fingers(browser: Browser) -> None:
    with shown(browser, "timeline", TELEPHONE, has_touch=True, is_mobile=True) as page:
        play(page, 8)
        page.evaluate("() => lab.view.freeze()")
        before = drawn(page)
        box = page.locator(".timeline canvas").bounding_box()
        assert box
        fingers = page.context.new_cdp_session(page)

        def touch(kind: str, *places: float) -> None:
            points = [
                {"x": place, "y": box["y"] + 90, "id": number}
                for number, place in enumerate(places)
            ]
            fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        touch("touchStart", 150, 250)
        touch("touchMove", 125, 275)
        touch("touchMove", 100, 300)
        touch("touchEnd")
        after = drawn(page)
        length = before["end"] - before["begin"]
        assert after["end"] - after["begin"] == pytest.approx(length / 2, rel=0.05)
        touch("touchStart", 150)
        touch("touchMove", 200)
        touch("touchMove", 250)
        touch("touchEnd")
        assert drawn(page)["begin"] < after["begin"]


def test_time_line_tells_and_selects_the_run_at_the_pointer(browser: Browser) -> None:
    with shown(browser, "timeline", systems={"a": {"policy": "lottery", "cpus": 1}}) as page:
        play(page, 5)
        page.evaluate("() => lab.view.freeze()")
        place = page.evaluate(
            """() => {
                const { module } = lab.panels.get("timeline-a");
                const { begin, end } = module.canvas.drawn;
                const track = lab.stateOf("a").runs[0];
                const at = track.firstAfter((begin + end) / 2);
                const part = ((track.begin[at] + track.end[at]) / 2 - begin) / (end - begin);
                return { pid: track.pid[at], part };
            }"""
        )
        box = page.locator(".timeline canvas").bounding_box()
        assert box
        left = box["x"] + 60 + place["part"] * (box["width"] - 60)
        page.mouse.move(left, box["y"] + 80)
        assert f"({place['pid']})" in page.inner_text(".drawing-tip")
        page.mouse.down()
        page.mouse.up()
        assert drawn(page)["selected"] == place["pid"]


def test_time_line_by_keyboard_from_run_to_run(browser: Browser) -> None:
    with shown(browser, "timeline") as page:
        play(page, 5)
        page.focus(".timeline")
        page.keyboard.press("n")
        first = drawn(page)["focus"]
        page.keyboard.press("n")
        assert drawn(page)["focus"]["begin"] > first["begin"]
        page.keyboard.press("b")
        assert drawn(page)["focus"] == first
        page.keyboard.press("ArrowDown")
        assert drawn(page)["focus"]["cpu"] == first["cpu"] + 1
        page.keyboard.press("Enter")
        selected = drawn(page)["selected"]
        assert f"({selected})" in page.inner_text("#announcements")
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        assert drawn(page)["selected"] == 0


def test_time_line_as_a_table(browser: Browser) -> None:
    with shown(browser, "timeline", reduced_motion="reduce") as page:
        play(page, 5)
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
        assert "runs seen" in page.inner_text(".timeline-table caption")
        words = {rows.nth(at).locator("td").last.inner_text() for at in range(20)}
        assert words <= {"goes on", "blocked", "preempted", "yielded", "ended"}
        rows.nth(0).locator("button").click()
        assert drawn(page)["selected"] > 0


def test_time_line_adds_up_what_is_thinner_than_a_pixel(browser: Browser) -> None:
    systems = {"a": {"slice_ns": 100_000, "policy": "lottery", "processes": 9}}
    with shown(browser, "timeline", systems=systems) as page:
        play(page, 4, 250)
        found = drawn(page)
        assert found["thin"] > 10_000
        assert "thinner than two pixels" in page.inner_text(".timeline-foot")
        page.evaluate("() => { for (let at = 0; at < 9; at++) lab.view.zoom(0.4); }")
        assert drawn(page)["thin"] == 0


def test_time_line_keeps_no_more_than_its_share(browser: Browser) -> None:
    systems = {"a": {"slice_ns": 10_000, "policy": "rr", "cpus": 1, "processes": 2}}
    with shown(browser, "timeline", systems=systems) as page:
        play(page, 5, 300)
        kept = page.evaluate("() => lab.stateOf('a').runs[0].length")
        assert 30_000 < kept <= 65_536
        first = page.evaluate("() => [lab.view.first, lab.stateOf('a').runs[0].begin[0]]")
        assert first[0] == first[1] > 0


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


def test_time_line_begins_anew_after_a_restart(browser: Browser) -> None:
    with shown(browser, "timeline") as page:
        play(page, 10)
        page.evaluate("() => lab.view.freeze()")
        page.evaluate("() => lab.add('a', { cpus: 1 })")
        play(page, 2)
        found = drawn(page)
        assert (found["lanes"], found["live"]) == (1, True)
        assert found["end"] <= 1.1e9


def test_trace_is_handed_over_to_perfetto(browser: Browser) -> None:
    with shown(browser, "timeline") as page:
        stand_in_for_perfetto(page)
        page.evaluate("() => { lab.answers.perfetto = () => 'trace/made-up.pftrace'; }")
        play(page, 2)
        with page.context.expect_page() as opened:
            page.click("[aria-label^='Open the same data']")
        window = opened.value
        until(window, lambda: window.title().startswith("{"))
        got = json.loads(window.title())
        assert got == {
            "bytes": list(b"the trace"),
            "title": "schedlab: System a, mlfq",
            "fileName": "made-up.pftrace",
        }
        assert page.evaluate("() => lab.asked.at(-1)")["do"] == "perfetto"
        with page.expect_download() as download:
            page.click("[aria-label^='Download the file']")
        assert download.value.suggested_filename == "made-up.pftrace"


def test_what_perfetto_cannot_get_is_said(browser: Browser) -> None:
    with shown(browser, "timeline") as page:
        stand_in_for_perfetto(page)
        play(page, 2)
        with page.context.expect_page() as opened:
            page.click("[aria-label^='Open the same data']")
        page.wait_for_selector("text=nobody answers perfetto")
        assert opened.value.is_closed()


# --- the run queues


def test_queues_show_who_waits_at_which_level(browser: Browser) -> None:
    systems = {"a": {"policy": "mlfq", "processes": 9, "cpus": 2}}
    with shown(browser, "queues", systems=systems) as page:
        play(page, 6)
        found = drawn(page, "queues")
        frame = page.evaluate("() => lab.stateOf('a').frame.cpus")
        assert found["shelves"] == [3, 2, 1, 0]  # the largest is served first
        assert sorted(found["running"]) == sorted(cpu["running"] for cpu in frame if cpu["running"])
        waiting = sorted(each[0] for cpu in frame for each in cpu["queue"])
        assert sorted(found["waiting"]) == waiting
        assert colours(page, "queues") > 6
        play(page, 3)
        assert drawn(page, "queues")["waiting"] != found["waiting"]
        assert "CPU 0" in (page.get_attribute(".queues canvas", "aria-label") or "")


def test_queues_of_a_policy_of_any_name_say_what_it_says(browser: Browser) -> None:
    with shown(browser, "queues", systems={"a": {"policy": "unheard-of", "cpus": 1}}) as page:
        play(page, 4)
        assert OWN_WORDS in page.inner_text(".drawing-notice")
        assert drawn(page, "queues")["policy"] == "unheard-of"


def test_queues_of_a_lottery_show_the_ticket_that_was_drawn(browser: Browser) -> None:
    with shown(browser, "queues", systems={"a": {"policy": "lottery", "cpus": 1}}) as page:
        play(page, 4)
        found = drawn(page, "queues")
        last = page.evaluate("() => lab.stateOf('a').decisions.items.at(-1)")
        assert found["drawn"] == [{key: last[key] for key in ("cpu", "pid", "remark")}]
        assert "one ticket" in page.inner_text(".drawing-notice")


def test_queues_say_how_many_more_there_are(browser: Browser) -> None:
    systems = {"a": {"policy": "rr", "cpus": 1, "processes": 1500}}
    with shown(browser, "queues", systems=systems) as page:
        play(page, 2)
        found = drawn(page, "queues")
        waiting = page.evaluate("() => lab.stateOf('a').frame.cpus[0].queue.length")
        assert found["more"] > 1000
        assert len(found["waiting"]) + found["more"] == waiting


def test_a_shared_queue_stands_before_all_cpus(browser: Browser) -> None:
    systems = {"a": {"policy": "rr", "cpus": 3, "processes": 8, "shared": True}}
    with shown(browser, "queues", systems=systems) as page:
        play(page, 3)
        found = drawn(page, "queues")
        assert found["cards"] == 4
        assert len(found["running"]) == 3
        assert found["waiting"]


def test_queues_of_64_cpus_are_scrolled_to(browser: Browser) -> None:
    systems = {"a": {"policy": "mlfq", "cpus": 64, "processes": 400, "slice_ns": 1_000_000}}
    with shown(browser, "queues", systems=systems) as page:
        play(page, 3, 20)
        assert drawn(page, "queues")["cards"] == 64
        box = page.locator(".queues")
        assert box.evaluate("(it) => it.scrollHeight > 3 * it.clientHeight")


def test_tiles_go_to_their_places_unless_motion_is_unwanted(browser: Browser) -> None:
    systems = {"a": {"policy": "mlfq", "processes": 9}}
    moved = []
    for motion in ("no-preference", "reduce"):
        with shown(browser, "queues", systems=systems, reduced_motion=motion) as page:
            play(page, 2)
            page.wait_for_timeout(400)
            moved.append(
                page.evaluate(
                    """async () => {
                        const { surface } = lab.panels.get("queues-a").module;
                        lab.show("a", 2e8);
                        await lab.drawn();
                        const before = surface.drawings;
                        await new Promise((resolve) => setTimeout(resolve, 300));
                        return surface.drawings - before;
                    }"""
                )
            )
    assert moved[0] > 1
    assert moved[1] <= 1


def test_a_click_on_a_tile_selects_its_process(browser: Browser) -> None:
    with shown(browser, "queues,timeline", reduced_motion="reduce") as page:
        play(page, 4)
        found = drawn(page, "queues")
        box = page.locator(".queues canvas").bounding_box()
        assert box
        width = (box["width"] - 10) / 2
        page.mouse.click(box["x"] + width - 60, box["y"] + 22 + 70)
        assert drawn(page)["selected"] in found["running"]


# --- waits


EXPLANATION = """({ pid }) => ({
    pid, name: "hog", total_ns: 300e6, idle_elsewhere_ns: 12e6,
    parts: [
        { pid: 4, name: "compile", cpu: 0, ran_ns: 200e6, runs: 20 },
        { pid: 0, name: "", cpu: 0, ran_ns: 100e6, runs: 1 },
    ],
    waits: [{ begin_ns: 1e8, end_ns: 4e8, cpu: 0, why: "slice over",
              parts: [{ pid: 4, name: "compile", cpu: 0, ran_ns: 2e8, runs: 20 }] }],
})"""


def test_waiting_is_explained(browser: Browser) -> None:
    with shown(browser, "waits") as page:
        page.evaluate(f"() => {{ lab.answers.explain = {EXPLANATION}; }}")
        play(page, 3)
        assert "Waiting longest now" in page.inner_text(".waits-head")
        page.locator(".waits-choice button").first.click()
        found = wait_for(page, "waits", lambda each: each["explanation"])
        assert found["explanation"]["pid"] == found["selected"] > 0
        text = page.inner_text(".waits-content")
        for words in (
            "compile",
            "20 runs",
            "200 ms",
            "67 %",
            "no process: the CPU idled",
            "slice over",
        ):
            assert words in text
        assert "Another CPU idled for 12.0 ms" in text
        widths = page.locator(".waits-bar:not(.small) .swatch").evaluate_all(
            "(all) => all.map((it) => it.getBoundingClientRect().width)"
        )
        assert widths[0] == pytest.approx(2 * widths[1], rel=0.02)
        asked = [each for each in page.evaluate("() => lab.asked") if each["do"] == "explain"]
        assert asked[0]["system"] == "a"


def test_a_wait_that_nobody_can_explain_is_said(browser: Browser) -> None:
    with shown(browser, "waits,timeline") as page:
        play(page, 3)
        page.evaluate("() => { lab.answers.explain = undefined; lab.stateOf('a').selected = 5; }")
        play(page, 1)
        wait_for(page, "waits", lambda each: "nobody answers" in each["trouble"])
        assert "nobody answers explain" in page.inner_text(".waits-head")


# --- metrics


def test_metrics_as_figures_with_how_they_went(browser: Browser) -> None:
    with shown(browser, "metrics") as page:
        play(page, 8)
        found = drawn(page, "metrics")
        metrics = page.evaluate("() => lab.stateOf('a').frame.metrics")
        card = page.locator("[data-metric=response_ns]")
        assert f"{metrics['response_ns'] / 1e6:.1f} ms" in card.inner_text()
        assert found["points"] == 8
        assert "–" in page.inner_text("[data-metric=turnaround_ns]")
        inked = card.locator("canvas").evaluate(
            """(it) => it.getContext("2d").getImageData(0, 0, it.width, it.height).data
                .some((value) => value > 0)"""
        )
        assert inked
        play(page, 5)
        assert drawn(page, "metrics")["values"] != found["values"]


def test_the_window_is_chosen(browser: Browser) -> None:
    with shown(browser, "metrics") as page:
        page.evaluate("() => { lab.answers.window = () => null; }")
        play(page, 2)
        chosen = page.locator(".metrics-windows [aria-pressed=true]")
        assert chosen.inner_text() == "10 s"
        page.click("[aria-label='Window of 60 s']")
        asked = page.evaluate("() => lab.asked.at(-1)")
        assert (asked["do"], asked["seconds"]) == ("window", 60)


def test_metrics_of_two_systems_are_compared_in_words(browser: Browser) -> None:
    with shown(browser, "metrics", systems={"a": {}, "b": {}}) as page:
        play(page, 3)
        play(page, 3, system="b")
        drawn(page, "metrics")
        metrics = page.evaluate("() => ['a', 'b'].map((id) => lab.stateOf(id).frame.metrics)")
        own, other = (each["wakeup_p99_ns"] for each in metrics)
        texts = page.locator("[data-metric=wakeup_p99_ns] .metric-compared").all_inner_texts()
        word, opposite = ("better", "worse") if own < other else ("worse", "better")
        assert f"{word} than b" in texts[0]
        assert f"{opposite} than a" in texts[1]
        assert texts[0][0] in "▲▼"


# --- shares


def test_shares_come_to_their_ideals(browser: Browser) -> None:
    systems = {"a": {"policy": "lottery", "processes": 4, "cpus": 1, "slice_ns": 1_000_000}}
    with shown(browser, "shares", systems=systems) as page:
        play(page, 2)
        wait_for(page, "shares", lambda each: each["slices"] == 8)
        play(page, 1, 4000)
        page.wait_for_timeout(1000)
        play(page, 1, 2000)
        wait_for(page, "shares", lambda each: each["samples"] >= 2 and each["ends"] == 4)
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


def test_shares_of_many_put_the_others_together(browser: Browser) -> None:
    systems = {"a": {"policy": "lottery", "processes": 60, "cpus": 2, "slice_ns": 1_000_000}}
    with shown(browser, "shares", systems=systems) as page:
        play(page, 2)
        found = wait_for(page, "shares", lambda each: each["slices"])
        assert found["slices"] == 16
        assert "53 others" in page.inner_text(".shares-list")
        page.click("text=Groups")
        found = wait_for(page, "shares", lambda each: each["slices"] == 6)
        assert "group 0" in page.inner_text(".shares-list")


def test_shares_begin_anew_with_a_change(browser: Browser) -> None:
    systems = {"a": {"policy": "lottery", "processes": 3, "cpus": 1}}
    with shown(browser, "shares", systems=systems) as page:
        play(page, 2)
        before = wait_for(page, "shares", lambda each: each["samples"] >= 1)["segment"]
        page.evaluate("() => lab.made.get('a').processes.forEach((it) => { it.tickets *= 3; })")
        page.wait_for_timeout(450)
        play(page, 1)
        wait_for(page, "shares", lambda each: each["segment"] > before)


# --- all of them

ALL = "timeline,queues,waits,metrics,shares"


@pytest.mark.parametrize(
    ("size", "scheme"), [(TELEPHONE, "dark"), (PROJECTOR, "light")], ids=["telephone", "projector"]
)
def test_all_fit_their_screen(browser: Browser, size: tuple[int, int], scheme: str) -> None:
    systems = {"a": {"policy": "lottery", "processes": 30}}
    with shown(browser, ALL, size, systems, color_scheme=scheme) as page:
        play(page, 3)
        page.locator(".panel-shares").scroll_into_view_if_needed()
        wait_for(page, "shares", lambda each: each["slices"])
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        for canvas in page.locator("canvas").all():
            box = canvas.bounding_box()
            assert box is None or box["x"] + box["width"] <= size[0]


def test_canvases_are_sharp(browser: Browser) -> None:
    with shown(browser, "timeline", TELEPHONE, device_scale_factor=3) as page:
        play(page, 2)
        assert drawn(page)["bars"]
        assert page.locator(".timeline canvas").evaluate(
            "(it) => Math.abs(it.width - 3 * it.clientWidth) <= 1"
        )


def test_what_is_not_seen_is_not_drawn(browser: Browser) -> None:
    with shown(browser, "timeline") as page:
        play(page, 2)
        page.click("[aria-label^='Fold']")
        before = page.evaluate("() => lab.panels.get('timeline-a').module.surface.drawings")
        play(page, 5)
        assert before == page.evaluate("() => lab.panels.get('timeline-a').module.surface.drawings")
