// SPDX-License-Identifier: MIT
//
// Compares two runs of one workload by their metrics and by the work of their hooks.

import { METRICS } from "../../python/schedlab/monitor/page/modules/metrics.js";

const LEAST = 0.005; // as a fraction of a metric: smaller changes are not reported

/**
 * @param {any} edited @param {any} original frames
 * @returns {{title: string, about: string, before: string, after: string, change: number | null, better: boolean | null}[]}
 * metrics of both runs; `change`: relative; null: unknown; `better`: null if neither
 */
export function changes(edited, original) {
    return METRICS.map(({ key, title, about, format, better: direction }) => {
        const [before, after] = [original.metrics[key], edited.metrics[key]];
        const isKnown = typeof before === "number" && typeof after === "number";
        const change = isKnown && before !== 0 ? after / before - 1 : null;
        const differs = isKnown && before !== after && (change === null || Math.abs(change) >= LEAST);
        const better = differs && direction ? (after < before) === (direction === "less") : null;
        return { title, about, before: format(before), after: format(after), change: differs ? change : 0, better };
    });
}

/** @param {ReturnType<typeof changes>} table @returns {string} the largest changes of different quantities in words; "": none */
export function inWords(table, most = 3) {
    const size = ({ change }) => Math.abs(change ?? Infinity);
    const ranked = table.filter(({ better }) => better !== null).sort((one, other) => size(other) - size(one));
    const quantity = ({ title }) => title.split(",")[0]; // its median and its maximum change alike
    const different = ranked.filter((row, at) => ranked.findIndex((other) => quantity(other) === quantity(row)) === at);
    return different.slice(0, most).map(({ title, before, after }) => `${title} ${before} → ${after}`).join("; ");
}

/**
 * @param {import("./runner.js").Call[]} calls @returns {Map<string, {calls: number, mean: number, most: number}>} basic
 * blocks in a call of each hook
 */
export function effortOf(calls) {
    const all = new Map();
    for (const { hook, executed } of calls) {
        const effort = all.get(hook) ?? { calls: 0, mean: 0, most: 0 };
        effort.calls += 1;
        effort.mean += (executed - effort.mean) / effort.calls;
        effort.most = Math.max(effort.most, executed);
        all.set(hook, effort);
    }
    return all;
}

/** @returns {{pid: number, begin: number, end: number, ns: number}[]} the longest waits, the longest first */
export function worstWaits(runs, monitorPids, count = 5) {
    const waits = runs.filter(({ pid, waited }) => waited > 0 && !monitorPids.includes(pid));
    waits.sort((one, other) => other.waited - one.waited);
    return waits.slice(0, count).map(({ pid, begin, waited }) => ({ pid, begin: begin - waited, end: begin, ns: waited }));
}
