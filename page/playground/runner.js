// SPDX-License-Identifier: MIT
//
// Runs one workload under several policies, each until it finishes, in this worker.
//
// The first message: {machine, separate}, the modules of page/page.mk. Then requests: {id, run: {setup, systems}},
// {id, observe: {setup, system, layouts, hook, number}} or {id, check: {system, checks}}.

import { PolicyMachine } from "../../python/schedlab/monitor/page/session/policy_machine.js";
import { Refused } from "../../python/schedlab/monitor/page/session/instance.js";
import { SimulatedMachine } from "../../python/schedlab/monitor/page/session/machine.js";
import { WatchedSystem } from "../../python/schedlab/monitor/page/session/system.js";
import { workloadOf } from "../../python/schedlab/monitor/page/session/words.js";
import { moment } from "../../python/schedlab/monitor/page/words.js";
import { setupOf } from "./checks.js";
import { StateReader, TASKS } from "./layout.js";
import { firstDifference, runsOf } from "./runs.js";

const STEP_NS = 10_000_000;
const CALLS_MOST = 200_000;
const LOADS_MOST = 500;
const PID = /\bpid (\d+)/g;
const LOST = /: pid (\d+), queued since ([\d.]+) ms$/;
const ROUNDED_NS = 500; // of that time
const STACK_BYTES = 65536; // at the beginning of a policy's memory: compiler.js
const MISPLACED = /^(\w+)\(\) (.*)$/;
const HOOKS = /^its (?:\w+\(\)(?:, | or )?)+ /; // the fault names the called one
const REACHED = Symbol("the observed call has ended");

/**
 * @typedef {{cpus: number, seed: number, tick_ns: number, span_ns: number, text: string}} Setup `span_ns`: the
 * longest time of a run; `text`: the workload in words
 * @typedef {{policy: string, settings: Record<string, number>, costs: string, sharesBy: number,
 *     module?: Uint8Array, isSilent?: boolean}} System `module`: the compiled policy, for a separate instance; `isSilent`: it
 * is not asked for a task for a CPU that no queued task may use
 * @typedef {{text: string, hook: string, offsets: number[], isLoop: boolean}} Fault the policy's, and its Place in the module
 * @typedef {{time: number, cpu: number, hook: string, blocks: number[], executed: number}} Call of a hook, with the basic
 * blocks that it executed and their number, which counts each repetition
 * @typedef {{frame: any, end_ns: number, own: number[], isOver: boolean, fault: Fault | null, calls: Call[],
 *     offsets: Map<number, number>, misplaced: string}} Result `own`: PIDs of processes that are not the workload's; `isOver`: all of the
 * workload's have ended; `calls`, `offsets` (PolicyMachine) and `misplaced` (apart.h): of a separate policy
 */

let modules;

/** @param {Setup} setup @param {System} system @returns {Promise<Result>} */
async function run(setup, { module, sharesBy, isSilent = false, ...chosen }) {
    const separate = await separateOf(module);
    const calls = [];
    const described = { ...setup, ...chosen, machine: "sim", title: "" };
    let machine = null;
    let watched = null;
    let fault = null;
    try {
        machine = new SimulatedMachine(separate ? modules.separate : modules.machine, described, separate);
        if (separate) follow(machine.instance, calls);
        if (isSilent) machine.instance.call("policy_silence");
        watched = new WatchedSystem("a", described, machine, { sharesBy, windowNs: 10 * setup.span_ns });
        watched.act(() => start(machine, setup));
        while (machine.now < setup.span_ns && !isOver(machine)) watched.advance(machine.now + STEP_NS, Infinity);
    } catch (error) {
        if (!(error instanceof Refused)) throw error;
        fault = await faultOf(error, machine, { setup, module, ...chosen });
    }
    return {
        frame: watched?.frame(0) ?? null, end_ns: machine?.now ?? 0, own: machine?.own ?? [],
        isOver: machine !== null && isOver(machine), fault, calls, offsets: separate?.offsets ?? new Map(),
        misplaced: separate ? machine?.instance.text(machine.instance.call("policy_misplaced")) : "",
    };
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
async function observe({ setup, system: { module, ...chosen }, layouts, hook, number }) {
    const described = { ...setup, ...chosen, machine: "sim", title: "" };
    const machine = new SimulatedMachine(modules.separate, described, await separateOf(module));
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
    try {
        start(machine, setup);
        machine.advance(setup.span_ns);
    } catch (error) {
        if (error !== REACHED && !(error instanceof Refused)) throw error;
    }
    return observed;
}

/**
 * Runs checks until one fails.
 * @param {{system: System, checks: import("./checks.js").Check[]}} inputs `system`: with a module
 * @returns {Promise<{passed: number, failed: import("./checks.js").Check | null, fault: Fault | null}>}
 */
async function checkAll({ system: { module, ...chosen }, checks }) {
    for (const [passed, check] of checks.entries()) {
        const system = { module, ...chosen, settings: check.settings };
        const fault = check.limit_ns ? await faultOfSharing(check, system) : await faultIn(check, system) ?? (check.isBound ? await faultOfBinding(check, system) : null);
        if (fault) return { passed, failed: check, fault };
    }
    return { passed: checks.length, failed: null, fault: null };
}

/** @returns {Promise<Fault | null>} of a whole run, after which the policy gives back all queued tasks */
async function faultIn(check, { module, ...chosen }) {
    const setup = setupOf(check);
    let machine = null;
    try {
        machine = new SimulatedMachine(modules.separate, { ...setup, ...chosen }, await separateOf(module));
        start(machine, setup);
        machine.advance(setup.span_ns);
        // Other tasks may wait for a task that the policy has ended.
        if (!machine.instance.call("policy_kills")) machine.instance.obey("machine_drain");
        return null;
    } catch (error) {
        if (!(error instanceof Refused)) throw error;
        return faultOf(error, machine, { setup, module, ...chosen });
    }
}

/** @returns {Promise<Fault | null>} the policy gives a task to a CPU where it may not run, or such a question changes its decisions */
async function faultOfBinding(check, system) {
    const setup = setupOf(check);
    const asked = await run(setup, system);
    const [, hook, words] = MISPLACED.exec(asked.misplaced) ?? [];
    const place = { offsets: [], isLoop: false };
    if (hook) return { text: `${words}; call task_may_run_on(), or functions of task_list.h whose names end in _on`, hook, ...place };
    const runs = [asked, await run(setup, { ...system, isSilent: true })].map(runsOf);
    const difference = firstDifference(...runs, setup.cpus, 0);
    const text = "for a CPU that no queued task may use, it changes later decisions";
    return difference && { text: `${text}, first at ${moment(difference.time, 6)}; change nothing before you return null`, hook: "pick", ...place };
}

/** @returns {Promise<Fault | null>} a task of equal shares that waits for too long */
async function faultOfSharing(check, system) {
    const { frame, fault, own } = await run(setupOf(check), system);
    if (fault) return fault;
    const waits = [
        ...frame.timeline.runs.map(([, pid, , , , , waited]) => ({ pid, waited })),
        ...[...frame.processes.pid].map((pid, at) => ({ pid, waited: frame.processes.wait_now_ns[at] })),
    ].filter(({ pid }) => !own.includes(pid));
    const { pid, waited } = waits.reduce((most, wait) => (wait.waited > most.waited ? wait : most), { pid: 0, waited: 0 });
    if (waited < check.limit_ns) return null;
    const text = `shares_by() promises each task its share, but pid ${pid} waited ${(waited / 1e6).toFixed(0)} ms of ${check.span_ns / 1e6}, one of five tasks of equal shares`;
    return { text, hook: "", offsets: [], isLoop: false };
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

/** @param {Refused} error @param {SimulatedMachine | null} machine @param {any} repeated what the run depends on @returns {Promise<Fault>} */
async function faultOf(error, machine, repeated) {
    const instance = error.instance ?? machine?.instance;
    const policy = instance?.policy;
    const hook = policy ? instance.text(instance.call("policy_hook")) : "";
    const place = policy?.errorPlace ?? { offsets: [], isLoop: false };
    const [, pid, since_ms] = LOST.exec(error.message) ?? [];
    const names = new Map(machine?.status().map(({ pid: number, name }) => [String(number), name]));
    const named = (text) => text.replace(PID, (words, number) => (names.has(number) ? `${names.get(number)} ${number}` : words));
    if (policy && pid && await isLostAtOnce(Number(pid), since_ms * 1e6, repeated)) {
        return { text: named(`it loses pid ${pid} at ${since_ms} ms: nothing refers to this task any more, so pick() cannot return it`), hook: "enqueue", ...place };
    }
    const text = policy ? instance.trouble : "";
    return { text: named(text || error.message.replace(/^policy \S+ broke a rule: /, "").replace(HOOKS, "it ")), hook, ...place };
}

/** Repeats a run up to the enqueue() of a task. @returns {Promise<boolean>} true if the policy then has no pointer to the task */
async function isLostAtOnce(pid, since_ns, { setup, module, ...chosen }) {
    const machine = new SimulatedMachine(modules.separate, { ...setup, ...chosen }, await separateOf(module));
    const { instance } = machine;
    const { tasks } = instance.policy.description;
    let isQueued = false;
    instance.policy.beforeHook = () => {
        if (isQueued) throw REACHED;
        isQueued = instance.text(instance.call("policy_hook")) === "enqueue" && instance.call("policy_task_pid") === pid
            && Math.abs(machine.now - since_ns) <= ROUNDED_NS;
    };
    try {
        start(machine, setup);
        machine.advance(setup.span_ns);
    } catch (error) {
        if (error !== REACHED) return false;
        const words = new Uint32Array(instance.policy.buffer);
        const slot = Array.from({ length: TASKS }, (_, at) => words[(tasks.place + at * tasks.bytes) / 4]).indexOf(pid); // its first member
        const address = tasks.place + slot * tasks.bytes;
        const isOther = (at) => at >= STACK_BYTES && (at < address || at >= address + tasks.bytes);
        return !words.some((word, at) => word === address && isOther(4 * at));
    }
    return false;
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
        postMessage({ id, result: await { run: runAll, observe, check: checkAll }[name](inputs) });
    } catch (error) {
        postMessage({ id, error: error.message });
    }
});
