// SPDX-License-Identifier: MIT
//
// All keys, and the meaning of every panel and sign.

import { button, element } from "../elements.js";
import { KEYS, TABLE_KEYS, TIMELINE_KEYS } from "../keys.js";
import { resetLayout } from "../panel.js";
import { PANELS } from "../panels.js";

const SIGNS = [
    ["colour and pattern", "Each process has its own: the same in all panels. Names and PIDs stand beside it, so that nothing is told by colour alone."],
    ["window", "The time that shares and metrics look back. It is set beside the metrics."],
    ["time", "The system's own. Under a pace of 0.1×, one of its seconds takes ten of ours."],
    ["begun anew", "The page was too slow for a kernel's trace, and began anew with the oldest records that are kept."],
    ["records lost", "The trace has a gap; metrics say what the rest of it tells."],
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
                button("reset", "Unfold all panels, enlarge none", resetLayout, "All panels as at first")),
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
