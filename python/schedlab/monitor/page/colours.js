// SPDX-License-Identifier: MIT
//
// Colours of drawings: a colour and a pattern for each PID, the theme's colours, and light or dark. The
// colours are those of the reports: theme.css has them.

/** Patterns in addition to colours: colours × patterns is the number of distinguishable processes. */
export const PATTERNS = ["plain", "stripes", "dots", "grid"];

const THEME_KEY = "schedlab-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
/** @type {HTMLLinkElement} has the colours of the dark theme */
const sheet = document.querySelector("#dark");
/** @type {Set<() => void>} */
const listeners = new Set();
/** @type {any} */
let read = null;

/** @param {number} pid @returns {string} its colour; idle's is the theme's line */
export function colourOf(pid) {
    const { series, line } = tokens();
    return pid > 0 ? series[pid % series.length] : line;
}

/** @param {number} pid @returns {string} one of PATTERNS */
export function patternOf(pid) {
    return PATTERNS[Math.floor(Math.max(0, pid) / tokens().series.length) % PATTERNS.length];
}

/**
 * @param {string} name of a policy, without a preset
 * @returns {string} for style sheets: its colour, or the colour of user-defined policies
 */
export function policyColour(name) {
    return `var(--policy-${CSS.escape(name)}, var(--own-policy-1))`;
}

/** @param {string} colour #rrggbb @returns {string} black or white, whichever is legible on it */
export function inkOn(colour) {
    const parts = [1, 3, 5].map((at) => {
        const part = parseInt(colour.slice(at, at + 2), 16) / 255;
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    const luminance = 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    return luminance > 0.18 ? "#000000" : "#ffffff";
}

/**
 * The theme's colours, for drawings that CSS does not style: {paper, raised, sunken, ink, soft, line,
 * strongLine, accent, good, bad, failed, sans, mono}; and series, a list of them.
 * @returns {any}
 */
export function tokens() {
    if (!read) {
        const style = getComputedStyle(document.documentElement);
        const value = (name) => style.getPropertyValue(`--${name}`).trim();
        read = { strongLine: value("strong-line") };
        for (const name of ["paper", "raised", "sunken", "ink", "soft", "line", "accent"]) read[name] = value(name);
        for (const name of ["good", "bad", "failed", "sans", "mono"]) read[name] = value(name);
        read.series = [];
        for (let number = 1, colour; (colour = value(`series-${number}`)); number++) read.series.push(colour);
    }
    return read;
}

/** @returns {"auto" | "light" | "dark"} the user's choice */
export function theme() {
    const storedTheme = localStorage.getItem(THEME_KEY);
    return storedTheme === "light" || storedTheme === "dark" ? storedTheme : "auto";
}

/** @returns {boolean} true if the theme is dark now */
export function isDark() {
    return theme() === "auto" ? dark.matches : theme() === "dark";
}

/** @param {"auto" | "light" | "dark"} choice */
export function setTheme(choice) {
    if (choice === "auto") localStorage.removeItem(THEME_KEY);
    else localStorage.setItem(THEME_KEY, choice);
    apply();
}

/** Calls the listener when the colours change. @param {() => void} listener */
export function onTheme(listener) {
    listeners.add(listener);
}

function apply() {
    document.documentElement.dataset.theme = isDark() ? "dark" : "light";
    sheet.media = isDark() ? "screen" : "not all";
    read = null;
    for (const listener of listeners) listener();
}

dark.addEventListener("change", apply);
sheet.addEventListener("load", apply); // it may load later
apply();
