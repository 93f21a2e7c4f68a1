// SPDX-License-Identifier: MIT
//
// The data for steps back: copies of a system's past states, and the times of events.

import { bytesOf, Refused } from "./instance.js";
import { Decisions, timeAt, WORDS } from "./tape.js";

const TIMES_FIRST = 1 << 16;
const TIMES_MAX = 1 << 22; // 32 MB
const COPIES_MAX = 24;
export const COPIES_BYTES = 192 << 20; // of one system
const COPY_RECORDS = 50_000; // from one copy to the next, at first
const ROLLING_RECORDS = 250_000; // the same, for a growing trace
const ROLLING_MAX = 1_000_000; // records that are kept of it, or up to one copy more

/** Times in their order; if there are too many, the oldest half is dropped. */
class Times {
    #items = new Float64Array(TIMES_FIRST);
    #length = 0;

    add(time) {
        if (this.#length && time <= this.#items[this.#length - 1]) return;
        if (this.#length === this.#items.length) this.#makeRoom();
        this.#items[this.#length++] = time;
    }

    #makeRoom() {
        if (this.#length === TIMES_MAX) {
            this.#items.copyWithin(0, TIMES_MAX / 2);
            this.#length = TIMES_MAX / 2;
            return;
        }
        const grown = new Float64Array(2 * this.#length);
        grown.set(this.#items);
        this.#items = grown;
    }

    /** @returns {number} the last one before a time; -1: none is known */
    before(time) {
        const at = this.#firstFrom(time);
        return at ? this.#items[at - 1] : -1;
    }

    forgetAfter(time) {
        this.#length = this.#firstFrom(time + 1);
    }

    #firstFrom(time) {
        let low = 0;
        let high = this.#length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.#items[middle] < time) low = middle + 1;
            else high = middle;
        }
        return low;
    }
}

export class Past {
    #events = new Times();
    #decisions = new Times();
    #seenDecisions = new Decisions();
    /**
     * @type {{time: number, records: number, copy: any}[]} in the order of time; `records`: how many came
     * before
     */
    #copies = [];
    #records = 0;

    /**
     * @param {number} tick_ns
     * @param {((copy: any) => void) | undefined} forget drops data older than a copy, for a growing trace,
     *     whose end is kept; for others, copies since the beginning are kept
     */
    constructor(tick_ns, forget) {
        this.tick_ns = tick_ns || 1_000_000;
        this.forget = forget;
        this.stretch = forget ? ROLLING_RECORDS : COPY_RECORDS;
    }

    /** Prepares for this many records: sets the distance of copies. */
    spread(records) {
        this.stretch = Math.max(this.stretch, Math.ceil(records / (COPIES_MAX - 1)));
    }

    /**
     * Reads a trace's records. @param {Uint32Array} words of its records @param {number} before how many came
     * before
     */
    note(words, before = this.#records) {
        for (let at = 0; at < words.length; at += WORDS) {
            const time = timeAt(words, at);
            this.#seenDecisions.note(words, at);
            this.#events.add(time);
            if (this.#seenDecisions.has(words, at)) this.#decisions.add(time);
        }
        this.#records = before + words.length / WORDS;
    }

    /**
     * Stores a copy if enough has happened since the last one. If there are too many, every second is
     * dropped, or the first.
     * @param {number} time @param {() => any} copy makes one; `memory` in it are pages
     */
    keep(time, copy) {
        const last = this.#copies.at(-1);
        if (last && (this.#records < last.records + this.stretch || time <= last.time)) return;
        this.#copies.push({ time, records: this.#records, copy: copy() });
        while (this.#copies.length > 2 && this.#isTooMuch()) this.#drop();
    }

    #isTooMuch() {
        const rolled = this.forget && this.#records - this.#copies[1].records > ROLLING_MAX;
        return rolled || this.#copies.length > COPIES_MAX || this.bytes > COPIES_BYTES;
    }

    #drop() {
        if (this.forget) {
            this.#copies.shift();
            this.forget(this.#copies[0].copy);
            return;
        }
        this.#copies = this.#copies.filter((copy, place) => place % 2 === 0);
        this.stretch *= 2;
    }

    /** @returns {number} bytes of all copies */
    get bytes() {
        return this.#copies.reduce((sum, { copy }) => sum + bytesOf(copy.memory), 0);
    }

    /** The first time that can be shown. */
    get begin() {
        return this.#copies[0].time;
    }

    /**
     * Returns the last copy that is not later than a time, and has at most `most` records. Refused: there is
     * none.
     */
    copyAt(time, most = Infinity) {
        const snapshot = this.#copies.findLast((copy) => copy.time <= time && copy.records <= most);
        if (!snapshot) throw new Refused("this time is no longer stored");
        return snapshot;
    }

    /** Later data belong to another branch now. */
    forgetAfter(time) {
        this.#copies = this.#copies.filter((copy) => copy.time <= time);
        this.#events.forgetAfter(time);
        this.#decisions.forgetAfter(time);
    }

    /** @param {number} time @param {string} kind of a step @returns {number} the moment a step before */
    before(time, kind) {
        const { begin } = this;
        if (time <= begin) throw new Refused("earlier states are no longer stored");
        const moments = {
            millisecond: () => time - 1_000_000,
            tick: () => (Math.ceil(time / this.tick_ns) - 1) * this.tick_ns,
            decision: () => this.#decisions.before(time),
            event: () => this.#events.before(time),
        };
        return Math.max(moments[kind](), begin);
    }
}
