// SPDX-License-Identifier: MIT
//
// Runs one workload under several policies, each until it finishes, in this worker.
//
// The first message: {machine, separate}, the modules of page/page.mk. Then requests: {id, run: {setup, systems}},
// {id, observe: {setup, system, layouts, hook, number}}, {id, explain: {setup, system, pid, end_ns}} or
// {id, check: {system, checks}}.

import { describePart, longestWaits } from "../../python/schedlab/monitor/page/finished.js";
import { DESCRIPTION_BYTES, PolicyMachine } from "../../python/schedlab/monitor/page/session/policy_machine.js";
import { Refused } from "../../python/schedlab/monitor/page/session/instance.js";
import { SimulatedMachine } from "../../python/schedlab/monitor/page/session/machine.js";
import { WatchedSystem } from "../../python/schedlab/monitor/page/session/system.js";
import { lineOfStep, workloadOf } from "../../python/schedlab/monitor/page/session/words.js";
import { moment } from "../../python/schedlab/monitor/page/words.js";
import { setupOf } from "./checks.js";
import { StateReader, TASKS } from "./layout.js";
import { firstDifference, runsOf } from "./runs.js";

const STEP_NS = 10_000_000;
const CALLS_MOST = 200_000;
const LOADS_MOST = 500;
const PID = /\bpid (\d+)/g;
const LOST = /: pid (\d+), queued since ([\d.]+) ms$/;
const OF_STEP = /^program (\S+), step (\d+): /;
const OF_POLICY = /^policy \S+ (?:broke a rule: )?/;
const ROUNDED_NS = 500; // of that time
const STACK_BYTES = 65536; // at the beginning of a policy's memory: compiler.js
const MISPLACED = /^(\w+)\(\) (.*)$/;
const HOOKS = /^its (?:\w+\(\)(?:, | or )?)+ /; // the fault names the called one
const NOWHERE = { hook: "", offsets: [], isLoop: false };
const REACHED = Symbol("the observed call has ended");

/**
 * @typedef {{cpus: number, seed: number, tick_ns: number, span_ns: number, text: string}} Setup `span_ns`: the
 * longest time of a run; `text`: the workload in words
 * @typedef {{policy: string, settings: Record<string, number>, costs: string, sharesBy: number,
 *     module?: Uint8Array, isSilent?: boolean}} System `module`: the compiled policy, for a separate instance; `isSilent`: it
 * is not asked for a task for a CPU that no queued task may use
 * @typedef {{text: string, hook: string, offsets: number[], isLoop: boolean, of?: "policy" | "workload" | "settings",
 *     time_ns?: number}} Fault and its Place in the module; `of`: what must be corrected
 * @typedef {{time: number, cpu: number, hook: string, blocks: number[], executed: number}} Call of a hook, with the basic
 * blocks that it executed and their number, which counts each repetition
 * @typedef {{frame: any, end_ns: number, fault: Fault | null, calls: Call[],
 *     offsets: Map<number, number>, misplaced: string}} Result `calls`, `offsets` (PolicyMachine) and `misplaced` (apart.h): of a separate policy
 */

let modules;

/** @param {Setup} setup @param {System} system @returns {Promise<Result>} */
async function run(setup, system) {
    const separate = await separateOf(system.module);
    const calls = [];
    const result = { frame: null, end_ns: 0, fault: null, calls, offsets: separate?.offsets ?? new Map(), misplaced: "" };
    let machine = null;
    let watched = null;
    const end = () => {
        if (watched) Object.assign(result, { frame: watched.frame(0), end_ns: machine.now });
    };
    try {
        machine = machineOf(setup, system, separate);
        const { instance } = machine;
        if (separate) follow(instance, calls);
        if (system.isSilent) instance.call("policy_silence");
        watched = watch(machine, setup, system);
        while (machine.now < setup.span_ns && !isOver(machine)) watched.advance(machine.now + STEP_NS, Infinity);
        end();
        if (!separate) return result;
        result.misplaced = instance.text(instance.call("policy_misplaced"));
        instance.policy.onHook = null;
        drain(machine);
    } catch (error) {
        if (!(error instanceof Refused)) throw error;
        if (!result.frame) end();
        result.fault = await faultOf(error, machine, { setup, ...system });
    }
    return result;
}

/** @param {Setup} setup @param {System} system @param {any} separate @returns {SimulatedMachine} */
function machineOf(setup, { policy, settings, costs }, separate) {
    return new SimulatedMachine(separate ? modules.separate : modules.machine, { ...setup, policy, settings, costs }, separate);
}

/** Starts the workload of a machine that is watched. @returns {WatchedSystem} */
function watch(machine, setup, { policy, sharesBy }) {
    const watched = new WatchedSystem("a", { ...setup, policy, machine: "sim", title: "" }, machine, { sharesBy, windowNs: 10 * setup.span_ns });
    watched.act(() => start(machine, setup));
    return watched;
}

/** Ends a run: the policy gives back all queued tasks. Refused: it cannot. */
function drain(machine) {
    // Other tasks may wait for a task that the policy has ended.
    if (!machine.instance.call("policy_kills")) machine.instance.obey("machine_drain");
}

/**
 * Repeats a run up to the end of a process's wait.
 * @param {{setup: Setup, system: System, pid: number, end_ns: number}} inputs
 * @returns {Promise<{begin_ns: number, end_ns: number, parts: any[]} | null>} what the CPU did during it; null: it did not wait
 */
async function explain({ setup, system, pid, end_ns }) {
    const machine = machineOf(setup, system, await separateOf(system.module));
    const watched = watch(machine, setup, system);
    repeat(() => watched.advance(end_ns, Infinity));
    const wait = watched.explain(pid).waits.at(-1);
    return wait?.end_ns >= end_ns ? { ...wait, parts: wait.parts.map(describePart) } : null;
}

async function separateOf(module) {
    return module ? { module: await WebAssembly.compile(module), offsets: new Map() } : null;
}

function start(machine, { text, tick_ns }) {
    return machine.act("start 1 workload", workloadOf(text, tick_ns, "workload"));
}

/**
 * @typedef {{kind: string, pid: number, index: number, isState: boolean, path: string, value: string, offsets: number[]}}
 * Load of a value of the policy's data; `offsets` in the module of the active functions, the innermost first
 * @typedef {{pid: number, index: number, fields: Record<string, string>, changed: Record<string, string>}} Values of a
 * state before a call, and the values that the call changed
 * @typedef {{loads: Load[], tasks: Values[], queue: Values | null}} Observed `tasks`: queued, or given to the call
 */

/**
 * Repeats a run up to a call of a hook, and returns the values that the call read.
 * @param {{setup: Setup, system: System, layouts: import("./layout.js").Layouts, hook: string, number: number}} inputs
 * `system`: with a module that reports its loads; `number`: of the call among the run's calls of this hook, from 0
 * @returns {Promise<Observed>}
 */
async function observe({ setup, system, layouts, hook, number }) {
    const machine = machineOf(setup, system, await separateOf(system.module));
    const { instance } = machine;
    const { policy } = instance;
    const reader = new StateReader(layouts, policy.description);
    const observed = { loads: [], tasks: [], queue: null };
    const view = () => new DataView(policy.buffer);
    const changes = ({ fields }, now) => Object.fromEntries(Object.entries(now.fields).filter(([path, value]) => value !== fields[path]));
    let current = -1;
    let isObserved = false;
    policy.beforeHook = () => {
        if (instance.text(instance.call("policy_hook")) !== hook || ++current !== number) return;
        isObserved = true;
        const slots = Array.from({ length: TASKS }, (_, slot) => slot).filter((slot) => instance.call("policy_is_queued", slot));
        observed.tasks = slots.map((index) => ({ index, ...reader.state(view(), "task", index), changed: {} }));
        const cpu = instance.call("policy_queue");
        observed.queue = { index: cpu, ...reader.state(view(), "queue", cpu), changed: {} };
        policy.onLoad = (address, bytes) => {
            const load = observed.loads.length < LOADS_MOST ? reader.load(view(), address, bytes) : null;
            if (load) observed.loads.push({ ...load, offsets: PolicyMachine.callerOffsets() });
        };
    };
    policy.onHook = () => {
        if (!isObserved) return;
        for (const task of observed.tasks) task.changed = changes(task, reader.state(view(), "task", task.index));
        observed.queue.changed = changes(observed.queue, reader.state(view(), "queue", observed.queue.index));
        throw REACHED;
    };
    repeat(() => {
        start(machine, setup);
        machine.advance(setup.span_ns);
    });
    return observed;
}

/** Does what a hook may end, because it has seen enough. @param {() => void} doing */
function repeat(doing) {
    try {
        doing();
    } catch (error) {
        if (error !== REACHED && !(error instanceof Refused)) throw error;
    }
}

/**
 * Runs checks until one fails.
 * @param {{system: System, checks: import("./checks.js").Check[]}} inputs `system`: with a module
 * @returns {Promise<{passed: number, failed: import("./checks.js").Check | null, fault: Fault | null}>}
 */
async function checkAll({ system: { module, ...chosen }, checks }) {
    for (const [passed, check] of checks.entries()) {
        const system = { module, ...chosen, settings: check.settings };
        const setup = setupOf(check);
        const result = await run(setup, system);
        const silent = check.isBound && !result.fault ? await run(setup, { ...system, isSilent: true }) : null;
        const fault = result.fault ?? (silent ? faultOfBinding(setup, result, silent) : check.limit_ns ? faultOfSharing(check, result) : null);
        if (fault) return { passed, failed: check, fault };
    }
    return { passed: checks.length, failed: null, fault: null };
}

/** @returns {Fault | null} the policy gives a task to a CPU where it may not run, or such a question changes its decisions */
function faultOfBinding(setup, result, silent) {
    const [, hook, words] = MISPLACED.exec(result.misplaced) ?? [];
    if (hook) return { ...NOWHERE, text: `${words}; call task_may_run_on(), or functions of task_list.h whose names end in _on`, hook };
    const difference = firstDifference(runsOf(result), runsOf(silent), setup.cpus, 0);
    const text = "for a CPU that no queued task may use, it changes later decisions";
    return difference && { ...NOWHERE, text: `${text}, first at ${moment(difference.time, 6)}; change nothing before you return null`, hook: "pick" };
}

/** @returns {Fault | null} a task of equal shares that waits for too long */
function faultOfSharing({ limit_ns, span_ns }, result) {
    const [{ pid, waited }] = longestWaits(runsOf(result), result.frame, 1);
    if (waited < limit_ns) return null;
    const text = `it promises each task its share, but pid ${pid} waited ${(waited / 1e6).toFixed(0)} ms of ${span_ns / 1e6}, one of five tasks of equal shares`;
    return { ...NOWHERE, text, hook: "shares_by" };
}

/** Collects the policy's calls. @param {import("../../python/schedlab/monitor/page/session/instance.js").Instance} instance @param {Call[]} calls */
function follow(instance, calls) {
    const names = new Map(); // by the addresses of their texts
    instance.policy.onHook = () => {
        if (calls.length >= CALLS_MOST) return;
        const place = instance.call("policy_hook");
        if (!names.has(place)) names.set(place, instance.text(place));
        const time = Number(instance.call("machine_now"));
        calls.push({ time, cpu: instance.call("policy_cpu"), hook: names.get(place), blocks: [...instance.policy.path], executed: instance.policy.blocks });
    };
}

/** @returns {boolean} true if only the processes are left that exist for the monitor */
function isOver(machine) {
    return machine.status().every(({ pid }) => machine.own.includes(pid));
}

/** @param {Refused} error @param {SimulatedMachine | null} machine null: it does not exist @param {any} repeated what the run depends on @returns {Promise<Fault>} */
async function faultOf(error, machine, repeated) {
    const instance = error.instance ?? machine?.instance;
    const policy = instance?.policy;
    const text = policy ? instance.trouble : "";
    const names = new Map(machine?.status().map(({ pid: number, name }) => [String(number), name]));
    const named = (words) => words.replace(PID, (same, number) => (names.has(number) ? `${names.get(number)} ${number}` : same));
    // Without an instance, the policy has no valid description.
    if (!text && (machine || error.instance) && !OF_POLICY.test(error.message)) {
        const { text: load, tick_ns } = repeated.setup;
        const inLine = error.message.replace(OF_STEP, (_, program, step) => `workload:${lineOfStep(load, tick_ns, program, Number(step))}: `);
        return { text: named(inLine), of: machine ? "workload" : "settings", ...NOWHERE };
    }
    const [, pid, since_ms] = LOST.exec(error.message) ?? [];
    const loss = policy && pid ? await lossOf(Number(pid), since_ms * 1e6, repeated) : null;
    if (loss) return { ...loss, text: named(`it loses pid ${pid}: nothing in the policy refers to this task any more, so pick() cannot return it`) };
    const place = policy ? { hook: instance.text(instance.call("policy_hook")), ...policy.errorPlace } : NOWHERE;
    return { text: named(text || error.message.replace(OF_POLICY, "").replace(HOOKS, "it ")), of: "policy", ...place };
}

/** Repeats a run up to the call of a hook after which the policy has no pointer to a queued task. @returns {Promise<Partial<Fault> | null>} null: there is none */
async function lossOf(pid, since_ns, { setup, ...system }) {
    const separate = await separateOf(system.module);
    const seen = new Map(); // blocks of each hook's calls
    let address = 0; // of the task, while it is queued
    let loss = null;
    const onHook = (instance) => {
        const { policy } = instance;
        const hook = instance.text(instance.call("policy_hook"));
        const time_ns = Number(instance.call("machine_now"));
        const blocks = [...policy.path];
        const before = seen.get(hook) ?? seen.set(hook, new Set()).get(hook);
        const isThen = since_ns === 0 || Math.abs(time_ns - since_ns) <= ROUNDED_NS; // at first, there is no machine with a time
        if (hook === "enqueue" && instance.call("policy_task_pid") === pid && isThen) {
            const { place, bytes } = policy.description.tasks;
            address = place + bytes * Array.from({ length: TASKS }, (_, slot) => slot).findIndex((slot) => new Uint32Array(policy.buffer, place + slot * bytes, 1)[0] === pid);
        }
        if (address && !hasPointerTo(policy, address)) {
            // What no earlier call executed, or else what was executed last.
            const rare = blocks.filter((block) => !before.has(block));
            const shown = rare.length && before.size ? rare : blocks.toReversed();
            loss = { ...NOWHERE, hook, time_ns, offsets: shown.map((block) => separate.offsets.get(block)), of: "policy" };
            throw REACHED;
        }
        for (const block of blocks) before.add(block);
    };
    repeat(() => {
        const machine = machineOf(setup, system, { ...separate, onHook });
        start(machine, setup);
        machine.advance(setup.span_ns);
        drain(machine);
    });
    return loss;
}

/** @param {PolicyMachine} policy @returns {boolean} true if the policy has a pointer to a task, outside the stack and the task itself */
function hasPointerTo({ buffer, place, description: { tasks } }, address) {
    const words = new Uint32Array(buffer);
    const isOther = (at) => (at < address || at >= address + tasks.bytes) && (at < place || at >= place + DESCRIPTION_BYTES);
    let at = words.indexOf(address, STACK_BYTES / 4);
    while (at >= 0 && !isOther(4 * at)) at = words.indexOf(address, at + 1);
    return at >= 0;
}

async function runAll({ setup, systems }) {
    const results = [];
    for (const system of systems) results.push(await run(setup, system));
    return results;
}

addEventListener("message", async ({ data }) => {
    if (!modules) {
        modules = data;
        return;
    }
    const { id, ...request } = data;
    try {
        const [[name, inputs]] = Object.entries(request);
        postMessage({ id, result: await { run: runAll, observe, explain, check: checkAll }[name](inputs) });
    } catch (error) {
        postMessage({ id, error: error.message });
    }
});
