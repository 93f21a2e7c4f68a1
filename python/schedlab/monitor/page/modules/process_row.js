// SPDX-License-Identifier: MIT
//
// A row of the table of processes: elements that show one process after another.

import { button, element } from "../elements.js";
import { dress, swatch } from "../swatch.js";
import { count, percent } from "../words.js";

export class ProcessRow {
    /**
     * @param {import("./process_columns.js").Column[]} columns
     * @param {string} id
     */
    constructor(columns, id) {
        this.columns = columns;
        this.element = element("div", { className: "row", role: "row", id, hidden: true });
        this.cells = columns.map((column) => this.#cell(column));
        this.kill = button("close", "Kill", () => {});
        this.kill.className = "kill only-icon";
        this.kill.tabIndex = -1; // by keyboard it is Delete
        this.kill.hidden = true;
        delete this.kill.dataset.tip;
        this.killWords = this.kill.appendChild(element("span", { className: "kill-words" }));
        this.element.append(element("div", { className: "cell", role: "gridcell" }, this.kill));
        /** The text of each cell: reading it from the document would cost layout. */
        this.shownTexts = columns.map(() => "");
        this.place = -1;
        this.pid = undefined;
        this.group = undefined;
        this.selected = false;
        this.marks = "";
    }

    #cell({ key, kind, attribute }) {
        const text = document.createTextNode("");
        const cell = element("div", { className: `cell ${kind} cell-${key}`, role: "gridcell" });
        if (attribute) cell.dataset.attribute = key;
        if (key === "name") cell.append((this.swatch = swatch()));
        if (key === "share") cell.append(this.#shareBar());
        cell.append(key === "name" ? element("span", { className: "name-words" }, text) : text);
        this.element.append(cell);
        return { cell, text, key };
    }

    #shareBar() {
        this.fill = element("span", { className: "share-fill" });
        this.tick = element("span", { className: "share-tick" });
        return element("span", { className: "share-bar", "aria-hidden": "true" }, this.fill, this.tick);
    }

    hide() {
        if (!this.element.hidden) this.element.hidden = true;
        this.selected = false;
        this.pid = this.group = undefined;
    }

    /**
     * @param {number} place of the row among all
     * @param {number} height of each, in pixels
     * @param {number} item a process's index in the columns, or -1 - a group's
     * @param {any} table
     */
    show(place, height, item, table) {
        if (this.element.hidden) this.element.hidden = false;
        if (this.place !== place || this.height !== height) {
            this.place = place;
            this.height = height;
            this.element.style.transform = `translateY(${place * height}px)`;
            this.element.dataset.place = String(place);
            this.element.setAttribute("aria-rowindex", String(place + 2));
        }
        if (item >= 0) this.#showProcess(item, table);
        else this.#showGroup(table.groups[-1 - item], table.groupTotals[-1 - item], table);
    }

    #showProcess(at, { state, killer, shareScale, starving }) {
        const columns = state.frame.processes;
        this.pid = columns.pid[at];
        this.group = undefined;
        this.selected = this.pid === state.selected;
        this.#mark(`${this.selected ? " selected" : ""}${columns.own[at] ? " own" : ""}${starving.has(this.pid) ? " starves" : ""} state-${columns.state[at]}`);
        if (this.swatch) dress(this.swatch, this.pid);
        this.columns.forEach((column, place) => this.#say(place, column.text(columns, at)));
        this.#share(columns.share[at], columns.ideal[at], shareScale);
        this.#showKill(killer.isArmed({ pid: this.pid }), columns.name[at], state.can("start"));
    }

    #showGroup(group, total, { state, killer, foldedGroups }) {
        this.pid = undefined;
        this.group = group.group;
        this.selected = false;
        const folded = foldedGroups.has(group.group);
        this.#mark(" group-row");
        if (this.swatch) dress(this.swatch, 0);
        this.columns.forEach((column, place) => this.#say(place, groupWords(column, group, total, folded)));
        this.#share(total.share, total.ideal, 1);
        this.#showKill(killer.isArmed({ group: group.group }), `group ${group.group}`, state.can("start"));
    }

    #mark(marks) {
        if (marks === this.marks) return;
        this.marks = marks;
        this.element.className = `row${marks}`;
        this.element.setAttribute("aria-selected", String(this.selected));
    }

    #say(place, words) {
        if (this.shownTexts[place] === words) return;
        this.shownTexts[place] = words;
        this.cells[place].text.data = words;
    }

    #share(share, ideal, scale) {
        if (!this.fill) return;
        const words = `${share.toFixed(4)} ${ideal.toFixed(4)} ${scale}`;
        if (this.shownShare === words) return;
        this.shownShare = words;
        this.fill.style.transform = `scaleX(${Math.min(1, share / scale).toFixed(4)})`;
        this.tick.style.left = ideal < 0 ? "-1rem" : `${(100 * Math.min(1, ideal / scale)).toFixed(2)}%`;
        const cell = this.fill.parentElement.parentElement;
        cell.setAttribute("aria-label", ideal < 0 ? percent(share) : `${percent(share)}, ideal ${percent(ideal)}`);
    }

    #showKill(armed, name, can) {
        const words = armed ? "Kill?" : "";
        if (this.killWords.textContent !== words) {
            this.killWords.textContent = words;
            this.kill.classList.toggle("armed", armed);
        }
        if (this.kill.hidden === can) this.kill.hidden = !can;
        const label = armed ? `Press again to kill ${name}` : `Kill ${name}`;
        if (this.killLabel !== label) {
            this.killLabel = label;
            this.kill.setAttribute("aria-label", label);
        }
    }
}

function groupWords({ key, sum, words }, group, total, folded) {
    if (key === "name") return `${folded ? "▸" : "▾"} ${group.title}`;
    if (key === "pid") return "";
    if (key === "group") return String(group.group);
    if (key === "state") return `${count(group.members.length)} ${group.members.length === 1 ? "process" : "processes"}`;
    if (!sum) return "";
    return total[key] === null ? "differ" : words(total[key]);
}
