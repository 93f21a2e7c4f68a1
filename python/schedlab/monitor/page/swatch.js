// SPDX-License-Identifier: MIT
//
// A process in texts: its colour with its pattern, its name, its PID.

import { colourOf, patternOf } from "./colours.js";
import { element, setText } from "./elements.js";

/** @returns {HTMLElement} a place for a swatch; `dress` sets its process */
export function swatch() {
    return element("span", { className: "swatch", "aria-hidden": "true" });
}

/** @param {HTMLElement} made @param {number} pid */
export function dress(made, pid) {
    if (made.dataset.pid === String(pid)) return;
    made.dataset.pid = String(pid);
    made.className = `swatch ${patternOf(pid)}`;
    made.style.backgroundColor = pid > 0 ? colourOf(pid) : "";
}

/** @param {number} pid 0: none, a CPU idled @returns {HTMLElement} */
export function marked(pid) {
    const made = swatch();
    if (pid) dress(made, pid);
    else made.className = "swatch idle-swatch";
    return made;
}

/** @returns {HTMLElement} a place for a process; `name` sets it */
export function process() {
    const made = element("span", { className: "process" }, swatch(), element("span", { className: "process-name" }));
    made.append(element("span", { className: "process-pid" }));
    return made;
}

/** @param {HTMLElement} made @param {number} pid @param {string} words its name */
export function name(made, pid, words) {
    const [mark, title, number] = made.children;
    dress(mark, pid);
    setText(title, words || (pid ? "?" : "idle"));
    setText(number, pid ? String(pid) : "");
}
