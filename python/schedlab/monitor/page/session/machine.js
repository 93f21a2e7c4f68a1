// SPDX-License-Identifier: MIT
//
// A simulated machine with all actions on it. The same actions at the same times give the same machine and
// the same trace, independent of the steps in between. So an earlier time is reached from a copy of the
// machine's memory, by repeating the later actions. An action is a text, such as `tickets 5 77`; a server
// uses the same texts (systems/simulator.py).

import { Instance, Refused } from "./instance.js";
import { readStatus } from "./texts.js";
import { workloadOf } from "./words.js";

/** The first process's program: the machine would end with it. */
const MONITOR_PROGRAM = "program monitor\nloop\nsleep 1000000000s\nend\n";
const MONITOR_PROCESSES = 2;
const NEVER_NS = 900_000_000 * 1e9;
const PROCESSES = 4096; // with more, copying all memory takes long
const SEPARATE_PROCESSES = 1024; // SEPARATE_TASKS of sim/apart/message.h
const ADDED_STEPS = 1 << 15;
const EVENTS_MAX = 100_000; // the most that a step examines
const PIECE_NS = 5_000_000;
const RUN_DONE = 1;
const RUN_FAILED = 2;
export const ATTRIBUTES = { priority: 1, tickets: 2, weight: 3 };

/** @typedef {{policy: string, settings: Record<string, number>, cpus: number, tick_ns: number, seed: number, costs: string}} Setup */
/**
 * @typedef {{time: number, words: string, file?: Uint8Array}} Act an action on the machine, and its time;
 * `file`: of a workload
 */

export class SimulatedMachine {
    abilities = ["attributes", "pace", "pause", "policy", "seek", "setup", "start"];
    /** Processes that exist only for the monitor: init, and a sleeping one. */
    own = [1, 2];
    endNs = null;
    names = {};
    /** @type {Act[]} the first `done` of them were done; the others follow at their times */
    #acts = [];
    #done = 0;

    /**
     * @param {WebAssembly.Module} module @param {Setup} setup
     * @param {import("./instance.js").Separate | null} [separate] the policy, if the module has none
     */
    constructor(module, setup, separate = null) {
        this.setup = setup;
        this.instance = new Instance(module, separate);
        if (!this.instance.has("machine_play")) throw new Refused("the policy's module was compiled for another version of schedlab; compile it again");
        const { policy, settings, cpus, tick_ns, seed, costs } = setup;
        const tunables = Object.entries(settings).map((pair) => pair.join("=")).join(",");
        const monitorWorkload = workloadOf(MONITOR_PROGRAM, tick_ns, "monitor");
        this.instance.obey(
            "machine_play", policy, tunables, cpus, separate ? SEPARATE_PROCESSES : PROCESSES, BigInt(tick_ns), BigInt(seed), costs,
            monitorWorkload, monitorWorkload.length, true, ADDED_STEPS,
        );
        // The machine runs until its first tick: then init has forked the sleeping process.
        while (this.instance.call("machine_processes") < MONITOR_PROCESSES) this.#run(this.#nextTick());
    }

    /** @returns {number} nanoseconds */
    get now() {
        return this.#number("machine_now");
    }

    /** The end of the taken records. */
    get reached() {
        return this.now;
    }

    /** Where the trace's header lies in memory. */
    header() {
        return this.instance.call("machine_trace_header");
    }

    /** Takes the records since the last call: their place in memory, and their bytes. */
    take() {
        this.instance.obey("machine_flush");
        const place = this.instance.call("machine_take_records");
        return { place, count: this.instance.call("machine_taken_bytes") };
    }

    status() {
        return readStatus(this.text("sched_status"));
    }

    /** @param {"sched_status" | "sched_tunables"} file @returns {string} */
    text(file) {
        return this.instance.text(this.instance.obey("machine_text", file));
    }

    // --- acts

    /**
     * Executes an action now. Later actions, from before a step back, are discarded.
     * @param {string} words @param {Uint8Array} [file] of the workload that is started @returns {number} its
     * PID, or another
     */
    act(words, file) {
        const act = { time: this.now, words, file };
        const result = this.#perform(act);
        this.#acts.length = this.#done;
        this.#acts.push(act);
        this.#done += 1;
        return result;
    }

    // CPUs are notified at once: so the result does not depend on whether another action follows now.
    #perform({ words, file }) {
        const [kind, first, ...rest] = words.split(" ");
        const result = this.instance.obey(...this.#call(kind, first, rest.join(" "), file));
        this.#run(this.now);
        return result;
    }

    #call(kind, first, second, file) {
        if (kind === "policy") return ["machine_command", "sched_status", first];
        if (kind === "tunable") return ["machine_command", "sched_tunables", first.replace("=", " ")];
        if (kind === "start") return ["machine_add", second, file, file.length, BigInt(this.setup.tick_ns)];
        if (kind !== "kill") return ["machine_set_attribute", Number(first), ATTRIBUTES[kind], BigInt(second)];
        if (this.own.includes(Number(first))) throw new Refused(`pid ${first} belongs to the monitor and cannot be killed`);
        return ["machine_kill", Number(first)];
    }

    /** True if workloads were started, and none of their processes lives. */
    get isDone() {
        if (this.instance.call("machine_processes") > MONITOR_PROCESSES) return false;
        return this.#acts.slice(0, this.#done).some(({ words }) => words.startsWith("start "));
    }

    /** @returns {string[]} each with its time, in the server's format */
    get acts() {
        return this.#acts.map(({ time, words }) => `${time} ${words}`);
    }

    /** A random number for a workload that is started now. */
    get draw() {
        return this.setup.seed + this.#done;
    }

    // --- time

    /**
     * Advances to a time, or until the patience is exhausted, or the workload ends.
     * @param {number} until @param {number} patience_ms @param {boolean} [endsDone] true to stop at that end
     */
    advance(until, patience_ms = Infinity, endsDone = false) {
        const end = performance.now() + patience_ms;
        for (;;) {
            this.#doDue();
            const target = Math.min(until, this.#nextAct());
            const now = this.now;
            if (now >= target) return;
            this.#run(Math.min(target, now + PIECE_NS));
            if (performance.now() > end || (endsDone && this.isDone)) return;
        }
    }

    /** Advances by one step. @param {"event" | "decision" | "tick" | "millisecond"} kind */
    step(kind) {
        if (kind === "tick") this.advance(this.#nextTick());
        else if (kind === "millisecond") this.advance(this.now + 1_000_000);
        else this.#stepUntilMore(kind === "decision" ? "machine_decisions" : "machine_records");
    }

    #stepUntilMore(counter) {
        const before = this.#number(counter);
        for (let events = 0; events < EVENTS_MAX; events++) {
            const coming = Math.min(this.#number("machine_next"), this.#nextAct());
            if (coming >= NEVER_NS) {
                throw new Refused("all processes wait, so there is no next event; start a workload");
            }
            this.advance(coming);
            this.#run(coming);
            if (this.#number(counter) > before) return;
        }
    }

    #run(until) {
        const status = this.instance.call("machine_run", BigInt(until));
        if (status === RUN_DONE) throw new Refused("the machine's first process has ended");
        if (status === RUN_FAILED) throw this.instance.refusal();
    }

    #nextTick() {
        const tick = this.setup.tick_ns;
        return (Math.floor(this.now / tick) + 1) * tick;
    }

    #number(counter) {
        return Number(BigInt.asUintN(64, this.instance.call(counter)));
    }

    #nextAct() {
        return this.#acts[this.#done]?.time ?? NEVER_NS;
    }

    #doDue() {
        while (this.#nextAct() <= this.now) {
            this.#perform(this.#acts[this.#done]);
            this.#done += 1;
        }
    }

    // --- copies

    snapshot() {
        return { memory: this.instance.snapshot(), done: this.#done };
    }

    restore({ memory, done }) {
        this.instance = this.instance.again(memory);
        this.#done = done;
    }
}
