// SPDX-License-Identifier: MIT
//
// The table of processes. Of thousands of rows only the visible ones have elements, which are reused during
// scrolling; a cell is updated only if its text changes.

import { isLecture } from "../lecture.js";
import { starving } from "../starvation.js";
import { letterScale } from "../drawing/paint.js";
import { announce, button, element, setText } from "../elements.js";
import { ruleOf, select } from "../store.js";
import { count } from "../words.js";
import { COLUMNS, usedColumns } from "./process_columns.js";
import { workloadEnd } from "../finished.js";
import { FinishedTable } from "./finished_table.js";
import { AttributeEditor, KillSwitch } from "./process_acts.js";
import { ProcessRow } from "./process_row.js";
import { arrange, itemOfPid, totals } from "./process_order.js";

const SPARE_ROWS = 4;
/** The columns that fit in a lecture. */
const LECTURE = new Set(["name", "state", "level", "tickets", "waiting_ns"]);
const COLUMNS_KEY = "schedlab-columns";
const SCALES = [1, 0.5, 0.25, 0.1, 0.05, 0.025, 0.01, 0.005, 0.0025, 0.001];
/** The attribute that determines shares; for other policies, users set the priority. */
const MAIN_ATTRIBUTE = { tickets: "tickets", weight: "weight" };
const ATTRIBUTE_KEYS = { p: "priority", t: "tickets", w: "weight" };

/**
 * @param {import("../panel.js").Panel} panel
 * @param {string} system
 */
export function create(panel, system) {
    new ProcessTable(panel, system);
}

class ProcessTable {
    constructor(panel, system) {
        this.panel = panel;
        this.system = system;
        this.sort = { key: "pid", down: false };
        /** @type {import("./process_columns.js").Column[] | null} the user's choice */
        this.chosen = storedColumns();
        this.columns = this.chosen ?? COLUMNS.filter(({ hidden }) => !hidden);
        /** @type {number[]} the shown items, in order: a process's index in the columns, or -1 - a group's */
        this.items = [];
        this.groups = [];
        this.foldedGroups = new Set();
        /** @type {ProcessRow[]} */
        this.rows = [];
        /** @type {import("./process_acts.js").Target | null} the target of the last press */
        this.pressed = null;
        this.scheduled = 0;
        this.#build();
        this.editor = new AttributeEditor(this);
        this.killer = new KillSwitch(this);
        panel.draws((state) => this.update(state));
    }

    // --- its parts

    #build() {
        this.filter = element("input", { type: "search", placeholder: "filter   /", "aria-label": "Processes with this name, PID or state" });
        this.monitorBox = checkbox("own", "Show the monitor's processes");
        this.grouped = checkbox("groups", "Group rows by workload");
        this.panel.tools.append(this.filter, this.grouped.label, this.monitorBox.label, this.#columnMenu());
        this.head = element("div", { className: "row row-head", role: "row", "aria-rowindex": "1" });
        this.rowGroup = element("div", { className: "rows", role: "rowgroup" });
        this.space = element("div", { className: "rows-space", role: "presentation" }, this.rowGroup);
        const headGroup = element("div", { className: "head-group", role: "rowgroup" }, this.head);
        this.grid = element("div", { className: "grid", role: "grid", tabIndex: 0, "aria-label": "Processes" }, headGroup, this.space);
        this.empty = element("p", { className: "empty", hidden: true });
        this.finished = new FinishedTable();
        this.panel.body.append(this.grid, this.empty, this.finished.element);
        this.#buildHead();
        for (const field of [this.filter, this.monitorBox.box, this.grouped.box]) {
            field.addEventListener("input", () => {
                this.grid.scrollTop = 0;
                this.panel.redraw();
            });
        }
        this.filter.addEventListener("keydown", (event) => {
            if (event.key !== "Enter" && event.key !== "ArrowDown") return;
            event.preventDefault();
            this.grid.focus({ preventScroll: true });
            this.#move(1);
        });
        this.grid.addEventListener("scroll", () => this.#scroll(), { passive: true });
        this.grid.addEventListener("pointerdown", (event) => {
            this.pressed = this.#targetAt(event.target);
        });
        this.grid.addEventListener("click", (event) => this.#click(event));
        this.grid.addEventListener("dblclick", (event) => this.#edit(this.pressed, event.target.closest("[data-attribute]")));
        this.grid.addEventListener("keydown", (event) => this.#key(event));
    }

    #columnMenu() {
        this.boxes = new Map();
        const boxes = COLUMNS.filter(({ fixed }) => !fixed).map((column) => {
            const { label, box } = checkbox(column.title, column.about);
            box.addEventListener("input", () => this.#choose(column, box.checked));
            this.boxes.set(column, box);
            return label;
        });
        const menu = element("details", { className: "menu" }, element("summary", { textContent: "columns" }), element("div", { className: "menu-items" }, ...boxes));
        menu.addEventListener("keydown", (event) => {
            if (event.key !== "Escape" || !menu.open) return;
            event.stopPropagation();
            menu.open = false;
            menu.firstChild.focus();
        });
        document.addEventListener("pointerdown", (event) => {
            if (!menu.contains(event.target)) menu.open = false;
        });
        return menu;
    }

    #choose(column, on) {
        this.chosen = COLUMNS.filter((other) => (other === column ? on : this.columns.includes(other)));
        localStorage.setItem(COLUMNS_KEY, JSON.stringify(this.chosen.map(({ key }) => key)));
        this.panel.redraw();
    }

    /** The chosen columns, or else the columns that the policy uses. */
    #layOutColumns({ frame }) {
        if (this.editor.open) return;
        const used = () => usedColumns(frame, ruleOf(frame.policy));
        const newColumns = isLecture() ? used().filter(({ key }) => LECTURE.has(key)) : this.chosen ?? used();
        if (newColumns.length === this.columns.length && newColumns.every((column, at) => column === this.columns[at])) return;
        this.columns = newColumns;
        this.#buildHead();
        this.rows = [];
        this.rowGroup.replaceChildren();
    }

    #buildHead() {
        for (const [column, box] of this.boxes) box.checked = this.columns.includes(column);
        const widths = [...this.columns.map(({ width }) => width), "2.2rem"].join(" ");
        this.grid.style.setProperty("--columns", widths);
        this.grid.style.setProperty("--row-width", `${leastWidth(widths)}rem`);
        this.grid.setAttribute("aria-colcount", String(this.columns.length + 1));
        this.headCells = this.columns.map((column) => {
            const press = button("", `${column.about} Sort by it.`, () => this.#sortBy(column), column.title);
            press.setAttribute("aria-label", `${column.title}: sort`);
            press.className = "sort";
            return element("div", { className: `cell head-cell ${column.kind}`, role: "columnheader", data: { key: column.key } }, press);
        });
        this.head.replaceChildren(...this.headCells, element("div", { className: "cell", role: "columnheader" }, element("span", { className: "unseen", textContent: "Kill" })));
        this.#showSort();
    }

    #sortBy({ key, kind, title }) {
        const down = this.sort.key === key ? !this.sort.down : kind === "number" && !["pid", "cpu", "group", "parent"].includes(key);
        this.sort = { key, down };
        this.#showSort();
        announce(`Sorted by ${title}, ${down ? "largest" : "smallest"} first.`);
        this.panel.redraw();
    }

    #showSort() {
        for (const cell of this.headCells) {
            const sorted = cell.dataset.key === this.sort.key;
            cell.setAttribute("aria-sort", sorted ? (this.sort.down ? "descending" : "ascending") : "none");
        }
    }

    // --- its contents

    /**
     * Updates after a frame, or after a changed filter or order. @param {import("../store.js").SystemState}
     * state
     */
    update(state) {
        this.state = state;
        this.#layOutColumns(state);
        const { processes } = state.frame;
        const request = { filter: this.filter.value, own: this.monitorBox.box.checked, grouped: this.grouped.box.checked };
        // During an edit, rows keep their places.
        const rank = this.editor.open ? new Map(this.pids.map((pid, place) => [pid, place])) : null;
        const { items, groups } = arrange(processes, { ...request, sort: this.sort, rank, folded: this.foldedGroups });
        this.items = items;
        this.groups = groups;
        this.pids = items.map((item) => (item >= 0 ? processes.pid[item] : 0));
        this.shareScale = scaleOf(processes);
        this.groupTotals = totals(processes, this.groups);
        this.starving = starving(state);
        const { shown, all } = this.#counts(processes);
        this.panel.note(shown === all ? count(all) : `${count(shown)} of ${count(all)}`);
        const end_ns = this.items.length || this.filter.value ? null : workloadEnd(state);
        this.finished.show(state, end_ns);
        this.grid.hidden = end_ns !== null;
        this.empty.hidden = this.items.length > 0 || end_ns !== null;
        setText(this.empty, this.filter.value ? `No process matches “${this.filter.value}”.` : noneLives(state));
        this.grid.setAttribute("aria-rowcount", String(this.items.length + 1));
        this.render();
    }

    #counts({ own: monitorFlags }) {
        const all = this.monitorBox.box.checked ? monitorFlags.length : monitorFlags.reduce((sum, isMonitor) => sum + (isMonitor ? 0 : 1), 0);
        const shown = this.items.reduce((sum, item) => sum + (item >= 0 ? 1 : 0), 0);
        const folded = this.groups.reduce((sum, group) => sum + (this.foldedGroups.has(group.group) ? group.members.length : 0), 0);
        return { all, shown: shown + folded };
    }

    #scroll() {
        this.grid.classList.toggle("moved-aside", this.grid.scrollLeft > 0);
        this.scheduled ||= requestAnimationFrame(() => {
            this.scheduled = 0;
            this.render();
        });
    }

    /** Renders the visible rows. */
    render() {
        if (!this.state?.frame) return;
        if (this.letters !== letterScale()) {
            this.letters = letterScale();
            this.rowHeight = this.head.offsetHeight || 24;
        }
        const height = this.grid.clientHeight;
        const first = Math.max(0, Math.floor(this.grid.scrollTop / this.rowHeight) - SPARE_ROWS);
        const room = Math.ceil(height / this.rowHeight) + 2 * SPARE_ROWS;
        const rowCount = Math.min(this.items.length - first, room);
        const space = `${this.items.length * this.rowHeight}px`;
        if (this.space.style.height !== space) this.space.style.height = space;
        // More than there are processes: otherwise a new process would assign all places to other elements.
        while (this.rows.length < room) {
            const row = new ProcessRow(this.columns, `${this.system}-row-${this.rows.length}`);
            this.rows.push(row);
            this.rowGroup.append(row.element);
        }
        // A row keeps its element while it is visible: place p is always shown by row p modulo their number.
        const used = this.rows.length;
        const last = first + Math.max(0, rowCount);
        for (let place = first; place < first + used; place++) {
            const row = this.rows[place % used];
            if (place >= last) row.hide();
            else row.show(place, this.rowHeight, this.items[place], this);
        }
        const selected = this.rows.find((row) => row.selected);
        if (selected) this.grid.setAttribute("aria-activedescendant", selected.element.id);
        else this.grid.removeAttribute("aria-activedescendant");
        this.editor.follow();
    }

    // --- user actions

    /**
     * Acts on the item of the last press: a frame may have moved the rows since. Scripted clicks have no
     * press.
     */
    #click(event) {
        if (!rowAround(event.target)) return;
        const target = event.detail ? this.pressed : this.#targetAt(event.target);
        const cell = event.target.closest("[data-attribute]");
        if (!target) return;
        if (event.target.closest(".kill")) this.killer.press(target);
        else if (cell && (target.pid === undefined || target.pid === this.state.selected)) this.#edit(target, cell);
        else if (target.pid === undefined) this.#foldGroup(target.group);
        else select(this.system, target.pid);
    }

    /**
     * @returns {import("./process_acts.js").Target | null} the item that the row around an element shows now
     */
    #targetAt(inner) {
        const row = rowAround(inner);
        return row && this.targetOf(this.items[Number(row.dataset.place)]);
    }

    #foldGroup(group) {
        if (!this.foldedGroups.delete(group)) this.foldedGroups.add(group);
        this.panel.redraw();
    }

    #edit(target, cell) {
        if (target && cell && this.state.can("attributes")) this.editor.begin(target, cell.dataset.attribute);
    }

    /** Returns the target of an action: a process, or a group. */
    targetOf(item) {
        const { processes } = this.state.frame;
        if (item >= 0) return { pid: processes.pid[item], words: `${processes.name[item]} (${processes.pid[item]})` };
        const group = this.groups[-1 - item];
        return { group: group.group, words: `group ${group.group} (${group.title})` };
    }

    /** Returns the row that shows a target now. @returns {ProcessRow | undefined} */
    rowOf(target) {
        return this.rows.find((row) => row.pid === target.pid && row.group === target.group && !row.element.hidden);
    }

    #key(event) {
        if (event.target !== this.grid || event.ctrlKey || event.altKey || event.metaKey) return;
        const acts = this.#acts();
        const act = acts[event.key];
        if (!act) return;
        event.preventDefault();
        act();
    }

    #acts() {
        const page = Math.max(1, Math.floor(this.grid.clientHeight / (this.rowHeight || 24)) - 2);
        const acts = {
            ArrowDown: () => this.#move(1),
            ArrowUp: () => this.#move(-1),
            PageDown: () => this.#move(page),
            PageUp: () => this.#move(-page),
            Home: () => this.#move(-Infinity),
            End: () => this.#move(Infinity),
        };
        const pid = this.state?.selected;
        if (!pid) return acts;
        acts.Escape = () => select(this.system, 0);
        if (this.state.row(pid) < 0) return acts; // it has ended
        acts.Delete = () => this.killer.press(this.targetOf(this.state.row(pid)));
        const edit = (attribute) => () => {
            if (this.state.can("attributes")) this.editor.begin(this.targetOf(this.state.row(pid)), attribute);
        };
        acts.Enter = edit(MAIN_ATTRIBUTE[this.state.frame.shares_by] ?? "priority");
        for (const [key, attribute] of Object.entries(ATTRIBUTE_KEYS)) acts[key] = edit(attribute);
        return acts;
    }

    #move(by) {
        const rows = this.items.map((item, place) => place).filter((place) => this.items[place] >= 0);
        if (!rows.length) return;
        const at = rows.indexOf(itemOfPid(this.pids, this.state.selected));
        const next = at < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, at + by));
        const place = rows[next];
        this.#reveal(place);
        select(this.system, this.pids[place]);
    }

    #reveal(place) {
        const top = place * this.rowHeight;
        const room = this.grid.clientHeight - 2 * this.rowHeight;
        if (top < this.grid.scrollTop) this.grid.scrollTop = top;
        else if (top > this.grid.scrollTop + room) this.grid.scrollTop = top - room;
    }
}

function noneLives({ frame, isOver }) {
    if (isOver) return "All processes have ended.";
    return frame.paused ? "At the beginning. Press Space to play." : "No processes.";
}

/** @param {Element} inner @returns {HTMLElement | null} */
function rowAround(inner) {
    return inner.closest(".row:not(.row-head)");
}

/** @param {string} widths of columns, each with one or two lengths @returns {number} rem in all */
function leastWidth(widths) {
    const least = widths.match(/[\d.]+rem/g).map(parseFloat);
    return least.reduce((sum, width) => sum + width, 0);
}

/** Returns the maximum of a share's bar: a round number that all shares fit in. */
function scaleOf({ share, ideal }) {
    let most = 0;
    for (let at = 0; at < share.length; at++) most = Math.max(most, share[at], ideal[at]);
    return SCALES.findLast((scale) => scale >= most) ?? 1;
}

function checkbox(words, tip) {
    const box = element("input", { type: "checkbox" });
    const label = element("label", { className: "check", data: { tip } }, box, words);
    return { label, box };
}

/** @returns {import("./process_columns.js").Column[] | null} null: the user has chosen none */
function storedColumns() {
    let keys = null;
    try {
        keys = JSON.parse(localStorage.getItem(COLUMNS_KEY) ?? "null");
    } catch {
        // unreadable settings count as none
    }
    if (!Array.isArray(keys)) return null;
    return COLUMNS.filter(({ key, fixed }) => fixed || keys.includes(key));
}
