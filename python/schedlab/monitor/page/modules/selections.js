// SPDX-License-Identifier: MIT
//
// How often each process was picked: since the fork, or per second, over the last seconds.

import { element, setStyle, setText } from "../elements.js";
import { select } from "../store.js";
import { name, process } from "../swatch.js";
import { count } from "../words.js";

const ROWS = 40;
const RATE_NS = 2e9;
/** Counts that are kept to compute rates; more frequent frames are not needed for that. */
const SAMPLES_MAX = 12;

/**
 * @param {import("../panel.js").Panel} panel
 * @param {string} system
 */
export function create(panel, system) {
    const kind = element("select", { "aria-label": "What is counted" });
    kind.append(element("option", { value: "all", textContent: "since the fork" }), element("option", { value: "rate", textContent: "a second" }));
    kind.addEventListener("change", () => panel.redraw());
    panel.tools.append(kind);
    const list = element("ol", { className: "bars" });
    const rest = element("p", { className: "soft small" });
    panel.body.append(list, rest);
    const rows = [];
    /** @type {{time_ns: number, epoch: number, counts: Map<number, number>}[]} */
    let samples = [];

    list.addEventListener("click", (event) => {
        const pid = Number(event.target.closest("[data-of]")?.dataset.of ?? 0);
        if (pid) select(system, pid);
    });

    panel.draws((state) => {
        const columns = state.frame.processes;
        samples = remember(samples, state);
        const values = kind.value === "all" ? columns.selections : rates(columns, samples, state);
        const order = [];
        for (let at = 0; at < values.length; at++) if (!columns.own[at] && values[at] > 0) order.push(at);
        order.sort((one, two) => values[two] - values[one] || columns.pid[one] - columns.pid[two]);
        const seen = order.slice(0, ROWS);
        while (rows.length < seen.length) {
            rows.push(new Bar());
            list.append(rows.at(-1).element);
        }
        const most = values[seen[0]] ?? 1;
        rows.forEach((row, place) => {
            const at = seen[place];
            row.element.hidden = at === undefined;
            if (at !== undefined) row.show(columns.pid[at], columns.name[at], values[at], most, kind.value, state.selected);
        });
        const hidden = order.length - seen.length;
        setText(rest, order.length === 0 ? "No process was picked." : hidden ? `and ${count(hidden)} more processes` : "");
    });
}

function remember(samples, { epoch, frame }) {
    const last = samples.at(-1);
    if (last?.epoch === epoch && last.time_ns === frame.now_ns) return samples;
    const { pid, selections } = frame.processes;
    const counts = new Map();
    for (let at = 0; at < pid.length; at++) counts.set(pid[at], selections[at]);
    const all = [...samples.filter((sample) => sample.epoch === epoch), { time_ns: frame.now_ns, epoch, counts }];
    const old = all.findLastIndex((sample) => frame.now_ns - sample.time_ns >= RATE_NS);
    return all.slice(Math.max(0, old, all.length - SAMPLES_MAX));
}

function rates({ pid, selections }, samples, { frame }) {
    const first = samples[0];
    const seconds = (frame.now_ns - first.time_ns) / 1e9;
    if (seconds <= 0) return selections.map(() => 0);
    return selections.map((value, at) => (value - (first.counts.get(pid[at]) ?? 0)) / seconds);
}

class Bar {
    constructor() {
        this.who = process();
        this.fill = element("span", { className: "bar-fill" });
        this.value = element("span", { className: "bar-value" });
        const bar = element("span", { className: "bar" }, this.fill);
        this.button = element("button", { type: "button", className: "bar-row" }, this.who, bar, this.value);
        this.element = element("li", {}, this.button);
    }

    show(pid, words, value, most, kind, selected) {
        this.button.dataset.of = String(pid);
        name(this.who, pid, words);
        setStyle(this.fill, "transform", `scaleX(${(value / most).toFixed(4)})`);
        setText(this.value, kind === "all" ? count(value) : value.toFixed(1));
        this.element.classList.toggle("selected", pid === selected);
    }
}
