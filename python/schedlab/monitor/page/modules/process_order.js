// SPDX-License-Identifier: MIT
//
// Chooses and orders the rows of the table of processes.

import { REASONS, STATES } from "../words.js";

/**
 * @typedef {{group: number, title: string, members: number[]}} Group `members`: indexes in the columns
 * @param {any} columns as in frames.py
 * @param {{filter: string, own: boolean, grouped: boolean, sort: {key: string, down: boolean},
 *     rank: Map<number, number> | null, folded: Set<number>}} wish `rank`: of PIDs that keep their order
 * @returns {{items: number[], groups: Group[]}} `items`: a process's index, or -1 - a group's
 */
export function arrange(columns, { filter, own: showsMonitor, grouped, sort, rank, folded }) {
    const places = [];
    const words = filter.trim().toLowerCase();
    for (let at = 0; at < columns.pid.length; at++) {
        if ((showsMonitor || !columns.own[at]) && (!words || matches(columns, at, words))) places.push(at);
    }
    places.sort(rank ? ranking(columns, rank) : comparison(columns, sort));
    if (!grouped) return { items: places, groups: [] };
    const groups = groupsOf(columns, places);
    const items = [];
    groups.forEach(({ group, members }, number) => {
        items.push(-1 - number);
        if (!folded.has(group)) items.push(...members);
    });
    return { items, groups };
}

function matches({ pid, name, state, reason, group }, at, words) {
    if (name[at].toLowerCase().includes(words) || String(pid[at]) === words) return true;
    return STATES[state[at]].startsWith(words) || REASONS[reason[at]] === words || `group ${group[at]}` === words;
}

function comparison(columns, { key, down }) {
    const values = columns[key];
    const { pid } = columns;
    const sign = down ? -1 : 1;
    return (one, two) => {
        const [first, second] = [values[one], values[two]];
        if (first === second) return pid[one] - pid[two];
        return first < second ? -sign : sign;
    };
}

function ranking({ pid }, rank) {
    const of = (at) => rank.get(pid[at]) ?? rank.size + pid[at];
    return (one, two) => of(one) - of(two);
}

/** In the order of their first members. */
function groupsOf(columns, places) {
    const membersByGroup = new Map();
    for (const at of places) {
        const group = columns.group[at];
        if (!membersByGroup.has(group)) membersByGroup.set(group, { group, title: "", members: [] });
        membersByGroup.get(group).members.push(at);
    }
    for (const group of membersByGroup.values()) group.title = titleOf(columns, group.members);
    return [...membersByGroup.values()];
}

function titleOf({ name }, members) {
    const names = [...new Set(members.slice(0, 200).map((at) => name[at]))];
    const words = names.slice(0, 3).join(", ") + (names.length > 3 ? " …" : "");
    return members.length > 1 ? `${words} × ${members.length}` : words;
}

const SUMMED = ["run_ns", "waiting_ns", "selections", "share"];
const SHARED = ["priority", "tickets", "weight"];

/**
 * Returns each group's totals: sums, the longest present wait, and attributes that all members share.
 * @param {any} columns
 * @param {Group[]} groups
 * @returns {Object<string, number | null>[]} null: members differ
 */
export function totals(columns, groups) {
    return groups.map(({ members }) => {
        const total = { ideal: 0, wait_now_ns: 0 };
        for (const key of SUMMED) total[key] = members.reduce((sum, at) => sum + columns[key][at], 0);
        for (const key of SHARED) {
            const [first] = members;
            total[key] = members.every((at) => columns[key][at] === columns[key][first]) ? columns[key][first] ?? null : null;
        }
        for (const at of members) {
            total.wait_now_ns = Math.max(total.wait_now_ns, columns.wait_now_ns[at]);
            total.ideal = columns.ideal[at] < 0 || total.ideal < 0 ? -1 : total.ideal + columns.ideal[at];
        }
        return total;
    });
}

/** @param {number[]} pids of the rows, in order @param {number} pid @returns {number} its index; -1: none */
export function itemOfPid(pids, pid) {
    return pid ? pids.indexOf(pid) : -1;
}
