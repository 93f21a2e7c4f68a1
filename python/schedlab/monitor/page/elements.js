// SPDX-License-Identifier: MIT
//
// The page's elements and words: made without markup in strings, so that a process may be called
// whatever it likes.

/**
 * @param {string} tag
 * @param {Object<string, any>} [properties] of the element; `role`, `for` and aria-… as attributes
 * @param {...(Node | string)} children
 * @returns {any}
 */
export function element(tag, properties = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
        if (name === "role" || name === "for" || name.startsWith("aria-")) made.setAttribute(name, value);
        else made[name] = value;
    }
    made.append(...children);
    return made;
}

/**
 * @param {string} sign what is seen
 * @param {string} label what is said, and shown on hover
 * @param {(event: MouseEvent) => void} press
 * @returns {HTMLButtonElement}
 */
export function button(sign, label, press) {
    const made = element("button", { type: "button", textContent: sign });
    if (label && label !== sign) {
        made.setAttribute("aria-label", label);
        made.dataset.tip = label;
    }
    made.addEventListener("click", press);
    return made;
}

/** Sets a text only if it is another: to set one costs layout. */
export function setText(node, text) {
    if (node.textContent !== text) node.textContent = text;
}

/** Says it to who cannot see it. @param {string} text */
export function announce(text) {
    const region = document.getElementById("announcements");
    if (region) region.textContent = text;
}

const whole = new Intl.NumberFormat("en");

/** @param {number} value @returns {string} such as 4,096 */
export function count(value) {
    return whole.format(Math.round(value));
}

/** @param {number} part 0 to 1 @param {number} [digits] @returns {string} such as 12.5 % */
export function percent(part, digits = 1) {
    return `${(100 * part).toFixed(digits)} %`;
}

const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

/** @param {number | null} ns @returns {string} such as 12.3 ms, of three digits; "–": not known */
export function duration(ns) {
    if (ns === null || ns === undefined) return "–";
    if (ns === 0) return "0";
    const [size, unit] = UNITS.find(([each]) => Math.abs(ns) >= each) ?? UNITS[3];
    const value = ns / size;
    const digits = unit === "ns" || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
    return `${digits ? value.toFixed(digits) : count(value)} ${unit}`;
}

/** @param {number} ns @returns {string} a moment: seconds to the millisecond */
export function moment(ns) {
    return `${(ns / 1e9).toFixed(3)} s`;
}

export const STATES = ["runnable", "running", "blocked"];
/** As enum BlockReason of the trace. */
export const REASONS = ["", "sleep", "child", "pipe", "console", "disk", "lock", "journal", "exit", "other"];
