// SPDX-License-Identifier: MIT
//
// The systems that are watched together. Simulated machines and recordings are played here, in step with each
// other.

import { asCatalogue, sharesBy, wrongSetting } from "./catalogue.js";
import { about, Instance, Refused } from "./instance.js";
import { SimulatedMachine } from "./machine.js";
import { namesOf } from "./names.js";
import { Recording } from "./recording.js";
import { WatchedSystem } from "./system.js";
import { readHeader, Tape } from "./tape.js";
import { workloadOf } from "./words.js";

const TURN_MS = 20;
const AIM_MS = 40; // the time budget of a turn
const FRAME_MS = 100;
const LETTERS = ["a", "b", "c", "d"];
const STANDARD = { settings: {}, cpus: 2, tick_ns: 10_000_000, seed: 1, costs: "kernel", workloads: [] };
const WINDOW_NS = 10_000_000_000;
const WINDOW_LEAST_NS = 100_000_000;
const WINDOW_MOST_NS = 600_000_000_000;
const TICK_NS = [100_000, 1_000_000_000];
export const CPUS_MAX = 1024;

export class Session {
    /** @type {WatchedSystem[]} systems of a server are played there */
    systems = [];
    /** @type {any[]} as in `./schedlab policies --json` */
    policies = [];
    pace = 1;
    windowNs = WINDOW_NS;
    /** @type {any} the lesson being played; null: none */
    lesson = null;
    #modules = new Map();
    #farNs = 1e6;
    #turned_ms = 0;
    #shown_ms = 0;
    #told = "";

    /**
     * @param {WebAssembly.Module} module that of page/machine.c with all policies
     * @param {{name: string, title: string, kind: string, text: string, tick_bound: boolean}[]} palette
     * @param {(message: any) => void} tell
     */
    constructor(module, palette, tell) {
        this.module = module;
        this.palette = palette;
        this.tell = tell;
        this.learn(module);
        setTimeout(() => this.#turn(), TURN_MS);
    }

    /**
     * Adds the policies of a module, replacing policies of the same names. @returns {string[]} their names
     */
    learn(module) {
        const catalogue = JSON.parse(new Instance(module).printed("print_policies")).map(asCatalogue);
        for (const policy of catalogue) {
            this.policies = [...this.policies.filter(({ name }) => name !== policy.name), policy];
            this.#modules.set(policy.name, module);
        }
        return catalogue.map(({ name }) => name);
    }

    // --- systems

    /**
     * Shows these systems from their start; for a lesson, paused. Refused: nothing has changed.
     * @param {any[]} setups of simulated machines, one to four
     * @param {{pace?: number, own?: any[], lesson?: any}} more `own`: the user's workloads, {name, title, text}
     */
    async begin(setups, { pace = this.pace, own, lesson = null }) {
        if (!setups.length || setups.length > LETTERS.length) throw new Refused(`number of systems: out of range; choose 1 to ${LETTERS.length}`);
        const { palette } = this;
        if (own) this.palette = withUserWorkloads(palette, own);
        let systems;
        try {
            systems = await Promise.all(setups.map((setup, place) => this.simulated(LETTERS[place], { ...STANDARD, ...setup })));
        } catch (error) {
            this.palette = palette;
            throw error;
        }
        for (const system of systems) [system.paused, system.anew] = [lesson !== null, true];
        if (this.systems.some(isRecorded)) this.windowNs = WINDOW_NS;
        for (const system of systems) system.setWindow(this.windowNs);
        [this.systems, this.lesson, this.pace] = [systems, lesson, pace];
        this.#introduce();
    }

    /**
     * Shows all of a trace: it stands at its end, and the window covers it.
     * @param {ArrayBuffer} file @param {{title: string, policy?: string}} facts
     */
    play(file, facts) {
        const system = this.recorded(LETTERS[0], file, { ...facts, showsAll: true });
        this.windowNs = system.windowNs;
        system.paused = system.anew = true;
        this.systems = [system];
        this.lesson = null;
        this.#introduce();
    }

    /**
     * @param {{title: string, policy?: string, own?: number[], records?: number, showsAll?: boolean}} told
     *     `own`: PIDs; `records`: the valid ones; `showsAll`: the window covers all of it
     */
    recorded(letter, file, { title, policy, own = [], records, showsAll = false }) {
        const { cpus, tick_ns, seed } = readHeader(file);
        const source = new Recording(this.module, Tape.of(file, records), tick_ns || STANDARD.tick_ns);
        source.own = own;
        source.names = namesOf(source.tape);
        const setup = { ...STANDARD, policy: policy || source.policy() || this.#standard, cpus, tick_ns, seed, machine: "recorded", title };
        const terms = this.terms(setup.policy);
        if (showsAll) terms.windowNs = Math.min(Math.max(source.lengthNs, WINDOW_LEAST_NS), WINDOW_MOST_NS);
        const system = new WatchedSystem(letter, setup, source, terms);
        system.goThrough();
        return system;
    }

    /** Restarts a system, in step with the others. @param {WatchedSystem} system */
    async restart(system, changes) {
        if (!system.source.abilities.includes("setup")) throw new Refused("a recording cannot be changed");
        const restarted = await this.simulated(system.letter, { ...system.setup, ...changes });
        const others = this.played.filter((other) => other !== system);
        restarted.told = system.told;
        restarted.anew = true;
        restarted.paused = system.paused;
        if (others.length) restarted.originNs = restarted.now - Math.min(...others.map((other) => other.commonNs));
        this.systems = this.systems.map((other) => (other === system ? restarted : other));
        this.#introduce();
    }

    async simulated(letter, setup) {
        this.#check(letter, setup);
        const module = this.#modules.get(setup.policy.split(":")[0]);
        const source = new SimulatedMachine(module, setup);
        const system = new WatchedSystem(letter, { ...setup, machine: "sim", title: "" }, source, this.terms(setup.policy));
        for (const name of setup.workloads) await about(this.#isUserWorkload(name) ? "text" : "workloads", () => this.start(system, name));
        return system;
    }

    #isUserWorkload(name) {
        return this.palette.some((workload) => workload.name === name && workload.kind === "own");
    }

    /** @returns {WatchedSystem[]} systems whose time advances here */
    get played() {
        return this.systems.filter(({ isPlayed }) => isPlayed);
    }

    #check(letter, { policy = "", cpus, tick_ns, settings }) {
        if (!this.#modules.has(policy.split(":")[0])) throw new Refused(`${policy}: unknown policy; choose from ${[...this.#modules.keys()].join(", ")}`);
        if (!Number.isInteger(cpus) || cpus < 1 || cpus > CPUS_MAX) throw new Refused(`${cpus} CPUs: out of range; choose 1 to ${CPUS_MAX}`, "cpus");
        const [shortest, longest] = TICK_NS;
        if (!(tick_ns >= shortest && tick_ns <= longest)) throw new Refused(`tick of ${tick_ns / 1e6} ms: out of range; choose ${shortest / 1e6} to ${longest / 1e6} ms`, "tick");
        const wrong = wrongSetting(this.policies, policy, settings);
        if (wrong) throw new Refused(wrong, `settings-${letter}`);
    }

    get #standard() {
        return this.policies.find(({ number }) => number === 0)?.name ?? this.policies[0].name;
    }

    terms(policy) {
        return { sharesBy: sharesBy(this.policies, policy), windowNs: this.windowNs };
    }

    /**
     * Returns a workload in the simulator's words. @param {string} name @param {WatchedSystem} system @param
     * {number} draw random number
     */
    async textOf(name, { setup: { tick_ns } }, draw) { // eslint-disable-line no-unused-vars
        const entry = this.palette.find((workload) => workload.name === name);
        if (!entry) throw new Refused(`${name}: unknown workload`);
        if (entry.tick_bound && tick_ns !== STANDARD.tick_ns) {
            throw new Refused(`${name} needs a tick of 10 ms; choose this tick, or another workload`);
        }
        return entry.text;
    }

    /** @returns {Promise<number>} the PID of its first process */
    async start(system, name) {
        const { draw } = system.source;
        const file = workloadOf(await this.textOf(name, system, draw), system.setup.tick_ns, name);
        return system.act(() => system.source.act(`start ${draw} ${name}`, file));
    }

    // --- messages to the page

    #introduce() {
        this.changed();
        this.#show();
    }

    hello() {
        return {
            type: "hello",
            version: "",
            systems: this.systems.map((system) => introduced(system)),
            policies: this.policies,
            palette: this.palette.map(({ name, title, kind }) => ({ name, title, kind })),
            window_ns: this.windowNs,
            cpus_max: { sim: CPUS_MAX },
            lesson: this.lesson,
        };
    }

    changed() {
        this.#told = this.#titles();
        this.tell(this.hello());
    }

    /** Shows the present state of all systems. */
    #show() {
        this.#shown_ms = performance.now();
        for (const system of this.played) this.tell(system.frame(this.pace));
        if (this.#titles() !== this.#told) this.changed(); // a policy was switched
    }

    #titles() {
        return this.played.map(titleOf).join();
    }

    // --- time

    #turn() {
        const began_ms = performance.now();
        const since_ms = this.#turned_ms ? began_ms - this.#turned_ms : TURN_MS;
        this.#turned_ms = began_ms;
        try {
            this.#advance(since_ms);
        } catch (error) {
            if (!(error instanceof Refused)) throw error; // its frame shows it
        } finally {
            if (performance.now() >= this.#shown_ms + FRAME_MS) this.#show();
            const left = TURN_MS - (performance.now() - began_ms);
            setTimeout(() => this.#turn(), Math.max(left, 1));
        }
    }

    // Advances all systems to one time: a little beyond the time that the slowest has reached. The step
    // adapts to its measured duration. When the workloads of all have ended, time stands still.
    #advance(since_ms) {
        const going = this.played.filter((system) => system.goesOn);
        const busy = going.filter((system) => !system.isDone);
        if (!busy.length) return;
        const began_ms = performance.now();
        const before = Math.min(...going.map((system) => system.commonNs));
        const budget = this.pace ? Math.min(this.#farNs, since_ms * this.pace * 1e6) : this.#farNs;
        this.#advanceTo(busy, before + Math.max(Math.round(budget), 1), AIM_MS, true);
        const idle = going.filter((system) => !busy.includes(system));
        this.#advanceTo(idle, Math.max(...busy.map((system) => system.commonNs)), AIM_MS);
        const took_ms = performance.now() - began_ms;
        const went = Math.min(...going.map((system) => system.commonNs)) - before;
        if (went > 0) this.#farNs = Math.min((went * AIM_MS) / Math.max(took_ms, AIM_MS / 8), this.#farNs * 2, 60e9);
        else if (took_ms > AIM_MS) this.#farNs = Math.max(this.#farNs / 2, 1000);
    }

    #advanceTo(systems, commonNs, patience_ms, endsDone = false) {
        const behind = systems.filter((system) => system.commonNs < commonNs);
        for (const system of behind) system.advance(commonNs + system.originNs, patience_ms / behind.length, endsDone);
    }

    /**
     * Steps one system forward or back, and moves the others to the same time. @returns {number} the leader's
     * time
     */
    step(kind, back) {
        const leader = this.played.find((system) => !system.isOver || back);
        if (!leader) throw new Refused("all have ended");
        for (const system of this.played) system.paused = true;
        if (back) leader.stepBack(kind);
        else leader.step(kind);
        const others = this.played.filter((system) => system !== leader && !system.failed);
        if (back) for (const other of others) other.seek(Math.max(leader.commonNs + other.originNs, 0));
        else this.#advanceTo(others, leader.commonNs, Infinity);
        this.#show();
        return leader.now;
    }

    seek(time_ns) {
        const { played } = this;
        for (const system of played) system.seek(time_ns);
        this.#show();
        return played[0].now;
    }
}

function isRecorded({ source }) {
    return source.endNs !== null;
}

function withUserWorkloads(palette, own) {
    return [...palette.filter(({ kind }) => kind !== "own"), ...own.map((workload) => ({ ...workload, kind: "own", tick_bound: false }))];
}

function titleOf({ setup: { title, machine, cpus }, policy }) {
    return title || `${policy} on ${machine}, ${cpus} CPU${cpus > 1 ? "s" : ""}`;
}

export function introduced(system) {
    const { letter, setup, source } = system;
    const { cpus, tick_ns, machine } = setup;
    return {
        system: letter,
        title: titleOf(system),
        machine, cpus, tick_ns,
        repeatable: machine === "sim",
        no_branches: "not needed in this page: step back, and change the policy there",
        no_blame: "To break down single waits (by process, CPU and decision), use ./schedlab monitor, which serves this page; for a recorded run, also ./schedlab explain.",
        end_ns: source.endNs,
        abilities: source.abilities,
        names: source.names,
        setup: { ...setup, files: [] },
    };
}
