// SPDX-License-Identifier: MIT
//
// The requests that a session accepts: docs/monitor.md lists them, and docs/page.md those of this session
// only.

import { Refused } from "./instance.js";
import { ATTRIBUTES } from "./machine.js";
import { readTunables } from "./texts.js";

const WINDOW_S = [0.1, 600];

/**
 * Executes a message's request. Refused: it failed, at least for some systems.
 * @param {import("./session.js").Session} session @param {any} message
 * @returns {Promise<any>} the result; of several systems, by system
 */
export async function perform(session, message) {
    const { do: action } = message;
    if (Object.hasOwn(TOGETHER, action)) return TOGETHER[action](session, message);
    if (!Object.hasOwn(PER_SYSTEM, action)) throw new Refused(`${action}: not supported by this page; use ./schedlab monitor`);
    return forAll(systemsOf(session, message), (system) => PER_SYSTEM[action](session, system, message));
}

/**
 * @returns {import("./system.js").WatchedSystem[]} a message's systems. Refused: the system has just ended; a
 * panel may still ask for it
 */
export function systemsOf({ systems }, { system: letter }) {
    const matches = systems.filter((system) => !letter || letter === "*" || system.letter === letter);
    if (!matches.length && letter && letter !== "*") throw new Refused(`system ${letter} no longer exists`);
    return matches;
}

/** @returns {Promise<any>} the systems' answers; for a single system, its answer */
export async function forAll(systems, doing) {
    const results = await Promise.all(systems.map(async (system) => [system.letter, await doing(system)]));
    return results.length === 1 ? results[0][1] : Object.fromEntries(results);
}

/** Answers a page's requests. @param {(message: any) => Promise<any>} asked gives the result */
export async function answer(message, ask) {
    const { id } = message;
    try {
        postMessage({ type: "answer", id, ok: true, result: await ask(message) });
    } catch (error) {
        const known = error instanceof Refused || error instanceof WebAssembly.CompileError;
        postMessage({ type: "answer", id, ok: false, error: known ? error.message : `internal error: ${error.message}`, part: error.part });
        if (!known) throw error;
    }
}

const PER_SYSTEM = {
    policy: (session, system, { policy }) => void command(system, `policy ${policy}`),
    tunable: (session, system, { name, value }) => void command(system, `tunable ${name}=${value}`),
    tunables: (session, system) => (can(system, "policy") ? readTunables(system.source.text("sched_tunables")) : []),
    attribute: (session, system, { kind, value, ...which }) => {
        if (!Object.hasOwn(ATTRIBUTES, kind) || !Number.isInteger(value)) throw new Refused(`${kind}: expected a whole number for ${Object.keys(ATTRIBUTES).join(", ")}`);
        return forMembers(system, which, (pid) => system.source.act(`${kind} ${pid} ${value}`));
    },
    start: (session, system, { workload }) => {
        need(system, "start");
        return session.start(system, workload);
    },
    kill: (session, system, which) => forMembers(system, which, (pid) => system.source.act(`kill ${pid}`)),
    pause: (session, system) => { system.paused = true; },
    resume: (session, system) => {
        if (system.isOver) throw new Refused("it has ended; step back, or go to another time");
        system.paused = false;
    },
    restart: (session, system, { cpus, policy, seed, tick_ns, workloads }) => {
        const given = Object.entries({ cpus, policy, seed, tick_ns, workloads }).filter(([, value]) => value !== undefined && value !== null);
        const changes = Object.fromEntries(given);
        if (policy && policy !== system.setup.policy) changes.settings = {};
        return session.restart(system, changes);
    },
    explain: (session, system, { pid }) => system.explain(pid),
};

const TOGETHER = {
    pace: (session, { speed }) => {
        if (!Number.isFinite(speed) || speed < 0) throw new Refused(`pace ${speed}: out of range; choose 0 or more`);
        session.pace = speed;
    },
    step: (session, { kind, back = false }) => session.step(kind, back),
    seek: (session, { time_ns }) => session.seek(time_ns),
    look: (session, { time_ns }) => {
        for (const system of session.played) system.paused = true;
        return session.seek(time_ns);
    },
    window: (session, { seconds }) => {
        if (!(seconds >= WINDOW_S[0] && seconds <= WINDOW_S[1])) throw new Refused(`window: out of range; choose ${WINDOW_S[0]} to ${WINDOW_S[1]} s`);
        session.windowNs = seconds * 1e9;
        for (const system of session.systems) system.setWindow(session.windowNs);
        session.changed();
    },
    // Only of this page:
    begin: (session, { systems, pace, own, lesson }) => session.begin(systems, { pace, own, lesson }),
    play: (session, { file, ...facts }) => session.play(file, facts),
    learn: (session, { module }) => {
        const names = session.learn(new WebAssembly.Module(module));
        session.changed();
        return names;
    },
};

function can(system, ability) {
    return system.source.abilities.includes(ability);
}

function need(system, ability) {
    if (!can(system, ability)) throw new Refused("a recording cannot be changed");
}

function command(system, words) {
    need(system, "policy");
    if (!/^\w+ \S+$/.test(words)) throw new Refused(`${words}: not a name; use one without spaces`);
    system.act(() => system.source.act(words));
}

// In a group, a process that has just ended is not an error.
function forMembers(system, { pid, group }, act) {
    need(system, "attributes");
    if (group === undefined || group === null) {
        system.act(() => act(pid));
        return 1;
    }
    const pids = system.pidsOf(group);
    if (!pids.length) throw new Refused(`group ${group}: no process is alive`);
    return pids.filter((member) => {
        try {
            return system.act(() => act(member));
        } catch (error) {
            if (error instanceof Refused) return false;
            throw error;
        }
    }).length;
}
