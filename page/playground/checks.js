// SPDX-License-Identifier: MIT
//
// The part of `./schedlab check` that a browser can run: workloads with all actions, under the
// policy's defaults and the ends of each tunable's range.

const TICK_NS = 1_000_000;
const FULL_NS = 300_000_000;
const PART_NS = 100_000_000;
const BOUND_NS = 1_000_000_000;
const SHARED_NS = 2_000_000_000;
const CPUS = [1, 4];
const BOUND = "bound"; // its tasks may not run on every CPU

/** What only `./schedlab check` checks. */
export const NOT_CHECKED = "clocks that wrap, the waits that .rounds allows, and memory beyond a variable";

/**
 * @typedef {{name: string, text: string, cpus: number, settings: Record<string, number>, span_ns: number,
 *     limit_ns: number, isBound: boolean}} Check one run; `limit_ns`: the longest wait that is allowed; 0: any; `isBound`: a
 * CPU that no queued task may use must change nothing
 */

/**
 * @param {Record<string, string>} texts of the workloads `scenario`, `bound` and `sharing`
 * @param {import("./settings.js").Tunable[]} tunables @param {boolean} isSharing the policy shares the CPU
 * @returns {Check[]}
 */
export function checksOf(texts, tunables, isSharing) {
    const run = (name, cpus, span_ns, settings = {}, limit_ns = 0) => ({ name, text: texts[name], cpus, settings, span_ns, limit_ns, isBound: name === BOUND });
    const ends = tunables.flatMap(({ name, minimum, standard, maximum }) =>
        [minimum, maximum].filter((value) => value !== standard).map((value) => ({ [name]: value })));
    return [
        ...CPUS.map((cpus) => run("scenario", cpus, FULL_NS)),
        run(BOUND, 2, BOUND_NS),
        ...(isSharing ? [run("sharing", 1, SHARED_NS, {}, SHARED_NS / 4)] : []),
        ...ends.flatMap((settings) => CPUS.map((cpus) => run("scenario", cpus, PART_NS, settings))),
    ];
}

/** @param {Check} check @returns {import("./runner.js").Setup} */
export function setupOf({ text, cpus, span_ns }) {
    return { cpus, seed: 1, tick_ns: TICK_NS, span_ns, text };
}

/** @param {Check} check @returns {string} */
export function wordsOf({ name, cpus, settings }) {
    const values = Object.entries(settings).map(([tunable, value]) => `, ${tunable}=${value}`).join("");
    return `workload ${name}, ${cpus} CPU${cpus === 1 ? "" : "s"}${values}`;
}
