// SPDX-License-Identifier: MIT
//
// A page around this one may have a recording for it, as those of a report have (play.js there).

import { notice } from "../python/schedlab/monitor/page/banners.js";
import { ask } from "../python/schedlab/monitor/page/connection.js";

const LINK = "#recording";

/** Is this page in a frame that has a recording for it? */
export function isFramed() {
    return parent !== window && location.hash === LINK;
}

/** Asks the page around this one for its recording, and plays it. */
export function askAround() {
    addEventListener("message", ({ source, data }) => {
        if (source === parent) play(data).catch((error) => notice(error.message, "bad"));
    });
    parent.postMessage("schedlab: ready for a recording", "*");
}

async function play({ file, title, policy }) {
    if (!(file instanceof ArrayBuffer)) throw new Error("The page around this one has sent no recording.");
    await ask("play", { file, title: String(title), policy: String(policy) });
}
