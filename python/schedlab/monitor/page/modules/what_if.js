// SPDX-License-Identifier: MIT
//
// What-if branches: another policy or tunable from the shown moment. The branch is computed on the real
// kernel, and shown next to the unchanged run.

import { notice } from "../banners.js";
import { button, element, policySelect, setText } from "../elements.js";

/**
 * @param {import("../panel.js").Panel} panel
 * @param {string} system
 * @param {any[]} policies of hello
 * @returns {{element: HTMLElement, follow: (state: import("../store.js").SystemState) => void}}
 */
export function whatIf(panel, system, policies) {
    const choice = policySelect(policies, "Policy from here on");
    choice.prepend(element("option", { value: "", textContent: "the same policy", selected: true }));
    const field = element("input", { type: "text", placeholder: "slice=3 boost=100", "aria-label": "Tunables from here on" });
    const ask = button("branch", "Run both branches from this moment, changed and unchanged, and show them side by side", compute, "What if from here?");
    const why = element("p", { className: "what-if-why", id: `what-if-why-${system}` });
    ask.setAttribute("aria-describedby", why.id);
    const line = element("div", { className: "what-if-line" }, choice, field, ask);
    const made = element("div", { className: "what-if needs-server" }, line, why);
    let reason = "";
    let asking = false;

    async function compute() {
        asking = true;
        show();
        const fields = { system, policy: choice.value, settings: field.value };
        const answer = await panel.asks("branch", fields, "Both branches are ready.");
        asking = false;
        show();
        if (answer) notice(`From the same moment: ${answer.unchanged} unchanged, ${answer.changed} changed. Kept in ${answer.folder}`, "good");
    }

    function show() {
        for (const control of [choice, field, ask]) control.disabled = asking || reason !== "";
        ask.title = reason;
        setText(why, asking ? "Repeating the run, then both branches …" : reason);
    }

    function follow({ info }) {
        const now = info?.no_branches ?? "";
        if (now === reason) return;
        reason = now;
        show();
    }
    return { element: made, follow };
}
