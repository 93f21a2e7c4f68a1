// SPDX-License-Identifier: MIT
//
// The fields of the setup. Each shows an error below itself.

import { element, policySelect, setText } from "../python/schedlab/monitor/page/elements.js";
import { systemOf } from "./link.js";
import { workloads } from "./session_connection.js";

const KINDS = [["simple", "Simple"], ["study", "From the studies"]];
export const BOUND_TICK_MS = 10; // of the workloads that are written down in ticks

let last = 0;

/** A place for an error, which belongs to a control. */
class Trouble {
    /** @param {HTMLElement} control */
    constructor(control) {
        this.control = control;
        const id = `setup-trouble-${++last}`;
        this.element = element("p", { className: "setup-trouble", id, role: "alert", hidden: true });
        control.setAttribute("aria-describedby", id);
    }

    /** @param {string} text "": there is none */
    say(text) {
        setText(this.element, text);
        this.element.hidden = !text;
        this.control.setAttribute("aria-invalid", String(Boolean(text)));
    }
}

/** A control with a title. */
export class Field {
    /** @param {string} title @param {any} control */
    constructor(title, control) {
        this.title = title;
        this.control = control;
        this.trouble = new Trouble(control);
        const label = element("label", { className: "field" }, element("span", { textContent: title }), control);
        this.element = element("div", { className: "setup-field" }, label, this.trouble.element);
    }

    /** @param {string} text an error; "": none */
    fail(text) {
        this.trouble.say(text);
    }

    focus() {
        this.control.focus();
    }

    get value() {
        return this.control.value;
    }

    set value(value) {
        this.control.value = String(value);
    }

    /** @returns {string} what is wrong with a number; "": nothing */
    get wrong() {
        const { min, max } = this.control;
        return this.control.checkValidity() ? "" : `${this.title}: out of range; choose ${min} to ${max}.`;
    }
}

/** @param {string} title @param {any} limits `min`, `max`, `step` @returns {Field} of a number */
export function numberField(title, limits) {
    return new Field(title, element("input", { type: "number", required: true, ...limits }));
}

/** A policy with its tunables; the first system must have one. */
export class SystemRow {
    /** @param {number} at its place */
    constructor(at) {
        this.letter = "abcd"[at];
        this.settings = element("input", { type: "text", placeholder: "tunables", "aria-label": `Tunables of ${this.letter}` });
        this.trouble = new Trouble(this.settings);
        this.line = element("div", { className: "setup-system" }, element("b", { textContent: this.letter }), this.settings);
        this.element = element("div", {}, this.line, this.trouble.element);
        this.names = "";
    }

    offer(policies) {
        const names = policies.map(({ name }) => name).join();
        if (names === this.names) return;
        const before = this.select?.value;
        this.names = names;
        this.select?.remove();
        this.select = policySelect(policies, `Policy of ${this.letter}`);
        this.select.prepend(element("option", { value: "", textContent: "none" }));
        this.settings.before(this.select);
        this.select.value = before ?? "";
    }

    show(system) {
        if (this.select) this.select.value = system?.policy ?? "";
        this.settings.value = Object.entries(system?.settings ?? {}).map((pair) => pair.join("=")).join(" ");
    }

    /** @returns {{policy: string, settings: Record<string, number>}} */
    read() {
        return { ...systemOf(`x ${this.settings.value}`), policy: this.select?.value ?? "" };
    }

    fail(text) {
        this.trouble.say(text);
    }

    focus() {
        this.settings.focus();
    }
}

/** The workloads of the palette, each with a check box. */
export class WorkloadBoxes {
    constructor() {
        this.boxes = [];
        const lists = KINDS.map(([kind, title]) => this.#list(title, workloads().filter((workload) => workload.kind === kind)));
        const scrolled = element("div", { className: "setup-boxes" }, ...lists);
        this.element = element("fieldset", { className: "setup-field" }, element("legend", { textContent: "Workloads" }), scrolled);
        this.trouble = new Trouble(this.element);
        this.element.append(this.trouble.element);
    }

    #list(title, entries) {
        return element("section", {}, element("h3", { textContent: title }), ...entries.map((entry) => this.#box(entry)));
    }

    #box({ name, title, tick_bound: bound }) {
        const box = element("input", { type: "checkbox", value: name, data: { bound: String(bound) } });
        this.boxes.push(box);
        const tag = bound ? [element("span", { className: "setup-bound", textContent: `tick ${BOUND_TICK_MS} ms` })] : [];
        return element("label", { className: "check" }, box, element("span", {}, element("b", { textContent: name }), ` ${title}`), ...tag);
    }

    get value() {
        return this.boxes.filter(({ checked }) => checked).map(({ value }) => value);
    }

    set value(names) {
        for (const box of this.boxes) box.checked = names.includes(box.value);
    }

    /** @param {number} tick_ms @returns {string} what is wrong with the choice; "": nothing */
    wrong(tick_ms) {
        const bound = this.boxes.filter(({ checked, dataset }) => checked && dataset.bound === "true");
        if (tick_ms === BOUND_TICK_MS || !bound.length) return "";
        const names = bound.map(({ value }) => value).join(", ");
        return `${names}: requires a tick of ${BOUND_TICK_MS} ms; choose this tick, or leave the workload out.`;
    }

    fail(text) {
        this.trouble.say(text);
    }

    focus() {
        (this.boxes.find(({ checked }) => checked) ?? this.boxes[0]).focus();
    }
}
