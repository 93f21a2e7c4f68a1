// SPDX-License-Identifier: MIT
//
// The page that embeds this one may have a recording for it, as in a report (play.js there).

import { notice } from "../python/schedlab/monitor/page/banners.js";
import { ask } from "../python/schedlab/monitor/page/connection.js";

const LINK = "#recording";

/** Returns true if the embedding page has a recording for this page. */
export function isFramed() {
    return parent !== window && location.hash === LINK;
}

/** Requests the recording from the embedding page, and plays it. */
export function askAround() {
    addEventListener("message", ({ source, data }) => {
        if (source === parent) play(data).catch((error) => notice(error.message, "bad"));
    });
    parent.postMessage("schedlab: ready for a recording", "*");
}

async function play({ file, title, policy }) {
    if (!(file instanceof ArrayBuffer)) throw new Error("The enclosing page sent no recording; open one from a file.");
    await ask("play", { file, title: String(title), policy: String(policy) });
}
