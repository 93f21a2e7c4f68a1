// SPDX-License-Identifier: MIT
//
// A policy in a WebAssembly instance with its own memory (sim/apart/module.c). The simulator's instance calls
// it at each hook, and copies the messages between both memories.

const FUNCTIONS = ["hear", "serve", "answer"]; // enum separate_function
const SERVE = 1;
const PATH_HEADER = 2; // words before the path's blocks
const FRAME = /wasm-function\[\d+\]:(0x[\da-f]+)/;
const NAME_AT = 24; // in the description
const NAME_BYTES = 32; // of a policy or a tunable

const decoder = new TextDecoder();

export class PolicyMachine {
    /** @type {Record<string, any>} */
    #exports;
    /** The error that stopped it; null: none. @type {Error | null} */
    error = null;
    /** Called after each hook. @type {(() => void) | null} */
    onHook = null;

    /**
     * @param {WebAssembly.Module} module
     * @param {Map<number, number>} [offsets] receives where each executed basic block is in the module: its
     * number and a byte offset
     */
    constructor(module, offsets = new Map()) {
        this.offsets = offsets;
        const host = { first_reached: (block) => this.#note(block) };
        this.#exports = new WebAssembly.Instance(module, { host }).exports;
        /** The address of its message. */
        this.place = this.#exports.message();
    }

    /** @returns {Uint8Array} its memory; valid until the next call */
    get memory() {
        return new Uint8Array(this.buffer);
    }

    get buffer() {
        return this.#exports.memory.buffer;
    }

    /** Changes its memory. @param {(memory: WebAssembly.Memory) => void} change */
    restore(change) {
        change(this.#exports.memory);
    }

    /**
     * What the policy says about itself, once it has been begun: struct separate_description.
     * @returns {{name: string, tunables: {name: string, minimum: number, default: number, maximum: number}[]}}
     */
    get description() {
        const view = new DataView(this.buffer, this.place);
        const text = (at) => decoder.decode(this.memory.slice(this.place + at, this.place + at + NAME_BYTES)).split("\0")[0];
        const number = (at) => Number(view.getBigInt64(at, true));
        const count = number(NAME_AT + NAME_BYTES);
        const tunables = Array.from({ length: count }, (_, index) => {
            const at = NAME_AT + NAME_BYTES + 8 + index * (NAME_BYTES + 24);
            const [minimum, standard, maximum] = [0, 8, 16].map((offset) => number(at + NAME_BYTES + offset));
            return { name: text(at), minimum, default: standard, maximum };
        });
        return { name: text(NAME_AT), tunables };
    }

    /** Calls a function. @param {number} number @returns {boolean} false: it crashed */
    call(number) {
        try {
            this.#exports[FUNCTIONS[number]]();
        } catch (error) {
            if (!(error instanceof WebAssembly.RuntimeError || error instanceof RangeError)) throw error;
            this.error = error;
            return false;
        }
        if (number === SERVE) this.onHook?.();
        return true;
    }

    /** The number of basic blocks that the last hook has executed; 0 if the policy does not count them. */
    get blocks() {
        const { path } = this.#exports;
        return path ? new Uint32Array(this.buffer, path(), 1)[0] : 0;
    }

    /** @returns {Set<number>} the basic blocks that the last hook has executed */
    get path() {
        const place = this.#exports.path();
        const { buffer } = this;
        const [, count] = new Uint32Array(buffer, place, PATH_HEADER);
        return new Set(new Uint16Array(buffer, place + 4 * PATH_HEADER, count));
    }

    /**
     * @returns {number[]} byte offsets in the module of the functions that were active at an error,
     * the innermost first
     */
    static offsetsOf(error) {
        const frames = (error.stack ?? "").split("\n").map((frame) => FRAME.exec(frame)?.[1]);
        const first = frames.findIndex(Boolean);
        const end = frames.findIndex((offset, at) => at > first && !offset); // the simulator's follow
        return first < 0 ? [] : frames.slice(first, end < 0 ? undefined : end).map(Number);
    }

    // The frames of first_reached's callers: the block's call follows that of the counting function.
    #note(block) {
        const before = Error.stackTraceLimit;
        Error.stackTraceLimit = 5;
        const [, offset] = PolicyMachine.offsetsOf(new Error());
        Error.stackTraceLimit = before;
        if (offset !== undefined) this.offsets.set(block, offset);
    }
}
