// SPDX-License-Identifier: MIT
//
// The standalone page's connection to a session: a worker takes the place of a server. A page that was opened
// as a file may load no other files, so it contains everything that the worker needs.

/** Resolves when the session accepts requests. @type {Promise<void>} */
export const ready = new Promise((resolve) => addEventListener("schedlab-ready", () => resolve(), { once: true }));

/**
 * The workloads contained in the page. @returns {{name: string, title: string, kind: string, text: string}[]}
 */
export function workloads() {
    return JSON.parse(content("palette"));
}

/** @returns {Record<string, any>} the lessons contained in the page, by name */
export function lessons() {
    return JSON.parse(content("lessons"));
}

/** @returns {import("./link.js").Setup} the initial setup of a page without a link */
export function firstSetup() {
    return JSON.parse(content("first"));
}

/** See python/schedlab/monitor/page/session_connection.js. */
export function openSession(take, lose) {
    const source = new Blob([content("session")], { type: "text/javascript" });
    const address = URL.createObjectURL(source);
    const worker = new Worker(address);
    URL.revokeObjectURL(address);
    let open = true;
    worker.addEventListener("message", ({ data }) => {
        if (data.type === "ready") dispatchEvent(new Event("schedlab-ready"));
        else take(data);
    });
    worker.addEventListener("error", (event) => {
        console.error(event.message);
    });
    worker.postMessage({ module: bytesOf(content("module")), palette: workloads() });
    return {
        send: (message) => worker.postMessage(message),
        isOpen: () => open,
        close: () => {
            open = false;
            worker.terminate();
            lose();
        },
    };
}

function content(name) {
    return document.getElementById(`schedlab-${name}`).textContent;
}

function bytesOf(base64) {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
