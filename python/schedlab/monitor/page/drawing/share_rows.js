// SPDX-License-Identifier: MIT
//
// The part of the tickets that each process or group holds, and the part of the CPUs that it gets. The
// smallest are combined. Also their convergence since the last change.

import { colourOf } from "../colours.js";

/** The key of the combined rest. */
export const OTHERS = "others";
const SEEN_MOST = 7;
const BLOCKED = 2;
const TAKES_PART = 0.001; // of all CPU time
const COMPETES = 0.01; // of all CPU time: the ideal share of a process that is blocked now, but not always

/**
 * @typedef {{key: string, label: string, pid: number, held: number, share: number, ideal: number, run:
 * number, count: number}} Row `held`: tickets, weights, or one each; `ideal` -1: not defined; `pid`: of the
 * process that gives its colour; 0: of the others
 */

/**
 * @param {import("../store.js").SystemState} state @param {boolean} byGroup
 * @param {string[]} before keys of the previous rows: they stay while they are among the larger ones
 * @returns {Row[]} the largest first; the last may be the others together
 */
export function shareRows(state, byGroup, before = []) {
    const rows = [...gather(state, byGroup).values()];
    const known = new Set(before);
    rows.sort((one, other) => other.ideal - one.ideal || other.held - one.held || one.pid - other.pid);
    if (rows.length <= SEEN_MOST + 1) return rows;
    const larger = rows.slice(0, 2 * SEEN_MOST);
    larger.sort((one, other) => Number(known.has(other.key)) - Number(known.has(one.key)));
    const seen = new Set(larger.slice(0, SEEN_MOST).map(({ key }) => key));
    return [...rows.filter(({ key }) => seen.has(key)), together(rows.filter(({ key }) => !seen.has(key)))];
}

/** @param {any} frame @returns {(row: number) => number} the attribute that determines shares */
function holdingsOf({ shares_by: by, processes }) {
    if (by === "tickets" || by === "currencies") return (row) => processes.tickets[row];
    if (by === "weight") return (row) => processes.weight[row];
    if (by === "nice" || by === "groups") return (row) => Math.round(1024 * 1.25 ** -processes.nice[row]); // nearly the weights of nice levels
    return () => 1;
}

function gather(state, byGroup) {
    const { processes, ...frame } = state.frame;
    const holdings = holdingsOf({ ...frame, processes });
    /** @type {Map<string, Row>} */
    const rows = new Map();
    for (let row = 0; row < processes.pid.length; row++) {
        const share = processes.share[row];
        const ideal = processes.ideal[row];
        if (processes.own[row] || !takesPart(share, ideal, processes.state[row])) continue;
        const pid = processes.pid[row];
        const key = byGroup ? `group ${processes.group[row]}` : String(pid);
        const label = byGroup ? key : `${processes.name[row]} ${pid}`;
        const known = rows.get(key) ?? { key, label, pid, held: 0, share: 0, ideal: 0, run: 0, count: 0 };
        const holds = competes(ideal, processes.state[row]) ? holdings(row) : 0;
        rows.set(key, added(known, { held: holds, share, ideal, run: processes.run_ns[row], count: 1 }));
    }
    return rows;
}

/** A process that only sleeps holds tickets, but takes no part. */
function takesPart(share, ideal, state) {
    return share >= TAKES_PART || ideal > 0 || (ideal < 0 && state !== BLOCKED);
}

/** The tickets of a parent that waits for its children are in no draw, regardless of their number. */
function competes(ideal, state) {
    return state !== BLOCKED || ideal >= COMPETES;
}

function added(row, { held: holdings, share, ideal, run, count }) {
    return {
        ...row, held: row.held + holdings, share: row.share + share, run: row.run + run, count: row.count + count,
        ideal: ideal < 0 || row.ideal < 0 ? -1 : row.ideal + ideal,
    };
}

function together(rows) {
    const sum = { key: OTHERS, label: "", pid: 0, held: 0, share: 0, ideal: 0, run: 0, count: 0 };
    const all = rows.reduce(added, sum);
    return { ...all, label: `${all.count} others` };
}

/** @param {Row} row @param {Object<string, string>} tokens @returns {string} */
export function colourOfRow({ pid }, tokens) {
    return pid ? colourOf(pid) : tokens.strongLine;
}

/**
 * Shares since the last change, as they converge to the ideal: each process's run time since then as a part
 * of the total.
 */
export class Convergence {
    #base = new Map();
    #key = "";
    /** Counts the changes. */
    segment = 0;
    since_ns = 0;

    /**
     * @param {Row[]} rows @param {string} key everything whose change restarts it: policy, tunables,
     * attributes
     * @param {number} now_ns @returns {Map<string, number>} share by key; empty: none has run yet
     */
    take(rows, key, now_ns) {
        const signature = `${key} ${rows.map((row) => `${row.key}:${row.held}`).join()}`;
        if (signature !== this.#key || now_ns < this.since_ns) {
            this.#key = signature;
            this.#base = new Map(rows.map((row) => [row.key, row.run]));
            this.segment += 1;
            this.since_ns = now_ns;
        }
        const runs = rows.map((row) => [row.key, Math.max(0, row.run - (this.#base.get(row.key) ?? row.run))]);
        const total = runs.reduce((sum, [, run]) => sum + run, 0);
        return new Map(total > 0 ? runs.map(([key, run]) => [key, run / total]) : []);
    }
}
