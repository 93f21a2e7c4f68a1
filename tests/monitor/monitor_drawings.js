// SPDX-License-Identifier: MIT
//
// A page with some drawn modules of the monitor and systems that are made up here, for tests: without
// a server, and at the test's own pace. The address says what: ?modules=timeline,queues&systems=a,b.

import { connect } from "./connection.js";
import { Panel } from "./panel.js";
import { open, stateOf } from "./store.js";
import { view } from "./drawing/view.js";
import { policies } from "./policies.js";

const POLICIES = {
    mlfq: { levels: true, by: "equal" },
    lottery: { levels: false, by: "tickets" },
    stride: { levels: false, by: "tickets" },
    wrr: { levels: false, by: "weight" },
    rr: { levels: false, by: "equal" },
    priority: { levels: true, by: "equal" },
    "unheard-of": { levels: false, by: "equal" },
};
const TOP = 3; // the mlfq level served first
const NAMES = ["hog", "compile", "interactive", "sh", "grep", "logger", "disk-writer"];

/** The same numbers each time. */
function numbers(seed) {
    let state = seed;
    return () => {
        state = (state * 1664525 + 1013904223) % 4294967296;
        return state / 4294967296;
    };
}

class MadeUp {
    constructor(system, { cpus = 2, processes = 6, policy = "mlfq", slice_ns = 10e6, seed = 7, shared = false } = {}) {
        Object.assign(this, { system, policy, slice_ns, shared });
        this.random = numbers(seed);
        this.number = 0;
        this.decided = 0;
        this.now = 0;
        this.running = Array.from({ length: cpus }, () => null);
        this.queues = Array.from({ length: cpus }, () => []);
        this.processes = [];
        this.sleeping = [];
        this.fresh();
        this.idle = 0;
        for (let at = 0; at < processes; at++) this.fork(at);
    }

    fresh() {
        Object.assign(this, { runs: [], idles: [], marks: [], decisions: [], log: [] });
    }

    fork(at) {
        const made = {
            pid: at + 3, name: NAMES[at % NAMES.length], level: this.policy === "mlfq" ? TOP : 0,
            since: this.now, run: 0, waited: 0,
            tickets: 10 * (1 + (at % 4)), picks: 0, sleeps: at % 3 === 2,
        };
        this.processes.push(made);
        this.queues[this.queueOf(at % this.queues.length)].push(made);
    }

    queueOf(cpu) {
        return this.shared ? 0 : cpu;
    }

    mark(kind, text, pid = 0) {
        this.marks.push({ time_ns: this.now, kind, text, pid });
    }

    /** Advances by this much time, in steps of a time slice. */
    advance(ns) {
        const until = this.now + ns;
        while (this.now < until) {
            this.wake();
            for (let cpu = 0; cpu < this.running.length; cpu++) this.serve(cpu);
            this.now += this.slice_ns;
        }
        return this;
    }

    wake() {
        for (const task of this.sleeping) if (task.wakes <= this.now) task.queue.push(task);
        this.sleeping = this.sleeping.filter((task) => task.wakes > this.now);
    }

    serve(cpu) {
        const queue = this.queues[this.queueOf(cpu)];
        const before = this.running[cpu];
        if (before) this.stop(cpu, before, queue);
        if (this.random() < 0.04 && !this.shared) {
            this.running[cpu] = null;
            if (this.queues.some((queue, other) => other !== cpu && queue.length)) {
                this.idles.push([cpu, this.now, this.now + this.slice_ns]);
                this.idle += this.slice_ns;
            }
            return;
        }
        const at = this.pick(queue);
        const picked = queue[at];
        this.running[cpu] = picked ?? null;
        if (!picked) return;
        this.decide(cpu, picked, queue.filter((task) => task !== picked));
        queue.splice(at, 1);
        picked.waited += this.now - picked.since;
        picked.since = this.now;
        picked.picks += 1;
    }

    pick(queue) {
        if (POLICIES[this.policy].by === "tickets") return this.draw(queue);
        let best = 0;
        const rank = ({ level }) => (this.policy === "mlfq" ? -level : level);
        for (let at = 1; at < queue.length; at++) if (rank(queue[at]) < rank(queue[best])) best = at;
        return best;
    }

    draw(queue) {
        let left = this.random() * queue.reduce((sum, { tickets }) => sum + tickets, 0);
        return Math.max(0, queue.findIndex(({ tickets }) => (left -= tickets) < 0));
    }

    decide(cpu, picked, others) {
        const total = [picked, ...others].reduce((sum, { tickets }) => sum + tickets, 0);
        const remark = this.policy === "lottery" ? Math.floor(this.random() * total) : picked.level;
        const { levels } = POLICIES[this.policy];
        this.decisions.push({
            number: ++this.decided, time_ns: this.now, cpu, pid: picked.pid, name: picked.name,
            waited: others.length, remark, text: levels ? `level ${remark}` : `ticket ${remark} of ${total}`,
            candidates: others.slice(0, 16).map((task) => [task.pid, levels ? task.level : task.tickets]),
        });
    }

    stop(cpu, stopped, queue) {
        const { levels } = POLICIES[this.policy];
        const ran = this.slice_ns * (stopped.sleeps ? 0.3 : 1);
        stopped.run += ran;
        const how = stopped.sleeps ? 1 : [2, 2, 3, 2, 2, 2, 4][Math.floor(this.random() * 7)];
        this.runs.push([cpu, stopped.pid, stopped.since, stopped.since + ran, levels ? stopped.level : -1, how]);
        if (this.policy === "mlfq") {
            stopped.level = stopped.sleeps ? TOP : Math.max(0, stopped.level - 1);
            if (this.random() < 0.01) for (const process of this.processes) process.level = TOP;
        } else if (levels) {
            stopped.level = stopped.pid % (TOP + 1);
        }
        stopped.since = this.now;
        if (!stopped.sleeps) {
            queue.push(stopped);
            return;
        }
        const wakes = this.now + (3 + Math.floor(9 * this.random())) * this.slice_ns;
        this.sleeping.push(Object.assign(stopped, { queue, wakes }));
    }

    frame() {
        this.number += 1;
        const policy = POLICIES[this.policy];
        const frame = {
            type: "frame", system: this.system, number: this.number, now_ns: this.now, life: "running", message: "",
            paused: false, speed: 1, pace: 1, policy: this.policy, shares_by: policy.by, levels: policy.levels,
            levels_rise: this.policy === "mlfq",
            shared_queue: this.shared, cpus: this.running.map((process, cpu) => this.cpu(process, cpu)),
            processes: this.columns(policy), metrics: this.metrics(),
            cost: { steering: 0.004, tracing: 0.006, total: 0.01 },
            timeline: { runs: this.runs, idle_while_queued: this.idles, thinned: 0 },
            marks: this.marks, decisions: this.decisions, log: this.log, events_per_s: 4000, events: 0, lost: 0,
            back_ns: 0, whole: this.number === 1, anew: this.number === 1, recording: "",
        };
        this.fresh();
        return frame;
    }

    cpu(process, cpu) {
        const { levels } = POLICIES[this.policy];
        const queue = this.shared && cpu ? [] : this.queues[cpu];
        return {
            running: process?.pid ?? 0, since_ns: process?.since ?? this.now, level: process && levels ? process.level : -1,
            queue: queue.map((task) => [task.pid, levels ? task.level : -1, task.since]), busy: process ? 0.96 : 0.8,
        };
    }

    columns({ levels }) {
        const all = this.processes;
        const run = all.reduce((sum, task) => sum + task.run, 0) || 1;
        const tickets = all.reduce((sum, task) => sum + task.tickets, 0);
        const of = (value) => all.map(value);
        const running = new Set(this.running.filter(Boolean));
        return {
            pid: of(({ pid }) => pid), parent: of(() => 1), name: of(({ name }) => name),
            state: of((task) => (running.has(task) ? 1 : this.sleeping.includes(task) ? 2 : 0)), reason: of(() => 0), cpu: of(() => 0),
            group: of(({ pid }) => pid % 3), own: of(() => false), priority: of(() => 5), tickets: of((task) => task.tickets),
            weight: of((task) => task.tickets / 10), nice: of(() => 0), level: of((other) => (levels ? other.level : -1)),
            slice_left_ns: of((task) => (running.has(task) ? this.slice_ns * this.random() : -1)),
            run_ns: of((task) => task.run), waiting_ns: of((other) => other.waited),
            wait_now_ns: of((task) => (running.has(task) ? 0 : this.now - task.since)), selections: of((other) => other.picks),
            share: of((task) => task.run / run), ideal: of((other) => other.tickets / tickets),
        };
    }

    metrics() {
        const wave = Math.sin(this.number / 7 + this.system.charCodeAt(0));
        return {
            window_ns: 10e9, turnaround_ns: null, response_ns: 12e6 + 2e6 * wave, waiting_ns: 40e6, wakeup_median_ns: 1.2e6 + 4e5 * wave,
            wakeup_p99_ns: 22e6 + 6e6 * wave, wakeup_maximum_ns: 41e6, wakeups: 118, finished: 3, throughput_per_s: 2.5 + wave,
            fairness: 0.97 - 0.02 * wave, fairness_turnaround: null, overhead: 0.0042, utilisation: 0.96, switches_per_s: 200 + 10 * wave,
            migrations_per_s: 1.5, idle_while_queued_ns: this.idle,
        };
    }
}

/** The server's side of the socket: what it answers, and what it was asked. */
const answers = {};
const asked = [];

window.WebSocket = class extends EventTarget {
    static OPEN = 1;
    readyState = 1;

    constructor() {
        super();
        window.socket = this;
    }

    send(text) {
        const message = JSON.parse(text);
        asked.push(message);
        const answer = answers[message.do];
        const result = answer ? answer(message) : null;
        const reply = answer
            ? { type: "answer", id: message.id, ok: true, result }
            : { type: "answer", id: message.id, ok: false, error: `nobody answers ${message.do}` };
        setTimeout(() => this.say(reply));
    }

    say(message) {
        this.dispatchEvent(new MessageEvent("message", { data: JSON.stringify(message) }));
    }

    close() {}
};

/** @type {Map<string, MadeUp>} */
const made = new Map();
/** @type {Map<string, any>} */
const panels = new Map();

function add(system, settings) {
    made.set(system, new MadeUp(system, settings));
    window.socket.say({
        type: "hello", version: "1", policies, palette: [], window_ns: 10e9, cpus_max: {},
        systems: [...made].map(([name, { running, policy, slice_ns }]) => ({
            system: name, title: `System ${name}`, machine: "sim", cpus: running.length, tick_ns: slice_ns, repeatable: true, no_blame: "",
            abilities: [], setup: { machine: "sim", policy },
        })),
    });
}

/** Advances, and shows the frame. */
function show(system, ns) {
    window.socket.say(made.get(system).advance(ns).frame());
}

function play(ns = 200e6, gap_ms = 200) {
    return setInterval(() => [...made.keys()].forEach((system) => show(system, ns)), gap_ms);
}

function drawn() {
    return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve))));
}

const given = new URLSearchParams(location.search);
open();
connect();
for (const system of (given.get("systems") ?? "a").split(",")) {
    add(system, JSON.parse(given.get(`system-${system}`) ?? "{}"));
}
const content = document.getElementById("content");
for (const name of (given.get("modules") ?? "timeline").split(",")) {
    const { create } = await import(`./modules/${name}.js`);
    for (const system of made.keys()) {
        const panel = new Panel(name, system, { title: name, about: "" });
        content.append(panel.element);
        panels.set(`${name}-${system}`, { panel, module: create(panel, system) });
    }
}
window.lab = { made, panels, view, add, show, play, drawn, answers, asked, stateOf };
document.documentElement.dataset.ready = "true";
