// SPDX-License-Identifier: MIT
//
// A lab: its text above the source, and its visible tests in a tab. "Check" grades the source by them in a worker.

import { announce, button, element, setText } from "../../python/schedlab/monitor/page/elements.js";
import { elementsOf } from "./lab_text.js";
import { placeOf } from "./faults.js";
import { foldable } from "./lesson.js";
import { Requests } from "./workers.js";

const STORAGE_KEY = "schedlab-playground-labs";
const TEST_MS = 120_000;
const CANCELLED = "Cancelled.";
const DEFINITION = /\bPOLICY_DEFINITION\s+(\w+)/;
const [PASSED, FAILED, NOT_RUN] = ["Passed", "Failed", "Not judged here"];
const CLASSES = { [PASSED]: "better", [FAILED]: "worse", [NOT_RUN]: "" };
const LEAST_TICK_NS = 100_000;
const SEEDS = 2 ** 31; // of a link

/**
 * @typedef {import("./lab_judge.js").LabTest} LabTest
 * @typedef {{name: string, title: string, policy: string, symbol: string, headers: string[], text: string, start: string,
 *     tests: LabTest[]}} Lab
 * @typedef {{source: string, points: number, most: number}} Kept of a lab, in this browser
 * @typedef {{getSource: () => string, setSource: (text: string) => void, showTest: (test: LabTest) => void, showTests: () => void,
 *     changed: () => void}} Page what the pane uses of it; `changed`: the progress has changed
 */

/** @returns {Record<string, Kept>} by lab */
function allKept() {
    try {
        return JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}") ?? {};
    } catch {
        return {};
    }
}

/** @param {string} name of a lab @returns {Kept | null} */
export function keptOf(name) {
    const kept = Object.hasOwn(allKept(), name) ? allKept()[name] : null;
    return typeof kept?.source === "string" && Number.isFinite(kept.points) && Number.isFinite(kept.most) ? kept : null;
}

/** @param {string} name of a lab @returns {string} its progress in words; "": none */
export function progressOf(name) {
    const kept = keptOf(name);
    if (!kept) return "";
    return kept.points === kept.most ? " (done)" : ` (${shown(kept.points)} of ${shown(kept.most)} points)`;
}

/** @param {number} points @returns {string} with at most two decimals */
function shown(points) {
    return String(Math.round(100 * points) / 100);
}

const total = (numbers) => numbers.reduce((sum, number) => sum + number, 0);

export class LabPane {
    /** @type {Lab | null} */
    lab = null;
    /** False if the source comes from a link and was not changed: then no progress is kept. */
    keeps = true;
    #checks = 0;
    #graded = "";
    #reasons = {};

    /**
     * @param {Requests} compiler @param {{separate: WebAssembly.Module, module: Uint8Array}} modules
     * @param {Record<string, string>} headers of policies @param {Page} page
     */
    constructor(compiler, { separate, module }, headers, page) {
        Object.assign(this, { compiler, module, headers, page });
        this.grader = new Requests("grader.js", "The test", TEST_MS, { separate });
        this.element = element("section", { className: "lesson-pane lab-pane", hidden: true, "aria-label": "The lab" });
        this.state = element("p", { className: "lab-state", role: "status" });
        this.list = element("ul", { className: "lab-tests" });
        this.verdicts = element("div", {}, this.state, this.list);
        this.progress = element("progress", { hidden: true, "aria-label": "Checked tests" });
        this.check = this.#checkButton("Check");
        this.cancel = button("", "Stop checking", () => this.#cancel(), "Cancel");
        this.cancel.hidden = true;
        const again = button("", "Replace the source by the lab's start file", () => this.page.setSource(this.lab.start), "Start again");
        const tools = element("p", { className: "lab-tools" }, this.check, this.cancel, again, this.progress);
        /** Its place is a tab. */
        this.tests = element("div", { className: "lab-grade", hidden: true }, tools, this.verdicts);
    }

    /** @param {Lab | null} lab @param {Record<string, string>} [reasons] of lost points */
    show(lab, reasons = {}) {
        this.#cancel();
        this.lab = lab;
        this.#graded = "";
        this.compare("");
        this.#reasons = reasons;
        this.element.hidden = this.tests.hidden = !lab;
        if (!lab) return;
        setText(this.state, "");
        this.element.replaceChildren(foldable(lab.title, ...elementsOf(lab.text, () => this.#checkButton("Check your source"))));
        this.#list(lab.tests.map(() => null));
    }

    /** Lists the tests. @param {(import("./lab_grade.js").Verdict | null)[]} verdicts null: none yet */
    #list(verdicts) {
        this.list.replaceChildren(...this.lab.tests.map((test, at) => this.#row(test, verdicts[at])));
    }

    #row(test, verdict) {
        const title = element("b", { textContent: test.name });
        if (test.hidden) return element("li", {}, title, ` (hidden, ${shown(test.points)} points): not run here`);
        const parts = test.expectations.map((expectation, at) => partOf(expectation, verdict, at));
        const fault = verdict?.fault && element("p", { className: CLASSES[FAILED], textContent: `${FAILED}: ${verdict.fault.text}` });
        const has = (state) => parts.some((part) => part.dataset.state === state);
        const word = !verdict ? "" : has(FAILED) ? FAILED : has(PASSED) ? PASSED : NOT_RUN;
        const made = element("li", { data: { state: word } }, title, word && `: ${word.toLowerCase()}`, ` – ${test.says} `, this.#showButton(test));
        made.append(...(fault ? [fault] : [element("ul", {}, ...parts)]));
        return made;
    }

    // The playground's settings cannot express every test.
    #showButton(test) {
        const canShow = test.tick_ns >= LEAST_TICK_NS && test.tick_ns % 1000 === 0 && Number(test.seed) < SEEDS;
        return canShow ? button("", `Show the workload of ${test.name}`, () => this.page.showTest(test), "Show") : "";
    }

    /** Marks the verdicts if they are another source's. @param {string} source */
    compare(source) {
        this.verdicts.classList.toggle("stale", this.#graded !== "" && this.#graded !== source);
    }

    #cancel() {
        this.#checks += 1;
        this.grader.stop(CANCELLED);
        this.#setBusy(false);
    }

    #setBusy(isBusy) {
        this.check.disabled = isBusy;
        this.cancel.hidden = !isBusy;
        this.progress.hidden = !isBusy;
    }

    #checkButton(words) {
        return button("", `${words}: grade it by the lab's visible tests`, () => this.#check(), words);
    }

    async #check() {
        const number = ++this.#checks;
        this.page.showTests();
        const source = this.page.getSource();
        this.#graded = source;
        this.compare(source);
        this.#setBusy(true);
        this.#list(this.lab.tests.map(() => null));
        try {
            const verdicts = await this.#grade(source, number);
            if (number === this.#checks && verdicts) this.#conclude(source, verdicts);
        } catch (error) {
            if (number === this.#checks || error.message === CANCELLED) setText(this.state, error.message);
        }
        if (number === this.#checks) this.#setBusy(false);
    }

    /** @returns {Promise<(import("./lab_grade.js").Verdict | null)[] | null>} null: it does not compile, or was cancelled */
    async #grade(source, number) {
        const { lab } = this;
        setText(this.state, "Compiling …");
        const module = await this.#compile(source);
        const verdicts = lab.tests.map(() => null);
        const visible = lab.tests.filter(({ hidden }) => !hidden);
        this.progress.max = visible.length;
        for (const [at, test] of visible.entries()) {
            if (number !== this.#checks) return null;
            setText(this.state, `Test ${at + 1} of ${visible.length}: ${test.name}`);
            this.progress.value = at;
            const verdict = await this.grader.ask({ test, policy: lab.policy, module, reasons: this.#reasons });
            if (verdict.fault) {
                const { line, text } = await placeOf(this.compiler, verdict.fault, module, source);
                verdict.fault.text = `${line ? `line ${line}: ` : ""}${text}`;
            }
            verdicts[lab.tests.indexOf(test)] = verdict;
            if (number === this.#checks) this.#list(verdicts);
        }
        return verdicts;
    }

    /** @returns {Promise<Uint8Array>} Throws an error with the first mistake. */
    async #compile(source) {
        const { symbol, headers } = this.lab;
        const found = DEFINITION.exec(source)?.[1];
        if (found !== symbol) throw new Error(`It does not compile: it defines no ${symbol}: its last lines are to begin with POLICY_DEFINITION ${symbol} = {`);
        const policies = Object.fromEntries(headers.map((name) => [name, this.headers[name]]));
        const { module, diagnostics } = await this.compiler.ask({ compile: { source, sources: { policies }, module: this.module } });
        if (module) return module;
        const { line, text } = diagnostics.find(({ severity }) => severity === "error") ?? diagnostics[0];
        throw new Error(`It does not compile: line ${line}: ${text}`);
    }

    #conclude(source, verdicts) {
        const run = this.lab.tests.flatMap((test, at) => (verdicts[at]?.results ?? []).flatMap((result, place) =>
            (result ? [{ points: result.points, most: test.expectations[place].points }] : [])));
        const [points, most] = [total(run.map((part) => part.points)), total(run.map((part) => part.most))];
        const rest = total(this.lab.tests.map((test) => test.points)) - most;
        const words = `${shown(points)} of ${shown(most)} points${rest ? `; ${shown(rest)} more cannot be judged here` : ""}.`;
        setText(this.state, this.keeps ? words : `${words} Change the linked source to keep your progress.`);
        announce(words);
        if (!this.keeps) return;
        localStorage.setItem(STORAGE_KEY, JSON.stringify({ ...allKept(), [this.lab.name]: { source, points, most } }));
        this.page.changed();
    }
}

/** @returns {HTMLElement} what an expectation asks for and, with a verdict, whether it is met */
function partOf({ title, points: most }, verdict, at) {
    const result = verdict?.results[at];
    const state = !verdict ? "" : !result ? NOT_RUN : result.points < most ? FAILED : PASSED;
    const of = state === FAILED ? `${shown(result.points)} of ${shown(most)}` : shown(most);
    const words = `${state && `${state}: `}${title} (${of} ${most === 1 && state !== FAILED ? "point" : "points"})`;
    const why = state === FAILED ? `: ${result.why}` : "";
    return element("li", { className: CLASSES[state] ?? "", data: { state }, textContent: words + why });
}
