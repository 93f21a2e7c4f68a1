// SPDX-License-Identifier: MIT
//
// Compares two runs of one workload by their metrics and by the work of their hooks.

import { METRICS } from "../../python/schedlab/monitor/page/modules/metrics.js";
import { duration } from "../../python/schedlab/monitor/page/words.js";

const PARTS_MOST = 3; // of a wait, in words
const PART_LEAST = 0.01; // of the wait
const ALWAYS = "waiting_ns"; // a metric that the summary never leaves out
const LEAST = 0.005; // as a fraction of a metric: smaller changes are not reported

/**
 * @param {any} edited @param {any} original frames
 * @returns {{key: string, title: string, about: string, before: string, after: string, change: number | null, better: boolean | null}[]}
 * metrics of both runs; `change`: relative; null: unknown; `better`: null if neither
 */
export function changes(edited, original) {
    return METRICS.map(({ key, title, about, format, better: direction }) => {
        const [before, after] = [original.metrics[key], edited.metrics[key]];
        const isKnown = typeof before === "number" && typeof after === "number";
        const change = isKnown && before !== 0 ? after / before - 1 : null;
        const differs = isKnown && before !== after && (change === null || Math.abs(change) >= LEAST);
        const better = differs && direction ? (after < before) === (direction === "less") : null;
        return { key, title, about, before: format(before), after: format(after), change: isKnown && !differs ? 0 : change, better };
    });
}

/** @param {ReturnType<typeof changes>} table @returns {string} the largest changes of different quantities in words; "": none */
export function inWords(table, most = 3) {
    const size = ({ change }) => Math.abs(change ?? Infinity);
    const ranked = table.filter(({ better }) => better !== null).sort((one, other) => size(other) - size(one));
    const quantity = ({ title }) => title.split(",")[0]; // its median and its maximum change alike
    const different = ranked.filter((row, at) => ranked.findIndex((other) => quantity(other) === quantity(row)) === at);
    return different.filter(({ key }, at) => at < most || key === ALWAYS).map(({ title, before, after }) => `${title} ${before} → ${after}`).join("; ");
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

/**
 * @param {string} name of a process @param {{begin_ns: number, end_ns: number, parts: {words: string, duration_ns: number}[]} | null} wait
 * null: none @param {boolean} isOpen it has not ended @returns {string} why it waited, in words
 */
export function reasonOf(name, wait, isOpen) {
    if (!wait) return `${name} did not wait.`;
    const length = wait.end_ns - wait.begin_ns;
    const long = wait.parts.filter(({ duration_ns: ns }, at) => at === 0 || (at < PARTS_MOST && ns >= PART_LEAST * length));
    const parts = long.map(({ words, duration_ns: ns }) => `${words} for ${duration(ns)}`);
    const causes = [parts.slice(0, -1).join(", "), parts.at(-1)].filter(Boolean).join(" and ");
    return `${name} waited ${duration(length)}${isOpen ? " until the schedule ended" : ""} because ${causes}.`;
}
