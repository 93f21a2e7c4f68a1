// SPDX-License-Identifier: MIT
//
// The systems of a server: their traces come from it, and what is done to them is done there. What they
// were and why is answered here.

import { sharesBy } from "./catalogue.js";
import { HEADER_BYTES, RECORD_BYTES } from "./definitions.js";
import { Refused } from "./instance.js";
import { LiveSystem, Told } from "./live_system.js";
import { Tape } from "./tape.js";

const HEAD_BYTES = 8; // of a message of bytes: the system's letter, and whether its trace begins
/** What is asked without leaving the moment that is shown. */
const STAYING = ["status", "tunables", "pause", "step", "window", "pace", "perfetto", "record", "report"];

export class LiveSession {
    /** @type {Map<string, LiveSystem>} */
    systems = new Map();
    #hello = null;
    #questions = new Map();
    #lastId = 0;

    /**
     * @param {WebAssembly.Module} module @param {(message: any) => void} send to the server
     * @param {(message: any) => void} tell the page
     */
    constructor(module, send, tell) {
        this.module = module;
        this.send = send;
        this.tell = tell;
    }

    // --- what the server says

    /** @param {any} message that is no record */
    hear(message) {
        if (message.type === "hello") this.#greet(message);
        else if (message.type === "state") this.#hearState(message);
        else if (message.type === "answer") this.#settle(message);
        else if (message.type === "progress") this.tell({ ...message, id: this.#questions.get(message.id)?.page });
        else this.tell(message);
    }

    #greet(hello) {
        this.#hello = hello;
        const letters = hello.systems.map(({ system }) => system);
        for (const letter of this.systems.keys()) if (!letters.includes(letter)) this.systems.delete(letter);
        for (const info of hello.systems) {
            if (!this.systems.has(info.system)) this.#show(info.system, new Told());
        }
        for (const each of this.systems.values()) if (each.windowNs !== hello.window_ns) each.setWindow(hello.window_ns);
        this.tell(hello);
    }

    // A new model of a system; its frames go on being counted.
    #show(letter, told, tape) {
        const info = this.#hello.systems.find(({ system }) => system === letter);
        const terms = { sharesBy: sharesBy(this.#hello.policies, info.setup.policy), windowNs: this.#hello.window_ns };
        const made = new LiveSystem(this.module, info, terms, told, tape);
        made.number = this.systems.get(letter)?.number ?? 0;
        this.systems.set(letter, made);
        return made;
    }

    #hearState({ type: _, system: letter, starts, own, record_cost_ns, log, marks, status, reached_ns, origin_ns, ...state }) {
        let each = this.systems.get(letter);
        if (!each) return;
        if (each.told.starts !== starts) {
            each = this.#show(letter, new Told());
            each.whole = false; // its time begins anew
            each.told.starts = starts;
        }
        const { told } = each;
        told.state = { ...told.state, ...state };
        each.originNs = origin_ns;
        told.log.add(log);
        told.marks.add(marks);
        if (String(told.own) !== String(own) || told.recordCostNs !== record_cost_ns) {
            [told.own, told.recordCostNs, each.source.own] = [own, record_cost_ns, own];
            each.introduce();
        }
        if (status) each.hear(status);
        if (reached_ns !== null) each.reach(reached_ns);
        this.#tellFrame(each);
    }

    /** @param {ArrayBuffer} message records, or a trace's header and what it begins with */
    hearRecords(message) {
        const [letter, begins] = new Uint8Array(message, 0, 2);
        const system = String.fromCharCode(letter);
        const each = this.systems.get(system);
        const at = HEAD_BYTES + (begins ? HEADER_BYTES : 0);
        const words = new Uint32Array(message, at);
        if (each && begins) {
            const tape = new Tape(new Uint8Array(message, HEAD_BYTES, HEADER_BYTES));
            tape.append(words);
            const origin = each.originNs;
            this.#show(system, each.told, tape).originNs = origin;
        } else if (each) each.append(words);
        this.send({ do: "took", records: words.byteLength / RECORD_BYTES });
    }

    #tellFrame(each) {
        this.tell(each.frame());
    }

    // --- what the page asks

    /** @param {any} message @returns {Promise<any>} the result. Refused: it was not done */
    async perform(message) {
        const { do: wanted, system: letter } = message;
        const systems = [...this.systems.values()].filter((each) => !letter || letter === "*" || each.letter === letter);
        if (!systems.length) return this.#ask(message);
        if (wanted === "history") return systems[0].history();
        if (wanted === "explain") return systems[0].explain(message.pid);
        if (wanted === "look" || (wanted === "step" && (message.back || systems.some(({ isBack }) => isBack)))) return this.#look(systems, message);
        if (wanted === "blame") return this.#ask({ ...message, time_ns: systems[0].now });
        if (wanted === "branch") return this.#branch(systems[0], message);
        if (!STAYING.includes(wanted)) await this.#leavePast(systems, wanted);
        const { group, ...rest } = message;
        if (group === undefined || group === null) return this.#ask(message);
        const pids = systems[0].pidsOf(group);
        if (!pids.length) throw new Refused(`no process of the group ${group} lives`);
        return this.#ask({ ...rest, pids });
    }

    // All that go by one clock stand, and are shown as they were then, or a step before or after what is shown.
    async #look(systems, { kind, back = false, time_ns }) {
        // Futures go in steps beside the live machine of which they are.
        const leader = systems.find((each) => this.#can(each, "pace")) ?? systems[0];
        const together = [...this.systems.values()].filter((each) => this.#can(each, "pace") === this.#can(leader, "pace"));
        await Promise.all(together.map((each) => this.#stand(each)));
        const time = time_ns ?? leader.moment(kind, back);
        for (const each of together) {
            each.look(time + each.originNs - leader.originNs);
            this.#tellFrame(each);
        }
        return leader.now;
    }

    async #stand({ letter, told: { state } }) {
        if (state.paused || !["running", "paused"].includes(state.life)) return;
        // One that cannot stand goes on unseen.
        await this.#ask({ do: "pause", system: letter }).catch(() => {});
    }

    // To the moment that is shown, where a system can go there; else the present is shown again.
    async #leavePast(systems, wanted) {
        for (const each of systems.filter(({ isBack, isLeaving }) => isBack && !isLeaving)) {
            const { letter, now } = each;
            each.isLeaving = wanted !== "seek" && this.#can(each, "seek"); // until its trace begins anew
            if (each.isLeaving) await this.#ask({ do: "seek", system: letter, time_ns: now });
            else each.look(Infinity);
        }
    }

    // What happens otherwise from the moment on that is shown.
    async #branch(each, message) {
        const result = await this.#ask({ ...message, time_ns: each.now });
        await this.#leavePast([each], "branch");
        return result;
    }

    #can({ letter }, ability) {
        return this.#hello.systems.find(({ system }) => system === letter).abilities.includes(ability);
    }

    #ask(message) {
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
}
