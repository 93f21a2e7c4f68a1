// SPDX-License-Identifier: MIT
//
// A running instance of the module of page/machine.c: passes texts in and out, and copies its memory for
// steps back. All of a machine and its model lie in that memory.

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const STANDARD_OUTPUT = 1;
const PAGE_BYTES = 65536;
const BAD_FILE = 8; // WASI's EBADF: there are no files

/** The machine refused a request; it continues unchanged. */
export class Refused extends Error {}

/** @param {Map<number, Uint8Array>} snapshot @returns {number} */
export function bytesOf(snapshot) {
    return snapshot.size * PAGE_BYTES;
}

// Most pages contain only zeros: a loop, because a method with a function takes ten times as long.
function isUsed(words, page) {
    for (let at = page; at < page + PAGE_BYTES / 4; at++) if (words[at]) return true;
    return false;
}

/** One instance of the module. */
export class Instance {
    #printed = "";
    /** @type {Record<string, any>} */
    #exports;

    /** @param {WebAssembly.Module} module */
    constructor(module) {
        this.module = module;
        const none = () => BAD_FILE;
        const wasi = { fd_close: none, fd_fdstat_get: none, fd_pread: none, fd_seek: none };
        const imports = {
            wasi_snapshot_preview1: { ...wasi, fd_write: (...call) => this.#print(...call) },
        };
        this.#exports = new WebAssembly.Instance(module, imports).exports;
        this.#exports._initialize();
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
        if (!result) throw new Refused(this.text(this.call("machine_error")));
        return result;
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

    /**
     * @returns {Map<number, Uint8Array>} its whole state: its pages, without all-zero pages except the last
     */
    snapshot() {
        const { buffer } = this.#exports.memory;
        const pages = new Map();
        const words = new Int32Array(buffer);
        for (let at = 0; at < buffer.byteLength; at += PAGE_BYTES) {
            if (isUsed(words, at / 4) || at + PAGE_BYTES === buffer.byteLength) pages.set(at, new Uint8Array(buffer, at, PAGE_BYTES).slice());
        }
        return pages;
    }

    /** @param {Map<number, Uint8Array>} snapshot @returns {Instance} one in the state of the snapshot */
    again(snapshot) {
        const made = new Instance(this.module);
        const { memory } = made.#exports;
        const bytes = Math.max(...snapshot.keys()) + PAGE_BYTES;
        memory.grow(Math.max(0, bytes - memory.buffer.byteLength) / PAGE_BYTES);
        const all = new Uint8Array(memory.buffer);
        for (const [at, page] of snapshot) all.set(page, at);
        return made;
    }

    #hand(bytes) {
        const place = this.#exports.take_memory(bytes.length);
        if (!place) throw new Refused("no memory is left");
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
