// SPDX-License-Identifier: MIT
//
// The session in a separate thread, so that the page draws while a machine is simulated. The first message
// has the module and the workloads; all others are requests, as a server gets them.

import { answer, perform } from "./commands.js";
import { Session } from "./session.js";

/** @type {Session} */
let session;

addEventListener("message", async ({ data: message }) => {
    if (session) return answer(message, (request) => perform(session, request));
    session = new Session(await WebAssembly.compile(message.module), message.palette, (message_) => postMessage(message_));
    postMessage({ type: "ready" });
});
