// SPDX-License-Identifier: MIT
//
// Opens a system's trace in ui.perfetto.dev, by sending it to that page, or saves it as a file.

import { ask } from "../connection.js";
import { button, element } from "../elements.js";
import { openInPerfetto } from "../perfetto.js";

/**
 * @param {any} panel that shows errors @param {import("../store.js").SystemState} state
 * @returns {HTMLButtonElement[]}
 */
export function traceButtons(panel, state) {
    const guarded = (act) => async (event) => {
        const pressed = event.currentTarget;
        pressed.disabled = true; // it must not be pressed twice
        try {
            await act(state);
            panel.fail("");
        } catch (error) {
            panel.fail(error.message);
        } finally {
            pressed.disabled = false;
        }
    };
    const without = "Download the file for ui.perfetto.dev, for a machine without a network";
    const buttons = [
        button("perfetto", "Open the same data in ui.perfetto.dev", guarded((state) => openInPerfetto(() => load(state)))),
        button("", without, guarded(download), "⤓"),
    ];
    for (const made of buttons) made.classList.add("needs-server");
    return buttons;
}

async function addressOf(state) {
    return new URL(await ask("perfetto", { system: state.id }), location.href);
}

async function load(state) {
    const address = await addressOf(state);
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(`The trace could not be loaded: ${answer.status} ${answer.statusText}`);
    const title = `schedlab: ${state.info?.title ?? state.id}, ${state.frame.policy}`;
    return { buffer: await answer.arrayBuffer(), title, fileName: fileOf(address) };
}

async function download(state) {
    const address = await addressOf(state);
    element("a", { href: address.href, download: fileOf(address) }).click();
}

function fileOf(address) {
    return address.pathname.split("/").pop() || "trace.perfetto-trace";
}
