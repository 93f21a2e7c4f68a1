// SPDX-License-Identifier: MIT
//
// Runs one workload under several policies, each until it finishes, in this worker.
//
// The first message: {machine, separate}, the modules of page/page.mk. Then requests: {id, setup, systems}.

import { PolicyMachine } from "../../python/schedlab/monitor/page/session/policy_machine.js";
import { Refused } from "../../python/schedlab/monitor/page/session/instance.js";
import { SimulatedMachine } from "../../python/schedlab/monitor/page/session/machine.js";
import { WatchedSystem } from "../../python/schedlab/monitor/page/session/system.js";
import { workloadOf } from "../../python/schedlab/monitor/page/session/words.js";

const STEP_NS = 10_000_000;
const CALLS_MOST = 200_000;

/**
 * @typedef {{cpus: number, seed: number, tick_ns: number, span_ns: number, text: string}} Setup `span_ns`: the
 * longest time of a run; `text`: the workload in words
 * @typedef {{policy: string, settings: Record<string, number>, costs: string, sharesBy: number,
 *     module?: Uint8Array}} System `module`: the compiled policy, for a separate instance
 * @typedef {{text: string, hook: string, offsets: number[]}} Fault the policy's; `offsets`: where in its module,
 * the innermost function first
 * @typedef {{time: number, cpu: number, hook: string, blocks: number[]}} Call of a hook, with the basic blocks that it
 * executed
 * @typedef {{frame: any, end_ns: number, own: number[], isOver: boolean, fault: Fault | null, calls: Call[],
 *     offsets: Map<number, number>}} Result `own`: PIDs of processes that are not the workload's; `isOver`: all of the
 * workload's have ended; `calls` and `offsets` (PolicyMachine): of a separate policy
 */

let modules;

/** @param {Setup} setup @param {System} system @returns {Promise<Result>} */
async function run(setup, { module, sharesBy, ...chosen }) {
    const separate = module ? { module: await WebAssembly.compile(module), offsets: new Map() } : null;
    const calls = [];
    const described = { ...setup, ...chosen, machine: "sim", title: "" };
    let machine = null;
    let watched = null;
    let fault = null;
    try {
        machine = new SimulatedMachine(separate ? modules.separate : modules.machine, described, separate);
        if (separate) follow(machine.instance, calls);
        watched = new WatchedSystem("a", described, machine, { sharesBy, windowNs: 10 * setup.span_ns });
        const file = workloadOf(setup.text, setup.tick_ns, "workload");
        watched.act(() => machine.act("start 1 workload", file));
        while (machine.now < setup.span_ns && !isOver(machine)) watched.advance(machine.now + STEP_NS, Infinity);
    } catch (error) {
        if (!(error instanceof Refused)) throw error;
        fault = faultOf(error.instance, error);
    }
    return {
        frame: watched?.frame(0) ?? null, end_ns: machine?.now ?? 0, own: machine?.own ?? [],
        isOver: machine !== null && isOver(machine), fault, calls, offsets: separate?.offsets ?? new Map(),
    };
}

/** Collects the policy's calls. @param {import("../../python/schedlab/monitor/page/session/instance.js").Instance} instance @param {Call[]} calls */
function follow(instance, calls) {
    const names = new Map(); // by the addresses of their texts
    instance.policy.onHook = () => {
        if (calls.length >= CALLS_MOST) return;
        const place = instance.call("policy_hook");
        if (!names.has(place)) names.set(place, instance.text(place));
        const time = Number(instance.call("machine_now"));
        calls.push({ time, cpu: instance.call("policy_cpu"), hook: names.get(place), blocks: [...instance.policy.path] });
    };
}

/** @returns {boolean} true if only the processes are left that exist for the monitor */
function isOver(machine) {
    return machine.status().every(({ pid }) => machine.own.includes(pid));
}

/** @returns {Fault} */
function faultOf(instance, error) {
    const policy = instance?.policy;
    const hook = policy ? instance.text(instance.call("policy_hook")) : "";
    const offsets = policy?.error ? PolicyMachine.offsetsOf(policy.error) : [];
    const text = policy ? instance.trouble : "";
    return { text: text || error.message.replace(/^policy \S+ broke a rule: /, ""), hook, offsets };
}

addEventListener("message", async ({ data }) => {
    if (!modules) {
        modules = data;
        return;
    }
    const { id, setup, systems } = data;
    try {
        const results = [];
        for (const system of systems) results.push(await run(setup, system));
        postMessage({ id, result: results });
    } catch (error) {
        postMessage({ id, error: error.message });
    }
});
