// SPDX-License-Identifier: MIT
//
// Compares two runs of one workload: the first decision that differs, and the metrics.

import { METRICS } from "../../python/schedlab/monitor/page/modules/metrics.js";

const LEAST = 0.005; // as a fraction of a metric: smaller changes are not reported

/**
 * @typedef {{cpu: number, pid: number, begin: number, end: number, level: number, how: number, waited: number}} Run
 * @param {import("./runner.js").Result} result @returns {Run[]} in the order of their begins
 */
export function runsOf({ frame }) {
    const rows = frame?.timeline.runs ?? [];
    const runs = rows.map(([cpu, pid, begin, end, level, how, waited]) => ({ cpu, pid, begin, end, level, how, waited }));
    return runs.sort((one, other) => one.begin - other.begin || one.cpu - other.cpu);
}

/**
 * The first time when a CPU runs another process, for longer than `tolerance`: shorter differences are those of
 * the policies' costs.
 * @param {Run[]} edited @param {Run[]} original @param {number} cpus @param {number} tolerance ns
 * @returns {{time: number, cpu: number, edited: number, original: number} | null} PIDs; 0: idle; null: none differs
 */
export function firstDifference(edited, original, cpus, tolerance) {
    let first = null;
    for (let cpu = 0; cpu < cpus; cpu++) {
        const [ones, others] = [edited, original].map((runs) => stepsOf(runs.filter((run) => run.cpu === cpu)));
        const difference = differenceOf(ones, others, tolerance);
        if (difference && (!first || difference.time < first.time)) first = { ...difference, cpu };
    }
    return first;
}

/** @param {Run[]} runs of one CPU @returns {{time: number, pid: number}[]} what it runs from each time on */
function stepsOf(runs) {
    const steps = [{ time: 0, pid: 0 }];
    for (const { begin, end, pid } of runs) {
        if (steps.at(-1).time === begin) steps.pop();
        steps.push({ time: begin, pid }, { time: end, pid: 0 });
    }
    return steps;
}

function differenceOf(ones, others, tolerance) {
    let [one, other] = [0, 0];
    while (one < ones.length && other < others.length) {
        const [{ pid: edited }, { pid: original }] = [ones[one], others[other]];
        const time = Math.max(ones[one].time, others[other].time);
        const [oneEnd, otherEnd] = [ones[one + 1]?.time ?? Infinity, others[other + 1]?.time ?? Infinity];
        const end = Math.min(oneEnd, otherEnd);
        if (edited !== original && end - time > tolerance) return { time, edited, original };
        if (end === Infinity) return null;
        if (oneEnd === end) one += 1;
        if (otherEnd === end) other += 1;
    }
    return null;
}

/** @param {Run[]} edited @param {Run[]} original @returns {boolean} true if every run begins and ends at the same time */
export function areEqual(edited, original) {
    const same = ({ cpu, pid, begin, end }, other) => other && cpu === other.cpu && pid === other.pid && begin === other.begin && end === other.end;
    return edited.length === original.length && edited.every((run, at) => same(run, original[at]));
}

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

/** @param {ReturnType<typeof changes>} table @returns {string} the largest changes in words; "": none */
export function inWords(table, most = 3) {
    const size = ({ change }) => Math.abs(change ?? Infinity);
    const ranked = table.filter(({ better }) => better !== null).sort((one, other) => size(other) - size(one));
    return ranked.slice(0, most).map(({ title, before, after }) => `${title} ${before} → ${after}`).join("; ");
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
