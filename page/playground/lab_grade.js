// SPDX-License-Identifier: MIT
//
// Runs a lab's tests under a compiled policy and judges the runs, like `./schedlab grade`
// (python/schedlab/courses/grading/grading.py, ../submissions/wasm_policy.py).

import { Instance, Refused } from "../../python/schedlab/monitor/page/session/instance.js";
import { RECORD_BYTES } from "../../python/schedlab/monitor/page/session/definitions.js";
import { readMessage } from "../../python/schedlab/monitor/page/session/model_message.js";
import { workloadOf } from "../../python/schedlab/monitor/page/session/words.js";
import { milliseconds } from "../../python/schedlab/monitor/page/words.js";
import { filled, judgeRun } from "./lab_judge.js";
import { LabTrace } from "./lab_trace.js";

const PROCESSES = 1024; // SEPARATE_TASKS of sim/apart/message.h
const CALLS_MOST = 250_000; // as in wasm_policy.py
const CPUS_OF_CALLS = 16;
const [DONE, FAILED] = [1, 2]; // enum simulator_status
const LATER_NS = "2400000000"; // NO_WRAPS_NS of trial.py

/**
 * @typedef {import("./lab_judge.js").LabTest} LabTest
 * @typedef {import("./runner.js").Fault} Fault
 * @typedef {{points: number, why: string} | null} Result of an expectation; null: not judged in the page
 * @typedef {{results: Result[], fault: Fault | null}} Verdict of a test; `fault`: why its run failed
 * @typedef {{policy: string, module: WebAssembly.Module, separate: WebAssembly.Module, reasons: Record<string, string>}}
 * Submission `policy`: its name; `separate`: the simulator with one policy (page/page.mk)
 */

const NO_PLACE = { hook: null, offsets: [], isLoop: false };

class Broken extends Error {
    /** @param {string} text @param {Instance | null} [instance] */
    constructor(text, instance = null) {
        super(text);
        const place = instance ? { hook: instance.text(instance.call("policy_hook")), ...instance.policy.errorPlace } : NO_PLACE;
        this.fault = { text, ...place };
    }
}

/** Runs a test. @param {LabTest} test @param {string} clock @param {string} runTime the policy's first, ns */
function run(test, clock, runTime, { policy, module, separate, reasons }) {
    const instance = instanceOf(separate, module);
    const file = workloadOf(test.text, test.tick_ns, "workload");
    const tunables = Object.entries(test.settings).map((pair) => pair.join("=")).join(",");
    const calls = Math.floor((CALLS_MOST * Math.max(test.cpus, CPUS_OF_CALLS)) / CPUS_OF_CALLS);
    instance.call("policy_limit_calls", BigInt(calls));
    instance.call("machine_offset_policy", BigInt(clock), BigInt(runTime));
    const obey = (...words) => {
        if (!instance.call(...words)) throw new Broken(whyOf(instance), instance);
    };
    const settings = [BigInt(test.tick_ns), BigInt(test.seed), test.costs, file, file.length, true, 0];
    obey("machine_play", policy, tunables, test.cpus, PROCESSES, ...settings);
    const status = instance.call("machine_run", BigInt(test.limit_ns));
    if (status === FAILED) throw new Broken(whyOf(instance), instance);
    if (status === DONE) obey("machine_audit");
    const kills = instance.call("policy_kills");
    if (kills) throw new Broken(filled(reasons.kills, { count: kills }));
    if (status !== DONE) throw new Broken(filled(reasons.not_ended, { limit: milliseconds(test.limit_ns, 0) }));
    obey("machine_finish");
    const place = instance.call("machine_take_records");
    const trace = new LabTrace(instance.bytes(place, instance.call("machine_taken_bytes")), test.cpus);
    return { trace, metrics: () => metricsOf(instance, trace, policy) };
}

function instanceOf(separate, module) {
    try {
        return new Instance(separate, { module });
    } catch (error) {
        if (error instanceof Refused) throw new Broken(error.message);
        throw error;
    }
}

function whyOf(instance) {
    return (instance.policy.error && instance.trouble) || instance.text(instance.call("policy_trouble"))
        || instance.text(instance.call("machine_error"));
}

/** What the model computes over the measured window. */
function metricsOf(instance, { bytes, endRow, windowBegin, windowEnd }, policy) {
    if (!instance.call("watch_begin", instance.call("machine_trace_header"), policy, 0)) throw new Error("the model has no memory");
    instance.call("watch_window", BigInt(windowEnd - windowBegin));
    const records = bytes.subarray(0, endRow === Infinity ? bytes.length : RECORD_BYTES * (endRow + 1));
    instance.call("watch_feed", records, records.length);
    instance.call("watch_reach", BigInt(windowEnd));
    return readMessage(instance.buffer, instance.call("watch_frame", 1)).metrics;
}

/** @returns {string} what a policy decides: equal texts for equal decisions */
function decisionsOf(test, clock, runTime, submission) {
    try {
        return run(test, clock, runTime, submission).trace.bytes.join();
    } catch (error) {
        if (error instanceof Broken) return error.message;
        throw error;
    }
}

/** @returns {Verdict} */
function verdictOf(test, isYoung, submission) {
    try {
        const { trace, metrics } = run(test, test.clock, isYoung ? "0" : test.run_time, submission);
        return { results: judgeRun(test, trace, metrics, submission.reasons, isYoung), fault: null };
    } catch (error) {
        if (!(error instanceof Broken)) throw error;
        const nothing = { points: 0, why: error.message };
        return { results: test.expectations.map(({ kind }) => (kind === "kernel" ? null : nothing)), fault: error.fault };
    }
}

/** @param {Verdict} verdict @returns {number} */
export function pointsOf({ results }) {
    return results.reduce((sum, result) => sum + (result?.points ?? 0), 0);
}

/**
 * Grades a policy by a visible test. A policy that uses run times loses no points because they begin high.
 * @param {LabTest} test @param {Submission} submission @returns {Verdict}
 */
export function gradeTest(test, submission) {
    const verdict = verdictOf(test, false, submission);
    const isLost = test.expectations.some(({ points }, at) => verdict.results[at] && verdict.results[at].points < points);
    if (!isLost || test.run_time === "0") return verdict;
    const young = verdictOf(test, true, submission);
    const usesRunTime = () => decisionsOf(test, "0", LATER_NS, submission) !== decisionsOf(test, "0", "0", submission);
    return pointsOf(young) > pointsOf(verdict) && usesRunTime() ? young : verdict;
}
