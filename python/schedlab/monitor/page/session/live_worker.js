// SPDX-License-Identifier: MIT
//
// The session of a server's systems, in a thread of its own. The first message has the socket's address;
// all others are questions.

import { Refused } from "./instance.js";
import { LiveSession } from "./live_session.js";

/** @type {Promise<LiveSession>} */
let session;

addEventListener("message", async ({ data: message }) => {
    if (!session) {
        session = begin(message.address);
        return;
    }
    const { id } = message;
    try {
        postMessage({ type: "answer", id, ok: true, result: await (await session).perform(message) });
    } catch (error) {
        const known = error instanceof Refused;
        postMessage({ type: "answer", id, ok: false, error: known ? error.message : `internal error: ${error.message}` });
        if (!known) throw error;
    }
});

async function begin(address) {
    const socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    const waiting = [];
    let take = (data) => waiting.push(data);
    socket.addEventListener("message", ({ data }) => take(data));
    socket.addEventListener("close", () => postMessage({ type: "lost" }));
    const opened = new Promise((resolve) => socket.addEventListener("open", resolve));
    const module = await WebAssembly.compileStreaming(fetch("/machine.wasm"));
    await opened; // nothing can be asked before
    const live = new LiveSession(module, (message) => socket.send(JSON.stringify(message)), (message) => postMessage(message));
    take = (data) => (typeof data === "string" ? live.hear(JSON.parse(data)) : live.hearRecords(data));
    for (const data of waiting) take(data);
    return live;
}
