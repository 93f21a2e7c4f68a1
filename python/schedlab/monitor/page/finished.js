// SPDX-License-Identifier: MIT
//
// What has happened: the processes that have ended, and the longest waits, computed of the kept runs.

const ENDED = new Set(["ended", "killed"]);
const MACHINES = new Set(["sim", "recorded"]); // on others the monitor's own processes end, too
const KINDS = { 1: "wake-up", 2: "turn", 3: "turn" }; // of waits, by the end of the run before

/**
 * @param {import("./store.js").SystemState} state
 * @returns {number | null} when the workload's last process ended; null: one lives, or none has lived
 */
export function workloadEnd({ info, frame, marks }) {
    if (!frame || !MACHINES.has(info?.machine) || !frame.processes.own.every(Boolean)) return null;
    return marks.items.findLast(({ kind }) => ENDED.has(kind))?.time_ns ?? null;
}

/**
 * @typedef {{pid: number, begin: number, end: number, run: number, waited: number}} Life times in
 *     nanoseconds; `begin` -1: unknown
 */

/**
 * Returns the processes that have ended, in the order of their ends.
 * @param {import("./store.js").SystemState} state @returns {Life[]}
 */
export function finishedLives(state) {
    const lives = [];
    const startTimes = new Map();
    for (const { kind, pid, time_ns: time } of state.marks.items) {
        if (kind === "started") startTimes.set(pid, time);
        if (!ENDED.has(kind)) continue;
        lives.push({ pid, begin: startTimes.get(pid) ?? -1, end: time, run: 0, waited: 0 });
        startTimes.delete(pid);
    }
    addRuns(state, lives);
    return lives;
}

function addRuns(state, lives) {
    const byPid = new Map();
    for (const life of lives) byPid.set(life.pid, [...(byPid.get(life.pid) ?? []), life]);
    forRuns(state, ({ pid, begin, end, waited }) => {
        const life = byPid.get(pid)?.find((other) => begin >= other.begin && begin <= other.end);
        if (!life) return;
        life.run += end - begin;
        life.waited += waited;
    });
}

/**
 * @typedef {{pid: number, cpu: number, begin: number, waited: number, kind: string}} Wait it ended when the
 *     process ran on `cpu`; `kind` as ./schedlab explain calls it
 */

/**
 * Returns the longest waits of the kept runs, the longest first.
 * @param {import("./store.js").SystemState} state @param {number} most @returns {Wait[]}
 */
export function longestWaits(state, most) {
    const waits = [];
    const monitorPids = new Set(state.frame.processes.pid.filter((_, row) => state.frame.processes.own[row]));
    forRuns(state, ({ pid, cpu, begin, waited }) => {
        if (waited > 0 && !monitorPids.has(pid)) waits.push({ pid, cpu, begin: begin - waited, waited });
    });
    waits.sort((one, other) => other.waited - one.waited || one.begin - other.begin);
    return waits.slice(0, most).map((wait) => ({ ...wait, kind: kindOf(state, wait) }));
}

function kindOf(state, { pid, begin }) {
    let last = { end: -1, how: 0 };
    forRuns(state, (run) => {
        if (run.pid === pid && run.end <= begin && run.end > last.end) last = run;
    });
    return last.end < 0 ? "response" : KINDS[last.how] ?? "turn";
}

function forRuns({ runs }, take) {
    for (const [cpu, track] of runs.entries()) {
        for (let at = 0; at < track.length; at++) {
            const { begin, end, pid, how, waited } = track;
            take({ cpu, begin: begin[at], end: end[at], pid: pid[at], how: how[at], waited: waited[at] });
        }
    }
}
