// SPDX-License-Identifier: MIT
//
// The page's data about each system: the last frame, and a limited history. Everything here has a limit, so
// that a page left open overnight does not grow.

import { onMessage } from "./connection.js";
import { LevelStory } from "./level_story.js";

export const LOG_MAX = 2000;
export const DECISIONS_MAX = 500;
export const MARKS_MAX = 1000;
export const SERIES_MAX = 1200;
export const NAMES_MAX = 20_000;
const RUNS_MAX = 1 << 18; // of all CPUs of a system together

/** A list that drops its oldest beyond a limit. */
export class Bounded {
    /** @param {number} limit */
    constructor(limit) {
        this.limit = limit;
        /** @type {any[]} the oldest first */
        this.items = [];
        /** The total number ever added: shows how many are new since a reader's last visit. */
        this.total = 0;
    }

    add(item) {
        this.items.push(item);
        this.total += 1;
        // Several at once, because dropping one from the front moves all.
        if (this.items.length > this.limit * 1.25) this.items.splice(0, this.items.length - this.limit);
    }

    /** @param {number} total at the reader's last visit; @returns {any[]} the items since */
    since(total) {
        const count = Math.min(this.total - total, this.items.length);
        return count > 0 ? this.items.slice(-count) : [];
    }

    clear() {
        this.items.length = 0;
    }
}

/**
 * Intervals of one CPU in the order of time, as columns: `begin[i]`, `end[i]`, `pid[i]`, `level[i]` (-1:
 * none), `how[i]` (0 continues, 1 blocked, 2 preempted, 3 yielded, 4 ended), `waited[i]` (how long the
 * process had been runnable when it began), for i < length.
 */
export class Track {
    /** @param {number} limit */
    constructor(limit) {
        this.limit = limit;
        this.length = 0;
        this.#resize(Math.min(limit, 1024));
    }

    /** An interval with the last one's begin replaces it: it continues. */
    add(begin, end, pid = 0, level = -1, how = 0, waited = 0) {
        let at = this.length;
        if (at && begin === this.begin[at - 1]) at -= 1;
        else if (at && begin < this.begin[at - 1]) return; // known already
        if (at === this.begin.length) at = this.#room();
        this.begin[at] = begin;
        this.end[at] = end;
        this.pid[at] = pid;
        this.level[at] = level;
        this.how[at] = how;
        this.waited[at] = waited;
        this.length = at + 1;
    }

    /** @param {number} time @returns {number} the first that ends after a time; length: none */
    firstAfter(time) {
        let low = 0;
        let high = this.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.end[middle] > time) high = middle;
            else low = middle + 1;
        }
        return low;
    }

    clear() {
        this.length = 0;
    }

    #room() {
        if (this.begin.length < this.limit) {
            this.#resize(Math.min(this.limit, this.begin.length * 2));
            return this.length;
        }
        const dropped = this.length >> 2;
        for (const column of [this.begin, this.end, this.pid, this.level, this.how, this.waited]) {
            column.copyWithin(0, dropped, this.length);
        }
        this.length -= dropped;
        return this.length;
    }

    #resize(size) {
        const grown = (kind, old) => {
            const column = new kind(size);
            if (old) column.set(old.subarray(0, this.length));
            return column;
        };
        this.begin = grown(Float64Array, this.begin);
        this.end = grown(Float64Array, this.end);
        this.pid = grown(Int32Array, this.pid);
        this.level = grown(Int16Array, this.level);
        this.how = grown(Uint8Array, this.how);
        this.waited = grown(Float64Array, this.waited);
    }
}

/** The data about one system. `frame` is defined in python/schedlab/monitor/frames.py. */
export class SystemState {
    /** @param {string} id "a", "b" … */
    constructor(id) {
        this.id = id;
        /** @type {any} of hello: title, machine, cpus, tick_ns, repeatable, abilities, setup */
        this.info = null;
        /** @type {any} the last frame; null: none has come */
        this.frame = null;
        /** Counts restarts of its time: older data are then invalid. */
        this.epoch = 0;
        /** Counts refills of the lists: readers that use `since` then start again. */
        this.generation = 0;
        /** @type {Track[]} runs of each CPU */
        this.runs = [];
        /** @type {Track[]} when each CPU idled while a process waited at another */
        this.idleWhileQueued = [];
        this.marks = new Bounded(MARKS_MAX);
        this.decisions = new Bounded(DECISIONS_MAX);
        this.log = new Bounded(LOG_MAX);
        /** The levels derived from runs. */
        this.story = new LevelStory();
        /** Metrics of the last frames: {time_ns, metrics, cost, policy}. */
        this.series = new Bounded(SERIES_MAX);
        /** @type {Map<number, string>} of processes that live or lived recently */
        this.names = new Map([[0, "idle"]]);
        /** Frames that this page was too slow for. */
        this.missed = 0;
        /** @type {number} of the process that is selected; 0: none */
        this.selected = 0;
        /**
         * @type {number | null} the moment of the selected process's wait that a user asked about; requested
         * once
         */
        this.wondered_ns = null;
        this.rows = null;
    }

    /** @param {number} pid @returns {number} its index in frame.processes' columns; -1: it does not live */
    row(pid) {
        if (!this.rows) {
            this.rows = new Map();
            const pids = this.frame?.processes.pid ?? [];
            for (let place = 0; place < pids.length; place++) this.rows.set(pids[place], place);
        }
        return this.rows.get(pid) ?? -1;
    }

    /** @param {number} pid @returns {string} its name, also if it has ended; "" if it is unknown */
    nameOf(pid) {
        return this.names.get(pid) ?? this.info?.names?.[pid]?.name ?? "";
    }

    /** @param {number} pid @returns {string} its group and PID, as ./schedlab explain calls it */
    groupOf(pid) {
        const row = this.row(pid);
        const group = row < 0 ? this.info?.names?.[pid]?.group : this.frame.processes.group[row];
        return `${group ?? (this.nameOf(pid) || "process")} ${pid}`;
    }

    /** @param {string} ability as in system.py @returns {boolean} */
    can(ability) {
        return this.info?.abilities.includes(ability) ?? false;
    }

    /** True for a recording that has been played completely. */
    get isOver() {
        return Boolean(this.info?.end_ns && this.frame && !this.frame.back_ns && this.frame.now_ns >= this.info.end_ns);
    }

    /** @param {any} frame the next one: of a session in this page, so none is missed */
    take(frame) {
        if (frame.anew) this.#restart();
        if (frame.whole) this.#clear();
        this.#takeHappened(frame);
        this.frame = frame;
        this.rows = null;
        this.#takeNames(frame.processes);
        const { now_ns: time_ns, metrics, cost, policy } = frame;
        if (frame.whole) this.series.items = this.series.items.filter((point) => point.time_ns < time_ns);
        this.series.add({ time_ns, metrics, cost, policy });
    }

    #clear() {
        this.generation += 1;
        for (const track of [...this.runs, ...this.idleWhileQueued]) track.clear();
        for (const list of [this.marks, this.decisions, this.log, this.story]) list.clear();
    }

    #restart() {
        this.epoch += 1;
        this.series.clear();
        this.names = new Map([[0, "idle"]]);
        this.selected = 0;
    }

    #takeHappened(frame) {
        const { timeline, cpus, marks, decisions, log } = frame;
        for (const mark of marks) this.#takeMark(mark);
        for (const decision of decisions) this.decisions.add(decision);
        for (const line of log) this.log.add(line);
        while (this.runs.length < cpus.length) {
            const limit = Math.max(2048, Math.min(1 << 16, RUNS_MAX / cpus.length));
            this.runs.push(new Track(limit));
            this.idleWhileQueued.push(new Track(limit / 2));
        }
        this.runs.length = this.idleWhileQueued.length = cpus.length;
        for (const [cpu, pid, begin, end, level, how, waited] of timeline.runs) {
            this.runs[cpu]?.add(begin, end, pid, level, how, waited);
        }
        this.story.take(frame, ruleOf(frame.policy));
        for (const [cpu, begin, end] of timeline.idle_while_queued) {
            this.idleWhileQueued[cpu]?.add(begin, end);
        }
    }

    // A process that lived between two frames has its name only in the mark of its end: "NAME PID: …".
    #takeMark(mark) {
        const { kind, pid, text } = mark;
        this.marks.add(mark);
        const end = text.lastIndexOf(` ${pid}:`);
        if ((kind === "ended" || kind === "killed") && end > 0) this.names.set(pid, text.slice(0, end));
    }

    #takeNames({ pid, name }) {
        for (let place = 0; place < pid.length; place++) {
            if (this.names.get(pid[place]) !== name[place]) this.names.set(pid[place], name[place]);
        }
        if (this.names.size <= NAMES_MAX) return;
        for (const old of this.names.keys()) {
            if (this.names.size <= NAMES_MAX / 2) break;
            if (old && this.row(old) < 0) this.names.delete(old);
        }
    }
}

/** @type {any} the last hello; null: none has come */
let greeting = null;
/** @type {Map<string, SystemState>} */
const systems = new Map();
/** @type {Map<string, Set<(state: SystemState) => void>>} */
const listeners = new Map();
/** @type {Set<(hello: any) => void>} */
const helloListeners = new Set();
/** @type {Set<string>} */
const touched = new Set();
let scheduled = 0;

/** Starts receiving the server's messages. */
export function open() {
    onMessage((message) => {
        if (message.type === "hello") takeHello(message);
        else if (message.type === "frame") takeFrame(message);
        else if (message.type === "missed") stateOf(message.system).missed += message.frames;
    });
}

/** @returns {any} the last hello */
export function hello() {
    return greeting;
}

/** @param {string} policy name or name:preset @returns {any} its description; undefined: it is unknown */
export function ruleOf(policy) {
    return hello()?.policies.find(({ name }) => name === policy.split(":")[0]);
}

/** Every hello. @param {(hello: any) => void} listener */
export function onHello(listener) {
    helloListeners.add(listener);
}

/** @param {string} system @returns {SystemState} */
export function stateOf(system) {
    let state = systems.get(system);
    if (!state) {
        state = new SystemState(system);
        systems.set(system, state);
    }
    return state;
}

/** @returns {SystemState[]} of all systems, in their order */
export function allStates() {
    return (greeting?.systems ?? []).map(({ system }) => stateOf(system));
}

/**
 * Calls the listener after a change (a frame, a hello, the selection), at most once an animation frame.
 * Events in between are in the state's lists.
 * @param {string} system
 * @param {(state: SystemState) => void} listener
 * @returns {() => void} ends it
 */
export function subscribe(system, listener) {
    if (!listeners.has(system)) listeners.set(system, new Set());
    listeners.get(system).add(listener);
    touch(system);
    return () => listeners.get(system).delete(listener);
}

/**
 * Selects a process in all panels.
 * @param {string} system
 * @param {number} pid 0: none
 * @param {number | null} [at_ns] a moment of one of its waits: that wait is broken down
 */
export function select(system, pid, at_ns = null) {
    const state = stateOf(system);
    state.selected = pid;
    state.wondered_ns = at_ns;
    touch(system);
}

/** Schedules a call of a system's listeners at the next animation frame. @param {string} system */
export function touch(system) {
    touched.add(system);
    if (!scheduled) scheduled = requestAnimationFrame(flush);
}

function flush() {
    scheduled = 0;
    const changed = [...touched];
    touched.clear();
    for (const system of changed) {
        for (const listener of listeners.get(system) ?? []) listener(stateOf(system));
    }
}

function takeHello(message) {
    greeting = message;
    for (const info of message.systems) {
        stateOf(info.system).info = info;
        touch(info.system);
    }
    for (const listener of helloListeners) listener(message);
}

function takeFrame(frame) {
    stateOf(frame.system).take(frame);
    touch(frame.system);
}
