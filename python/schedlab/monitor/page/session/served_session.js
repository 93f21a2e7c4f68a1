// SPDX-License-Identifier: MIT
//
// The session of a page with a server. Simulated machines and recordings are played here. The server receives
// their actions when it must store or explain them. The traces of live systems come from the server, which
// also executes actions on them. Questions about their past are answered here.

import { forAll, perform, systemsOf } from "./commands.js";
import { HEADER_BYTES, RECORD_BYTES } from "./definitions.js";
import { Refused } from "./instance.js";
import { LiveSystem } from "./live_system.js";
import { introduced, Session } from "./session.js";
import { Told } from "./system.js";
import { Tape } from "./tape.js";

const HEAD_BYTES = 8; // of a binary message: the system's letter, and whether its trace begins
const MESSAGE_BYTES_MAX = 180_000; // the server's limit
const FOLLOW_MS = 1000; // interval of updates to the server about recorded systems
/** The server's tasks, once it is at the page's time. */
const OF_SERVER = ["record", "report", "perfetto", "blame", "branch"];
const OF_PLAYED = ["pace", "step", "seek", "look"];
/** Requests to a live system that do not leave the shown moment. */
const STAYING = ["status", "tunables", "pause"];

export class ServedSession extends Session {
    #hello = null;
    #questions = new Map();
    #lastId = 0;
    #made = Promise.resolve();
    #greeted;
    /** @type {(value?: any) => void} */
    #greet;

    /**
     * @param {WebAssembly.Module} module @param {(message: any) => void} send to the server
     * @param {(message: any) => void} tell the page
     */
    constructor(module, send, tell) {
        super(module, [], tell);
        this.send = send;
        this.#greeted = new Promise((resolve) => { this.#greet = resolve; });
        setTimeout(() => this.#keepUp(), FOLLOW_MS);
    }

    // --- messages of the server

    /** @param {any} message any except records */
    hear(message) {
        if (message.type === "hello") this.#hearHello(message);
        else if (message.type === "state") this.#hearState(message);
        else if (message.type === "answer") this.#settle(message);
        else if (message.type === "progress") this.tell({ ...message, id: this.#questions.get(message.id)?.page });
        else this.tell(message);
    }

    #hearHello(hello) {
        if (!this.#hello) this.pace = hello.pace;
        this.#hello = hello;
        this.policies = hello.policies;
        this.lesson = hello.lesson;
        this.windowNs = hello.window_ns;
        const known = new Map(this.systems.map((system) => [system.letter + system.key, system]));
        this.systems = hello.systems.map((info) => known.get(info.system + keyOf(info)) ?? this.#startLive(info));
        for (const system of this.systems) if (system.windowNs !== hello.window_ns) system.setWindow(hello.window_ns);
        this.changed();
        this.#greet();
    }

    // Systems that are played here take a while to create.
    #startLive(info) {
        const system = this.#live(info);
        system.key = keyOf(info);
        if (info.plays) this.#made = Promise.all([this.#made, this.#play(info, system)]);
        return system;
    }

    #live(info, told, tape) {
        return new LiveSystem(this.module, info, this.terms(info.setup.policy), told, tape);
    }

    async #play(info, standIn) {
        const { system: letter, setup, plays } = info;
        let system = standIn;
        try {
            system = plays.trace ? await this.#fetched(info) : await this.simulated(letter, setup);
            system.told = standIn.told;
            system.key = standIn.key;
            system.originNs = plays.origin_ns;
            system.anew = true;
            system.paused = this.#hello.begins_paused || plays.begin_ns !== null;
            if (plays.begin_ns !== null) system.seek(plays.begin_ns);
        } catch (error) {
            standIn.told.state = { ...standIn.told.state, life: "failed", message: error.message };
            if (!(error instanceof Refused)) console.error(error);
        }
        this.#replace(standIn, system);
        this.changed();
        this.tell(system.frame(this.pace));
    }

    async #fetched({ system: letter, title, setup: { policy }, plays }) {
        const answer = await fetch(plays.trace);
        if (!answer.ok) throw new Refused(`the recording could not be loaded: ${answer.status} ${answer.statusText}`);
        const system = this.recorded(letter, await answer.arrayBuffer(), { ...plays, title, policy });
        system.message = plays.message;
        return system;
    }

    #replace(old, system) {
        this.systems = this.systems.map((other) => (other === old ? system : other));
    }

    hello() {
        const told = new Map(this.played.map((system) => [system.letter, introduced(system)]));
        const systems = this.#hello.systems.map((info) => {
            const played = told.get(info.system);
            return played ? { ...played, no_branches: info.no_branches, no_blame: info.no_blame } : info;
        });
        return { ...this.#hello, systems };
    }

    #hearState({ type: _, system: letter, starts, own, record_cost_ns, log, marks, status, reached_ns, origin_ns, ...state }) {
        let watched = this.systems.find((system) => system.letter === letter);
        if (!watched) return;
        if (watched.key !== LIVE) {
            watched.told.log.add(log);
            watched.told.marks.add(marks);
            watched.told.state = { ...watched.told.state, recording: state.recording };
            return;
        }
        if (watched.told.starts !== starts) {
            const restarted = this.#live(this.#infoOf(letter));
            [restarted.number, restarted.key] = [watched.number, watched.key];
            restarted.anew = true;
            this.#replace(watched, restarted);
            watched = restarted;
        }
        const { told } = watched;
        told.starts = starts;
        told.log.add(log);
        told.marks.add(marks);
        told.state = { ...told.state, ...state };
        watched.originNs = origin_ns;
        if (String(told.own) !== String(own) || told.recordCostNs !== record_cost_ns) {
            [told.own, told.recordCostNs, watched.source.own] = [own, record_cost_ns, own];
            watched.introduce();
        }
        if (status) watched.hear(status);
        if (reached_ns !== null) watched.reach(reached_ns);
        this.tell(watched.frame());
    }

    /** @param {ArrayBuffer} message records, or a trace's header and its first records */
    hearRecords(message) {
        const [letter, begins] = new Uint8Array(message, 0, 2);
        const system = String.fromCharCode(letter);
        const watched = this.systems.find((found) => found.letter === system);
        const at = HEAD_BYTES + (begins ? HEADER_BYTES : 0);
        const words = new Uint32Array(message, at);
        if (watched && begins) {
            const tape = new Tape(new Uint8Array(message, HEAD_BYTES, HEADER_BYTES));
            tape.append(words);
            const restarted = this.#live(this.#infoOf(system), watched.told, tape);
            [restarted.number, restarted.key, restarted.originNs, restarted.anew] = [watched.number, watched.key, watched.originNs, watched.anew];
            this.#replace(watched, restarted);
        } else if (watched) watched.append(words);
        this.send({ do: "took", records: words.byteLength / RECORD_BYTES });
    }

    #infoOf(letter) {
        return this.#hello.systems.find(({ system }) => system === letter);
    }

    // --- requests of the page

    /** @param {any} message @returns {Promise<any>} the result. Refused: it failed */
    async perform(message) {
        const { do: command } = message;
        await this.#greeted;
        await this.#made;
        const systems = systemsOf(this, message);
        const isAll = systems.every(({ isPlayed }) => isPlayed);
        if (OF_SERVER.includes(command)) return this.#askServer(systems, message);
        if (command === "window") return this.ask(message);
        // Branches step together with their live system.
        if (OF_PLAYED.includes(command) && systems.some(({ isPlayed }) => isPlayed)) return perform(this, message);
        if (command === "look" || command === "step") return this.#look(systems, message);
        if (isAll || command === "explain") return perform(this, message);
        return forAll(systems, (system) => {
            const request = { ...message, system: system.letter };
            return system.isPlayed ? perform(this, request) : this.#askLive(system, request);
        });
    }

    async #askServer(systems, message) {
        const isAlone = message.do === "branch" || message.do === "blame";
        for (const system of isAlone ? systems.slice(0, 1) : systems) await this.#follow(system);
        if (!isAlone) return this.ask(message);
        const [system] = systems;
        const result = await this.ask({ ...message, time_ns: system.now });
        await this.#made;
        if (message.do === "branch") system.look?.(Infinity);
        return result;
    }

    /** A request to a live system concerns the present, unless it asks for the state. */
    #askLive(system, { group, ...message }) {
        if (system.isBack && !STAYING.includes(message.do)) system.look(Infinity);
        if (group === undefined || group === null) return this.ask(message);
        const pids = system.pidsOf(group);
        if (!pids.length) throw new Refused(`group ${group}: no process is alive`);
        return this.ask({ ...message, pids });
    }

    // Pauses all live systems, and shows them as they were then, or a step before or after the shown moment.
    async #look([leader], { kind, back = false, time_ns }) {
        const together = this.systems.filter(({ isPlayed }) => !isPlayed);
        if (time_ns === undefined && !back && !together.some(({ isBack }) => isBack)) throw new Refused("it runs in real time and has no steps");
        await Promise.all(together.map((system) => this.#stand(system)));
        const time = time_ns ?? leader.moment(kind, back);
        for (const system of together) {
            system.look(time + system.originNs - leader.originNs);
            this.tell(system.frame());
        }
        return leader.now;
    }

    async #stand({ letter, told: { state } }) {
        if (state.paused || !["running", "paused"].includes(state.life)) return;
        // A system that cannot pause continues unseen.
        await this.ask({ do: "pause", system: letter }).catch(() => {});
    }

    /** Sends the server a request. @param {any} message @returns {Promise<any>} */
    ask(message) {
        const id = ++this.#lastId;
        this.send({ ...message, id });
        return new Promise((resolve, reject) => this.#questions.set(id, { page: message.id, resolve, reject }));
    }

    #settle({ id, ok, result, error }) {
        const question = this.#questions.get(id);
        this.#questions.delete(id);
        if (ok) question?.resolve(result);
        else question?.reject(new Refused(error));
    }

    // --- systems played here

    /** Workloads of the server's palette. */
    textOf(name, { letter, setup: { tick_ns } }, draw) {
        return this.ask({ do: "text", system: letter, workload: name, seed: draw, tick_ns });
    }

    /** Brings the server to a system's time. */
    async #follow(system) {
        if (!system.isPlayed) return;
        const { letter, setup: { policy, settings, cpus, seed, tick_ns, workloads }, source, now } = system;
        const message = {
            do: "follow", system: letter, time_ns: now, acts: source.acts,
            policy, settings: Object.entries(settings).map((pair) => pair.join("=")).join(" "), cpus, seed, tick_ns, workloads,
        };
        if (JSON.stringify(message).length > MESSAGE_BYTES_MAX) throw new Refused("this machine had too many changes for the server to repeat them; restart it");
        await this.ask(message);
    }

    // Recorded systems are stored up to the server's time, when it ends.
    async #keepUp() {
        try {
            await this.#greeted;
            await this.#made;
            for (const system of this.played) {
                if (this.#hello.keeps_all || system.told.state.recording) await this.#follow(system);
            }
        } catch (error) {
            if (!(error instanceof Refused)) throw error; // the server's state shows it
        } finally {
            setTimeout(() => this.#keepUp(), FOLLOW_MS);
        }
    }
}

const LIVE = "live";

/** Returns the key that distinguishes systems of the same letter: how it is played. */
function keyOf({ plays }) {
    return plays ? plays.trace ?? "simulated" : LIVE;
}
