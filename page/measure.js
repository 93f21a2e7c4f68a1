// SPDX-License-Identifier: MIT
//
// Measures how fast a trace is opened and sought on the page, for ./schedlab dev bench monitor-model. It runs
// in Node.js, which has the same WebAssembly engine as Chromium.
//
//     node SCRIPT MODULE TRACE POLICY     SCRIPT: this as one script

import { Recording } from "../python/schedlab/monitor/page/session/recording.js";
import { WatchedSystem } from "../python/schedlab/monitor/page/session/system.js";
import { readHeader, Tape } from "../python/schedlab/monitor/page/session/tape.js";

const SEEKS = 20;
const fs = require("node:fs");
const [module, trace, policy] = process.argv.slice(2);
const compiled = new WebAssembly.Module(fs.readFileSync(module));
const { buffer, byteOffset, length } = fs.readFileSync(trace);
const file = buffer.slice(byteOffset, byteOffset + length);

function seconds(doing) {
    const begin = process.cpuUsage();
    const result = doing();
    const { user, system } = process.cpuUsage(begin);
    return [(user + system) / 1e6, result];
}

// The model alone.
function feed() {
    const plain = new Recording(compiled, tape, tick_ns);
    plain.instance.call("watch_begin", plain.header(), policy, 0);
    plain.advance(plain.endNs);
    for (let piece = plain.take(); piece.count; piece = plain.take()) {
        plain.instance.call("watch_feed", piece.place, piece.count);
    }
}

const { cpus, tick_ns } = readHeader(file);
const [ordering, tape] = seconds(() => Tape.of(file));
const source = new Recording(compiled, tape, tick_ns);
const setup = { policy, cpus, tick_ns };
const [feeding] = seconds(feed);
const system = new WatchedSystem("a", setup, source, { sharesBy: 0, windowNs: 10e9 });
const begin = system.now;
const [taking] = seconds(() => system.goThrough());
const span = source.endNs - begin;
const seeks = Array.from({ length: SEEKS }, (_, at) => {
    const time = begin + Math.round((span * ((at * 7) % SEEKS)) / SEEKS);
    return seconds(() => {
        system.seek(time);
        system.frame(0);
    })[0];
});
console.log(JSON.stringify({
    records: tape.length, cpus, ordering_s: ordering, feeding_s: feeding, taking_s: taking,
    seek_s: Math.max(...seeks), copies_bytes: system.past.bytes,
}));
