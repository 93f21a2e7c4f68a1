// SPDX-License-Identifier: MIT
//
// The runs of a schedule, and where two schedules differ. Workers use it, too.

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
