// SPDX-License-Identifier: MIT
//
// What has happened: the processes that have ended, and the longest waits, computed of the kept runs.

const ENDED = new Set(["ended", "killed"]);
const MACHINES = new Set(["sim", "recorded"]); // on others the monitor's own processes end, too
const RUNNABLE = 0; // in a frame
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
    for (const { pid, begin, end, waited } of runsIn(state.runs)) {
        const life = byPid.get(pid)?.find((other) => begin >= other.begin && begin <= other.end);
        if (!life) continue;
        life.run += end - begin;
        life.waited += waited;
    }
}

/**
 * @typedef {{cpu: number, pid: number, begin: number, end: number, how: number, waited: number}} Run
 * @typedef {{pid: number, cpu: number, begin: number, waited: number, kind: string, isOpen: boolean}} Wait at `cpu`;
 *     `kind` as ./schedlab explain calls it; `isOpen`: it has not ended
 */

/** @param {Run[]} runs @param {any} frame the last; waits that have not ended are in it @returns {Omit<Wait, "kind">[]} */
export function allWaits(runs, { now_ns: now, processes }) {
    const { pid: pids, state, cpu: cpus, wait_now_ns: waitedNow, own: isMonitor } = processes;
    const rows = [...pids.keys()];
    const monitorPids = new Set(rows.filter((row) => isMonitor[row]).map((row) => pids[row]));
    const ended = runs.map(({ pid, cpu, begin, waited }) => ({ pid, cpu, begin: begin - waited, waited, isOpen: false }));
    const open = rows.filter((row) => state[row] === RUNNABLE)
        .map((row) => ({ pid: pids[row], cpu: cpus[row], begin: now - waitedNow[row], waited: waitedNow[row], isOpen: true }));
    return [...ended, ...open].filter(({ pid }) => !monitorPids.has(pid));
}

/** @returns {Wait[]} the longest waits, the longest first; see allWaits() */
export function longestWaits(runs, frame, most) {
    const waits = allWaits(runs, frame).filter(({ waited }) => waited > 0);
    waits.sort((one, other) => other.waited - one.waited || one.begin - other.begin);
    return waits.slice(0, most).map((wait) => ({ ...wait, kind: kindOf(runs, wait) }));
}

function kindOf(runs, { pid, begin }) {
    const before = runs.filter((run) => run.pid === pid && run.end <= begin);
    if (!before.length) return "response";
    return KINDS[before.reduce((last, run) => (run.end > last.end ? run : last)).how] ?? "turn";
}

/** @param {import("./store.js").Track[]} tracks by CPU @returns {Run[]} */
export function runsIn(tracks) {
    return tracks.flatMap(({ length, begin, end, pid, how, waited }, cpu) =>
        Array.from({ length }, (_, at) => ({ cpu, begin: begin[at], end: end[at], pid: pid[at], how: how[at], waited: waited[at] })));
}

/** Returns a part of a wait in the words of `./schedlab explain`. */
export function describePart({ pid, name, cpu, ...part }) {
    const others = { "(idle)": `CPU ${cpu} idled`, "(scheduler)": `CPU ${cpu} was in the scheduler`, "(unknown)": `CPU ${cpu}: unknown, not in the trace` };
    return { ...part, pid, words: pid ? `${name} ${pid} ran on CPU ${cpu}` : others[name], cause: name.slice(1, -1) };
}
