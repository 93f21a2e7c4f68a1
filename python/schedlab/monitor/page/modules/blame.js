// SPDX-License-Identifier: MIT
//
// Breaks down single waits of the selected process, as `./schedlab explain` does: the processes that ran,
// their CPUs, and indirect waits for other processes. The parts add up to the wait. Also shows the policy's
// annotations in that time.

import { announce, button, count, duration, element, moment, percent, setText } from "../elements.js";
import { focusPanel } from "../keys.js";
import { marked, swatch } from "../swatch.js";

const PARTS_SEEN = 10;
const KINDS = [
    ["response,wake-up,turn,found", "for a CPU"],
    ["blocked", "for another process"],
];
const AFTER = {
    response: "after its fork", "wake-up": "after a wake-up", turn: "after a turn",
    blocked: "blocked", found: "since before the trace",
};

export class Blame {
    #pid = 0;
    #requestCount = 0; // requests so far: only the last answer is shown

    /** @param {import("../panel.js").Panel} panel @param {import("../store.js").SystemState} state */
    constructor(panel, state) {
        this.panel = panel;
        this.state = state;
        const options = KINDS.map(([value, textContent]) => element("option", { value, textContent }));
        this.kinds = element("select", { "aria-label": "Which waits" }, ...options);
        const press = () => this.ask(null);
        const act = button("wait", "Break down its longest waits", press, "Take apart");
        this.line = element("div", { className: "blame-line" }, "Longest waits", this.kinds, act);
        this.why = element("p", { className: "blame-why" });
        this.head = element("p", { className: "blame-head" });
        this.list = element("div", { className: "blame-list" });
        this.results = element("div", { className: "blame-found" }, this.head, this.list);
        this.element = element("div", { role: "group", "aria-label": "Longest waits, broken down" }, this.line, this.why, this.results);
    }

    /** True if waits can be broken down here. */
    get able() {
        return this.state.info?.no_blame === "";
    }

    /** @param {number} pid the selected process; 0: none */
    about(pid) {
        this.#pid = pid;
        this.#requestCount += 1;
        this.element.hidden = !pid;
        this.line.hidden = !this.able;
        setText(this.why, this.state.info?.no_blame ?? "");
        this.#say("");
    }

    /** @param {number | null} at_ns asks for the wait at that time; null: for the longest */
    async ask(at_ns) {
        if (!this.#pid || !this.able) return;
        const request = ++this.#requestCount;
        const kinds = at_ns === null ? this.kinds.value : KINDS.map(([value]) => value).join();
        this.#say("…");
        const breakdown = await this.panel.asks("blame", { system: this.state.id, pid: this.#pid, kinds: kinds.split(","), at_ns });
        if (request !== this.#requestCount) return;
        this.#say("");
        if (breakdown) this.#show(breakdown, at_ns);
    }

    #say(text) {
        setText(this.head, text);
        this.results.hidden = !text;
        this.list.replaceChildren();
        this.panel.body.blamed = null;
    }

    #show(breakdown, at_ns) {
        const waits = breakdown.longest.filter(({ duration_ns }) => duration_ns);
        const summary = at_ns === null ? ofLongest(breakdown, waits.length) : ofMoment(at_ns, waits.length);
        const missingWakeups = breakdown.wakeups_untold ? " The trace does not record wake-ups, so waits after a wake-up are not included." : "";
        setText(this.head, summary + missingWakeups);
        this.results.hidden = false;
        announce(summary);
        this.list.replaceChildren(...waits.map((wait, place) => this.#wait(wait, place === 0)));
        this.panel.body.blamed = breakdown; // for tests
        this.panel.body.scrollTop = 0;
    }

    #wait(wait, open) {
        const { kind, begin_ns: begin, duration_ns: length, ended: isOver, parts } = wait;
        const title = `${moment(begin, 6)}, ${AFTER[kind] ?? kind}: ${duration(length)}${isOver ? "" : ", not ended"}`;
        return element("details", { className: "blame-wait", open },
            element("summary", {}, title, bar(parts, length, "small")), partList(parts, length), ...idleWords(wait), ...choiceList(wait), this.#seekTo(begin));
    }

    /** A wait's start is where it could have gone differently. */
    #seekTo(begin) {
        const go = async () => {
            const done = await this.panel.asks("look", { system: this.state.id, time_ns: begin });
            if (done === false) return;
            focusPanel("policy", this.state.id);
            const choice = document.querySelector(`#policy-${this.state.id} .what-if select:enabled`);
            choice?.focus({ preventScroll: true });
            choice?.closest(".panel-body").scrollTo(0, choice.offsetTop);
        };
        const words = "Go to its beginning, and try another policy from there";
        return button("branch", "Go to the beginning of this wait; the policy panel can choose another policy from there on", go, words);
    }
}

function ofLongest({ waits, waited_ns: waited, beside_idle_ns: idle, begin_ns: begin, end_ns: end }, seen) {
    const when = `From ${moment(begin, 6)} to ${moment(end, 6)}`;
    if (!seen) return `${when}: no such wait.`;
    const idleText = idle ? `, ${duration(idle)} of it while a CPU idled` : "";
    return `${when}: ${count(waits)} ${waits === 1 ? "wait" : "waits"}, ${duration(waited)} in all${idleText}. The longest, with their causes:`;
}

function ofMoment(at, seen) {
    const when = `At ${moment(at, 6)}`;
    return seen ? `${when}, it waited:` : `${when}, it waited neither for a CPU nor for another process.`;
}

/** Returns a bar of parts, by time. It shows nothing that their list does not show. */
export function bar(parts, total, size = "") {
    const pieces = parts.map(({ pid, cause, duration_ns: part }) => {
        const made = mark(pid, cause);
        made.style.width = `${(100 * part) / total}%`;
        return made;
    });
    return element("div", { className: `waits-bar ${size}`, "aria-hidden": "true" }, ...pieces);
}

/** Idle time is marked as elsewhere; other parts that are not processes have no colour. */
function mark(pid, cause) {
    return pid || cause === "idle" ? marked(pid) : swatch();
}

export function partList(parts, total) {
    const seen = parts.slice(0, PARTS_SEEN);
    const rows = seen.map(({ words, pid, cause, times, duration_ns: part }) => row(mark(pid, cause), words, times, part, total));
    const rest = parts.slice(PARTS_SEEN);
    const left = rest.reduce((sum, { duration_ns: part }) => sum + part, 0);
    if (rest.length) rows.push(row("", `${count(rest.length)} more`, 0, left, total));
    rows.push(row("", "all of it", 0, total, total));
    rows.at(-1).className = "blame-sum";
    return element("ul", { className: "blame-parts" }, ...rows);
}

function row(mark, words, times, part, total) {
    const time = cell("time", duration(part));
    time.title = `${count(part)} ns`;
    return element("li", {}, mark || element("span"), cell("words", words), cell("runs", times > 1 ? `${count(times)} times` : ""), time, cell("part", percent(part / total)));
}

function cell(name, text) {
    return element("span", { className: `waits-${name}`, textContent: text });
}

function idleWords({ idle_elsewhere: cpus }) {
    return cpus.map(({ cpu, duration_ns: spent }) =>
        element("p", { className: "waits-idle bad", textContent: `⚠ During this wait, CPU ${cpu} idled for ${duration(spent)}.` }));
}

/** The last of them is the process's own. */
function choiceList({ choices, choices_before: before }) {
    if (!choices.length) return [];
    const title = before ? `The last ${choices.length} of ${count(before + choices.length)} decisions during the wait` : "Choices meanwhile";
    const rows = choices.map(({ time_ns: time, cpu, words }) => element("li", { textContent: `${moment(time, 6)}, CPU ${cpu}: ${words}` }));
    return [element("h5", { textContent: title }), element("ul", { className: "blame-choices" }, ...rows)];
}
