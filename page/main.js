// SPDX-License-Identifier: MIT
//
// The monitor's standalone page: it simulates by itself, and plays traces that are dropped on it.

import "../python/schedlab/monitor/page/app.js";
import { followAddress } from "./address.js";
import { askAround, isFramed } from "./embedding.js";
import { takeFiles } from "./files.js";
import { createSetup } from "./setup.js";
import { ready } from "./session_connection.js";

document.body.dataset.alone = "true";
createSetup(document.querySelector(".bar-tools"));
takeFiles();
addEventListener("hashchange", followAddress);
ready.then(isFramed() ? askAround : followAddress);
