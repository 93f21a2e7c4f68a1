// SPDX-License-Identifier: MIT
//
// The policy's last choices, the newest first. Rows are reused: only their texts change.

import { button, element, setIcon, setLabel, setText } from "../elements.js";
import { select } from "../store.js";
import { dress, name, process, swatch } from "../swatch.js";
import { count } from "../words.js";

/** While the list is held, users can look further back. */
const PAUSED_ROWS = 200;
const CANDIDATES = 8;

/**
 * @param {import("../panel.js").Panel} panel
 * @param {string} system
 */
export function create(panel, system) {
    const hold = button("pause", "Hold the list", () => {
        isPaused = !isPaused;
        setIcon(hold, isPaused ? "play" : "pause");
        setLabel(hold, isPaused ? "Continue the list" : "Hold the list");
        hold.setAttribute("aria-pressed", String(isPaused));
        shown = { newest: -1, wanted: 0 };
        panel.redraw();
    });
    panel.tools.append(hold);
    const body = element("tbody");
    const head = ["Time, s", "CPU", "Picked", "Why", "What waited"].map((title) => element("th", { scope: "col", textContent: title }));
    for (const number of head.slice(0, 2)) number.className = "right";
    panel.body.append(element("table", { className: "decisions" }, element("thead", {}, element("tr", {}, ...head)), body));
    /** @type {Row[]} */
    const rows = [];
    let isPaused = false;
    let shown = { newest: -1, wanted: 0 };

    body.addEventListener("click", (event) => {
        const pid = Number(event.target.closest("[data-of]")?.dataset.of ?? 0);
        if (pid) select(system, pid);
    });

    panel.draws((state) => {
        const list = state.decisions.items;
        const newest = list.at(-1)?.number ?? -1;
        const rowCount = isPaused ? PAUSED_ROWS : fitting(panel.body, rows[0]);
        const same = rowCount === shown.wanted && (isPaused || newest === shown.newest);
        if (same) {
            for (const row of rows) row.select(state.selected);
            return;
        }
        shown = { newest, wanted: rowCount };
        panel.note(newest > 0 ? `${count(newest)} in all` : "");
        const seen = Math.min(rowCount, list.length);
        while (rows.length < seen) {
            rows.push(new Row());
            body.append(rows.at(-1).element);
        }
        rows.forEach((row, place) => {
            row.element.hidden = place >= seen;
            if (place < seen) row.show(list[list.length - 1 - place], state);
        });
    });
}

/** As many rows as are visible: laying out more five times a second would be wasted. */
function fitting(body, row) {
    const height = row?.element.offsetHeight || 24;
    return Math.max(1, Math.ceil(body.clientHeight / height) - 1);
}

class Row {
    constructor() {
        this.time = element("td", { className: "right" });
        this.cpu = element("td", { className: "right" });
        this.picked = element("button", { type: "button", className: "link" }, process());
        this.text = element("span");
        this.candidates = Array.from({ length: CANDIDATES }, () => new Candidate());
        this.more = element("span", { className: "soft" });
        const others = element("td", { className: "candidates" }, ...this.candidates.map((candidate) => candidate.element), this.more);
        this.element = element("tr", {}, this.time, this.cpu, element("td", {}, this.picked), element("td", { className: "why" }, this.text), others);
    }

    show(decision, state) {
        setText(this.time, (decision.time_ns / 1e9).toFixed(4));
        setText(this.cpu, String(decision.cpu));
        this.picked.dataset.of = String(decision.pid);
        name(this.picked.firstChild, decision.pid, decision.name);
        setText(this.text, decision.text);
        this.text.title = decision.text;
        const others = decision.candidates;
        this.candidates.forEach((candidate, place) => candidate.show(others[place], state));
        const more = Math.max(decision.waited, others.length) - CANDIDATES;
        setText(this.more, others.length === 0 ? "none" : more > 0 ? `and ${count(more)} more` : "");
        this.pid = decision.pid;
        this.select(state.selected);
    }

    select(pid) {
        this.element.classList.toggle("selected", pid > 0 && this.pid === pid);
    }
}

/** A process that waited, with its level or tickets. */
class Candidate {
    constructor() {
        this.mark = swatch();
        this.words = element("span");
        this.element = element("button", { type: "button", className: "link candidate" }, this.mark, this.words);
    }

    show(candidate, state) {
        this.element.hidden = !candidate;
        if (!candidate) return;
        const [pid, value] = candidate;
        dress(this.mark, pid);
        setText(this.words, `${pid}:${value}`);
        const of = state.frame.levels ? "level" : "tickets";
        this.element.title = `${state.nameOf(pid)} (${pid}), ${of} ${value}`;
        this.element.dataset.of = String(pid);
    }
}
