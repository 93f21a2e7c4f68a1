// SPDX-License-Identifier: MIT
//
// Everything by keyboard.

import { isLecture, setLecture } from "./lecture.js";
import { enlarge, enlarged, fold, isFolded } from "./panel.js";
import { PANELS } from "./panels.js";

/** Keys and their actions, as the help shows them. */
export const KEYS = [
    ["Space", "pause or continue"],
    [". and ,", "one step; one step back"],
    ["[ and ]", "slower, faster"],
    ["r", "start or end a recording"],
    ["/", "filter processes"],
    ["e", "enlarge the focused panel, or restore it"],
    ["f", "fold or unfold the focused panel"],
    ["m", "lecture: four panels in large letters, or all panels"],
    ["t", "theme: system, light, dark"],
    ["1 to 9, 0, w, c", "go to a panel, in page order"],
    ["?", "this help"],
    ["Escape", "leave a field, an enlarged panel, this help"],
];
export const TIMELINE_KEYS = [
    ["← →", "pan; with Shift by half of the view"],
    ["+ −", "zoom in or out; also the wheel, after a click or with Ctrl"],
    ["0, Home", "show the whole recorded time, or its beginning"],
    ["l", "follow now"],
    ["p", "freeze the drawing, not the machine; or continue"],
    ["n, b", "go to the next run, or back"],
    ["↑ ↓", "go from a run to another CPU"],
    ["Enter", "select the run's process"],
    ["Escape", "leave the run, then clear the selection"],
];
export const TABLE_KEYS = [
    ["↑ ↓ Page Home End", "choose a process"],
    ["Enter", "set the attribute that the policy shares by (or priority)"],
    ["p, t, w", "set priority, tickets, weight"],
    ["Delete, twice", "kill it"],
    ["Escape", "choose none"],
    ["↓ in the filter", "go to the first match"],
];

/**
 * @param {{controls: any, help: () => void, currentSystem: () => string}} page `controls`: the result of
 *     modules/header.js
 */
export function listenToKeys({ controls, help, currentSystem }) {
    const acts = {
        " ": controls.toggle,
        ".": controls.step,
        ",": controls.stepBack,
        "[": () => controls.faster(-1),
        "]": () => controls.faster(1),
        r: controls.record,
        t: controls.theme,
        m: () => setLecture(!isLecture()),
        "?": help,
        "/": () => focusFilter(currentSystem()),
        e: () => withPanel(enlarge),
        f: () => withPanel(fold),
    };
    for (const { key, name } of PANELS) acts[key] = () => focusPanel(name, currentSystem());

    addEventListener("keydown", (event) => {
        if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
        if (document.querySelector("dialog[open]")) return;
        if (event.key === "Escape") leave(event);
        else if (!isTyping(event) && acts[event.key]) {
            event.preventDefault();
            acts[event.key]();
        }
    });
}

function isTyping({ target, key }) {
    if (target.closest?.("input:not([type=checkbox]):not([type=range]), select, textarea")) return true;
    return key === " " && Boolean(target.closest?.("button, a, summary, input"));
}

function leave({ target }) {
    if (target.closest?.("input, select, textarea")) target.blur();
    else if (enlarged()) enlarge(enlarged());
}

function withPanel(act) {
    const panel = document.activeElement?.closest(".panel");
    const name = panel?.dataset.panel ?? enlarged();
    if (name) act(name);
}

/** Scrolls to a panel, and focuses it. @param {string} name @param {string} system */
export function focusPanel(name, system) {
    if (enlarged() && enlarged() !== name) enlarge(enlarged());
    if (isFolded(name)) fold(name);
    const panel = document.getElementById(`${name}-${system}`);
    panel?.focus({ preventScroll: true });
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    panel?.scrollIntoView({ block: "start", behavior: calm ? "auto" : "smooth" });
}

function focusFilter(system) {
    focusPanel("processes", system);
    document.querySelector(`#processes-${system} input[type=search]`)?.focus({ preventScroll: true });
}
