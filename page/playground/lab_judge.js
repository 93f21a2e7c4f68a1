// SPDX-License-Identifier: MIT
//
// Judges a run by a lab's expectations, which are data (python/schedlab/courses/grading/page_data.py), like
// `./schedlab grade`: the tests compare both.

import { Kind } from "../../python/schedlab/monitor/page/session/definitions.js";
import { fixed, milliseconds } from "../../python/schedlab/monitor/page/words.js";

const PARTS = 100; // of a point

/**
 * @typedef {{kind: string, title: string, points: number, law: string, figure: string, of: string, is_time: boolean,
 *     at_least: number | null, at_most: number | null, at_least_words: string, at_most_words: string,
 *     levels: number[], all_or_nothing: boolean}} Expectation
 * @typedef {{picks: number[][], groups: Record<string, string>, workload: number[]}} Right the solution's run;
 * `picks`: per CPU, PIDs and the times since the pick before, in turn
 * @typedef {{name: string, says: string, hidden: boolean, points: number, cpus: number, seed: string, tick_ns: number,
 *     limit_ns: number, costs: string, settings: Record<string, number>, text: string, clock: string,
 *     run_time: string, clock_words: string, run_time_words: string, expectations: Expectation[],
 *     right: Right}} LabTest a hidden test has only a name and points
 * @typedef {{points: number, why: string}} Judged
 * @typedef {{time: number, pid: number, group: string}} Pick
 */

/** @param {string} template of reasons.json @param {Record<string, any>} values @returns {string} */
export function filled(template, values) {
    return template.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

const sum = (values) => values.reduce((total, value) => total + value, 0);
const mean = (values) => (values.length ? sum(values) / values.length : null);
const largest = (values) => (values.length ? values.reduce((one, other) => Math.max(one, other)) : null);

/** Interpolates between two values, if the quantile falls there. */
function quantile(values, part) {
    if (!values.length) return null;
    const sorted = [...values].sort((one, other) => one - other);
    const place = (sorted.length - 1) * part;
    const [low, high] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
    return low === high ? low : (place - Math.floor(place)) * (high - low) + low;
}

const STATISTICS = { mean, median: (values) => quantile(values, 0.5), p99: (values) => quantile(values, 0.99), max: largest };
const TIMES = {
    turnaround: (lives) => lives.flatMap(({ exited, forked }) => (exited === null ? [] : [Math.max(exited - forked, 0)])),
    response: (lives) => lives.flatMap(({ firstRun, forked }) => (firstRun < 0 ? [] : [Math.max(firstRun - forked, 0)])),
    waiting: (lives) => lives.map(({ waiting }) => waiting),
    wakeup_latency: (lives, trace) => lives.flatMap(({ waits }) => waits.filter(({ isWoken, rows: [begin, end] }) =>
        isWoken && begin >= trace.beginRow && end <= trace.endRow && end !== Infinity).map(({ begin, end }) => end - begin)),
};
const COUNTS = {
    selections: Kind.SCHEDULER_EXIT, wakeups: Kind.WAKEUP, blocks: Kind.BLOCK, yields: Kind.YIELD, preemptions: Kind.PREEMPT,
    migrations: Kind.MIGRATE,
};
const SUMS = { running: "running", blocked: "blocked" };
const OF_ALL = {
    elapsed: ({ windowBegin, windowEnd }) => windowEnd - windowBegin,
    completion: (_, lives) => (lives.length && lives.every(({ exited }) => exited !== null)
        ? Math.max(largest(lives.map(({ exited }) => exited)) - Math.min(...lives.map(({ forked }) => forked)), 0) : null),
    context_switches: ({ entries, beginRow, endRow }) => entries.filter(({ kind, process, first, row }) =>
        kind === Kind.SWITCH && process && first && row >= beginRow && row <= endRow).length,
};
/** Those of the whole workload alone, by the model's names. */
const METRICS = { fairness_share: "fairness", fairness_turnaround: "fairness_turnaround", overhead_share: "overhead" };

/**
 * @param {Expectation} expectation @param {import("./lab_trace.js").LabTrace} trace
 * @param {() => any} metrics of the model @returns {number | null | undefined} undefined: not known in the page
 */
function valueOf({ figure, of }, trace, metrics) {
    const lives = trace.livesOf(of);
    const [, time, statistic] = /^(.*)_(mean|median|p99|max)$/.exec(figure) ?? [];
    if (figure === "longest_wait") return longestWait(lives)?.length ?? (lives.length ? 0 : null);
    if (figure === "remark_max") return largestRemark(trace);
    if (Object.hasOwn(METRICS, figure)) return of ? null : metrics()[METRICS[figure]];
    if (Object.hasOwn(OF_ALL, figure)) return of ? null : OF_ALL[figure](trace, lives);
    const isKnown = Object.hasOwn(TIMES, time ?? "") || Object.hasOwn(COUNTS, figure) || Object.hasOwn(SUMS, figure) || figure === "share";
    if (!isKnown || (time && statistic === "p99" && time !== "wakeup_latency")) return undefined;
    if (!lives.length) return null;
    if (time) return STATISTICS[statistic](TIMES[time](lives, trace));
    if (figure === "share") return of ? shareOf(lives, trace) : null;
    if (Object.hasOwn(SUMS, figure)) return sum(lives.map((life) => life[SUMS[figure]]));
    return sum(lives.map(({ counts }) => counts.get(COUNTS[figure]) ?? 0));
}

function shareOf(lives, trace) {
    const total = sum(trace.livesOf().map(({ running }) => running));
    return total ? sum(lives.map(({ running }) => running / total)) : null;
}

/** @returns {{length: number, begin: number} | null} the first of the longest waits */
function longestWait(lives) {
    const waits = lives.flatMap((life) => life.waits).map(({ begin, end }) => ({ length: end - begin, begin }));
    return waits.length ? waits.reduce((longest, wait) => (wait.length > longest.length ? wait : longest)) : null;
}

function largestRemark({ entries, workload }) {
    return largest(entries.filter(({ kind, process }) => kind === Kind.DECISION && workload.has(process)).map(({ second }) => Number(second)));
}

/** Judges one run. */
class Judge {
    /**
     * @param {LabTest} test @param {import("./lab_trace.js").LabTrace} trace @param {() => any} metrics of the model
     * @param {Record<string, string>} reasons
     */
    constructor(test, trace, metrics, reasons) {
        Object.assign(this, { test, trace, metrics, reasons });
        this.difference = firstDifference(picksOf(trace), rightPicks(test.right, trace.cpus));
    }

    /** @param {Expectation} expectation @returns {Judged | null} null: it is not judged in the page */
    judge(expectation) {
        const judged = this.#judged(expectation);
        if (!judged || judged.points === expectation.points) return judged;
        const { isYoung, test } = this;
        const clock = isYoung ? test.clock_words : test.run_time_words;
        const why = clock ? `${judged.why}; ${clock}` : judged.why;
        if (judged.hasMoment || !this.difference) return { points: judged.points, why };
        return { points: judged.points, why: this.#say("first_difference", { why, turn: this.#turn() }) };
    }

    #judged(expectation) {
        const { kind, points, law, is_time: isTime } = expectation;
        if (kind === "law") return law === "ends" ? { points, why: "" } : this.#workConserving(points);
        if (kind === "order") return this.#order(expectation);
        if (kind === "levels") return this.#levels(expectation);
        if (kind === "figure") return this.#figure(expectation, isTime);
        return null;
    }

    #say(name, values) {
        return filled(this.reasons[name], values);
    }

    #ms(time) {
        return milliseconds(time - this.trace.windowBegin);
    }

    #turn() {
        const { cpu, picked, right } = this.difference;
        const named = (pick, none) => (pick ? `${pick.group || "process"} (${pick.pid}) at ${milliseconds(pick.time)}` : this.reasons[none]);
        return this.#say("turn", { cpu, picked: named(picked, "no_pick"), right: named(right, "no_right_pick") });
    }

    #workConserving(points) {
        const { trace, test } = this;
        const waits = trace.livesOf().flatMap((life) => life.waits);
        const violations = trace.idleTimes().flatMap((idle) => waits.flatMap(({ pid, begin, end }) => {
            const [from, to] = [Math.max(begin, idle.begin), Math.min(end, idle.end)];
            return to - from > test.tick_ns ? [{ cpu: idle.cpu, from, to, pid }] : [];
        }));
        if (!violations.length) return { points, why: "" };
        const first = violations.reduce((one, other) => (other.from < one.from || (other.from === one.from && other.cpu < one.cpu) ? other : one));
        const process = `${trace.workload.get(first.pid).group} (${first.pid})`;
        const values = { time: this.#ms(first.from), cpu: first.cpu, length: milliseconds(first.to - first.from), process };
        return { points: 0, why: this.#say("idle", values), hasMoment: true };
    }

    #order({ points, all_or_nothing: isAllOrNothing }) {
        const { difference, trace, test } = this;
        if (!difference) return { points, why: "" };
        const workload = new Set(test.right.workload);
        const times = rightPicks(test.right, trace.cpus).flat().filter(({ pid }) => workload.has(pid)).map(({ time }) => time);
        const same = times.filter((time) => time < difference.time).length;
        const parts = times.length && !isAllOrNothing ? Math.floor((points * PARTS * same) / times.length) : 0;
        const values = { same, all: times.length, turn: this.#turn(), waited: this.#waited() };
        return { points: parts / PARTS, why: this.#say("order", values), hasMoment: true };
    }

    #waited() {
        const { time, right } = this.difference;
        const at = this.trace.windowBegin + time;
        const wait = right && this.trace.waitsOf(right.pid).find(({ begin, end }) => begin <= at && end >= at);
        return wait ? this.#say("waited", { time: this.#ms(wait.begin) }) : "";
    }

    #levels({ points, of, levels }) {
        const [life] = this.trace.livesOf(of);
        if (!life) return { points: 0, why: this.#say("no_group", { group: of }) };
        const queued = this.trace.entries.filter(({ kind, process }) => kind === Kind.QUEUED && process === life.pid);
        const seen = queued.filter(({ second }, at) => second !== queued[at - 1]?.second)
            .map(({ second, time }) => ({ level: Number(second), time })).slice(0, levels.length);
        const other = seen.findIndex(({ level }, at) => level !== levels[at]);
        if (other < 0 && seen.length === levels.length) return { points, why: "" };
        const same = other < 0 ? seen.length : other;
        const got = other < 0 ? this.reasons.at_no_level : this.#say("at_level", { level: seen[same].level, time: this.#ms(seen[same].time) });
        const why = this.#say("levels", { same, group: of, pid: life.pid, got, right: levels[same] });
        return { points: 0, why, hasMoment: other >= 0 };
    }

    #figure(expectation, isTime) {
        const { points, figure, of, at_least: least, at_most: most } = expectation;
        const value = valueOf(expectation, this.trace, this.metrics);
        const group = of || "the workload";
        if (value === undefined) return null;
        if (value === null) return { points: 0, why: this.#say("no_figure", { figure, group }) };
        const isBelow = least !== null && value < least;
        if (!isBelow && (most === null || value <= most)) return { points, why: "" };
        const isWhole = [...Object.keys(COUNTS), "remark_max", "context_switches"].includes(figure);
        const shown = isTime ? milliseconds(value) : fixed(value, isWhole ? 0 : 4);
        const bound = isBelow ? expectation.at_least_words : expectation.at_most_words;
        const why = this.#say(isBelow ? "below" : "above", { figure, group, value: shown, bound });
        if (figure !== "longest_wait") return { points: 0, why };
        const begin = longestWait(this.trace.livesOf(of))?.begin ?? 0;
        return { points: 0, why: this.#say("wait_begins", { why, time: this.#ms(begin) }), hasMoment: true };
    }
}

/** @returns {Pick[][]} of each CPU */
function picksOf(trace) {
    const cpus = Array.from({ length: trace.cpus }, (_, cpu) => trace.picks(cpu));
    return cpus.map((picks) => picks.map((pick) => ({ ...pick, group: trace.groupOf(pick.pid) })));
}

/** @param {Right} right @param {number} cpus @returns {Pick[][]} of each CPU */
function rightPicks({ picks, groups }, cpus) {
    return Array.from({ length: cpus }, (_, cpu) => {
        let time = 0;
        return Array.from({ length: picks[cpu].length / 2 }, (_, at) => {
            const [pid, after] = picks[cpu].slice(2 * at, 2 * at + 2);
            time += after;
            return { time, pid, group: groups[pid] ?? "" };
        });
    });
}

/** @returns {{cpu: number, picked: Pick | undefined, right: Pick | undefined, time: number} | null} the earliest one */
function firstDifference(picks, right) {
    let first = null;
    picks.forEach((ones, cpu) => {
        const others = right[cpu];
        const length = Math.max(ones.length, others.length);
        for (let at = 0; at < length; at++) {
            const [picked, expected] = [ones[at], others[at]];
            if (picked?.pid === expected?.pid && picked?.time === expected?.time) continue;
            const time = Math.min(picked?.time ?? Infinity, expected?.time ?? Infinity);
            if (!first || time < first.time) first = { cpu, picked, right: expected, time };
            return;
        }
    });
    return first;
}

/**
 * @param {LabTest} test @param {import("./lab_trace.js").LabTrace} trace @param {() => any} metrics of the model
 * @param {Record<string, string>} reasons @param {boolean} isYoung true if run times began at 0
 * @returns {(Judged | null)[]} for each expectation; null: it is not judged in the page
 */
export function judgeRun(test, trace, metrics, reasons, isYoung) {
    const judge = Object.assign(new Judge(test, trace, metrics, reasons), { isYoung });
    return test.expectations.map((expectation) => judge.judge(expectation));
}
