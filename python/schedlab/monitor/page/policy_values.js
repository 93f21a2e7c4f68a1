// SPDX-License-Identifier: MIT
//
// A tunable's value at the shown moment: the default of the policy or preset, the system's initial setting,
// or a later one.

import { ruleOf } from "./store.js";
import { duration } from "./words.js";

/**
 * @param {import("./store.js").SystemState} state @param {string} name
 * @returns {number | undefined} undefined: the policy has no such tunable
 */
export function tunableOf(state, name) {
    const { policy } = state.frame;
    const rule = ruleOf(policy);
    const preset = rule?.presets[policy.split(":")[1]];
    const known = Object.values(preset?.tunables ?? {}).length ? preset.tunables : rule?.tunables ?? {};
    const tunable = Object.values(known).find((candidate) => candidate.name === name);
    if (!tunable) return undefined;
    const marks = state.marks.items;
    const since = marks.findLastIndex(({ kind }) => kind === "policy");
    const set = marks.findLast(({ kind, text }, at) => kind === "tunable" && at > since && text.startsWith(`${name} = `));
    if (set) return Number(set.text.split(" = ")[1]);
    const setup = state.info?.setup;
    if (setup?.policy === policy && name in (setup.settings ?? {})) return setup.settings[name];
    return preset?.values[name] ?? tunable.default;
}

/**
 * Returns how long a process may run at a level before it is demoted, according to tunables called
 * allotment_LEVEL.
 * @param {import("./store.js").SystemState} state @param {number} level
 * @returns {number} ns; 0: no limit
 */
export function allotmentOf(state, level) {
    return (tunableOf(state, `allotment_${level}`) ?? 0) * (state.info?.tick_ns ?? 0);
}

/**
 * Describes the rest of a running process's allotment. Time that it ran on its policy's credit may remain in
 * addition: the trace does not contain it.
 * @param {import("./store.js").SystemState} state @param {number} pid @param {number} level
 * @returns {string} "": it has none, or it is not known
 */
export function allotmentLeft(state, pid, level) {
    const allotment = level < 0 ? 0 : allotmentOf(state, level);
    const ran = state.story.atLevel(pid);
    if (!allotment || ran?.level !== level) return "";
    return `demoted after ${duration(Math.max(0, allotment - ran.ran))} of ${duration(allotment)}`;
}
