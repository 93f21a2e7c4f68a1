// SPDX-License-Identifier: MIT
//
// The line at the top: time and its pace for all systems, recording, and the page's own switches.

import { notice } from "../banners.js";
import { setTheme, theme } from "../colours.js";
import { ask } from "../connection.js";
import { announce, button, element, setIcon, setLabel, setText } from "../elements.js";
import { isLecture, setLecture } from "../lecture.js";
import { allStates, onHello, subscribe } from "../store.js";
import { formatSpeed, moment } from "../words.js";

/** A system's time relative to real time; 0: as fast as possible. */
const PACES = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 0];
const STEPS = [["event", "event"], ["decision", "decision"], ["tick", "tick"], ["millisecond", "1 ms"]];
const THEMES = ["auto", "light", "dark"];
const THEME_WORDS = { auto: "system", light: "light", dark: "dark" };

/**
 * @param {HTMLElement} place
 * @param {{help: () => void}} page
 * @returns {{toggle: () => void, step: () => void, stepBack: () => void, faster: (by: number) => void, record: () => void, theme: () => void}}
 */
export function create(place, page) {
    const home = element("h1", { className: "home" }, "schedlab ", element("span", { textContent: "monitor" }));
    const time = timeControls();
    const saving = savingControls();
    const look = button("auto", "Theme", switchTheme);
    const lecture = button("enlarge", "Lecture: four panels in large letters, or all panels (M)", () => setLecture(!isLecture()));
    const tools = element("div", { className: "bar-group bar-tools" }, lecture, look, button("help", "Help, and all keys", page.help));
    place.append(home, time.element, saving.element, tools);

    function switchTheme() {
        setTheme(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]);
        showTheme();
        announce(`Theme: ${THEME_WORDS[theme()]}`);
    }
    function showTheme() {
        setIcon(look, theme());
        setLabel(look, `Theme: ${THEME_WORDS[theme()]}`);
    }
    showTheme();

    let ends = [];
    onHello(() => {
        for (const end of ends) end();
        const follow = () => {
            time.follow(allStates());
            saving.follow(allStates());
        };
        ends = allStates().map(({ id }) => subscribe(id, follow));
        document.title = `${allStates().map(({ info }) => info.title).join(" | ")} – schedlab monitor`;
    });
    return { toggle: time.toggle, step: time.step, stepBack: time.stepBack, faster: time.faster, record: saving.record, theme: switchTheme };
}

/** Sends a request, and shows a refusal. */
function send(action, fields, progress) {
    return ask(action, fields, progress).catch((error) => notice(error.message, "bad"));
}

function timeControls() {
    const play = button("pause", "Pause", toggle);
    play.classList.add("play");
    const stepKind = element("select", { "aria-label": "Length of a step" });
    for (const [value, textContent] of STEPS) stepKind.append(element("option", { value, textContent }));
    const backButton = button("back", "Step back to an earlier state", stepBack);
    const stepButton = button("step", "One step", step);
    const slider = element("input", { type: "range", min: 0, max: PACES.length - 1, step: 1, value: 9 });
    slider.setAttribute("aria-label", "Speed of the systems' time relative to real time");
    slider.dataset.tip = "Speed of the systems' time relative to real time";
    const shown = element("output", { className: "pace-value" });
    const pacing = element("div", { className: "bar-group pace" }, slider, shown);
    const seek = seekControl();
    const made = element("div", { className: "bar-group", role: "group", "aria-label": "Time" }, play, backButton, stepButton, stepKind);
    const all = element("div", { className: "bar-group bar-time" }, made, pacing, seek.element);
    let paused = false;
    let over = false;
    let chosen_ms = -Infinity;

    slider.addEventListener("input", () => showPace(PACES[slider.value]));
    slider.addEventListener("change", () => setPace(Number(slider.value)));

    function setPace(place) {
        chosen_ms = performance.now();
        showPace(PACES[place]);
        send("pace", { speed: PACES[place] });
    }
    function showPace(pace) {
        const words = paceWords(pace);
        setText(shown, words);
        slider.setAttribute("aria-valuetext", words);
    }
    async function toggle() {
        if (play.disabled) return;
        if (over) {
            await send("seek", { time_ns: 0 });
            send("resume");
        } else send(paused ? "resume" : "pause");
    }
    function step() {
        if (!stepButton.hidden) send("step", { kind: stepKind.value });
    }
    function stepBack() {
        send("step", { kind: stepKind.value, back: true });
    }
    function faster(by) {
        if (pacing.hidden) return;
        slider.value = String(Number(slider.value) + by);
        setPace(Number(slider.value));
        announce(`Pace ${paceWords(PACES[slider.value])}`);
    }
    function follow(states) {
        const known = states.filter(({ frame }) => frame);
        play.disabled = !states.some((state) => state.can("pause") || state.can("pace"));
        pacing.hidden = !states.some((state) => state.can("pace"));
        stepButton.hidden = pacing.hidden && !known.some(({ frame }) => frame.back_ns);
        paused = known.length > 0 && known.every(({ frame }) => frame.paused);
        over = known.length > 0 && known.every((state) => state.isOver);
        setIcon(play, paused || over ? "play" : "pause");
        setLabel(play, over ? "Play from the beginning" : paused ? "Go on" : "Pause");
        play.classList.toggle("is-paused", paused || over);
        const paced = known.find(({ frame }) => frame.pace >= 0);
        if (paced && performance.now() - chosen_ms > 1000 && document.activeElement !== slider) {
            slider.value = String(nearest(paced.frame.pace));
            showPace(paced.frame.pace);
        }
        seek.follow(states);
    }
    return { element: all, toggle, step, stepBack, faster, follow };
}

function paceWords(pace) {
    return pace === 0 ? "at full speed" : `${formatSpeed(pace)} real time`;
}

function nearest(pace) {
    if (pace === 0) return PACES.length - 1;
    const distances = PACES.map((choice) => (choice ? Math.abs(Math.log(choice / pace)) : Infinity));
    return distances.indexOf(Math.min(...distances));
}

// The control for sources that can be shown from any time, such as a recording.
function seekControl() {
    const field = element("input", { type: "number", min: 0, step: "any", className: "seek-field", placeholder: "go to s", "aria-label": "Go to this second of the systems' time" });
    field.dataset.tip = "Go to this second of the systems' time: Enter";
    const place = element("input", { type: "range", min: 0, max: 1000, step: 1, className: "seek-place", hidden: true, "aria-label": "Position in the recording" });
    place.dataset.tip = "Position in the recording";
    const form = element("form", { className: "bar-group", hidden: true, noValidate: true }, place, field);
    let end_ns = 0;
    let isPressed = false;
    place.addEventListener("pointerdown", () => { isPressed = true; });
    place.addEventListener("change", () => {
        isPressed = false;
        send("seek", { time_ns: Math.round((Number(place.value) / 1000) * end_ns) });
    });
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        if (field.value !== "" && field.validity.valid) send("seek", { time_ns: Math.round(Number(field.value) * 1e9) });
    });
    const follow = (states) => {
        form.hidden = !states.some((state) => state.can("seek"));
        end_ns = Math.max(0, ...states.map((state) => state.info?.end_ns ?? 0));
        place.hidden = !end_ns;
        const now_ns = states[0]?.frame?.now_ns;
        if (!end_ns || isPressed || now_ns === undefined) return;
        place.value = String(Math.round((1000 * now_ns) / end_ns));
        place.setAttribute("aria-valuetext", `${moment(now_ns)} of ${moment(end_ns)}`);
    };
    return { element: form, follow };
}

function savingControls() {
    const record = button("record", "Record all systems as a run", toggle, "Record");
    record.classList.add("record");
    record.setAttribute("aria-pressed", "false");
    const report = button("report", "Make a report of the recording", makeReport, "Report");
    const trace = button("perfetto", "A file for ui.perfetto.dev: the recording, or the last seconds", perfetto, "Perfetto");
    let recording = false;

    async function toggle() {
        record.disabled = true;
        const folders = await send("record", { on: !recording });
        record.disabled = false;
        for (const folder of choice(folders)) notice(`Recorded: ${folder}`, "good");
    }
    async function makeReport() {
        report.disabled = true;
        const words = report.querySelector(".words");
        const progress = (text) => {
            setText(words, "Report …");
            announce(text);
        };
        offer(await send("report", {}, progress), "The report is made: ", "open it");
        setText(words, "Report");
        report.disabled = false;
    }
    async function perfetto() {
        trace.disabled = true;
        for (const { id, info } of allStates()) {
            offer(await send("perfetto", { system: id }), `For ui.perfetto.dev, from ${info.title}: `, "save it", true);
        }
        trace.disabled = false;
    }
    function follow(states) {
        const now = states.some(({ frame }) => frame?.recording);
        if (now === recording) return;
        recording = now;
        record.setAttribute("aria-pressed", String(now));
        setIcon(record, now ? "stop" : "record");
        setLabel(record, now ? "End the recording" : "Record all systems as a run");
        setText(record.querySelector(".words"), now ? "Recording" : "Record");
        announce(now ? "Recording." : "The recording has ended.");
    }
    const made = element("div", { className: "bar-group bar-saving needs-server", role: "group", "aria-label": "Keep" }, record, report, trace);
    return { element: made, record: toggle, follow };
}

function offer(addresses, words, verb, saved = false) {
    for (const address of choice(addresses).filter(isOurs)) {
        const link = element("a", { href: address, target: "_blank", rel: "noopener", textContent: verb });
        if (saved) link.download = "";
        notice(element("span", {}, words, link), "good");
    }
}

/** Returns an answer's texts for one system, or for each. @returns {string[]} */
function choice(answer) {
    const results = typeof answer === "object" && answer ? Object.values(answer) : [answer];
    return results.filter((value) => typeof value === "string" && value);
}

// An address that leads elsewhere does not come from the monitor.
function isOurs(address) {
    return new URL(address, location.href).origin === location.origin;
}
