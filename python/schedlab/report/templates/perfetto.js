// SPDX-License-Identifier: MIT
//
// Hands a trace over to ui.perfetto.dev, as its documentation says: a window with that page is asked
// PING until it answers PONG, and then gets the file. The trace stays in this browser.

export const PERFETTO = "https://ui.perfetto.dev";
const PING_GAP_MS = 50;
const PATIENCE_MS = 60_000;

/**
 * Opens Perfetto's page with a trace. To be called from a click, since only then a window may open.
 * @param {() => Promise<{buffer: ArrayBuffer, title: string, fileName: string}>} load
 * @param {{address?: string, patience_ms?: number}} [where]
 * @returns {Promise<void>} when the trace was handed over; rejected with why it could not be
 */
export async function openInPerfetto(load, { address = PERFETTO, patience_ms = PATIENCE_MS } = {}) {
    const opened = window.open(address);
    if (!opened) throw new Error("The browser blocked the window. Allow pop-ups, or download the file.");
    try {
        const [trace] = await Promise.all([load(), answered(opened, new URL(address).origin, patience_ms)]);
        opened.postMessage({ perfetto: trace }, new URL(address).origin, [trace.buffer]);
    } catch (error) {
        opened.close();
        throw error;
    }
}

/** @returns {Promise<void>} when the page in the window is there */
function answered(opened, origin, patience_ms) {
    return new Promise((resolve, reject) => {
        const began = performance.now();
        const timer = setInterval(ping, PING_GAP_MS);
        window.addEventListener("message", take);
        const finish = (settle) => {
            clearInterval(timer);
            window.removeEventListener("message", take);
            settle();
        };
        function ping() {
            if (opened.closed) {
                finish(() => reject(new Error("Perfetto's window was closed before the trace was loaded.")));
            } else if (performance.now() - began > patience_ms) {
                const cure = "Check the network, or download the file.";
                finish(() => reject(new Error(`ui.perfetto.dev does not answer. ${cure}`)));
            } else {
                opened.postMessage("PING", origin);
            }
        }
        function take(event) {
            if (event.source === opened && event.origin === origin && event.data === "PONG") finish(resolve);
        }
    });
}
