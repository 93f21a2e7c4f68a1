// SPDX-License-Identifier: MIT
//
// Actions on a row of the table of processes: edit an attribute in place, or kill.

import { ask } from "../connection.js";
import { announce, element, setText } from "../elements.js";

const ARMED_MS = 3000;
/** As in policies/policy.h; the system decides. */
const RANGES = { priority: { min: 0, max: 10 }, tickets: { min: 1, max: 1_000_000 }, weight: { min: 1, max: 10 } };

/** @typedef {{pid?: number, group?: number, words: string}} Target */

/** A field over a cell. While it is open, the table's rows keep their places. */
export class AttributeEditor {
    constructor(table) {
        this.table = table;
        this.open = false;
        this.field = element("input", { type: "number", step: 1, className: "edit-field" });
        this.error = element("p", { className: "error", role: "alert", hidden: true });
        this.element = element("form", { className: "editor", hidden: true, noValidate: true }, this.field, this.error);
        table.space.append(this.element);
        this.element.addEventListener("submit", (event) => {
            event.preventDefault();
            this.#send();
        });
        this.field.addEventListener("keydown", (event) => {
            event.stopPropagation();
            if (event.key === "Escape") this.close();
        });
        this.field.addEventListener("blur", () => {
            if (!this.asking) this.close(false);
        });
    }

    /** @param {Target} target @param {string} attribute */
    begin(target, attribute) {
        this.target = target;
        this.attribute = attribute;
        const row = this.table.rowOf(target);
        if (!row) return;
        this.open = true;
        this.asking = false;
        this.element.hidden = false;
        this.#fail("");
        this.field.min = RANGES[attribute].min;
        this.field.max = RANGES[attribute].max;
        this.field.setAttribute("aria-label", `${attribute} of ${target.words}`);
        const cell = cellOf(row, attribute);
        this.field.value = cell?.textContent.replaceAll(",", "") ?? "";
        this.follow();
        this.field.focus({ preventScroll: true });
        this.field.select();
    }

    /** Stays over its cell. */
    follow() {
        if (!this.open) return;
        const row = this.table.rowOf(this.target);
        const cell = row && cellOf(row, this.attribute);
        if (!row) {
            this.close();
            return;
        }
        const { style } = this.element;
        style.top = `${row.place * this.table.rowHeight}px`;
        style.left = `${cell ? cell.offsetLeft : this.table.grid.scrollLeft + 8}px`;
        style.height = `${this.table.rowHeight}px`;
    }

    close(back = true) {
        if (!this.open) return;
        this.open = false;
        this.element.hidden = true;
        if (back) this.table.grid.focus({ preventScroll: true });
        this.table.panel.redraw();
    }

    async #send() {
        const value = Number(this.field.value);
        const { min, max } = RANGES[this.attribute];
        if (this.field.value === "" || !Number.isInteger(value)) return this.#fail("Enter a whole number.");
        if (value < min || value > max) return this.#fail(`${this.attribute}: ${min} to ${max}.`);
        const { pid, group, words } = this.target;
        const target = pid === undefined ? { group } : { pid };
        this.asking = true;
        try {
            await ask("attribute", { system: this.table.system, ...target, kind: this.attribute, value });
            announce(`${this.attribute} of ${words} is now ${value}.`);
            this.close();
        } catch (error) {
            this.#fail(error.message);
            this.field.focus({ preventScroll: true });
        }
        this.asking = false;
    }

    #fail(text) {
        setText(this.error, text);
        this.error.hidden = !text;
        this.field.setAttribute("aria-invalid", String(Boolean(text)));
    }
}

function cellOf(row, attribute) {
    return row.cells.find(({ key }) => key === attribute)?.cell;
}

/** Kills at the second press, because a single press may be a mistake. */
export class KillSwitch {
    constructor(table) {
        this.table = table;
        this.armed = null;
        this.timer = 0;
    }

    /** @param {{pid?: number, group?: number}} target @returns {boolean} */
    isArmed({ pid, group }) {
        return this.armed !== null && this.armed.pid === pid && this.armed.group === group;
    }

    /** @param {Target} target */
    press(target) {
        if (!this.table.state.can("start")) return;
        const kills = this.isArmed(target);
        clearTimeout(this.timer);
        this.armed = kills ? null : target;
        if (kills) this.#kill(target);
        else {
            announce(`Press again to kill ${target.words}.`);
            this.timer = setTimeout(() => {
                this.armed = null;
                this.table.render();
            }, ARMED_MS);
        }
        this.table.render();
    }

    #kill({ pid, group, words }) {
        const { panel, system } = this.table;
        panel.asks("kill", { system, ...(pid === undefined ? { group } : { pid }) }, `${words} was killed.`);
    }
}
