// SPDX-License-Identifier: MIT
//
// The connection to the server: it is reopened with growing waits when it is lost, and carries requests with
// their answers. docs/monitor.md has the messages.

import { openSession } from "./session_connection.js";

/**
 * The connection's state: `opening` before the first hello, `open`, `lost` until the next one.
 * @typedef {{state: "opening" | "open" | "lost", tries: number, next_ms: number}} ConnectionState `tries`:
 * since it was lost; `next_ms`: when the next one is, by performance.now().
 */

const WAITS_MS = [500, 1000, 2000, 4000, 8000, 15000];
const ANSWER_LIMIT_MS = 180_000; // booting a kernel on a slow host takes a minute
const QUESTIONS_MAX = 200;

/** @type {ReturnType<typeof openSession> | null} */
let session = null;
let timer = 0;
let lastId = 0;
/** @type {ConnectionState} */
let connection = { state: "opening", tries: 0, next_ms: 0 };

/**
 * @type {Map<number, {resolve: (result: any) => void, reject: (error: Error) => void,
 *     progress: (text: string) => void, timer: number}>}
 */
const questions = new Map();
/** @type {Set<(message: any) => void>} */
const messageListeners = new Set();
/** @type {Set<(state: ConnectionState) => void>} */
const stateListeners = new Set();

/** Opens the connection, and keeps it open. */
export function connect() {
    clearTimeout(timer);
    session?.close();
    const opened = openSession(take, () => {
        if (opened === session) lose();
    });
    session = opened;
}

/**
 * Passes on every hello and frame, and the number of frames left out.
 * @param {(message: any) => void} listener
 */
export function onMessage(listener) {
    messageListeners.add(listener);
}

/**
 * Passes on every change of the connection's state.
 * @param {(state: ConnectionState) => void} listener
 */
export function onConnection(listener) {
    stateListeners.add(listener);
}

/**
 * Sends the server a request: `ask("policy", { system: "a", policy: "NAME" })`. Without a system, it goes to
 * all systems.
 * @param {string} action as in docs/monitor.md under "do"
 * @param {Object<string, any>} [fields]
 * @param {(text: string) => void} [progress] receives progress reports if it takes long
 * @returns {Promise<any>} the answer's result; rejected with the server's message, or if no answer comes. The
 *     error's `part` is the part of a setup that it is about, if it is about one
 */
export function ask(action, fields = {}, progress = () => {}) {
    if (!session?.isOpen()) {
        return Promise.reject(new Error("No connection to the monitor."));
    }
    if (questions.size >= QUESTIONS_MAX) {
        return Promise.reject(new Error("The monitor does not answer."));
    }
    const id = ++lastId;
    session.send({ id, do: action, ...fields });
    return new Promise((resolve, reject) => {
        const late = () => settle({ id, ok: false, error: "The monitor does not answer." });
        questions.set(id, { resolve, reject, progress, timer: setTimeout(late, ANSWER_LIMIT_MS) });
    });
}

function take(message) {
    if (message.type === "answer") {
        settle(message);
        return;
    }
    if (message.type === "progress") {
        questions.get(message.id)?.progress(message.text);
        return;
    }
    if (message.type === "hello" && connection.state !== "open") {
        change({ state: "open", tries: 0, next_ms: 0 });
    }
    for (const listener of messageListeners) listener(message);
}

function settle({ id, ok, result, error, part }) {
    const question = questions.get(id);
    if (!question) return;
    questions.delete(id);
    clearTimeout(question.timer);
    if (ok) question.resolve(result);
    else question.reject(Object.assign(new Error(error), { part }));
}

function lose() {
    session = null;
    for (const id of [...questions.keys()]) {
        settle({ id, ok: false, error: "The connection was lost before the answer came." });
    }
    const tries = connection.state === "lost" ? connection.tries + 1 : 0;
    const wait = WAITS_MS[Math.min(tries, WAITS_MS.length - 1)];
    change({ state: "lost", tries, next_ms: performance.now() + wait });
    timer = setTimeout(connect, wait);
}

function change(state) {
    connection = state;
    for (const listener of stateListeners) listener(state);
}
