// SPDX-License-Identifier: MIT
//
// A system whose trace comes from a server: shown at present, or in the past. No past data are dropped while
// they are shown.

import { HEADER, HEADER_BYTES, MAGIC, RECORD_BYTES, VERSION } from "./definitions.js";
import { LiveSource } from "./live_source.js";
import { Told, WatchedSystem } from "./system.js";
import { Tape } from "./tape.js";

const SEEN_MAX = 10_000;

/** Returns a header for a system that has not sent one yet: of a machine that does nothing. */
function headerOf({ cpus, tick_ns }) {
    const header = new DataView(new ArrayBuffer(HEADER_BYTES));
    new Uint8Array(header.buffer).set(new TextEncoder().encode(MAGIC));
    const fields = { version: VERSION, header_bytes: HEADER_BYTES, record_bytes: RECORD_BYTES, cpus };
    Object.entries(fields).forEach(([name, value]) => header.setUint32(HEADER[name], value, true));
    header.setBigUint64(HEADER.tick_ns, BigInt(tick_ns), true);
    header.setBigUint64(HEADER.cycles_per_second, 1_000_000_000n, true);
    return new Uint8Array(header.buffer);
}

export class LiveSystem extends WatchedSystem {
    isPlayed = false;
    /** True if an earlier moment than the present is shown. */
    isBack = false;
    /** @type {Map<number, number>} shown moments, and how many records were known then */
    #seen = new Map();

    /**
     * @param {WebAssembly.Module} module @param {any} info of hello
     * @param {{sharesBy: number, windowNs: number}} terms @param {Told} [told]
     * @param {Tape} [tape] its initial records
     */
    constructor(module, info, terms, told = new Told(), tape = new Tape(headerOf(info))) {
        const source = new LiveSource(module, tape, info.tick_ns || 1e6);
        source.own = told.own;
        super(info.system, { policy: info.setup.policy, tick_ns: info.tick_ns }, source, terms, told);
        this.source.tell = (rows) => rows.forEach((row) => this.setRow(row));
        this.introduce();
        this.#follow();
    }

    /** @returns {number} the latest known moment */
    get presentNs() {
        return this.source.tape.latest;
    }

    introduce() {
        super.introduce();
        this.source.instance.call("watch_record_cost", this.told.recordCostNs);
    }

    /** @param {Uint32Array} words of records */
    append(words) {
        this.source.tape.append(words);
        this.#follow();
    }

    /** @param {any[]} rows of sched_status */
    hear(rows) {
        this.source.hear(rows);
        this.#follow();
    }

    /** Advances the time to at least this. */
    reach(time) {
        this.source.tape.reach(time);
        this.#follow();
    }

    #follow() {
        if (!this.isBack) this.advance(this.presentNs, Infinity);
    }

    /** Shows the state at a time; the present one for the present or later. */
    look(time) {
        this.isBack = time < this.presentNs;
        const shown = this.isBack ? Math.max(time, this.past.begin) : this.presentNs;
        return this.seek(shown, this.isBack ? this.#seen.get(shown) : Infinity);
    }

    /** @returns {number} the moment a step before or after the shown one */
    moment(kind, back) {
        return back ? this.past.before(this.now, kind) : this.source.after(kind);
    }

    frame(pace) {
        if (!this.isBack) this.#see();
        return super.frame(pace);
    }

    get backNs() {
        return this.isBack ? this.presentNs - this.now : 0;
    }

    state() {
        return this.told.state;
    }

    #see() {
        this.#seen.delete(this.now);
        this.#seen.set(this.now, this.source.at);
        if (this.#seen.size > SEEN_MAX) this.#seen.delete(this.#seen.keys().next().value);
    }
}
