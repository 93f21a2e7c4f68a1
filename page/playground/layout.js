// SPDX-License-Identifier: MIT
//
// The structures of a policy, as clang lays them out (-fdump-record-layouts), and their values in its memory.

/**
 * @typedef {{name: string, type: string, offset: number, depth: number, bits: [number, number] | null}} Field
 * `bits`: the first and last bit of a bit-field
 * @typedef {{bytes: number, fields: Field[]}} Structure its fields and, after each structure, the fields of that
 * @typedef {Record<string, Structure>} Structures by their names in C
 * @typedef {{structures: Structures, states: Record<"task" | "queue" | "scheduler", string[]>}} Layouts `states`:
 * which structures STATE_OF() finds in the state of a task, a queue and the scheduler
 */

const TITLE = "*** Dumping AST Record Layout\n";
const ROW = /^ *(\d+)(?::(\d+)-(\d+))? \| ( *)(.*)$/;
const SIZE = /\[sizeof=(\d+)/;
const HOLDERS = /** @type {const} */ (["task", "queue", "scheduler"]); // by the length of STATE_OF's `holder`, less 1
const ARRAY = /^(.*?)\s*\[(\d+)\]((?:\[\d+\])*)$/;
const POINTER_BYTES = 4;
const TYPE_BYTES = {
    _Bool: 1, char: 1, "signed char": 1, "unsigned char": 1, int8_t: 1, uint8_t: 1, short: 2, "unsigned short": 2, int16_t: 2, uint16_t: 2,
    int: 4, "unsigned int": 4, long: 4, "unsigned long": 4, int32_t: 4, uint32_t: 4, size_t: 4, uintptr_t: 4, intptr_t: 4,
    "long long": 8, "unsigned long long": 8, int64_t: 8, uint64_t: 8,
};
const UNSIGNED = /^(?:u|_Bool|size_t|enum )/;

/**
 * Replaces STATE_OF() in policy.h by one with the same value that also makes the compiler lay out a structure with the
 * kind of its object and the type of the state.
 */
export const STATE_OF = `
#undef STATE_OF
#define STATE_OF(object, type) ((void)sizeof(struct { char holder[_Generic(&*(object), task_t *: 1, const task_t *: 1, \\
    run_queue_t *: 2, const run_queue_t *: 2, default: 3)]; type state; }), (type SHARED_MEMORY *)(object)->state)
`;

/** @param {string} text the compiler's output @returns {Layouts} */
export function layoutsIn(text) {
    /** @type {Layouts} */
    const layouts = { structures: {}, states: { task: [], queue: [], scheduler: [] } };
    for (const part of text.split(TITLE).slice(1)) {
        const [title, ...fields] = part.split("\n").map(fieldOf).filter(Boolean);
        if (fields[0]?.name === "holder" && fields[1]?.name === "state") {
            const names = layouts.states[HOLDERS[Number(ARRAY.exec(fields[0].type)?.[2]) - 1]];
            if (names && !names.includes(fields[1].type)) names.push(fields[1].type);
        } else if (title && fields.length) {
            const name = `${title.type} ${title.name}`;
            layouts.structures[name] = { bytes: Number(SIZE.exec(part)?.[1] ?? 0), fields };
        }
    }
    // The largest contains the others, if the policy uses a header's structure.
    const bytes = (name) => layouts.structures[name]?.bytes ?? 0;
    for (const names of Object.values(layouts.states)) names.sort((one, other) => bytes(other) - bytes(one));
    return layouts;
}

/** @returns {Field | null} */
function fieldOf(row) {
    const match = ROW.exec(row);
    if (!match) return null;
    const [, offset, first, last, indent, words] = match;
    const [, type, name] = /^(.*?) ?(\w*)$/.exec(words) ?? ["", words, ""];
    return { name, type, offset: Number(offset), depth: indent.length / 2, bits: first === undefined ? null : [Number(first), Number(last)] };
}

/**
 * @param {Layouts} layouts @param {string} name of a structure
 * @returns {(Field & {path: string})[]} its fields that are not structures; paths are as in C
 */
export function leavesOf({ structures }, name) {
    const structure = structures[name];
    if (!structure) return [];
    if (!knownLeaves.has(structure)) knownLeaves.set(structure, findLeaves(structure.fields));
    return knownLeaves.get(structure);
}

/** @type {WeakMap<Structure, (Field & {path: string})[]>} */
const knownLeaves = new WeakMap();

function findLeaves(fields) {
    const path = [];
    const leaves = fields.map((field, at) => {
        path.length = field.depth - 1;
        path.push(field.name);
        const isLeaf = !(fields[at + 1]?.depth > field.depth);
        return isLeaf ? { ...field, path: path.filter(Boolean).join(".") } : null;
    });
    return leaves.filter(Boolean);
}

/**
 * @param {Layouts} layouts @param {string} name of a structure @param {number} offset in it
 * @returns {{path: string, type: string, bits: [number, number] | null} | null} the field at that offset
 */
export function fieldAt(layouts, name, offset) {
    const leaf = leavesOf(layouts, name).findLast((choice) => choice.offset <= offset && choice.type);
    if (!leaf) return null;
    let { path, type } = leaf;
    let rest = offset - leaf.offset;
    for (let match = ARRAY.exec(type); match; match = ARRAY.exec(type)) {
        const [, element, , others] = match;
        type = `${element}${others}`;
        const bytes = bytesOf(layouts, type);
        if (!bytes) return { path, type, bits: null };
        path += `[${Math.floor(rest / bytes)}]`;
        rest %= bytes;
    }
    if (!layouts.structures[type]) return { path, type, bits: leaf.bits };
    const inside = fieldAt(layouts, type, rest);
    return inside && { ...inside, path: `${path}.${inside.path}` };
}

/** @returns {number} 0: not known */
function bytesOf(layouts, type) {
    const array = ARRAY.exec(type);
    if (array) return Number(array[2]) * bytesOf(layouts, `${array[1]}${array[3]}`);
    if (type.endsWith("*")) return POINTER_BYTES;
    return layouts.structures[type]?.bytes ?? (type.startsWith("enum ") ? 4 : TYPE_BYTES[type.replace(/^(?:const |volatile )+/, "")] ?? 0);
}

/**
 * What lies in the memory of a policy's instance.
 */
export class StateReader {
    /**
     * @param {Layouts} layouts
     * @param {{queues: {place: number, bytes: number}, tasks: {place: number, bytes: number}}} places
     */
    constructor(layouts, { queues, tasks }) {
        this.layouts = layouts;
        this.queues = queues;
        this.tasks = tasks;
    }

    /** @param {DataView} view of the memory @param {string} path of a number or pointer of struct task or run_queue */
    #read(view, place, structure, path) {
        const leaf = leavesOf(this.layouts, structure).find((choice) => choice.path === path);
        return leaf ? Number(this.#number(view, place + leaf.offset, leaf.type)) : 0;
    }

    #number(view, at, type, bytes = bytesOf(this.layouts, type)) {
        const isSigned = !UNSIGNED.test(type) && !type.endsWith("*");
        if (at < 0 || at + bytes > view.byteLength) return 0;
        if (bytes === 1) return isSigned ? view.getInt8(at) : view.getUint8(at);
        if (bytes === 2) return isSigned ? view.getInt16(at, true) : view.getUint16(at, true);
        if (bytes === 8) return isSigned ? view.getBigInt64(at, true) : view.getBigUint64(at, true);
        return isSigned ? view.getInt32(at, true) : view.getUint32(at, true);
    }

    /** @returns {string} a task's PID for a pointer to it, and otherwise a number */
    #words(view, at, { type, bits = null }, bytes) {
        const value = this.#number(view, at, type, bytes);
        if (type.endsWith("*")) return this.#pointed(view, Number(value));
        if (!bits) return String(value);
        return String((BigInt(value) >> BigInt(bits[0])) & ((1n << BigInt(bits[1] - bits[0] + 1)) - 1n));
    }

    #pointed(view, address) {
        if (!address) return "none";
        const object = this.objectAt(view, address);
        return object?.kind === "task" && !object.isState ? `pid ${object.pid}` : `0x${address.toString(16)}`;
    }

    /**
     * @param {DataView} view @param {number} address
     * @returns {{kind: "task" | "queue" | "scheduler", isState: boolean, place: number, pid: number, index: number} | null}
     * the object that contains an address
     */
    objectAt(view, address) {
        const { queues, tasks } = this;
        const inArray = ({ place, bytes }, count) => (address >= place && address < place + bytes * count ? Math.floor((address - place) / bytes) : -1);
        const slot = inArray(tasks, TASKS);
        if (slot >= 0) return this.#task(view, slot, false);
        const cpu = inArray(queues, CPUS);
        if (cpu >= 0) return { kind: "queue", isState: false, place: queues.place + cpu * queues.bytes, pid: 0, index: cpu };
        return this.#stateAt(view, address);
    }

    #task(view, slot, isState) {
        const place = this.tasks.place + slot * this.tasks.bytes;
        const pid = this.#read(view, place, TASK, "pid");
        return { kind: /** @type {const} */ ("task"), isState, place: isState ? this.#read(view, place, TASK, "state") : place, pid, index: slot };
    }

    #stateAt(view, address) {
        const holds = (place, most) => place && address >= place && address < place + most;
        for (let slot = 0; slot < TASKS; slot++) {
            const object = this.#task(view, slot, true);
            if (holds(object.place, STATE_BYTES.task)) return object;
        }
        for (let cpu = 0; cpu < CPUS; cpu++) {
            const place = this.#read(view, this.queues.place + cpu * this.queues.bytes, QUEUE, "state");
            if (holds(place, STATE_BYTES.queue)) return { kind: "queue", isState: true, place, pid: 0, index: cpu };
        }
        const scheduler = this.#read(view, this.queues.place, QUEUE, "scheduler");
        if (holds(scheduler, this.layouts.structures[SCHEDULER]?.bytes)) return { kind: "scheduler", isState: false, place: scheduler, pid: 0, index: 0 };
        const state = scheduler && this.#read(view, scheduler, SCHEDULER, "state");
        return holds(state, STATE_BYTES.scheduler) ? { kind: "scheduler", isState: true, place: state, pid: 0, index: 0 } : null;
    }

    /**
     * @param {DataView} view @param {number} address @param {number} bytes
     * @returns {{kind: string, pid: number, index: number, isState: boolean, path: string, value: string} | null} a
     * load; null: of none of the policy's data
     */
    load(view, address, bytes) {
        const object = this.objectAt(view, address);
        const field = object && fieldAt(this.layouts, this.#structureOf(object), address - object.place);
        if (!field?.path) return null;
        const { kind, pid, index, isState } = object;
        return { kind, pid, index, isState, path: field.path, value: this.#words(view, address, field, bytes) };
    }

    #structureOf({ kind, isState }) {
        if (isState) return this.layouts.states[kind][0] ?? "";
        return { task: TASK, queue: QUEUE, scheduler: SCHEDULER }[kind];
    }

    /**
     * @param {DataView} view @param {"task" | "queue"} kind @param {number} index
     * @returns {{pid: number, fields: Record<string, string>}} the numbers of its state, and a task's level
     */
    state(view, kind, index) {
        const { place, bytes } = kind === "task" ? this.tasks : this.queues;
        const at = place + index * bytes;
        const structure = kind === "task" ? TASK : QUEUE;
        const state = this.#read(view, at, structure, "state");
        const fields = {};
        if (kind === "task") fields["task->level"] = String(this.#read(view, at, TASK, "level"));
        for (const leaf of leavesOf(this.layouts, this.layouts.states[kind][0] ?? "")) {
            if (state && leaf.path && !leaf.type.endsWith("*") && bytesOf(this.layouts, leaf.type) && !ARRAY.test(leaf.type)) {
                fields[leaf.path] = this.#words(view, state + leaf.offset, leaf);
            }
        }
        return { pid: kind === "task" ? this.#read(view, at, TASK, "pid") : 0, fields };
    }
}

const TASK = "struct task";
const QUEUE = "struct run_queue";
const SCHEDULER = "struct scheduler";
export const TASKS = 1024; // SEPARATE_TASKS
const CPUS = 64; // SEPARATE_CPUS
const STATE_BYTES = { task: 160, queue: 5120, scheduler: 4096 }; // POLICY_TASK_BYTES and so on
