// SPDX-License-Identifier: MIT
//
// The session of a page with a server, in a separate thread. The first message has the socket's address; all
// others are requests.

import { answer } from "./commands.js";
import { ServedSession } from "./served_session.js";

/** @type {Promise<ServedSession>} */
let session;

addEventListener("message", ({ data: message }) => {
    if (session) answer(message, async (request) => (await session).perform(request));
    else session = begin(message.address);
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
    await opened; // no request is possible before
    const served = new ServedSession(module, (message) => socket.send(JSON.stringify(message)), (message) => postMessage(message));
    take = (data) => (typeof data === "string" ? served.hear(JSON.parse(data)) : served.hearRecords(data));
    for (const data of waiting) take(data);
    return served;
}
