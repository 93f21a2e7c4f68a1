// SPDX-License-Identifier: MIT
//
// A running instance of the module of page/machine.c: passes texts in and out, and copies its memory for
// steps back. All of a machine and its model lie in that memory, except a separate policy.

import { PolicyMachine } from "./policy_machine.js";

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const STANDARD_OUTPUT = 1;
const PAGE_BYTES = 65536;
const BAD_FILE = 8; // WASI's EBADF: there are no files

/** The machine refused a request; it continues unchanged. */
export class Refused extends Error {
    /** @type {Instance | null} the instance that refused it */
    instance = null;

    /** @param {string} message @param {string} [part] of a setup that it is about, such as "text"; "": none */
    constructor(message, part = "") {
        super(message);
        this.part = part;
    }
}

/** Names the part of a setup that a refusal is about. @param {string} part @param {() => any} doing */
export async function about(part, doing) {
    try {
        return await doing();
    } catch (error) {
        if (error instanceof Refused) error.part ||= part;
        throw error;
    }
}

/**
 * @typedef {Map<number, Uint8Array>} Pages of a memory, by their addresses; without all-zero pages except the last
 * @typedef {{memory: Pages, policy: Pages | null}} Snapshot
 * @typedef {{module: WebAssembly.Module, offsets?: Map<number, number>, onHook?: (instance: Instance) => void}} Separate a
 * policy that runs in a separate instance; see PolicyMachine. `onHook`: called after each hook
 */

/** @param {Snapshot} snapshot @returns {number} */
export function bytesOf({ memory, policy }) {
    return (memory.size + (policy?.size ?? 0)) * PAGE_BYTES;
}

// Most pages contain only zeros: a loop, because a method with a function takes ten times as long.
function isUsed(words, page) {
    for (let at = page; at < page + PAGE_BYTES / 4; at++) if (words[at]) return true;
    return false;
}

/** @param {ArrayBuffer} buffer @returns {Pages} */
function pagesOf(buffer) {
    const pages = new Map();
    const words = new Int32Array(buffer);
    for (let at = 0; at < buffer.byteLength; at += PAGE_BYTES) {
        if (isUsed(words, at / 4) || at + PAGE_BYTES === buffer.byteLength) pages.set(at, new Uint8Array(buffer, at, PAGE_BYTES).slice());
    }
    return pages;
}

/** Writes the pages over a memory. @param {WebAssembly.Memory} memory @param {Pages} pages */
function restore(memory, pages) {
    const bytes = Math.max(...pages.keys()) + PAGE_BYTES;
    new Uint8Array(memory.buffer).fill(0); // its constants; what it grows by is 0
    memory.grow(Math.max(0, bytes - memory.buffer.byteLength) / PAGE_BYTES);
    const all = new Uint8Array(memory.buffer);
    for (const [at, page] of pages) all.set(page, at);
}

/** One instance of the module. */
export class Instance {
    #printed = "";
    /** @type {Record<string, any>} */
    #exports;
    /** @type {PolicyMachine | null} */
    policy = null;

    /** @param {WebAssembly.Module} module @param {Separate | null} [separate] the only policy; null: the module's */
    constructor(module, separate = null) {
        this.module = module;
        this.separate = separate;
        const none = () => BAD_FILE;
        const wasi = { fd_close: none, fd_fdstat_get: none, fd_pread: none, fd_seek: none };
        const imports = {
            wasi_snapshot_preview1: { ...wasi, fd_write: (...call) => this.#print(...call) },
            policy: this.#policyImports(),
        };
        if (separate) this.policy = new PolicyMachine(separate.module, separate.offsets);
        this.#exports = new WebAssembly.Instance(module, imports).exports;
        this.#exports._initialize();
        if (!this.policy) return;
        if (separate.onHook) this.policy.onHook = () => separate.onHook(this);
        const { place, memory } = this.policy;
        if (!this.#exports.policy_begin(place, memory.length)) throw new Refused(this.trouble);
    }

    /** Which rule the policy broke, or why it was stopped; "": it was not. @returns {string} */
    get trouble() {
        return this.text(this.call("policy_trouble")) || this.policy.error?.message || "";
    }

    // See page/policy_machine.c.
    #policyImports() {
        return {
            call: (number, executed) => {
                const isGood = this.policy.call(number);
                new DataView(this.buffer).setBigUint64(executed, BigInt(this.policy.blocks), true);
                return Number(isGood);
            },
            write: (address, from, bytes) => this.policy.memory.set(this.memory(from, bytes), address),
            read: (address, to, bytes) => this.memory(to, bytes).set(this.policy.memory.subarray(address, address + bytes)),
        };
    }

    /** @returns {boolean} */
    has(name) {
        return name in this.#exports;
    }

    /**
     * Calls a function. Texts are passed as such; 64-bit numbers are BigInts.
     * @param {string} name @param {...(string | number | bigint | boolean | Uint8Array)} given
     * @returns {any}
     */
    call(name, ...given) {
        const taken = [];
        const values = given.map((value) => {
            if (typeof value === "string") value = encoder.encode(`${value}\0`);
            if (!(value instanceof Uint8Array)) return value;
            taken.push(this.#hand(value));
            return taken.at(-1);
        });
        try {
            return this.#exports[name](...values);
        } finally {
            for (const place of taken) this.#exports.give_memory(place);
        }
    }

    /** Does the same for functions that return 0 on failure. Refused: it has failed. */
    obey(name, ...given) {
        const result = this.call(name, ...given);
        if (!result) throw this.refusal();
        return result;
    }

    /** @returns {Refused} why the last function has failed */
    refusal() {
        const made = new Refused(this.text(this.call("machine_error")));
        made.instance = this;
        return made;
    }

    /** @param {number} place in memory @returns {string} up to its final 0 */
    text(place) {
        const memory = new Uint8Array(this.#exports.memory.buffer);
        return decoder.decode(memory.slice(place, memory.indexOf(0, place)));
    }

    /** @param {number} place in memory @param {number} count @returns {Uint8Array} a copy */
    bytes(place, count) {
        return this.memory(place, count).slice();
    }

    /** Returns the output of a function. @param {string} name @returns {string} */
    printed(name) {
        this.#printed = "";
        this.call(name);
        return this.#printed;
    }

    /** @returns {ArrayBuffer} its memory; valid until the next call */
    get buffer() {
        return this.#exports.memory.buffer;
    }

    /** @param {number} place @param {number} count @returns {Uint8Array} the memory itself; valid until the next call */
    memory(place, count) {
        return new Uint8Array(this.#exports.memory.buffer, place, count);
    }

    /** The same, as numbers of 32 bits. @param {number} place @param {number} count of bytes @returns {Uint32Array} */
    words(place, count) {
        return new Uint32Array(this.#exports.memory.buffer, place, count / 4);
    }

    /** @returns {Snapshot} its whole state */
    snapshot() {
        return { memory: pagesOf(this.buffer), policy: this.policy && pagesOf(this.policy.buffer) };
    }

    /** @param {Snapshot} snapshot @returns {Instance} one in the state of the snapshot */
    again({ memory, policy }) {
        const made = new Instance(this.module, this.separate);
        restore(made.#exports.memory, memory);
        if (policy) made.policy.restore((checkpoint) => restore(checkpoint, policy));
        return made;
    }

    #hand(bytes) {
        const place = this.#exports.take_memory(bytes.length);
        if (!place) throw new Refused("out of memory");
        new Uint8Array(this.#exports.memory.buffer).set(bytes, place);
        return place;
    }

    // Pieces of a text: their places and lengths in a table of 32-bit numbers.
    #print(file, table, count, written) {
        const view = new DataView(this.#exports.memory.buffer);
        let total = 0;
        for (let piece = 0; piece < count; piece++) {
            const place = view.getUint32(table + 8 * piece, true);
            const length = view.getUint32(table + 8 * piece + 4, true);
            if (file === STANDARD_OUTPUT) this.#printed += decoder.decode(this.bytes(place, length));
            total += length;
        }
        view.setUint32(written, total, true);
        return 0;
    }
}
