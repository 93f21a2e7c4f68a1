// SPDX-License-Identifier: MIT
//
// A panel of the page: a title, a short description, space for a module, and buttons to fold and to enlarge
// it. The panels' state is stored by their names: panels of two systems share it.

import { onTheme } from "./colours.js";
import { lettersChanged } from "./drawing/paint.js";
import { ask } from "./connection.js";
import { announce, button, element, setIcon, setLabel } from "./elements.js";
import { stateOf, subscribe } from "./store.js";

const LAYOUT_KEY = "schedlab-layout";
/** @type {Set<Panel>} */
const panels = new Set();
let layout = readLayout();

/** @typedef {import("./store.js").SystemState} SystemState */

export class Panel {
    /** @type {((state: SystemState) => void) | null} */
    #draw = null;
    #waiting = false;
    #scheduled = 0;
    #ends = [];

    /**
     * @param {string} name of the module
     * @param {string} system "a", "b" …
     * @param {{title: string, about: string, help?: string, scrollsInside?: boolean}} words `about`: one line;
     *     `help`: definitions; `scrollsInside`: a part of the body scrolls and has the focus, not the body
     */
    constructor(name, system, { title, about, help = "", scrollsInside = false }) {
        this.name = name;
        this.system = system;
        const id = `${name}-${system}`;
        this.words = title;
        this.title = element("h3", { id: `${id}-title`, textContent: title });
        /** Next to the title: a count, or another note on the contents. */
        this.noteElement = element("span", { className: "panel-note" });
        /** Space for the module's own buttons. */
        this.tools = element("div", { className: "panel-tools" });
        this.fold = button("fold", `Fold ${title}`, () => fold(name));
        this.enlarge = button("enlarge", `Enlarge ${title}`, () => enlarge(name));
        this.body = element("div", { className: "panel-body", id: `${id}-body` });
        if (!scrollsInside) this.body.tabIndex = 0;
        this.fold.setAttribute("aria-controls", this.body.id);
        this.error = element("p", { className: "error", role: "alert", hidden: true });
        const line = element("div", { className: "panel-line" }, this.title, helpButton(title, about, help));
        line.append(this.noteElement, this.tools, this.fold, this.enlarge);
        this.head = element("header", { className: "panel-head" }, line);
        this.head.append(element("p", { className: "panel-about", textContent: about, title: about }));
        const parts = [this.head, this.error, this.body];
        this.element = element("section", { className: `panel panel-${name}`, id, tabIndex: -1 }, ...parts);
        this.element.setAttribute("aria-labelledby", `${this.title.id} letter-${system}`);
        this.element.dataset.panel = name;
        this.#watch();
        panels.add(this);
        this.followLayout();
    }

    /** True if any part of it is visible. Otherwise a module need not draw. */
    get visible() {
        return !this.#waiting && !isFolded(this.name) && !document.hidden;
    }

    /**
     * Sets the function that draws: called after each frame, hello and selection, when the size or the theme
     * changes, and when it becomes visible. It is called at most once an animation frame, never before the
     * first frame and never while invisible.
     * @param {(state: SystemState) => void} draw
     */
    draws(draw) {
        this.#draw = draw;
        this.#ends.push(subscribe(this.system, () => this.redraw()));
    }

    /** Draws now, if it is visible. */
    redraw() {
        const state = stateOf(this.system);
        if (this.#draw && state.frame && this.visible) this.#draw(state);
    }

    /** Sets the note next to the title. @param {string} text such as a count */
    note(text) {
        if (this.noteElement.textContent !== text) this.noteElement.textContent = text;
    }

    /** Shows an error in the panel, until `fail("")` or the next. @param {string} text */
    fail(text) {
        this.error.textContent = text;
        this.error.hidden = !text;
    }

    /**
     * Sends a request; a refusal is shown in the panel.
     * @param {string} action @param {Object<string, any>} fields @param {string} [done] announced on success
     * @returns {Promise<any>} the result, true if it has none; false: it failed
     */
    async asks(action, fields, done = "") {
        this.fail("");
        try {
            const result = await ask(action, fields);
            if (done) announce(done);
            return result ?? true;
        } catch (error) {
            this.fail(error.message);
            return false;
        }
    }

    /** Ends everything that it has started. */
    end() {
        for (const end of this.#ends) end();
        panels.delete(this);
        this.element.remove();
    }

    followLayout() {
        const folded = isFolded(this.name);
        const enlarged = layout.enlarged === this.name;
        this.element.classList.toggle("folded", folded);
        this.element.classList.toggle("enlarged", enlarged);
        this.fold.setAttribute("aria-expanded", String(!folded));
        setIcon(this.fold, folded ? "unfold" : "fold");
        setLabel(this.fold, `${folded ? "Unfold" : "Fold"} ${this.words}`);
        this.enlarge.setAttribute("aria-pressed", String(enlarged));
        setIcon(this.enlarge, enlarged ? "reduce" : "enlarge");
        setLabel(this.enlarge, enlarged ? "Back to all panels" : `Enlarge ${this.words}`);
        this.redraw();
    }

    #watch() {
        // Later, because drawing may change sizes, and then the observers would call in a loop.
        const later = () => {
            this.#scheduled ||= requestAnimationFrame(() => {
                this.#scheduled = 0;
                this.redraw();
            });
        };
        const seen = new IntersectionObserver((entries) => {
            this.#waiting = !entries.at(-1).isIntersecting;
            later();
        });
        seen.observe(this.element);
        const sized = new ResizeObserver(later);
        sized.observe(this.body);
        this.#ends.push(() => seen.disconnect(), () => sized.disconnect());
    }
}

/** @returns {string} the name of the enlarged panel; "" if there is none */
export function enlarged() {
    return layout.enlarged;
}

/** Enlarges a panel, or restores it. @param {string} name */
export function enlarge(name) {
    change({ ...layout, enlarged: layout.enlarged === name ? "" : name });
}

/** @param {string} name @returns {boolean} */
export function isFolded(name) {
    return layout.folded.includes(name) && layout.enlarged !== name;
}

/** Folds a panel, or unfolds it. @param {string} name */
export function fold(name) {
    const others = layout.folded.filter((other) => other !== name);
    const folded = others.length < layout.folded.length ? others : [...others, name];
    change({ enlarged: layout.enlarged === name ? "" : layout.enlarged, folded });
}

/** Resets all panels to their initial state. */
export function resetLayout() {
    change({ folded: [], enlarged: "" });
}

function change(changed) {
    layout = changed;
    localStorage.setItem(LAYOUT_KEY, JSON.stringify(layout));
    followAll();
}

function followAll() {
    document.body.dataset.enlarged = layout.enlarged;
    lettersChanged();
    for (const panel of panels) panel.followLayout();
}

function readLayout() {
    try {
        const storedLayout = JSON.parse(localStorage.getItem(LAYOUT_KEY) ?? "{}");
        const folded = Array.isArray(storedLayout.folded) ? storedLayout.folded.map(String) : [];
        return { folded, enlarged: typeof storedLayout.enlarged === "string" ? storedLayout.enlarged : "" };
    } catch {
        return { folded: [], enlarged: "" };
    }
}

function helpButton(title, about, help) {
    const made = element("button", { type: "button", className: "hint", textContent: "?" });
    setLabel(made, `${about} ${help}`.trim());
    made.setAttribute("aria-label", `What ${title} shows: ${made.dataset.tip}`);
    return made;
}

onTheme(() => {
    for (const panel of panels) panel.redraw();
});
document.body.dataset.enlarged = layout.enlarged;
document.addEventListener("visibilitychange", () => {
    for (const panel of panels) panel.redraw();
});
