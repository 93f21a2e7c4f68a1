// SPDX-License-Identifier: MIT
//
// One watched system: a source of a trace, and the model that makes frames of it. Both lie in one memory, so
// a copy of it is sufficient for a step back.

import { Refused } from "./instance.js";
import { readMessage } from "./model_message.js";
import { Past } from "./past.js";

const RUNS_MAX = 20_000;

/** The last lines of many. */
class Lines {
    #items = [];
    #end = 0;

    constructor(most) {
        this.most = most;
    }

    add(items) {
        this.#items = [...this.#items, ...items].slice(-this.most);
        this.#end += items.length;
    }

    /** @param {number} number @returns {[any[], number]} the lines after this many, and their total number */
    since(number) {
        const count = Math.min(this.#end - number, this.#items.length);
        return [count > 0 ? this.#items.slice(-count) : [], this.#end];
    }
}

/** A server's data about a system that are not in its trace, since the system's last start. */
export class Told {
    state = { life: "starting", message: "", paused: false, speed: 0, pace: -1, events_per_s: 0, recording: "" };
    own = [];
    recordCostNs = 0;
    log = new Lines(2000);
    marks = new Lines(200);
}

/**
 * A source has `instance`, `header` (where the trace's header lies in memory), `now`, `endNs` (null:
 * unknown), `abilities`, `own` (PIDs), advance(until, patience_ms), step(kind), take() (new records of the
 * trace: {place, count}), `reached` (their end), status() (rows of sched_status) and snapshot(), restore().
 */
export class WatchedSystem {
    paused = false;
    message = "";
    failed = false;
    number = 0;
    /** The time of this system that corresponds to the common time 0 of all systems. */
    originNs = 0;
    /** The next frame contains all kept data. */
    whole = true;
    /** Its time starts again with the next frame: it is another machine with the same name. */
    anew = false;
    /** True if its trace is played here. Otherwise it comes from a server, as it grows. */
    isPlayed = true;
    #log = 0; // number of lines already in frames
    #marks = 0;
    #shown = null;
    #seen = [];

    /**
     * @param {string} letter @param {any} setup as in hello @param {any} source
     * @param {{sharesBy: number, windowNs: number}} terms @param {Told} [told]
     */
    constructor(letter, setup, source, { sharesBy, windowNs }, told = new Told()) {
        this.letter = letter;
        this.told = told;
        this.setup = setup;
        this.source = source;
        this.past = new Past(setup.tick_ns, source.forgetBefore?.bind(source));
        const { instance } = source;
        if (!instance.call("watch_begin", source.header(), setup.policy, sharesBy)) {
            throw new Refused("the trace's header is damaged, or memory is exhausted");
        }
        this.windowNs = windowNs;
        this.introduce();
        this.#feed();
    }

    /** @returns {number} nanoseconds of its time */
    get now() {
        return this.source.now;
    }

    /** @returns {string} the active policy, as last shown */
    get policy() {
        return this.#shown?.policy ?? this.setup.policy;
    }

    get commonNs() {
        return this.now - this.originNs;
    }

    get isOver() {
        return this.failed || (this.source.endNs !== null && this.now >= this.source.endNs);
    }

    get goesOn() {
        return !this.paused && !this.isOver;
    }

    /** True if the workload of a simulated machine has ended. */
    get isDone() {
        return !this.failed && Boolean(this.source.isDone);
    }

    /**
     * Advances to a time of this system, or until the patience is exhausted, or to the end of a workload.
     * @param {number} until @param {number} patience_ms @param {boolean} [endsDone]
     */
    advance(until, patience_ms, endsDone = false) {
        this.#attempt(() => this.source.advance(until, patience_ms, endsDone));
    }

    step(kind) {
        this.paused = true;
        this.#attempt(() => this.source.step(kind));
    }

    // If the source refuses to continue, it has ended.
    #attempt(going) {
        if (this.failed) throw new Refused(this.message);
        try {
            going();
        } catch (error) {
            if (!(error instanceof Refused)) this.failed = true;
            this.message = error.message;
            throw error;
        } finally {
            this.#feed();
        }
    }

    /** Executes an action now. @param {() => any} what */
    act(what) {
        this.past.forgetAfter(this.now);
        try {
            return what();
        } finally {
            this.#feed();
        }
    }

    #feed() {
        const { instance } = this.source;
        for (let piece = this.source.take(); piece.count; piece = this.source.take()) {
            this.past.note(instance.words(piece.place, piece.count), piece.before);
            instance.call("watch_feed", piece.place, piece.count);
            this.past.keep(this.source.reached, () => this.source.snapshot());
        }
        instance.call("watch_reach", BigInt(this.now));
        this.past.keep(this.source.reached, () => this.source.snapshot());
    }

    // --- back in time

    stepBack(kind) {
        this.paused = true;
        return this.seek(this.past.before(this.now, kind));
    }

    /** Goes to the end of a trace that has one; any earlier time is then reached from a nearby copy. */
    goThrough() {
        this.past.spread(this.source.tape.length);
        this.advance(this.source.endNs, Infinity);
    }

    /**
     * Goes to a time of this system, starting with the last copy before it.
     * @param {number} time @param {number} [most] records, for a trace with that many known at that time
     * @returns {number}
     */
    seek(time, most = Infinity) {
        if (this.failed) throw new Refused(this.message);
        this.source.limit?.(most);
        if (time < this.now || this.source.at > most) {
            this.source.restore(this.past.copyAt(time, most).copy);
            this.introduce();
        }
        this.advance(time, Infinity);
        this.whole = true;
        return this.now;
    }

    // --- what is shown

    /** Passes data to the model that no trace contains. */
    introduce() {
        const { instance, own } = this.source;
        instance.call("watch_own", new Uint8Array(Uint32Array.from(own).buffer), own.length);
        instance.call("watch_window", BigInt(this.windowNs));
    }

    setWindow(windowNs) {
        this.windowNs = windowNs;
        this.introduce();
    }

    setRow({ pid, priority, tickets, slice_ns: slice }) {
        this.source.instance.call("watch_status", ...[pid, priority, tickets, slice ?? -1].map(BigInt));
    }

    /** @param {number} pace @returns {any} the present state, and the events since the last frame */
    frame(pace) {
        this.number += 1;
        for (const row of this.source.status()) this.setRow(row);
        const shown = this.#message("watch_frame", RUNS_MAX);
        this.#shown = shown;
        const { whole, anew } = this;
        this.whole = this.anew = false;
        const [log, lines] = this.told.log.since(whole ? 0 : this.#log);
        const [marks, count] = this.told.marks.since(whole ? 0 : this.#marks);
        [this.#log, this.#marks] = [lines, count];
        const told = whole ? { ...shown, ...this.#message("watch_history") } : shown;
        return {
            ...told, type: "frame", system: this.letter, number: this.number, whole, anew, log, marks: [...told.marks, ...marks],
            back_ns: this.backNs, ...this.state(shown, pace),
        };
    }

    /** The distance of the shown moment from the present. */
    get backNs() {
        return 0;
    }

    /** @param {string} group @returns {number[]} its living members, as last shown */
    pidsOf(group) {
        const { pid, group: groups } = this.#shown?.processes ?? { pid: [], group: [] };
        return [...pid].filter((member, place) => groups[place] === group);
    }

    explain(pid) {
        const explanation = this.#message("watch_explain", pid);
        if (!explanation) throw new Refused(`pid ${pid}: no such process in the window`);
        return explanation;
    }

    #message(name, ...given) {
        const { instance } = this.source;
        const place = instance.call(name, ...given);
        return place ? readMessage(instance.buffer, place) : null;
    }

    /** Returns the state that is not in the trace (python/schedlab/monitor/frames.py). */
    state(shown, pace) {
        const { speed, events } = this.#rates(shown);
        return {
            life: this.#life(), message: this.message, paused: this.paused, pace, speed,
            events_per_s: events, recording: this.told.state.recording,
        };
    }

    #life() {
        if (this.failed) return "failed";
        if (this.isOver) return "ended";
        if (this.isDone) return "done";
        return this.paused ? "paused" : "running";
    }

    // Over the last second or so of real time.
    #rates({ now_ns, events }) {
        const now_ms = performance.now();
        this.#seen.push({ now_ms, now_ns, events });
        while (this.#seen.length > 2 && this.#seen[1].now_ms <= now_ms - 1000) this.#seen.shift();
        const first = this.#seen[0];
        const seconds = (now_ms - first.now_ms) / 1000;
        const rate = (now, then) => (seconds ? Math.max(now - then, 0) / seconds : 0);
        return { speed: rate(now_ns, first.now_ns) / 1e9, events: rate(events, first.events) };
    }
}
