// SPDX-License-Identifier: MIT
//
// A canvas that is never larger than its visible part. The rest is scrolled to: the canvas keeps its place
// and is drawn with another vertical offset.

import { element } from "../elements.js";

const MOST = 560; // pixels
const MOST_PART = 0.62; // of the window
const LEAST = 160;
const AROUND = 190; // pixels of the window around an enlarged panel's drawing

export class Scrolled {
    /**
     * @param {any} panel @param {string} name of its class in styles/drawings.css
     * @param {boolean} fills true to fill the panel; otherwise the panel adapts to its height
     */
    constructor(panel, name, fills) {
        this.panel = panel;
        this.fills = fills;
        this.canvas = element("canvas", { className: "scrolled-canvas", role: "img" });
        this.rest = element("div");
        /** The element that scrolls and gets the focus. */
        this.element = element("div", { className: `scrolled ${name}`, tabIndex: 0 }, this.canvas, this.rest);
        this.tip = element("div", { className: "drawing-tip", hidden: true });
        /** The scrolled element, and the parts shown above it. */
        this.frame = element("div", { className: "scrolled-frame" }, this.element, this.tip);
    }

    /** The scroll offset. */
    get offset() {
        return this.element.scrollTop;
    }

    /** Visible pixels, if it fills its panel. */
    get room() {
        return this.element.clientHeight;
    }

    /**
     * Returns the pixels that a drawing must fill, if its panel is enlarged; 0: it chooses its height. @param
     * {number} scale
     */
    roomOf(scale) {
        return this.panel.element.classList.contains("enlarged") ? window.innerHeight - AROUND * scale : 0;
    }

    /** @param {number} whole pixels of the whole drawing @param {number} scale of the letters */
    resize(total, scale) {
        if (this.fills) {
            set(this.canvas, this.room);
            set(this.rest, Math.max(0, Math.round(total) - this.room));
            return;
        }
        const most = this.roomOf(scale) || Math.min(MOST * scale, window.innerHeight * MOST_PART);
        const height = Math.round(Math.min(total, Math.max(LEAST, most)));
        set(this.canvas, height);
        set(this.rest, Math.round(total) - height);
        set(this.element, height);
    }

    /** @param {PointerEvent} event @returns {{x: number, y: number}} pixels of the canvas */
    placeOf(event) {
        const box = this.canvas.getBoundingClientRect();
        return { x: event.clientX - box.left, y: event.clientY - box.top };
    }

    /**
     * Shows a tip next to a place.
     * @param {{title: string, lines: string[]} | null} found null: nothing
     * @param {{x: number, y: number} | null} place
     */
    showTip(tip, place) {
        this.tip.hidden = !tip;
        if (!tip || !place) return;
        this.tip.replaceChildren(element("strong", { textContent: tip.title }),
            ...tip.lines.map((line) => element("div", { textContent: line })));
        const { offsetWidth: width, offsetHeight: height } = this.tip;
        const x = Math.max(4, Math.min(place.x + 14, this.canvas.clientWidth - width - 4));
        const below = place.y + 16 + height <= this.canvas.clientHeight || place.y - height - 10 < 0;
        this.tip.style.transform = `translate(${x}px, ${below ? place.y + 16 : place.y - height - 10}px)`;
    }
}

function set(element, height) {
    const text = `${height}px`;
    if (element.style.height !== text) element.style.height = text;
}
