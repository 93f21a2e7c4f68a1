// SPDX-License-Identifier: MIT
//
// The columns of the table of processes: title, width and text of each.

import { count, duration, percent, REASONS, STATES } from "../words.js";

/**
 * `used`: true if the active policy uses it. `text`: a process's text. `sum`: of a group; without it, the
 * group has none.
 * @typedef {{key: string, title: string, about: string, kind: "number" | "text", width: string,
 *     fixed?: boolean, hidden?: boolean, used?: (frame: any, rule: any) => boolean, attribute?: boolean,
 *     sum?: "sum" | "most" | "same",
 *     text: (columns: any, at: number) => string, words?: (value: any) => string}} Column
 */

const number = (key, words = count) => ({ key, kind: "number", words, text: (columns, at) => words(columns[key][at]) });
const attribute = (key, title, about) => ({ ...number(key), title, about, width: "5rem", attribute: true, sum: "same" });
const time = (key, title, about, more = {}) => ({ ...number(key, duration), title, about, width: "5.5rem", ...more });
const dashed = (words) => (value) => (value < 0 ? "–" : words(value));

/** @type {Column[]} in the order of importance */
export const COLUMNS = [
    { ...number("pid", String), title: "PID", about: "Process ID.", width: "4.4rem", fixed: true },
    { key: "name", kind: "text", title: "Name", about: "Name of its program.", width: "minmax(8rem, 1.6fr)", fixed: true, text: (columns, at) => columns.name[at] },
    { key: "state", kind: "text", title: "State", about: "Running, runnable (waiting for a CPU), or blocked, with the reason.", width: "minmax(6.6rem, 1fr)", text: stateWords },
    { key: "share", kind: "number", title: "Share, ideal", about: "Its share of all CPU time of processes in the window. The tick mark is its ideal share.", width: "minmax(9.5rem, 1.5fr)", sum: "sum", words: percent, text: (columns, at) => percent(columns.share[at]) },
    { ...number("level", dashed(String)), title: "Level", about: "Level at which the policy serves it.", width: "3.6rem", used: ({ levels }) => levels },
    { ...attribute("priority", "Prio", "Its priority: a lower number is a higher priority."), used: (frame, rule) => rule.level_order === "lowest first" },
    { ...attribute("tickets", "Tickets", "Its tickets, used by policies that share by tickets."), used: ({ shares_by: by }) => by === "tickets" },
    { ...attribute("weight", "Weight", "Its weight, used by weighted policies."), used: ({ shares_by: by }) => by === "weight" },
    { ...number("nice", String), title: "Nice", about: "Its nice value, used by Linux's policies.", width: "3.6rem", used: ({ shares_by: by }) => by === "nice" },
    time("wait_now_ns", "Waits now", "Duration of its current wait.", { sum: "most", width: "6rem" }),
    time("waiting_ns", "Waited", "Time spent runnable and not running since the fork.", { sum: "sum" }),
    time("run_ns", "Ran", "Time on a CPU since the fork.", { sum: "sum" }),
    { ...number("selections"), title: "Picked", about: "Number of times it was picked.", width: "4.8rem", sum: "sum" },
    { ...number("cpu", dashed(String)), title: "CPU", about: "CPU where it runs, waits, or ran last.", width: "3.2rem", used: ({ cpus }) => cpus.length > 1 },
    { ...number("slice_left_ns", dashed(duration)), title: "Slice left", about: "Rest of its time slice.", width: "6rem", used: ({ processes }) => processes.slice_left_ns.some((left) => left >= 0) },
    { ...number("parent", String), title: "Parent", about: "PID of the process that forked it.", width: "4rem", hidden: true },
    { ...number("group", String), title: "Group", about: "Processes that one workload started.", width: "4rem", hidden: true },
];

/**
 * Returns the columns that the policy uses. For a policy without a description, returns all.
 * @param {any} frame @param {any} rule its policy's description; undefined: none
 * @returns {Column[]}
 */
export function usedColumns(frame, rule) {
    return COLUMNS.filter(({ hidden, used }) => !hidden && (!used || !rule || used(frame, rule)));
}

const SIGNS = ["◦", "▶", "‖"];

function stateWords({ state, reason }, at) {
    const words = REASONS[reason[at]] && state[at] === 2 ? `${REASONS[reason[at]]}` : STATES[state[at]];
    return `${SIGNS[state[at]]} ${words}`;
}
