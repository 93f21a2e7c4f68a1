// SPDX-License-Identifier: MIT
//
// The active policy, its presets and its tunables. It shows the system's values, even if another page has
// changed them.

import { ask } from "../connection.js";
import { announce, button, element, policySelect, setText } from "../elements.js";
import { hello, ruleOf } from "../store.js";
import { count } from "../words.js";
import { whatIf } from "./what_if.js";

const CHANGES = new Set(["policy", "tunable", "begin"]);

/**
 * @param {import("../panel.js").Panel} panel
 * @param {string} system
 */
export function create(panel, system) {
    const place = element("div", { className: "policy-choice" });
    const meaning = element("p", { className: "policy-meaning" });
    const list = element("div", { className: "tunables" });
    const fallback = element("div");
    panel.body.append(place, meaning, list, fallback);
    let branching = null;
    /** @type {HTMLSelectElement} */
    let choice = null;
    let greeting = null;
    let shown = { policy: "", marks: 0, generation: -1, info: null, life: "" };
    /** @type {Map<string, Tunable>} */
    let tunables = new Map();

    function buildChoice(state) {
        greeting = hello();
        choice = policySelect(greeting.policies, "Policy");
        choice.disabled = !state.can("policy");
        choice.addEventListener("change", choose);
        place.replaceChildren(choice);
        branching ??= whatIf(panel, system, greeting.policies);
        fallback.replaceChildren(branching.element);
    }

    async function choose() {
        choice.disabled = true;
        if (!await panel.asks("policy", { system, policy: choice.value })) choice.value = shown.policy;
        choice.disabled = false;
        choice.focus();
    }

    async function readTunables(policy) {
        let values = [];
        try {
            values = await ask("tunables", { system });
        } catch (error) {
            setText(list, error.message);
        }
        if (policy !== shown.policy) return; // another one has become active
        const names = values.map(({ name }) => name).join();
        if (names !== [...tunables.keys()].join() || list.dataset.policy !== policy) {
            list.dataset.policy = policy;
            tunables = new Map(values.map((value) => [value.name, new Tunable(system, value)]));
            list.replaceChildren(...[...tunables.values()].map((tunable) => tunable.element));
        }
        const standard = standardValues(policy);
        for (const value of values) tunables.get(value.name).show(value, standard[value.name]);
        const changed = [...tunables.values()].filter((tunable) => tunable.changed).length;
        panel.note(changed ? `${changed} changed` : "");
    }

    panel.draws((state) => {
        if (greeting !== hello()) buildChoice(state);
        branching.follow(state);
        const { policy, life } = state.frame;
        const marks = state.marks.since(shown.marks).some(({ kind }) => CHANGES.has(kind));
        const stale = policy !== shown.policy || marks || state.generation !== shown.generation || state.info !== shown.info || life !== shown.life;
        if (choice.value !== policy && document.activeElement !== choice) showPolicy(policy);
        if (!stale) return;
        showPolicy(policy);
        shown = { policy, marks: state.marks.total, generation: state.generation, info: state.info, life };
        readTunables(policy);
    });

    function showPolicy(policy) {
        if (![...choice.options].some(({ value }) => value === policy)) {
            choice.append(element("option", { value: policy, textContent: policy }));
        }
        choice.value = policy;
        const { rule, preset } = parts(policy);
        const words = [rule?.meaning, preset && `Preset: ${preset.meaning}`].filter(Boolean);
        meaning.replaceChildren(words.map(sentence).join(" "));
        if (rule?.source) meaning.append(element("span", { className: "policy-source", textContent: ` ${rule.source}` }));
    }
}

function parts(policy) {
    const rule = ruleOf(policy);
    return { rule, preset: rule?.presets[policy.split(":")[1]] };
}

/** Returns each tunable's value according to its preset, or to the policy. */
function standardValues(policy) {
    const { rule, preset } = parts(policy);
    if (preset) return preset.values;
    return Object.fromEntries(Object.values(rule?.tunables ?? {}).map((tunable) => [tunable.name, tunable.default]));
}

function sentence(words) {
    return `${words[0].toUpperCase()}${words.slice(1)}.`;
}

/** A tunable's field. */
class Tunable {
    #system;
    #asking = false;

    constructor(system, { name, minimum, maximum, meaning }) {
        this.#system = system;
        this.name = name;
        const id = `tunable-${system}-${name}`;
        this.field = element("input", { type: "number", id, min: minimum, max: maximum, step: 1, required: true });
        this.field.setAttribute("aria-describedby", `${id}-meaning ${id}-error`);
        this.back = button("reset", `Reset ${name}`, () => this.#set(this.standard));
        this.error = element("p", { className: "error", id: `${id}-error`, role: "alert", hidden: true });
        this.range = element("span", { className: "tunable-range", textContent: `${count(minimum)} to ${count(maximum)}` });
        this.defaultWords = element("span", { className: "tunable-default" });
        const words = element("p", { className: "tunable-meaning", id: `${id}-meaning` }, sentence(meaning), " ", this.range, this.defaultWords);
        const line = element("div", { className: "tunable-line" }, element("label", { for: id, textContent: name }), this.field, this.back);
        this.element = element("div", { className: "tunable" }, line, words, this.error);
        this.field.addEventListener("change", () => this.#commit());
        this.field.addEventListener("keydown", (event) => {
            if (event.key !== "Escape") return;
            event.stopPropagation();
            this.#fail("");
            this.field.value = String(this.value);
        });
    }

    /** @param {{value: number}} now @param {number} standard the default of the policy or preset */
    show({ value, default: given }, standard = given) {
        this.value = value;
        this.standard = standard;
        this.changed = value !== standard;
        this.element.classList.toggle("changed", this.changed);
        this.back.hidden = !this.changed;
        setText(this.defaultWords, this.changed ? `, ≠ ${count(standard)}` : `, default ${count(standard)}`);
        if (document.activeElement !== this.field || Number(this.field.value) === value) this.field.value = String(value);
    }

    #commit() {
        const value = Number(this.field.value);
        if (this.field.value === "" || !Number.isInteger(value)) this.#fail("Enter a whole number.");
        else if (!this.field.checkValidity()) this.#fail(`${this.name}: out of range; choose ${this.range.textContent}.`);
        else this.#set(value);
    }

    async #set(value) {
        if (this.#asking) return;
        this.#asking = true;
        this.#fail("");
        try {
            await ask("tunable", { system: this.#system, name: this.name, value });
            announce(`${this.name} is now ${value}.`);
            this.field.value = String(value);
        } catch (error) {
            this.#fail(error.message);
        }
        this.#asking = false;
    }

    #fail(text) {
        setText(this.error, text);
        this.error.hidden = !text;
        this.field.setAttribute("aria-invalid", String(Boolean(text)));
    }
}
