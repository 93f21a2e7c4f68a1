// SPDX-License-Identifier: MIT
//
// Creates the page's elements without markup in strings, because a process may have any name.

export { count, duration, moment, percent, REASONS, STATES } from "./words.js";

/** Drawn on 16 × 16. */
const ICONS = {
    play: "M4 2.5 13.5 8 4 13.5Z",
    pause: "M4 2.5h3v11H4ZM9 2.5h3v11H9Z",
    branch: "M3 7h5l3-4h3v2h-2L9 8l3 3h2v2h-3L8 9H3Z",
    back: "M13 2.5 6 8 13 13.5ZM5 2.5H2.5v11H5Z",
    step: "M3 2.5 10 8 3 13.5ZM11 2.5h2.5v11H11Z",
    record: "M8 3a5 5 0 1 1 0 10A5 5 0 0 1 8 3Z",
    stop: "M3.5 3.5h9v9h-9Z",
    report: "M2 13.2h12v1.3H2ZM3 8h2.4v4H3ZM6.8 4h2.4v8H6.8ZM10.6 6h2.4v6h-2.4Z",
    perfetto: "M1.5 3h7v2.4h-7ZM6 6.8h8.5v2.4H6ZM3 10.6h5v2.4H3ZM9.5 10.6h4v2.4h-4Z",
    light: "M8 4.6a3.4 3.4 0 1 1 0 6.8 3.4 3.4 0 0 1 0-6.8ZM7.4.8h1.2v2.3H7.4ZM7.4 12.9h1.2v2.3H7.4ZM.8 7.4h2.3v1.2H.8ZM12.9 7.4h2.3v1.2h-2.3ZM2.5 3.3l.8-.8 1.7 1.6-.9.9ZM11 11.9l.9-.9 1.6 1.7-.8.8ZM2.5 12.7 4.1 11l.9.9-1.7 1.6ZM11 4.1l1.7-1.6.8.8L11.9 5Z",
    dark: "M6.3 1.6a6.5 6.5 0 1 0 8.1 8.1A5.4 5.4 0 0 1 6.3 1.6Z",
    auto: "M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13Zm0 1.4v10.2A5.1 5.1 0 0 0 8 2.9Z",
    help: "M7.2 11.2h1.7V13H7.2ZM4.8 5.6C4.9 3.8 6.2 2.6 8.1 2.6c1.9 0 3.2 1.1 3.2 2.7 0 1.2-.6 1.9-1.5 2.5-.8.5-1 .8-1 1.5v.6H7.2v-.8c0-1.1.5-1.8 1.4-2.4.7-.5 1-.8 1-1.4 0-.7-.6-1.2-1.5-1.2s-1.5.6-1.6 1.5Z",
    fold: "M2.9 5.2 8 10.3l5.1-5.1 1 1L8 12.3 1.9 6.2Z",
    unfold: "M5.2 2.9 10.3 8l-5.1 5.1 1 1L12.3 8 6.2 1.9Z",
    enlarge: "M2 2h4.6v1.4H4.4l2.8 2.8-1 1-2.8-2.8v2.2H2ZM14 14H9.4v-1.4h2.2L8.8 9.8l1-1 2.8 2.8V9.4H14Z",
    reduce: "M7.2 7.2H2.6V5.8h2.2L2 3l1-1 2.8 2.8V2.6h1.4ZM8.8 8.8h4.6v1.4h-2.2L14 13l-1 1-2.8-2.8v2.2H8.8Z",
    close: "M3.7 2.7 8 7l4.3-4.3 1 1L9 8l4.3 4.3-1 1L8 9l-4.3 4.3-1-1L7 8 2.7 3.7Z",
    reset: "M8 2.6a5.4 5.4 0 1 1-5.3 6.5h1.5A4 4 0 1 0 5.3 5h2v1.4H2.8V1.9h1.4v2A5.4 5.4 0 0 1 8 2.6Z",
    earlier: "M10.8 2.9 5.7 8l5.1 5.1-1 1L3.7 8l6.1-6.1Z",
    wait: "M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13Zm0 1.4a5.1 5.1 0 1 0 0 10.2A5.1 5.1 0 0 0 8 2.9ZM7.3 4.4h1.4v3.3l2.2 2.2-1 1-2.6-2.6Z",
};
const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {string} tag
 * @param {Object<string, any>} [properties] of the element; `role`, `for` and aria-… as attributes,
 *     `data` as its data set
 * @param {...(Node | string)} children
 * @returns {any}
 */
export function element(tag, properties = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
        if (name === "data") Object.assign(made.dataset, value);
        else if (name === "role" || name === "for" || name.startsWith("aria-")) made.setAttribute(name, value);
        else made[name] = value;
    }
    made.append(...children);
    return made;
}

/** @param {string} name one of ICONS @returns {SVGElement} in the colour of the text around it */
export function icon(name) {
    const drawing = document.createElementNS(SVG, "svg");
    drawing.setAttribute("viewBox", "0 0 16 16");
    drawing.setAttribute("aria-hidden", "true");
    drawing.setAttribute("class", "icon");
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", ICONS[name]);
    path.setAttribute("fill", "currentColor");
    drawing.append(path);
    return drawing;
}

/** Changes a button's icon. @param {Element} made @param {string} name */
export function setIcon(made, name) {
    if (made.dataset.icon === name) return;
    made.dataset.icon = name;
    made.querySelector(".icon")?.replaceWith(icon(name));
}

/**
 * Creates a button with an icon, a text, or both.
 * @param {string} sign an icon's name, or a text shown instead
 * @param {string} label its action: announced, and shown on hover
 * @param {(event: MouseEvent) => void} press
 * @param {string} [words] shown next to the icon
 * @returns {HTMLButtonElement}
 */
export function button(sign, label, press, words = "") {
    const made = element("button", { type: "button", className: words ? "button" : "button only-icon" });
    if (ICONS[sign]) {
        made.append(icon(sign));
        made.dataset.icon = sign;
    } else made.append(sign);
    if (words) made.append(element("span", { className: "words", textContent: words }));
    setLabel(made, label);
    made.addEventListener("click", press);
    return made;
}

function plain(text) {
    return text.replace(/[^\p{L}\p{N} ]/gu, "").trim().toLowerCase();
}

/**
 * Names a button's action. A name contains the words that are seen, because users with speech input say them.
 * @param {HTMLElement} made @param {string} label
 */
export function setLabel(made, label) {
    const words = made.textContent ?? "";
    const name = plain(label).includes(plain(words)) ? label : `${words}: ${label}`;
    if (made.getAttribute("aria-label") === name) return;
    made.setAttribute("aria-label", name);
    made.dataset.tip = label;
}

/**
 * Sets a text only if it changes, because setting one costs layout. @param {Node} node @param {string} text
 */
export function setText(node, text) {
    if (node.textContent !== text) node.textContent = text;
}

/** Sets a property of an element's style only if it changes. */
export function setStyle(node, name, value) {
    if (node.style.getPropertyValue(name) !== value) node.style.setProperty(name, value);
}

/** Announces a text to screen readers. @param {string} text */
export function announce(text) {
    const region = document.getElementById("announcements");
    if (region) region.textContent = text;
}

/**
 * A select of all policies, each with its presets.
 * @param {any[]} policies of hello
 * @param {string} label
 */
export function policySelect(policies, label) {
    const made = element("select", { "aria-label": label });
    for (const { name, presets } of policies) {
        const options = [name, ...Object.keys(presets).map((preset) => `${name}:${preset}`)];
        const group = element("optgroup", { label: name });
        for (const value of options) group.append(element("option", { value, textContent: value }));
        made.append(options.length > 1 ? group : group.firstChild);
    }
    return made;
}
