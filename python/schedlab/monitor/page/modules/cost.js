// SPDX-License-Identifier: MIT
//
// The share of the system's CPU time that monitoring costs, and its limit.

import { element, setStyle, setText } from "../elements.js";
import { count, percent } from "../words.js";

const LIMIT = 0.05;
/** The bar's maximum: somewhat more than the limit, so that the limit is visible. */
const SCALE = 0.08;

/** @param {import("../panel.js").Panel} panel */
export function create(panel) {
    const total = element("span", { className: "cost-total" });
    const verdict = element("span", { className: "cost-verdict" });
    const steering = element("span", { className: "cost-steering" });
    const tracing = element("span", { className: "cost-tracing" });
    const limit = element("span", { className: "cost-limit", data: { words: "5 %" } });
    const meter = element("div", { className: "cost-meter", role: "meter", "aria-label": "Cost of watching" }, steering, tracing, limit);
    meter.setAttribute("aria-valuemin", "0");
    meter.setAttribute("aria-valuenow", "0");
    meter.setAttribute("aria-valuemax", String(LIMIT));
    limit.style.left = `${(100 * LIMIT) / SCALE}%`;
    const facts = new Facts(["steering", "tracing", "events", "in all", "lost", "begun anew"]);
    panel.body.append(element("p", { className: "cost-line" }, total, verdict), meter, facts.element);

    panel.draws(({ frame, missed }) => {
        const { cost } = frame;
        const over = cost.total > LIMIT;
        setText(total, percent(cost.total, 2));
        setText(verdict, over ? "✕ more than 5 %" : "✓ within 5 %");
        verdict.className = `cost-verdict ${over ? "failed" : "good"}`;
        setStyle(steering, "width", `${Math.min(100, (100 * cost.steering) / SCALE).toFixed(2)}%`);
        setStyle(tracing, "width", `${Math.min(100, (100 * cost.tracing) / SCALE).toFixed(2)}%`);
        meter.setAttribute("aria-valuenow", String(Math.min(cost.total, LIMIT)));
        meter.setAttribute("aria-valuetext", `${percent(cost.total, 2)}, at most 5 %`);
        facts.set("steering", percent(cost.steering, 2));
        facts.set("tracing", percent(cost.tracing, 2));
        facts.set("events", `${count(frame.events_per_s)} a second`);
        facts.set("in all", count(frame.events));
        facts.set("lost", frame.lost ? `! ${count(frame.lost)} records` : "none");
        facts.set("begun anew", missed ? `! ${count(missed)} times, because the page was too slow` : "never");
    });
}

/** Names and values, in two columns. */
class Facts {
    constructor(names) {
        this.element = element("dl", { className: "facts" });
        this.values = new Map();
        for (const name of names) {
            const value = element("dd");
            this.values.set(name, value);
            this.element.append(element("div", {}, element("dt", { textContent: name, className: name.replace(" ", "-") }), value));
        }
    }

    set(name, text) {
        setText(this.values.get(name), text);
    }
}
