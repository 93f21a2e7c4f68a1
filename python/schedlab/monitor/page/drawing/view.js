// SPDX-License-Identifier: MIT
//
// The range of time that all time lines show: one for all systems, so that positions above or next to each
// other mean the same time.

const SHORTEST_NS = 1_000;
const FIRST_SPAN_NS = 1e9;
const MARGIN = 0.02; // of the span, free after now

/**
 * A system's times. They advance from frame to frame, as in all panels: a continuously moving picture would
 * show another running process than the queues next to it.
 * @typedef {{now: number, first: number}} Clock
 */

export class View {
    /** @type {Map<string, Clock>} */
    #clocks = new Map();
    /** @type {Map<string, number>} */
    #heights = new Map();
    /** @type {Set<() => void>} */
    #listeners = new Set();
    #end = 0;

    constructor() {
        /** True if the view follows now. Otherwise it is fixed, while the machines continue. */
        this.live = true;
        /** Nanoseconds from its left to its right edge. */
        this.span = FIRST_SPAN_NS;
    }

    /**
     * Updates a system's times.
     * @param {string} system @param {number} now @param {number} first time of the oldest kept data
     */
    report(system, now, first) {
        const before = this.#clocks.get(system);
        this.#clocks.set(system, { now, first });
        if (before && now >= before.now) return;
        if (!this.live && this.#end - this.span > this.now) this.live = true;
        this.#changed();
    }

    /**
     * Returns the common height of time lines next to each other: the largest requested height.
     * @param {string} system @param {number} pixels requested by this one @returns {number}
     */
    agree(system, pixels) {
        this.#heights.set(system, pixels);
        return Math.max(...this.#heights.values());
    }

    /** Removes a system. @param {string} system */
    forget(system) {
        this.#clocks.delete(system);
        this.#heights.delete(system);
    }

    /** The latest time of any system. */
    get now() {
        return Math.max(0, ...[...this.#clocks.values()].map((clock) => clock.now));
    }

    /** The earliest time with data of any system. */
    get first() {
        const firsts = [...this.#clocks.values()].map((clock) => clock.first);
        return firsts.length ? Math.min(...firsts) : 0;
    }

    /** @returns {{begin: number, end: number}} the visible range */
    range() {
        const end = this.live ? Math.max(this.span * (1 - MARGIN), this.now) + MARGIN * this.span : this.#end;
        return { begin: end - this.span, end };
    }

    /** @param {number} ns to the right; the view is then fixed */
    pan(ns) {
        const { end } = this.range();
        this.live = false;
        this.#stand(end + ns);
    }

    /**
     * @param {number} factor above 1: to see more time @param {number} [place] the fixed point, 0 to 1 from
     * the left; a view that follows now keeps the right edge
     */
    zoom(factor, place = 0.5) {
        const { begin, end } = this.range();
        const longest = Math.max(FIRST_SPAN_NS, 1.2 * (this.now - this.first));
        const span = Math.min(longest, Math.max(SHORTEST_NS, this.span * factor));
        const fixed = begin + place * (end - begin);
        this.span = span;
        if (this.live) this.#changed();
        else this.#stand(fixed + (1 - place) * span);
    }

    /** @param {number} begin @param {number} end */
    show(begin, end) {
        this.live = false;
        this.span = Math.max(SHORTEST_NS, end - begin);
        this.#stand(begin + this.span);
    }

    /** Shows all of a recording. @param {number} length ns */
    fitAll(length) {
        this.span = Math.max(SHORTEST_NS, length * (1 + 2 * MARGIN));
        this.#changed();
    }

    /** Shows all kept data. */
    fit() {
        const length = Math.max(SHORTEST_NS, this.now - this.first);
        this.span = length * (1 + 2 * MARGIN);
        if (this.live) this.#changed();
        else this.#stand(this.now + MARGIN * length);
    }

    /** Stops only the drawing. */
    freeze() {
        this.pan(0);
    }

    /** Follows now again. */
    follow() {
        this.live = true;
        this.#changed();
    }

    /** @param {() => void} listener called when the user has changed the range @returns {() => void} ends it */
    subscribe(listener) {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
    }

    #stand(end) {
        const half = this.span / 2;
        this.#end = Math.max(this.first + half, Math.min(this.now + half, end));
        this.#changed();
    }

    #changed() {
        for (const listener of this.#listeners) listener();
    }
}

/** The page's. */
export const view = new View();
