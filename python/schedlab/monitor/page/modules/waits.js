// SPDX-License-Identifier: MIT
//
// Why a process had to wait for a CPU: what that CPU did in that time and for how long; its last waits; and
// how long a CPU idled. By the rules of `./schedlab explain`, cut to the window.

import { ask } from "../connection.js";
import { button, duration, element, moment, percent, setLabel, setText } from "../elements.js";
import { select, stateOf } from "../store.js";
import { dress, swatch } from "../swatch.js";
import { describePart, longestWaits, runsIn, workloadEnd } from "../finished.js";
import { view } from "../drawing/view.js";
import { bar, Blame, partList } from "./blame.js";
import { named } from "../drawing/run_finder.js";

const NOTEWORTHY = 0.001; // a scheduler needs some time before it runs a waiting process
const GAP_MS = 1000; // between two questions
const WAITS_SEEN = 50;
const LONGEST_SEEN = 8;
const SOME_WAIT = "Choose a process, here or in any panel. Waiting longest now:";
const RULES = "Waits are broken down like in ./schedlab explain. This panel counts the part of a wait that lies in the window; explain counts whole waits that begin in the selected time.";
const NONE_WAITS = "No process is waiting. Choose a process to see why it waited.";
const LONGEST = "The longest waits. Choose one to see why the process waited:";

/** @param {import("../panel.js").Panel} panel @param {string} system */
export function create(panel, system) {
    return new Waits(panel, system);
}

class Waits {
    #requested_ms = -Infinity;
    #requestedPid = 0;
    #waitingForAnswer = false;
    /** @type {any} the last Explanation */
    #explanation = null;
    #trouble = "";

    constructor(panel, system) {
        this.panel = panel;
        this.state = stateOf(system);
        this.total = element("p", { className: "waits-total" });
        this.head = element("p", { className: "waits-head", title: RULES });
        this.content = element("div", { className: "waits-content" });
        this.blame = new Blame(panel, this.state);
        panel.body.append(this.total, this.blame.element, this.head, this.content);
        this.blame.about(0);
        panel.draws(() => this.#take());
    }

    #take() {
        const { frame, selected } = this.state;
        const { idle_while_queued_ns: idle, window_ns: window } = frame.metrics;
        const idled = `CPUs idled for ${duration(idle)} while a process waited on another CPU`;
        setText(this.total, `In the last ${duration(window)}, ${idled}.`);
        this.total.classList.toggle("bad", idle > window * NOTEWORTHY);
        if (selected !== this.#requestedPid) {
            this.#explanation = null;
            this.#trouble = "";
            this.#requested_ms = -Infinity;
            this.#requestedPid = selected;
            this.blame.about(selected);
            this.#draw();
        }
        this.#wonder();
        if (selected) this.#ask();
        else this.#draw();
    }

    /** Handles a press on a moment in the time line. */
    #wonder() {
        const { wondered_ns: at } = this.state;
        this.state.wondered_ns = null;
        if (at !== null) this.blame.ask(at);
    }

    #ask() {
        const now = performance.now();
        if (this.#waitingForAnswer || now - this.#requested_ms < GAP_MS) return;
        this.#requested_ms = now;
        this.#waitingForAnswer = true;
        const pid = this.#requestedPid;
        ask("explain", { system: this.state.id, pid }).then(
            (explanation) => this.#answer(pid, explanation, ""),
            (error) => this.#answer(pid, null, error.message),
        );
    }

    #answer(pid, explanation, trouble) {
        this.#waitingForAnswer = false;
        if (pid !== this.#requestedPid) return;
        this.#explanation = explanation;
        this.#trouble = trouble;
        this.#draw();
    }

    #draw() {
        const { selected, frame } = this.state;
        this.panel.note(selected ? named(this.state, selected) : "");
        // A button must not move while a user is about to press it.
        if (this.content.matches(":focus-within") && !this.#explanation) return;
        if (this.#explanation && this.content.querySelector(".waits-list:hover, .waits-list :focus-visible")) return;
        if (!selected) this.#drawChoice(frame);
        else if (this.#explanation) this.#drawExplanation(this.#explanation, frame.metrics.window_ns);
        else this.#say(this.#trouble || "…");
        this.panel.body.drawn = { selected, explanation: this.#explanation, trouble: this.#trouble };
    }

    #say(text) {
        setText(this.head, text);
        this.content.replaceChildren();
    }

    /** If no process is selected, suggests the processes with the longest present waits. */
    #drawChoice({ processes }) {
        const { wait_now_ns: waits, own: isMonitor } = processes;
        const waiting = [...waits.keys()].filter((row) => waits[row] > 0 && !isMonitor[row]);
        if (this.state.isOver || workloadEnd(this.state) !== null) return this.#drawLongest();
        waiting.sort((one, other) => waits[other] - waits[one]);
        setText(this.head, waiting.length ? SOME_WAIT : NONE_WAITS);
        const pids = waiting.slice(0, LONGEST_SEEN);
        const key = pids.map((row) => processes.pid[row]).join();
        if (this.content.dataset.key !== key || !this.content.children.length) {
            this.content.dataset.key = key;
            const choices = pids.map((row) => this.#choice(processes.pid[row]));
            this.content.replaceChildren(element("div", { className: "waits-choice" }, ...choices));
        }
        pids.forEach((row, at) => setText(this.content.firstChild.children[at].lastChild, duration(waits[row])));
    }

    /** Of a workload or a recording that has ended, lists the longest waits. */
    #drawLongest() {
        const { generation, marks, epoch, frame } = this.state;
        const key = `longest ${epoch} ${generation} ${marks.total} ${frame.now_ns}`;
        if (this.content.dataset.key === key) return;
        this.content.dataset.key = key;
        const longest = longestWaits(runsIn(this.state.runs), frame, LONGEST_SEEN);
        setText(this.head, longest.length ? LONGEST : NONE_WAITS);
        this.content.replaceChildren(element("div", { className: "waits-choice" }, ...longest.map((wait) => this.#longest(wait))));
    }

    /** In the words of ./schedlab explain. */
    #longest({ pid, begin, waited, kind, isOpen }) {
        const title = `${this.state.groupOf(pid)}, ${kind}, at ${(begin / 1e6).toFixed(4)} ms: ${duration(waited)}${isOpen ? ", not ended" : ""}`;
        const mark = swatch();
        dress(mark, pid);
        const made = button("", title, () => {
            select(this.state.id, pid, begin);
            view.show(begin - waited, begin + 2 * waited);
        }, title);
        made.prepend(mark);
        return made;
    }

    #choice(pid) {
        const mark = swatch();
        dress(mark, pid);
        const title = named(this.state, pid);
        const made = button("", `Explain ${title}`, () => select(this.state.id, pid), title);
        made.prepend(mark);
        made.removeAttribute("aria-label"); // its name is what is seen, with the time
        made.append(element("span", { className: "waits-time" }));
        return made;
    }

    #drawExplanation({ pid, name, waits, total_ns: total, parts, beside_idle_ns: idle_ns }, window) {
        delete this.content.dataset.key;
        const title = name ? `${name} (${pid})` : named(this.state, pid);
        const waited = total ? `waited ${duration(total)}${ofWindow(total, window)}. Causes:` : "never waited.";
        setText(this.head, `In the last ${duration(window)}, ${title} ${waited}`);
        const scrolled = this.content.querySelector(".waits-list")?.scrollTop ?? 0;
        const idlePart_ns = parts.reduce((sum, part) => sum + (part.name === "(idle)" ? part.duration_ns : 0), 0);
        const isBad = idle_ns - idlePart_ns > total * NOTEWORTHY; // while another CPU idled, and its own did not
        const idle = element("p", { className: isBad ? "waits-idle bad" : "waits-idle" });
        const warning = `${isBad ? "⚠ " : ""}A CPU idled for ${duration(idle_ns)} of this time.`;
        idle.textContent = idle_ns ? warning : "No CPU idled in this time.";
        this.content.replaceChildren(
            ...(total ? [bar(parts.map(describePart), total), partList(parts.map(describePart), total), idle] : []),
            ...(waits.length ? [element("h4", { textContent: "Its last waits" }), this.#waitList(waits)] : []),
        );
        const list = this.content.querySelector(".waits-list");
        if (list) list.scrollTop = scrolled;
    }

    #waitList(waits) {
        const longest = Math.max(...waits.map(({ begin_ns: begin, end_ns: end }) => end - begin), 1);
        const rows = waits.slice(-WAITS_SEEN).reverse().map((wait) => {
            const length = wait.end_ns - wait.begin_ns;
            const drawn = bar(wait.parts.map(describePart), length, "small");
            drawn.style.width = `${Math.max(1, (100 * length) / longest)}%`;
            return element("li", {},
                this.#moment(wait), cell("why", wait.why), cell("cpu", `CPU ${wait.cpu}`),
                element("span", { className: "waits-lane" }, drawn), cell("time", duration(length)));
        });
        const list = element("ul", { className: "waits-list", tabIndex: 0 }, ...rows);
        list.setAttribute("aria-label", "Its latest waits, newest first");
        return list;
    }

    #moment({ begin_ns: begin }) {
        const when = moment(begin);
        if (!this.blame.able) return cell("moment", when);
        const press = () => this.blame.ask(begin);
        const made = element("button", { type: "button", className: "waits-moment link", textContent: when });
        made.addEventListener("click", press);
        setLabel(made, `Break down the wait from ${when}`);
        return made;
    }
}

function cell(name, text) {
    return element("span", { className: `waits-${name}`, textContent: String(text) });
}

function ofWindow(total, window) {
    return window ? `, ${percent(Math.min(1, total / window), 0)} of that time` : "";
}
