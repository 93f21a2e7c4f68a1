// SPDX-License-Identifier: MIT
//
// The processes of a workload that has ended, in the place of those that live.

import { element } from "../elements.js";
import { finishedLives } from "../finished.js";
import { name, process } from "../swatch.js";
import { count, duration, moment } from "../words.js";

const ROWS_MAX = 200;
const HEADS = ["Process", "Ended at", "Lived", "Ran", "Waited"];

export class FinishedTable {
    #key = "";

    constructor() {
        this.caption = element("caption");
        this.rows = element("tbody");
        const heads = HEADS.map((textContent) => element("th", { scope: "col", textContent }));
        const table = element("table", {}, this.caption, element("thead", {}, element("tr", {}, ...heads)), this.rows);
        this.element = element("div", { className: "finished", tabIndex: 0, hidden: true }, table);
    }

    /** @param {import("../store.js").SystemState} state @param {number | null} end_ns null: hides the table */
    show(state, end_ns) {
        this.element.hidden = end_ns === null;
        const key = `${end_ns} ${state.epoch} ${state.generation} ${state.marks.total}`;
        if (end_ns === null || key === this.#key) return;
        this.#key = key;
        const lives = finishedLives(state);
        const seen = lives.slice(-ROWS_MAX);
        const last = seen.length < lives.length ? `The last ${count(seen.length)} of ` : "";
        this.caption.textContent = `The workload has ended at ${moment(end_ns)}. ${last}${count(lives.length)} finished:`;
        this.rows.replaceChildren(...seen.map((life) => row(state, life)));
    }
}

function row(state, { pid, begin, end, run, waited }) {
    const who = process();
    name(who, pid, state.nameOf(pid));
    const cells = [moment(end, 6), begin < 0 ? "–" : duration(end - begin), duration(run), duration(waited)];
    return element("tr", {}, element("th", { scope: "row" }, who), ...cells.map((textContent) => element("td", { textContent })));
}
