// SPDX-License-Identifier: MIT
//
// All keys, and the meaning of every panel and sign.

import { button, element } from "../elements.js";
import { KEYS, TABLE_KEYS, TIMELINE_KEYS } from "../keys.js";
import { resetLayout } from "../panel.js";
import { PANELS } from "../panels.js";

const SIGNS = [
    ["colour and pattern", "Each process has the same colour and pattern in all panels. Names and PIDs are next to it, so colour is never the only cue."],
    ["window", "The time span that shares and metrics cover. Set it in the metrics panel."],
    ["time", "The time of the system. At a speed of 0.1×, one of its seconds takes ten real seconds."],
    ["begun anew", "The page was too slow for a kernel's trace and restarted with the oldest stored records."],
    ["records lost", "The trace has a gap; metrics cover the rest of it."],
];

/**
 * @param {HTMLElement} place
 * @returns {{open: () => void}}
 */
export function create(place) {
    const dialog = element("dialog", { className: "help", "aria-labelledby": "help-title" });
    const close = button("close", "Close", () => dialog.close());
    dialog.append(
        element("header", {}, element("h2", { id: "help-title", textContent: "Help" }), close),
        element("div", { className: "help-columns" },
            element("section", {}, element("h3", { textContent: "Keys" }), keyTable(KEYS),
                element("h3", { textContent: "In the time line" }), keyTable(TIMELINE_KEYS),
                element("h3", { textContent: "In the table of processes" }), keyTable(TABLE_KEYS),
                button("reset", "Unfold all panels, enlarge none", resetLayout, "Reset all panels")),
            element("section", {}, element("h3", { textContent: "Panels" }), definitions(PANELS.map(({ title, about, help }) => [title, `${about} ${help}`])),
                element("h3", { textContent: "Signs" }), definitions(SIGNS))),
    );
    dialog.addEventListener("click", (event) => {
        if (event.target === dialog) dialog.close();
    });
    place.append(dialog);
    return {
        open: () => {
            if (!dialog.open) dialog.showModal();
        },
    };
}

function keyTable(keys) {
    const rows = keys.map(([names, act]) =>
        element("tr", {}, element("th", { scope: "row" }, element("kbd", { textContent: names })), element("td", { textContent: act })));
    return element("table", {}, element("tbody", {}, ...rows));
}

function definitions(pairs) {
    const list = element("dl");
    for (const [title, words] of pairs) {
        list.append(element("dt", { textContent: title }), element("dd", { textContent: words }));
    }
    return list;
}
