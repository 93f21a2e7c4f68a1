// SPDX-License-Identifier: MIT
//
// The page's tabs, and dividers that move by pointer and by keys.

import { element } from "../../python/schedlab/monitor/page/elements.js";

const STEP = 2; // percent, of a key
const NARROW = matchMedia("(width <= 800px)");
const RESULT = "result";

/** Sizes of panes in percent, which are part of a link: the least, the standard and the most. */
export const PANES = { left: [15, 44, 80], upper: [10, 60, 90], lower: [10, 40, 80] };

/** @returns {boolean} true on a telephone */
export function isNarrow() {
    return NARROW.matches;
}

/** Tabs above the left pane. On a narrow page, the right pane is a tab, too, and the first. */
export class Tabs {
    /** @type {{tab: HTMLElement, pane: HTMLElement}[]} */
    #all;

    /** @param {Record<string, HTMLElement>} panes by their titles; each has an id */
    constructor(panes) {
        const result = document.querySelector(`#${RESULT}`);
        this.#all = Object.entries({ schedule: result, ...panes }).map(([title, pane]) => {
            const tab = element("button", { type: "button", role: "tab", textContent: title, "aria-controls": pane.id });
            tab.addEventListener("click", () => this.show(pane.id));
            tab.classList.toggle("narrow-only", pane === result);
            return { tab, pane };
        });
        this.element = element("div", { className: "editor-tabs", role: "tablist", "aria-label": "What to edit" }, ...this.#all.map(({ tab }) => tab));
        this.element.addEventListener("keydown", (event) => this.#move(event));
        NARROW.addEventListener("change", () => this.#showFirst());
        this.#showFirst();
    }

    #showFirst() {
        const [result, first] = this.#all;
        this.show((NARROW.matches ? result : first).pane.id);
    }

    /** @param {string} id of a pane */
    show(id) {
        document.querySelector("main").dataset.tab = id;
        for (const { tab, pane } of this.#all) {
            tab.setAttribute("aria-selected", String(pane.id === id));
            tab.tabIndex = pane.id === id ? 0 : -1;
            if (pane.id !== RESULT) pane.hidden = pane.id !== id;
        }
    }

    #move(event) {
        const all = this.#all.filter(({ tab }) => tab.offsetParent);
        const at = all.findIndex(({ tab }) => tab === document.activeElement);
        const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: -1 }[event.key];
        if (at < 0 || next === undefined) return;
        event.preventDefault();
        const { tab, pane } = all.at(next % all.length);
        this.show(pane.id);
        tab.focus();
    }
}

/**
 * A divider of two panes. Its value is a part of the first pane's parent, in percent.
 * @param {keyof PANES} name of the size, and of the style's variable @param {string} label
 * @param {{isUpright?: boolean, isLast?: boolean, changed: (percent: number) => void}} options `isUpright`: it moves
 * sideways; `isLast`: it sizes the pane behind it
 * @returns {HTMLElement & {set: (percent: number) => void}}
 */
export function dividerOf(name, label, { isUpright = false, isLast = false, changed }) {
    const [least, standard, most] = PANES[name];
    const divider = element("div", {
        className: `divider ${isUpright ? "upright" : "level"}`, role: "separator", tabIndex: 0, "aria-label": label,
        "aria-orientation": isUpright ? "vertical" : "horizontal", "aria-valuemin": String(least), "aria-valuemax": String(most),
    });
    divider.set = (percent) => {
        const value = Math.round(Math.min(most, Math.max(least, percent)));
        document.documentElement.style.setProperty(`--${name}`, String(value));
        divider.setAttribute("aria-valuenow", String(value));
    };
    const choose = (percent) => {
        divider.set(percent);
        changed(Number(divider.getAttribute("aria-valuenow")));
    };
    divider.addEventListener("pointerdown", (event) => divider.setPointerCapture(event.pointerId));
    divider.addEventListener("pointermove", ({ pointerId, clientX, clientY }) => {
        if (!divider.hasPointerCapture(pointerId)) return;
        const { left, top, width, height } = divider.parentElement.getBoundingClientRect();
        const part = isUpright ? (clientX - left) / width : (clientY - top) / height;
        choose(100 * (isLast ? 1 - part : part));
    });
    divider.addEventListener("keydown", (event) => {
        const [back, forth] = isUpright ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
        const now = Number(divider.getAttribute("aria-valuenow"));
        const sign = isLast ? -1 : 1;
        const next = { [back]: now - sign * STEP, [forth]: now + sign * STEP, Home: least, End: most }[event.key];
        if (next === undefined) return;
        event.preventDefault();
        choose(next);
    });
    divider.set(standard);
    return divider;
}
