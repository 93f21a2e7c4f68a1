// SPDX-License-Identifier: MIT
//
// The page's address, whose part after # is the setup that runs. A setup that is refused changes neither.

import { notice } from "../python/schedlab/monitor/page/banners.js";
import { ask } from "../python/schedlab/monitor/page/connection.js";
import { hello } from "../python/schedlab/monitor/page/store.js";
import { beginningOf, linkOf, setupOf } from "./link.js";

/** The link of the running setup; "": that of page/first.json. */
let running = "";

/** @returns {import("./link.js").Setup} the setup that was begun last */
export function lastSetup() {
    return setupOf(running);
}

/** Begins a setup, and keeps it in the address. @param {import("./link.js").Setup} setup */
export async function begin(setup) {
    await ask("begin", beginningOf(setup));
    running = linkOf(setup);
    if (location.hash !== running) history.pushState(null, "", running);
}

/** Begins the address's setup. If it is refused, what runs goes on, or the first setup begins. */
export async function followAddress() {
    const { hash } = location;
    try {
        await ask("begin", beginningOf(setupOf(hash)));
        running = hash;
    } catch (error) {
        notice(`This link cannot be opened: ${error.message}`, "bad");
        history.replaceState(null, "", running || " ");
        if (!hello()) await ask("begin", beginningOf(setupOf("")));
    }
}
