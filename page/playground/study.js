// SPDX-License-Identifier: MIT
//
// What a policy would cost and break elsewhere: the basic blocks of its hooks, and the rules of Linux's verifier.

import { button, element } from "../../python/schedlab/monitor/page/elements.js";
import { NOT_CHECKED as UNCHECKED_RULES } from "./checks.js";
import { NOT_CHECKED } from "./linux_rules.js";

/** @typedef {Map<string, {calls: number, mean: number, most: number}>} Effort basic blocks in a call of each hook */

export class StudyPane {
    /** @param {(line: number) => void} goTo a line of the source */
    constructor(goTo) {
        this.goTo = goTo;
        this.effort = element("section", { hidden: true });
        this.rules = element("section", { hidden: true, "aria-label": "Rules of Linux" });
        this.checks = element("section", { hidden: true, "aria-label": "Check", "aria-live": "polite" });
        this.element = element("div", { className: "findings study" }, this.checks, this.rules, this.effort);
    }

    clear() {
        for (const part of [this.effort, this.rules, this.checks]) part.hidden = true;
    }

    /**
     * @param {number} passed runs without a broken rule @param {{line: number, text: string} | null} broken
     * @param {string} name of the policy
     */
    showCheck(passed, broken, name) {
        this.checks.hidden = false;
        this.checks.replaceChildren(
            element("h2", { textContent: "Check" }),
            broken ? element("p", { className: "worse" }, ...this.#place(broken.line), broken.text)
                : element("p", { textContent: `No rule is broken in ${passed} runs: with all actions of processes, with tasks bound to a CPU, and with the least and greatest value of each tunable.` }),
            element("p", {}, `Not checked: ${UNCHECKED_RULES}. For these, use `, element("code", { textContent: `./schedlab check ${name}` }), "."));
    }

    #place(line) {
        return line ? [button("", `Go to line ${line}`, () => this.goTo(line), `Line ${line}`), " "] : [];
    }

    /** @param {Effort} edited @param {Effort} reference @param {string} name of the reference's policy */
    showEffort(edited, reference, name) {
        const number = (value) => (value === undefined ? "–" : value.toFixed(value < 100 && !Number.isInteger(value) ? 1 : 0));
        const hooks = [...new Set([...edited.keys(), ...reference.keys()])].filter(Boolean);
        const rows = hooks.map((hook) => {
            const [one, other] = [edited.get(hook), reference.get(hook)];
            const cells = [number(one?.mean), number(one?.most), number(other?.mean), number(other?.most)];
            return element("tr", {}, element("th", { scope: "row", textContent: `${hook}()` }), ...cells.map((textContent) => element("td", { textContent })));
        });
        const heads = ["Hook", "Mean", "Most", `Mean of ${name}`, `Most of ${name}`].map((text) => element("th", { scope: "col", textContent: text }));
        this.effort.hidden = false;
        this.effort.replaceChildren(
            element("h2", { textContent: "Basic blocks per call" }),
            element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows)),
            element("p", { textContent: "The limit of a call counts these blocks, too: straight pieces of code without a branch." }));
    }

    /** @param {import("./linux_rules.js").Broken[]} broken @param {string} name of the policy */
    showBroken(broken, name) {
        const rows = broken.map(({ line, text }) => element("li", {}, ...this.#place(line), text));
        this.rules.hidden = false;
        this.rules.replaceChildren(
            element("h2", { textContent: "Linux's verifier" }),
            rows.length ? element("ul", { className: "broken" }, ...rows) : element("p", { textContent: "No rule is broken that this page checks." }),
            element("p", {}, `Checked: loops without LOOP_GUARD, address spaces, recursion, calls through pointers, floating point, parameters, arrays on the stack. Not checked: ${NOT_CHECKED}. `,
                "For these, use ", element("code", { textContent: `./schedlab check ${name}` }), "."));
    }
}
