// SPDX-License-Identifier: MIT
//
// For test_page_patience.py: requests to a worker that answers one after the other.

import { Requests } from "../../page/playground/workers.js";

const WORKER = `
let before = Promise.resolve();
addEventListener("message", ({ data: { id, take_ms } }) => {
    before = before.then(() => new Promise((resolve) => { setTimeout(resolve, take_ms); })).then(() => postMessage({ id, result: id }));
});`;

globalThis.outcomes = async (patience_ms, times_ms) => {
    const requests = new Requests(`data:text/javascript,${encodeURIComponent(WORKER)}`, "The worker", patience_ms);
    const all = await Promise.allSettled(times_ms.map((take_ms) => requests.ask({ take_ms })));
    requests.stop("");
    return all.map(({ status }) => status);
};
