// SPDX-License-Identifier: MIT
//
// The monitor's standalone page: it simulates by itself, and plays traces that are dropped on it.

import "../python/schedlab/monitor/page/app.js";
import { notice } from "../python/schedlab/monitor/page/banners.js";
import { ask } from "../python/schedlab/monitor/page/connection.js";
import { askAround, isFramed } from "./embedding.js";
import { takeFiles } from "./files.js";
import { beginningOf, setupOf } from "./link.js";
import { createSetup } from "./setup.js";
import { ready } from "./session_connection.js";

const WRONG = "bad";

async function begin() {
    try {
        await ask("begin", beginningOf(setupOf(location.hash)));
    } catch (error) {
        notice(`This link cannot be opened: ${error.message}`, WRONG);
        if (location.hash) history.replaceState(null, "", " ");
        await ask("begin", beginningOf(setupOf("")));
    }
}

document.body.dataset.alone = "true";
createSetup(document.querySelector(".bar-tools"));
takeFiles();
addEventListener("hashchange", begin);
ready.then(isFramed() ? askAround : begin);
