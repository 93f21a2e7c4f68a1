// SPDX-License-Identifier: MIT
//
// The machine and the policy's tunables: a slider for each.

import { element } from "../../python/schedlab/monitor/page/elements.js";

const TUNABLE = /\{\s*"(\w+)",\s*((?:"(?:[^"\\]|\\.)*"\s*)+),\s*(-?\d+),\s*(-?\d+),\s*(-?\d+)\s*\}/g;
const FIELDS = [
    ["cpus", "CPUs", 1, 64], ["seed", "Seed", 0, 2 ** 31 - 1], ["tick_us", "Tick, in µs", 100, 1_000_000],
    ["span_ms", "Longest run, in ms", 1, 60_000],
];

/** @typedef {{name: string, meaning: string, minimum: number, standard: number, maximum: number}} Tunable */

/** @param {string} source a policy's @returns {Tunable[]} those of its `struct tunable` tables that numbers define */
export function tunablesIn(source) {
    return [...source.matchAll(TUNABLE)].map(([, name, texts, ...numbers]) => {
        const meaning = [...texts.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, text]) => text).join("");
        const [minimum, standard, maximum] = numbers.map(Number);
        return { name, meaning, minimum, standard, maximum };
    });
}

export class SettingsPane {
    /** @type {import("./link.js").State} */
    state;

    /** @param {any} data @param {any[]} policies @param {() => void} changed */
    constructor(data, policies, changed) {
        this.policies = policies;
        this.changed = changed;
        this.element = element("div", { className: "settings" });
    }

    /** @param {import("./link.js").State} state kept, and changed by the user */
    show(state) {
        this.state = state;
        const values = new Map(state.settings.split(/[\s,]+/).filter(Boolean).map((pair) => /** @type {[string, string]} */ (pair.split("="))));
        const sliders = this.tunables.map((tunable) => this.#slider(tunable, values));
        const fields = FIELDS.map((field) => this.#field(...field));
        this.element.replaceChildren(...fields, ...sliders);
    }

    /**
     * The tunables of the shipped policy and of the source; macros define some of the former. A
     * source that gives its policy another name has only its own.
     * @returns {Tunable[]}
     */
    get tunables() {
        const { base, source } = this.state;
        const [, name] = /\.name\s*=\s*"([^"]*)"/.exec(source) ?? [];
        const shipped = name && name !== base ? [] : Object.values(this.policies.find((policy) => policy.name === base)?.tunables ?? {});
        const known = shipped.map(({ default: standard, ...others }) => ({ ...others, standard }));
        return [...new Map([...known, ...tunablesIn(source)].map((tunable) => [tunable.name, tunable])).values()];
    }

    #field(name, title, min, max) {
        const input = element("input", { type: "number", min, max, required: true, value: this.state[name] });
        input.addEventListener("change", () => {
            if (!input.checkValidity()) return input.reportValidity();
            this.state[name] = Number(input.value);
            this.changed();
            return undefined;
        });
        return element("label", { className: "wide" }, title, input);
    }

    #slider({ name, meaning, minimum, standard, maximum }, values) {
        const value = Number(values.get(name) ?? standard);
        // Most tunables may be far larger than is useful.
        const most = Math.min(maximum, Math.max(10 * Math.abs(standard), value, minimum + 10));
        const input = element("input", { type: "range", min: minimum, max: most, value, title: meaning });
        const shown = element("output", { textContent: String(value) });
        input.addEventListener("input", () => {
            shown.textContent = input.value;
            if (Number(input.value) === standard) values.delete(name);
            else values.set(name, input.value);
            this.state.settings = [...values].map((pair) => pair.join("=")).join(",");
            this.changed();
        });
        return element("label", {}, name, input, shown);
    }
}
