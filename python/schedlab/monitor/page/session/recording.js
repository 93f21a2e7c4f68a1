// SPDX-License-Identifier: MIT
//
// A trace as a source: its records come when its clock has reached their times.

import { Instance, Refused } from "./instance.js";
import { RECORD_BYTES } from "./definitions.js";
import { kindAt, latestOf, WORDS } from "./tape.js";

const PIECE_RECORDS = 16_384;
const POLICY = 14;

export class Recording {
    abilities = ["pace", "pause", "seek"];
    acts = [];
    own = [];
    /** @type {Record<number, import("./names.js").Named>} of all processes by PID, if the trace is complete */
    names = {};
    #place = 0; // of the piece, in memory
    #at = 0; // the next record
    #now = 0;
    /** The end of the taken records. */
    reached = 0;

    /** @param {WebAssembly.Module} module @param {import("./tape.js").Tape} tape @param {number} tick_ns */
    constructor(module, tape, tick_ns) {
        this.instance = new Instance(module);
        this.tape = tape;
        this.tick_ns = tick_ns;
        this.#place = this.instance.call("take_memory", PIECE_RECORDS * RECORD_BYTES);
        this.#now = tape.next(0, -1, () => true) ?? 0;
    }

    /** From the first record to the last one. */
    get lengthNs() {
        return this.endNs - (this.tape.next(0, -1, () => true) ?? 0);
    }

    get endNs() {
        return this.tape.latest;
    }

    header() {
        return this.tape.header;
    }

    get now() {
        return this.#now;
    }

    advance(until) {
        this.#now = Math.max(this.#now, Math.min(until, this.endNs));
    }

    /** @param {string} kind of the step */
    step(kind) {
        if (this.#now >= this.endNs) throw new Refused("the recording has ended");
        this.advance(this.after(kind));
    }

    /** @param {string} kind of a step @returns {number} the moment a step later, or the end */
    after(kind) {
        if (kind === "millisecond") return this.#now + 1e6;
        if (kind === "tick") return (Math.floor(this.#now / this.tick_ns) + 1) * this.tick_ns;
        const isIncluded = (words, at) => kind === "event" || this.tape.decisions.has(words, at);
        return this.tape.next(this.#at, this.#now, isIncluded) ?? this.endNs;
    }

    /** The number of records so far. */
    get at() {
        return this.#at;
    }

    /**
     * Takes the next piece of the records until now: its place in memory, its bytes, and how many records
     * came before.
     * @param {number} limit the records available
     */
    take(limit = Infinity) {
        const words = this.tape.until(this.#at, Math.min(PIECE_RECORDS, limit - this.#at), this.#now);
        this.instance.memory(this.#place, words.byteLength).set(new Uint8Array(words.buffer, words.byteOffset, words.byteLength));
        const before = this.#at;
        this.#at += words.byteLength / RECORD_BYTES;
        this.reached = words.length ? latestOf(words, this.reached) : this.#now;
        return { place: this.#place, count: words.byteLength, before };
    }

    /** Returns the first policy's name, if its record contains it; else "". */
    policy() {
        const words = this.tape.until(0, PIECE_RECORDS, Infinity);
        const policyWord = words.findIndex((_, at) => at % WORDS === 0 && kindAt(words, at) === POLICY);
        if (policyWord < 0) return "";
        const text = new Uint8Array(words.slice(policyWord, policyWord + WORDS).buffer);
        return String.fromCharCode(...[...text.subarray(24, 32), ...text.subarray(20, 24)].filter(Boolean));
    }

    status() {
        return [];
    }

    snapshot() {
        return { memory: this.instance.snapshot(), at: this.#at, now: this.reached };
    }

    restore({ memory, at, now }) {
        this.instance = this.instance.again(memory);
        this.#at = at;
        this.#now = this.reached = now;
    }
}
