// SPDX-License-Identifier: MIT
//
// Handles files that are dropped on the page, or chosen: it plays a trace, installs a policy's module, and
// uses a text as a workload.

import { notice } from "../python/schedlab/monitor/page/banners.js";
import { ask } from "../python/schedlab/monitor/page/connection.js";

const TRACE = /\.bin$/;
const MODULE = /\.wasm$/;
const MANIFEST = "manifest.json";
const OUR_MACHINES = ["spike", "qemu", "sim"]; // their first process is not of the workload

export function takeFiles() {
    addEventListener("dragover", (event) => event.preventDefault());
    addEventListener("drop", (event) => {
        event.preventDefault();
        take([...event.dataTransfer.files]);
    });
}

/** @param {File[]} files a trace, optionally with the manifest of its run; or a module */
export async function take(files) {
    const trace = files.find(({ name }) => TRACE.test(name));
    const module = files.find(({ name }) => MODULE.test(name));
    try {
        if (trace) await play(trace, files.find(({ name }) => name === MANIFEST));
        else if (module) await learn(module);
        else notice("Drop a trace (trace.bin of a run) or a policy (a .wasm file) here.", "bad");
    } catch (error) {
        notice(error.message, "bad");
    }
}

async function play(trace, manifest) {
    const manifestContent = manifest ? JSON.parse(await manifest.text()) : {};
    const policy = typeof manifestContent.policy === "string" ? manifestContent.policy : "";
    const own = OUR_MACHINES.includes(manifestContent.machine) ? [1, ...(manifestContent.branch_of?.own ?? [])] : [];
    await ask("play", { file: await trace.arrayBuffer(), title: `${policy || trace.name}, recorded`, policy, own });
}

async function learn(module) {
    const names = await ask("learn", { module: await module.arrayBuffer() });
    notice(`Added: ${names.join(", ")}.`, "good");
}
