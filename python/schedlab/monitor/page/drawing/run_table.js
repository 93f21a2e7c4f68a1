// SPDX-License-Identifier: MIT
//
// The runs of a time line as a table: for users of screen readers, and for users who want numbers.

import { button, count, duration, element, moment } from "../elements.js";
import { select } from "../store.js";
import { ENDINGS } from "./paint.js";
import { named, runsBetween } from "./run_finder.js";

const ROWS = 200;
const GAP_MS = 1000; // between two fillings
const HEADS = ["Process", "CPU", "Begin", "Length", "Level", "Then"];

export class RunTable {
    #filled_ms = -Infinity;

    /** @param {import("../store.js").SystemState} state */
    constructor(state) {
        this.state = state;
        this.element = element("div", { className: "timeline-table", hidden: true });
    }

    get shown() {
        return !this.element.hidden;
    }

    toggle() {
        this.element.hidden = !this.element.hidden;
        this.#filled_ms = -Infinity;
    }

    /** @param {number} begin @param {number} end of the visible range */
    fill(begin, end) {
        const now = performance.now();
        // While a user reads or tabs through it, it does not change.
        if (now - this.#filled_ms < GAP_MS || this.element.contains(document.activeElement)) return;
        this.#filled_ms = now;
        const { total, runs } = runsBetween(this.state, begin, end, ROWS);
        const last = total > runs.length ? `The last ${runs.length} of ` : "";
        const heads = HEADS.map((text) => element("th", { textContent: text, scope: "col" }));
        this.element.replaceChildren(element("table", {},
            element("caption", { textContent: `${last}${count(total)} runs seen` }),
            element("thead", {}, element("tr", {}, ...heads)),
            element("tbody", {}, ...runs.map((run) => this.#row(run))),
        ));
    }

    #row({ cpu, at }) {
        const { begin, end, pid, level, how } = this.state.runs[cpu];
        const process = pid[at];
        const title = named(this.state, process);
        const choose = button("", `Select ${title}`, () => select(this.state.id, process), title);
        const texts = [
            cpu, moment(begin[at], 6), duration(end[at] - begin[at]), level[at] < 0 ? "–" : level[at], ENDINGS[how[at]],
        ];
        return element("tr", {}, element("td", {}, choose),
            ...texts.map((text) => element("td", { textContent: String(text) })));
    }
}
