// SPDX-License-Identifier: MIT
//
// What a lab's expectations need of a run's records (docs/trace-format.md): picks, waits, and sums for each process.

import { Kind, RECORD, RECORD_BYTES } from "../../python/schedlab/monitor/page/session/definitions.js";

const [BEGIN, END, GROUP] = [1, 2, 3]; // enum mark_kind
const [RUNNABLE, RUNNING, BLOCKED] = [1, 2, 3]; // enum process_state
const NEVER_RAN = "(never ran)";
const COUNTED = [Kind.SCHEDULER_EXIT, Kind.WAKEUP, Kind.BLOCK, Kind.YIELD, Kind.PREEMPT, Kind.MIGRATE];

const decoder = new TextDecoder();

/**
 * @typedef {{row: number, time: number, process: number, kind: number, cpu: number, first: number, second: bigint}} Entry
 * a record @typedef {{pid: number, begin: number, end: number, isWoken: boolean, rows: [number, number]}} Wait from a
 * row to a row; the last is Infinity if it lasts until the trace ends
 * @typedef {{pid: number, parent: number, group: string, forkRow: number, forked: number, firstRun: number, exited: number | null,
 *     running: number, waiting: number, blocked: number, waits: Wait[], counts: Map<number, number>}} Life of a
 * process; times in ns, sums within the window; `counts`: of its records of a kind
 */

/** @param {Uint8Array} bytes of records @returns {Entry[]} in the order of the events */
function entriesOf(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const entries = [];
    for (let at = 0; at < bytes.length; at += RECORD_BYTES) {
        entries.push({
            row: view.getUint32(at + RECORD.sequence, true), time: Number(view.getBigUint64(at + RECORD.time, true)),
            process: view.getUint32(at + RECORD.process, true), kind: view.getUint16(at + RECORD.kind, true),
            cpu: view.getUint16(at + RECORD.cpu, true), first: view.getUint32(at + RECORD.first, true),
            second: view.getBigUint64(at + RECORD.second, true),
        });
    }
    return entries.sort((one, other) => one.row - other.row);
}

/** @param {bigint} value of a mark @returns {string} its text of at most 8 bytes */
function textOf(value) {
    const bytes = new Uint8Array(new BigUint64Array([value]).buffer);
    const end = bytes.indexOf(0);
    return decoder.decode(end < 0 ? bytes : bytes.subarray(0, end));
}

export class LabTrace {
    /** The processes of the workload, by PID. @type {Map<number, Life>} */
    workload = new Map();
    /** All processes. @type {Map<number, Life>} */
    #lives = new Map();
    /** What each process does, and since when. @type {Map<number, {state: number, since: number, row: number, isWoken: boolean}>} */
    #states = new Map();

    /** @param {Uint8Array} bytes of a complete trace's records @param {number} cpus */
    constructor(bytes, cpus) {
        this.bytes = bytes;
        this.cpus = cpus;
        this.entries = entriesOf(bytes);
        this.end = this.entries.reduce((latest, { time }) => Math.max(latest, time), 0);
        this.#findWindow();
        for (const entry of this.entries) this.#take(entry);
        for (const pid of this.#states.keys()) this.#leave(pid, this.end, Infinity);
        this.#findWorkload();
    }

    // From the first begin to the next end.
    #findWindow() {
        const marks = this.entries.filter(({ kind }) => kind === Kind.MARK);
        const begin = marks.find(({ first }) => first === BEGIN);
        if (!begin) throw new Error("the run has no measured window");
        const end = marks.find(({ row, first }) => first === END && row > begin.row);
        this.root = Number(begin.second) || begin.process;
        this.beginRow = begin.row;
        this.endRow = end?.row ?? Infinity;
        this.windowBegin = begin.time;
        this.windowEnd = Math.max(end?.time ?? this.end, begin.time);
    }

    #take(entry) {
        const { kind, process, first, second, time, row } = entry;
        if (kind === Kind.FORK) this.#begin(first, process, time, row);
        else if (kind === Kind.SWITCH) {
            if (first) this.#enter(first, Number(second), time, row);
            if (process) this.#enter(process, RUNNING, time, row);
        } else if (kind === Kind.WAKEUP) this.#enter(process, RUNNABLE, time, row, true);
        const life = this.#lives.get(process);
        if (life && kind === Kind.EXIT && row <= this.endRow) life.exited ??= time;
        if (life && kind === Kind.MARK && first === GROUP) life.group = textOf(second);
        if (kind === Kind.SWITCH && life && life.firstRun < 0) life.firstRun = time;
        if (!COUNTED.includes(kind) || row < this.beginRow || row > this.endRow) return;
        life?.counts.set(kind, (life.counts.get(kind) ?? 0) + 1);
    }

    #begin(pid, parent, time, row) {
        const group = this.#lives.get(parent)?.group ?? "";
        this.#lives.set(pid, {
            pid, parent, group, forkRow: row, forked: time, firstRun: -1, exited: null, running: 0, waiting: 0, blocked: 0, waits: [], counts: new Map(),
        });
        this.#states.set(pid, { state: RUNNABLE, since: time, row, isWoken: false });
    }

    #enter(pid, state, time, row, isWoken = false) {
        this.#leave(pid, time, row);
        if (this.#lives.has(pid)) this.#states.set(pid, { state, since: time, row, isWoken });
    }

    // Adds what the process did until now.
    #leave(pid, time, row) {
        const before = this.#states.get(pid);
        if (!before) return;
        const life = this.#lives.get(pid);
        const { state, since, isWoken } = before;
        const within = (at) => Math.min(Math.max(at, this.windowBegin), this.windowEnd);
        const spent = within(time) - within(since);
        if (state === RUNNING) life.running += spent;
        else if (state === RUNNABLE) {
            life.waiting += spent;
            life.waits.push({ pid, begin: since, end: time, isWoken, rows: [before.row, row] });
        } else if (state === BLOCKED) life.blocked += spent;
    }

    // The descendants of the process that began the window, and what arrives from outside in it.
    #findWorkload() {
        const isOfRoot = (pid) => {
            const parent = this.#lives.get(pid)?.parent;
            return parent === this.root || (parent !== undefined && isOfRoot(parent));
        };
        for (const [pid, life] of [...this.#lives].sort(([one], [other]) => one - other)) {
            const hasArrived = life.parent === 0 && life.forkRow > this.beginRow;
            if (life.forkRow > this.endRow || !(hasArrived || isOfRoot(pid))) continue;
            if (life.firstRun < 0 && (hasArrived || life.parent === this.root)) life.group = NEVER_RAN;
            this.workload.set(pid, life);
        }
    }

    /** @param {number} pid @returns {Wait[]} of any process */
    waitsOf(pid) {
        return this.#lives.get(pid)?.waits ?? [];
    }

    /** @param {string} [group] @returns {Life[]} the workload's processes of a group, or ("") all */
    livesOf(group = "") {
        return [...this.workload.values()].filter((life) => !group || life.group === group);
    }

    /** The name of a process in the window's picks. @param {number} pid @returns {string} */
    groupOf(pid) {
        const group = this.#lives.get(pid)?.group;
        return group === NEVER_RAN ? "" : (group ?? "");
    }

    /** @param {number} cpu @returns {{time: number, pid: number}[]} its switches to processes, since the window's begin */
    picks(cpu) {
        const picked = this.entries.filter(({ row, kind, cpu: on, process }) =>
            kind === Kind.SWITCH && on === cpu && process !== 0 && row > this.beginRow && row < this.endRow);
        return picked.map(({ time, process }) => ({ time: time - this.windowBegin, pid: process }));
    }

    /** @returns {{cpu: number, begin: number, end: number}[]} when each CPU had no process */
    idleTimes() {
        const times = [];
        for (let cpu = 0; cpu < this.cpus; cpu++) {
            const entries = this.entries.filter((entry) => entry.cpu === cpu);
            let since = -1;
            for (const { kind, process, time } of entries) {
                if (kind !== Kind.START && kind !== Kind.SWITCH) continue;
                if (since >= 0) times.push({ cpu, begin: since, end: time });
                since = kind === Kind.START || process === 0 ? time : -1;
            }
            if (since >= 0) times.push({ cpu, begin: since, end: entries.at(-1).time });
        }
        return times;
    }
}
