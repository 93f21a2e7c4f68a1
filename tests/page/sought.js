// SPDX-License-Identifier: MIT
//
// For test_page_sought.py: a recording is gone through, and sought.

import { Recording } from "../../python/schedlab/monitor/page/session/recording.js";
import { WatchedSystem } from "../../python/schedlab/monitor/page/session/system.js";
import { readHeader, Tape } from "../../python/schedlab/monitor/page/session/tape.js";

const bytesOf = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

globalThis.sought = async ({ module, trace, policy, stretch, times }) => {
    const compiled = await WebAssembly.compile(bytesOf(module));
    const { buffer } = bytesOf(trace);
    const { tick_ns } = readHeader(buffer);
    const source = new Recording(compiled, Tape.of(buffer), tick_ns);
    const system = new WatchedSystem("a", { policy, tick_ns }, source, { sharesBy: 0, windowNs: 10e9 });
    system.past.stretch = stretch;
    const begin_ns = system.now;
    system.goThrough();
    const frames = times.map((time) => {
        system.seek(time);
        return system.frame(0);
    });
    return { begun: begin_ns, end: source.endNs, bytes: system.past.bytes, frames };
};
