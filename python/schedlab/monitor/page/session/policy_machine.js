// SPDX-License-Identifier: MIT
//
// A policy in a WebAssembly instance with its own memory (sim/apart/module.c). The simulator's instance calls
// it at each hook, and copies the messages between both memories.

const FUNCTIONS = ["hear", "serve", "answer"]; // enum separate_function
const SERVE = 1;
const BLOCKS_MOST = 2_000_000; // of a hook, as in sim/apart/module.c
const PATH_HEADER = 2; // words before the path's blocks
const FRAME = /wasm-function\[(\d+)\]:(0x[\da-f]+)/;
const FRAMES_MOST = 10; // of a stack that is examined
const NAME_AT = 24; // in the description
const NAME_BYTES = 32; // of a policy or a tunable
const TUNABLES_AT = NAME_AT + NAME_BYTES + 8;
const TUNABLE_BYTES = NAME_BYTES + 24;
const TUNABLES_MOST = 32; // POLICY_TUNABLES_MAX
const QUEUES_AT = TUNABLES_AT + TUNABLES_MOST * TUNABLE_BYTES;
/** Of the description, where the message begins: it has addresses of tasks, too. */
export const DESCRIPTION_BYTES = QUEUES_AT + 32;

const decoder = new TextDecoder();

/**
 * @typedef {{index: number, offset: number}} Frame of a stack: a function of the module, and a byte offset in the module
 * @typedef {{offsets: number[], isLoop: boolean}} Place of an error: offsets of the active functions, the innermost first,
 * or of the blocks of an endless loop
 */

export class PolicyMachine {
    /** @type {Record<string, any>} */
    #exports;
    /** Of blocks that the module has reported again. @type {Frame[]} */
    #repeated = [];
    /** The error that stopped it; null: none. @type {Error | null} */
    error = null;
    /** Called before each hook. @type {(() => void) | null} */
    beforeHook = null;
    /** Called after each hook. @type {(() => void) | null} */
    onHook = null;
    /**
     * Called before each load of a policy that is compiled to trace them: an address in its memory, and a size.
     * @type {((address: number, bytes: number) => void) | null}
     */
    onLoad = null;

    /**
     * @param {WebAssembly.Module} module
     * @param {Map<number, number>} [offsets] receives where each executed basic block is in the module: its
     * number and a byte offset
     */
    constructor(module, offsets = new Map()) {
        this.offsets = offsets;
        const host = { first_reached: (block) => this.#note(block), before_load: (address, bytes) => this.onLoad?.(address, bytes) };
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
     * @returns {{name: string, tunables: {name: string, minimum: number, default: number, maximum: number}[],
     *     queues: {place: number, bytes: number}, tasks: {place: number, bytes: number}}} `place`, `bytes`: of the
     * first queue or task, and of each
     */
    get description() {
        const view = new DataView(this.buffer, this.place);
        const text = (at) => decoder.decode(this.memory.slice(this.place + at, this.place + at + NAME_BYTES)).split("\0")[0];
        const number = (at) => Number(view.getBigInt64(at, true));
        const count = number(NAME_AT + NAME_BYTES);
        const tunables = Array.from({ length: count }, (_, index) => {
            const at = TUNABLES_AT + index * TUNABLE_BYTES;
            const [minimum, standard, maximum] = [0, 8, 16].map((offset) => number(at + NAME_BYTES + offset));
            return { name: text(at), minimum, default: standard, maximum };
        });
        const [queues, queueBytes, tasks, taskBytes] = [0, 8, 16, 24].map((offset) => number(QUEUES_AT + offset));
        return { name: text(NAME_AT), tunables, queues: { place: queues, bytes: queueBytes }, tasks: { place: tasks, bytes: taskBytes } };
    }

    /** Calls a function. @param {number} number @returns {boolean} false: it crashed */
    call(number) {
        if (number === SERVE) {
            this.#repeated = [];
            this.beforeHook?.();
        }
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

    /** @returns {Place} of the error that stopped it */
    get errorPlace() {
        const frames = this.error ? PolicyMachine.#framesOf(this.error) : [];
        const loops = new Set(this.#repeated.map(({ index }) => index));
        // The outermost function with blocks of the loop contains it; the others are called in the loop.
        const loop = this.blocks > BLOCKS_MOST && frames.findLast(({ index }) => loops.has(index));
        const places = loop ? this.#repeated.filter(({ index }) => index === loop.index) : frames;
        return { offsets: places.map(({ offset }) => offset), isLoop: Boolean(loop) };
    }

    /** @returns {Frame[]} the innermost first; each offset is behind the instruction that was executed */
    static #framesOf(error) {
        const frames = (error.stack ?? "").split("\n").map((frame) => FRAME.exec(frame));
        const first = frames.findIndex(Boolean);
        const end = frames.findIndex((frame, at) => at > first && !frame); // the simulator's follow
        const active = first < 0 ? [] : frames.slice(first, end < 0 ? undefined : end).map(([, index, offset]) => ({ index: Number(index), offset: Number(offset) }));
        // A frame that calls has the offset behind the call, but a trap has its own.
        if (error instanceof WebAssembly.RuntimeError && active.length) active[0].offset += 1;
        return active;
    }

    // The frames of first_reached's callers: the block's call follows that of the counting function.
    #note(block) {
        const [frame] = PolicyMachine.#callers();
        if (!frame) return;
        if (this.offsets.has(block)) this.#repeated.push(frame);
        this.offsets.set(block, frame.offset);
    }

    /**
     * Only in a function that the policy's side calls for the policy.
     * @returns {number[]} byte offsets in the module of the policy's active functions, the innermost first
     */
    static callerOffsets() {
        return PolicyMachine.#callers().map(({ offset }) => offset);
    }

    static #callers() {
        const before = Error.stackTraceLimit;
        Error.stackTraceLimit = FRAMES_MOST;
        const [, ...callers] = PolicyMachine.#framesOf(new Error());
        Error.stackTraceLimit = before;
        return callers;
    }
}
