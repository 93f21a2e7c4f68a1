// SPDX-License-Identifier: MIT
//
// The setup to simulate: chosen in a dialog, and kept in the page's address.

import { announce, button, element, policySelect, setText } from "../python/schedlab/monitor/page/elements.js";
import { notice } from "../python/schedlab/monitor/page/banners.js";
import { hello, onHello } from "../python/schedlab/monitor/page/store.js";
import { take } from "./files.js";
import { linkOf, OWN, setupOf, systemOf } from "./link.js";
import { lessons, workloads } from "./session_connection.js";

const SYSTEMS_MAX = 4;
const CPUS_MAX = 256;
const SEED_MAX = 2 ** 31 - 1;

/** @param {HTMLElement} place where its button goes */
export function createSetup(place) {
    const rows = Array.from({ length: SYSTEMS_MAX }, (_, at) => new SystemRow(at));
    const cpus = field("CPUs", "number", { min: 1, max: CPUS_MAX, required: true });
    const seed = field("Seed", "number", { min: 0, max: SEED_MAX, required: true });
    const chosen = element("select", { multiple: true, size: 8, "aria-label": "Initial workloads" });
    for (const { name, title } of workloads()) chosen.append(element("option", { value: name, textContent: name, title }));
    const text = element("textarea", { rows: 8, spellcheck: false, placeholder: "program root\n  loop\n    run 3ms\n    sleep 2ticks\n  end" });
    const trouble = element("p", { className: "setup-trouble", role: "alert", hidden: true });
    const files = element("input", { type: "file", multiple: true, accept: ".bin,.json,.wasm" });
    const dialog = element("dialog", { className: "help setup", "aria-labelledby": "setup-title" });
    const form = element("form", { method: "dialog", noValidate: true });
    form.append(
        element("h2", { id: "setup-title", textContent: "Simulate" }),
        element("p", { textContent: "One to four policies run side by side, with the same workloads, CPUs and seed. Tunables are written as slice=3 boost=100." }),
        element("div", { className: "setup-systems" }, ...rows.map((row) => row.element)),
        element("div", { className: "setup-machine" }, cpus.label, seed.label),
        element("div", { className: "setup-loads" }, labelled("Workloads (several with Ctrl)", chosen), labelled("and your own text (language: docs/simulator.md)", text)),
        trouble,
        element("p", {}, "Or a lesson: ", ...Object.entries(lessons()).flatMap(lessonLink)),
        element("div", { className: "setup-acts" },
            element("button", { type: "submit", className: "button strong", textContent: "Begin" }),
            button("", "Copy a link with all of these settings", copy, "Copy the link"),
            button("", "Cancel", () => dialog.close(), "Close"),
            labelled("or open a recording (trace.bin, optionally with manifest.json) or a policy (.wasm)", files)),
    );
    dialog.append(form);
    document.body.append(dialog);
    const opener = button("", "Choose policies, workloads, CPUs and seed; open a recording", () => open(), "Setup");
    opener.disabled = true; // until the available workloads are known
    place.prepend(opener);

    onHello(({ policies }) => {
        opener.disabled = false;
        for (const row of rows) row.offer(policies);
    });
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        begin();
    });
    files.addEventListener("change", () => {
        dialog.close();
        take([...files.files]);
        files.value = "";
    });

    function open() {
        show(running(hello()));
        trouble.hidden = true;
        dialog.showModal();
    }
    function show(setup) {
        rows.forEach((row, at) => row.show(setup.systems[at]));
        cpus.field.value = String(setup.cpus);
        seed.field.value = String(setup.seed);
        text.value = setup.text;
        for (const option of chosen.options) option.selected = setup.workloads.includes(option.value);
    }
    function read() {
        const systems = rows.map((row) => row.read()).filter(({ policy }) => policy);
        const wrong = [cpus, seed].find(({ field: input }) => !input.checkValidity());
        if (wrong) throw new Error(`${wrong.title}: out of range; choose ${wrong.field.min} to ${wrong.field.max}.`);
        if (!systems.length) throw new Error("Choose a policy.");
        return {
            systems, cpus: Number(cpus.field.value), seed: Number(seed.field.value), text: text.value,
            workloads: [...chosen.selectedOptions].map(({ value }) => value), pace: setupOf(location.hash).pace,
        };
    }
    function attempt(what) {
        try {
            what(linkOf(read()));
        } catch (error) {
            setText(trouble, error.message);
            trouble.hidden = false;
        }
    }
    function begin() {
        attempt((link) => {
            dialog.close();
            if (location.hash === link) dispatchEvent(new Event("hashchange"));
            else location.hash = link;
        });
    }
    function copy() {
        attempt((link) => {
            const address = new URL(link, location.href).href;
            navigator.clipboard.writeText(address).then(
                () => announce("The link is copied."),
                () => notice(element("input", { value: address, readOnly: true, "aria-label": "The link" })),
            );
        });
    }
}

// Lessons are separated by commas.
function lessonLink([name, { title }], at) {
    const link = element("a", { href: `#lesson=${name}`, textContent: title });
    link.addEventListener("click", () => link.closest("dialog").close());
    return at ? [", ", link] : [link];
}

// Returns the running systems as a setup, even if they were restarted with other values.
function running({ systems }) {
    const { cpus, seed, workloads: names } = systems[0].setup;
    const { pace, text } = setupOf(location.hash);
    return {
        systems: systems.map(({ setup: { policy, settings } }) => ({ policy, settings })),
        cpus, seed, pace, text, workloads: names.filter((name) => name !== OWN),
    };
}

/** A policy with its tunables; the first system must have one. */
class SystemRow {
    constructor(at) {
        this.letter = "abcd"[at];
        this.settings = element("input", { type: "text", placeholder: "tunables", "aria-label": `Tunables of ${this.letter}` });
        this.element = element("div", { className: "setup-system" }, element("b", { textContent: this.letter }), this.settings);
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

    read() {
        return { ...systemOf(`x ${this.settings.value}`), policy: this.select?.value ?? "" };
    }
}

function field(title, type, limits) {
    const made = element("input", { type, ...limits });
    return { title, field: made, label: labelled(title, made) };
}

function labelled(title, made) {
    return element("label", { className: "field" }, element("span", { textContent: title }), made);
}
