// SPDX-License-Identifier: MIT
//
// The setup to simulate: chosen in a dialog, which stays open until the session has accepted it.

import { announce, button, element, setText } from "../python/schedlab/monitor/page/elements.js";
import { notice } from "../python/schedlab/monitor/page/banners.js";
import { hello, onHello } from "../python/schedlab/monitor/page/store.js";
import { begin, lastSetup } from "./address.js";
import { take } from "./files.js";
import { linkOf, OWN } from "./link.js";
import { Field, numberField, SystemRow, WorkloadBoxes } from "./setup_fields.js";
import { lessons } from "./session_connection.js";

const SYSTEMS_MAX = 4;
const CPUS_MAX = 256;
const SEED_MAX = 2 ** 31 - 1;
const TICK_MS = { min: 0.1, max: 1000, step: "any" };
const EXAMPLE = "program root\n  loop\n    run 3ms\n    sleep 2ticks\n  end";

/** @param {HTMLElement} place where its button goes */
export function createSetup(place) {
    const setup = new SetupDialog();
    document.body.append(setup.dialog);
    const opener = button("", "Setup: choose policies, workloads, CPUs, tick and seed; open a recording", () => setup.open(), "Setup");
    opener.disabled = true; // until the available policies are known
    place.prepend(opener, button("", "Edit a policy's source, and see its schedule change", edit, "Edit"));
    onHello(({ policies }) => {
        opener.disabled = false;
        for (const row of setup.rows) row.offer(policies);
    });
}

// A server that can build the playground names its address in the page.
function edit() {
    const { editor } = document.documentElement.dataset;
    if (editor) location.href = editor;
    else {
        notice(element("span", {}, "This file has no compiler. To edit policies, get schedlab and run ",
            element("code", { textContent: "./schedlab page --serve" }), ", or make the folder for a web server with ",
            element("code", { textContent: "./schedlab page --out FOLDER" }), "."));
    }
}

class SetupDialog {
    constructor() {
        this.rows = Array.from({ length: SYSTEMS_MAX }, (_, at) => new SystemRow(at));
        this.cpus = numberField("CPUs", { min: 1, max: CPUS_MAX });
        this.tick = numberField("Tick, ms", TICK_MS);
        this.seed = numberField("Seed", { min: 0, max: SEED_MAX });
        this.workloads = new WorkloadBoxes();
        this.text = new Field("and your own text (language: docs/simulator.md)",
            element("textarea", { rows: 8, spellcheck: false, placeholder: EXAMPLE }));
        this.trouble = element("p", { className: "setup-trouble", role: "alert", hidden: true });
        this.submit = element("button", { type: "submit", className: "button strong", textContent: "Begin" });
        this.dialog = element("dialog", { className: "help setup", "aria-labelledby": "setup-title" }, this.#form());
        /** The fields by the part of a setup that a refusal is about. @type {Record<string, any>} */
        this.parts = { cpus: this.cpus, tick: this.tick, seed: this.seed, workloads: this.workloads, text: this.text };
        for (const row of this.rows) this.parts[`settings-${row.letter}`] = row;
        this.tick.control.addEventListener("input", () => this.#sayBound());
        this.workloads.element.addEventListener("input", () => this.#sayBound());
    }

    #form() {
        const form = element("form", { method: "dialog", noValidate: true });
        form.append(
            element("h2", { id: "setup-title", textContent: "Simulate" }),
            element("p", { textContent: "One to four policies run side by side, with the same workloads, CPUs, tick and seed. Tunables are written as slice=3 boost=100." }),
            element("div", { className: "setup-systems" }, ...this.rows.map((row) => row.element)),
            element("div", { className: "setup-machine" }, ...[this.cpus, this.tick, this.seed].map((field) => field.element)),
            element("div", { className: "setup-loads" }, this.workloads.element, this.text.element),
            element("p", {}, "Or a lesson: ", ...Object.entries(lessons()).flatMap(lessonLink)),
            this.trouble,
            element("div", { className: "setup-acts" },
                this.submit,
                button("", "Copy the link with all of these settings", () => this.#copy(), "Copy the link"),
                button("", "Close without changes", () => this.dialog.close(), "Close"),
                this.#files()),
        );
        form.addEventListener("submit", (event) => {
            event.preventDefault();
            this.#begin();
        });
        return form;
    }

    #files() {
        const files = element("input", { type: "file", multiple: true, accept: ".bin,.json,.wasm" });
        files.addEventListener("change", () => {
            this.dialog.close();
            take([...files.files]);
            files.value = "";
        });
        const title = "or open a recording (trace.bin, optionally with manifest.json) or a policy (.wasm)";
        return element("label", { className: "field" }, element("span", { textContent: title }), files);
    }

    open() {
        this.#show(runningSetup(hello()));
        this.#clear();
        this.dialog.showModal();
    }

    #show(setup) {
        this.rows.forEach((row, at) => row.show(setup.systems[at]));
        for (const name of ["cpus", "tick", "seed", "text", "workloads"]) this[name].value = setup[name];
    }

    /** @returns {import("./link.js").Setup} */
    #read() {
        return {
            systems: this.rows.map((row) => row.read()).filter(({ policy }) => policy),
            cpus: Number(this.cpus.value), tick: Number(this.tick.value), seed: Number(this.seed.value),
            workloads: this.workloads.value, text: this.text.value, pace: lastSetup().pace,
        };
    }

    /** Shows what is wrong before a session is asked. @returns {boolean} true if nothing is wrong */
    #check() {
        this.#clear();
        const wrong = [this.cpus, this.tick, this.seed].filter((field) => field.wrong);
        for (const field of wrong) field.fail(field.wrong);
        if (!this.#read().systems.length) this.#fail("Choose a policy.");
        wrong[0]?.focus();
        return !wrong.length && this.trouble.hidden && this.#sayBound();
    }

    #sayBound() {
        const wrong = this.workloads.wrong(Number(this.tick.value));
        this.workloads.fail(wrong);
        return !wrong;
    }

    #clear() {
        this.#fail("");
        for (const part of Object.values(this.parts)) part.fail("");
    }

    #fail(text) {
        setText(this.trouble, text);
        this.trouble.hidden = !text;
    }

    async #begin() {
        if (!this.#check()) return;
        this.submit.disabled = true;
        try {
            await begin(this.#read());
            this.dialog.close();
        } catch (error) {
            this.#refuse(error);
        }
        this.submit.disabled = false;
    }

    /** Shows a refusal beside the field that it is about. */
    #refuse({ message, part }) {
        const field = this.parts[this.#shownPart(part)];
        if (!field) return this.#fail(message);
        field.fail(message);
        field.focus();
    }

    // The session counts the chosen systems only.
    #shownPart(part) {
        const [kind, letter] = (part ?? "").split("-");
        const chosen = this.rows.filter((row) => row.read().policy);
        return letter ? `${kind}-${chosen["abcd".indexOf(letter)]?.letter}` : kind;
    }

    #copy() {
        if (!this.#check()) return;
        const address = new URL(linkOf(this.#read()), location.href).href;
        navigator.clipboard.writeText(address).then(
            () => announce("The link is copied."),
            () => notice(element("input", { value: address, readOnly: true, "aria-label": "The link" })),
        );
    }
}

// Lessons are separated by commas.
function lessonLink([name, { title }], at) {
    const link = element("a", { href: `#lesson=${name}`, textContent: title });
    link.addEventListener("click", () => link.closest("dialog").close());
    return at ? [", ", link] : [link];
}

// Returns the running systems as a setup, even if they were restarted with other values.
function runningSetup({ systems }) {
    const { cpus, seed, tick_ns, workloads } = systems[0].setup;
    const { pace, text } = lastSetup();
    return {
        systems: systems.map(({ setup: { policy, settings } }) => ({ policy, settings })),
        cpus, seed, pace, text, tick: tick_ns / 1e6, workloads: workloads.filter((name) => name !== OWN),
    };
}
