// SPDX-License-Identifier: MIT
//
// The session in a thread of its own, so that the page draws while a machine is simulated. The first
// message has the module and the workloads; all others are questions, as a server gets them.

import { perform } from "./commands.js";
import { Refused } from "./instance.js";
import { Session } from "./session.js";

/** @type {Session} */
let session;

addEventListener("message", async ({ data: message }) => {
    if (message.module && !session) {
        session = new Session(await WebAssembly.compile(message.module), message.palette, (told) => postMessage(told));
        postMessage({ type: "ready" });
        return;
    }
    const { id } = message;
    try {
        postMessage({ type: "answer", id, ok: true, result: perform(session, message) });
    } catch (error) {
        const known = error instanceof Refused || error instanceof WebAssembly.CompileError;
        postMessage({ type: "answer", id, ok: false, error: known ? error.message : `internal error: ${error.message}` });
        if (!known) throw error;
    }
});
