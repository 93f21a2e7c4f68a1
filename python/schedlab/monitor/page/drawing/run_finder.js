// SPDX-License-Identifier: MIT
//
// Describes the item at a place of the time line; and lists the visible runs.

import { duration, moment } from "../elements.js";
import { signOf } from "./mark_painter.js";
import { ENDINGS } from "./paint.js";

const NEAR = 3; // pixels at each side of a pointer
const SUMMED_MOST = 5; // processes that are named of many

/** @typedef {import("../store.js").SystemState} SystemState */
/** @typedef {{cpu: number, begin: number}} Place of a run: no CPU begins two at one time */

/**
 * @param {SystemState} state @param {number} cpu @param {number} time
 * @param {number} pixel nanoseconds per pixel
 * @returns {{title: string, lines: string[], pid: number, place: Place | null} | null} null: plain idle
 */
export function findAt(state, cpu, time, pixel) {
    const track = state.runs[cpu];
    if (!track) return null;
    const from = track.firstAfter(time - NEAR * pixel);
    let until = from;
    while (until < track.length && track.begin[until] <= time + NEAR * pixel) until++;
    if (until - from > 3) return summed(state, cpu, from, until);
    const exact = track.firstAfter(time);
    const at = exact < track.length && track.begin[exact] <= time ? exact : nearest(track, from, until, time);
    return at < 0 ? idle(state, cpu, time) : runAt(state, cpu, at);
}

/**
 * Returns the marks at a time, including those without space for their labels.
 * @param {SystemState} state @param {number} time @param {number} pixel nanoseconds per pixel
 */
export function markAt(state, time, pixel) {
    const near = state.marks.items.filter(({ time_ns }) => Math.abs(time_ns - time) <= 2 * NEAR * pixel);
    if (!near.length) return null;
    const words = ({ kind, text, time_ns }) => `${signOf(kind)} ${text}, ${moment(time_ns)}`;
    const lines = near.slice(0, 2 * SUMMED_MOST).map(words);
    if (near.length > lines.length) lines.push(`and ${near.length - lines.length} more`);
    return { title: near.length > 1 ? `${near.length} marks` : "Mark", lines, pid: near[0].pid, place: null };
}

/** @param {SystemState} state @param {number} cpu @param {number} at its index in the CPU's track */
export function runAt(state, cpu, at) {
    const { begin, end, pid, level, how } = state.runs[cpu];
    const lines = [
        `CPU ${cpu} for ${duration(end[at] - begin[at])}`,
        `${moment(begin[at], 6)} – ${moment(end[at], 6)}`,
    ];
    if (level[at] >= 0) lines.push(`level ${level[at]}`);
    lines.push(how[at] ? `then ${ENDINGS[how[at]]}` : "it continues");
    return { title: named(state, pid[at]), lines, pid: pid[at], place: { cpu, begin: begin[at] } };
}

/** @param {SystemState} state @param {Place} place @returns {number} in its CPU's track; -1: dropped */
export function indexOf(state, { cpu, begin }) {
    const track = state.runs[cpu];
    const at = track ? track.firstAfter(begin) : 0;
    return track && at < track.length && track.begin[at] === begin ? at : -1;
}

/**
 * @param {SystemState} state @param {number} begin @param {number} end @param {number} most
 * @returns {{total: number, runs: {cpu: number, at: number}[]}} of all CPUs, in the order of time
 */
export function runsBetween(state, begin, end, most) {
    const matches = [];
    let total = 0;
    state.runs.forEach((track, cpu) => {
        const first = track.firstAfter(begin);
        let at = first;
        while (at < track.length && track.begin[at] < end) at++;
        total += at - first;
        // The latest of each CPU are sufficient: the latest of all are among them.
        for (let index = Math.max(first, at - most); index < at; index++) matches.push({ cpu, at: index });
    });
    matches.sort((one, other) => state.runs[one.cpu].begin[one.at] - state.runs[other.cpu].begin[other.at]);
    return { total, runs: matches.slice(-most) };
}

/** @param {SystemState} state @param {number} pid @returns {string} such as sh (3) */
export function named(state, pid) {
    const name = state.nameOf(pid);
    return name ? `${name} (${pid})` : `process ${pid}`;
}


function nearest(track, from, until, time) {
    let best = -1;
    let distance = Infinity;
    for (let at = from; at < until; at++) {
        const away = Math.min(Math.abs(track.begin[at] - time), Math.abs(track.end[at] - time));
        if (away < distance) [best, distance] = [at, away];
    }
    return best;
}

function summed(state, cpu, from, until) {
    const { begin, end, pid } = state.runs[cpu];
    const times = new Map();
    for (let at = from; at < until; at++) {
        times.set(pid[at], (times.get(pid[at]) ?? 0) + end[at] - begin[at]);
    }
    const most = [...times].sort((one, other) => other[1] - one[1]);
    const lines = most.slice(0, SUMMED_MOST).map(([pid, time]) => `${named(state, pid)}: ${duration(time)}`);
    if (most.length > SUMMED_MOST) lines.push(`and ${most.length - SUMMED_MOST} more`);
    const title = `${until - from} runs in ${duration(end[until - 1] - begin[from])}`;
    return { title, lines: [`CPU ${cpu}`, ...lines], pid: most[0][0], place: null };
}

function idle(state, cpu, time) {
    const track = state.idleWhileQueued[cpu];
    const at = track ? track.firstAfter(time) : 0;
    if (!track || at >= track.length || track.begin[at] > time) return null;
    const lines = [
        `while a process waited on another CPU: ${duration(track.end[at] - track.begin[at])}`,
        `${moment(track.begin[at])} – ${moment(track.end[at])}`,
    ];
    return { title: `CPU ${cpu} idled`, lines, pid: 0, place: null };
}
