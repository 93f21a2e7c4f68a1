// SPDX-License-Identifier: MIT

// usage: node play_trace.mjs MESSAGE_READER MODEL.wasm TRACE POLICY PARTS
// Feeds a trace's records to the model as WebAssembly, in some parts; prints a frame after each, then
// what happened, and why PID 1 waited: a line of JSON each.

import { readFileSync } from "node:fs";

const [reader, wasm, trace, policy, parts] = process.argv.slice(2);
const { readMessage } = await import(reader);
const MEMORY = 256 << 20;
const HEADER = 64;
const RECORD = 32;

const { instance } = await WebAssembly.instantiate(readFileSync(wasm), {});
const model = instance.exports;
const memory = model.memory;
const begin = (Number(model.__heap_base.value) + 15) & ~15;
const data = readFileSync(trace);
const place = begin + MEMORY;
memory.grow(Math.ceil((place + data.length + 4096 - memory.buffer.byteLength) / 65536));
new Uint8Array(memory.buffer).set(data, place);
const name = new TextEncoder().encode(policy);
new Uint8Array(memory.buffer).set(name, place + data.length);

const print = (message) => console.log(JSON.stringify(message ? readMessage(memory.buffer, message) : null));
const it = model.model_begin(begin, MEMORY, place, HEADER, place + data.length, name.length, 0);
const count = Math.floor((data.length - HEADER) / RECORD);
const began = performance.now();
let fed = 0;
let took = 0;
for (let part = 1; part <= Number(parts); part++) {
    const until = Math.floor((count * part) / Number(parts));
    const start = performance.now();
    model.model_feed(it, place + HEADER + fed * RECORD, until - fed);
    took += performance.now() - start;
    fed = until;
    print(model.model_frame(it, 2000));
}
print(model.model_history(it));
print(model.model_explain(it, 1));
console.error(JSON.stringify({ records: count, milliseconds: took, all: performance.now() - began }));
