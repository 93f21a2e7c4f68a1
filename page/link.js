// SPDX-License-Identifier: MIT
//
// A setup as the part of an address after its #, so that a link contains all of it:
// #policy=rr&policy=mlfq,boost=100&cpus=2&tick=10&seed=1&workload=two-hogs&pace=0.2

import { firstSetup, lessons } from "./session_connection.js";

/**
 * @typedef {{systems: {policy: string, settings: Record<string, number>}[], cpus: number, tick: number,
 *     seed: number, workloads: string[], pace: number, text: string, lesson?: string}} Setup `tick`: in
 *     milliseconds. `text`: the user's own workload; "": none. `lesson`: the name of the lesson being played
 */

export const OWN = "own-text";

/** @param {Setup} setup @returns {string} with its # */
export function linkOf({ systems, cpus, tick, seed, workloads, pace, text }) {
    const parts = new URLSearchParams();
    for (const { policy, settings } of systems) {
        parts.append("policy", [policy, ...Object.entries(settings).map((pair) => pair.join("="))].join());
    }
    parts.append("cpus", String(cpus));
    parts.append("tick", String(tick));
    parts.append("seed", String(seed));
    for (const name of workloads) parts.append("workload", name);
    parts.append("pace", String(pace));
    if (text) parts.append("text", text);
    return `#${parts}`;
}

/** @param {string} link a result of linkOf(); if empty: page/first.json @returns {Setup} */
export function setupOf(link) {
    const first = firstSetup();
    const parts = new URLSearchParams(link.replace(/^#/, ""));
    if (parts.has("lesson")) return setupOfLesson(parts.get("lesson"), first);
    if (!parts.has("policy")) return first;
    const number = (name) => (parts.has(name) ? Number(parts.get(name)) : first[name]);
    return {
        systems: parts.getAll("policy").map(systemOf),
        cpus: number("cpus"), tick: number("tick"), seed: number("seed"), pace: number("pace"),
        workloads: parts.getAll("workload"), text: parts.get("text") ?? "",
    };
}

function setupOfLesson(name, first) {
    const lesson = lessons()[name];
    if (!lesson) throw new Error(`${name}: unknown lesson; choose from ${Object.keys(lessons()).join(", ")}`);
    const systems = lesson.policies.split(",").map((policy) => ({ policy, settings: lesson.settings ?? {} }));
    const { cpus = 1, seed = 1, workloads = [], pace = first.pace } = lesson;
    return { ...first, systems, cpus, seed, workloads, pace, text: "", lesson: name };
}

/** @param {string} words "mlfq:preset,boost=100" */
export function systemOf(words) {
    const [policy, ...settings] = words.split(/[\s,]+/).filter(Boolean);
    const pairs = settings.map((setting) => setting.split("="));
    return { policy: policy ?? "", settings: Object.fromEntries(pairs.map(([name, value]) => [name, Number(value)])) };
}

/** @param {Setup} setup @returns {any} the request to the session */
export function beginningOf({ systems, cpus, tick, seed, workloads, pace, text, lesson }) {
    const names = [...workloads, ...(text ? [OWN] : [])];
    const textWorkloads = text ? [{ name: OWN, title: "the text of this page's setup", text }] : [];
    const lessonContent = lesson ? lessons()[lesson] : null;
    const machine = { cpus, seed, tick_ns: Math.round(tick * 1e6), workloads: names };
    return { pace, own: textWorkloads, lesson: lessonContent, systems: systems.map((system) => ({ ...system, ...machine })) };
}
