// SPDX-License-Identifier: MIT
//
// The names and groups of all processes of a trace, also of those that have ended, as ./schedlab explain has
// them (docs/trace-format.md).

import { Kind, RECORD } from "./definitions.js";
import { kindAt, WORDS } from "./tape.js";

const PIECE_RECORDS = 1 << 16;
const PROCESSES_MAX = 20_000;
const GROUP = 3; // a mark of this kind has the group of a process
const [CPU, PROCESS, FIRST, SECOND] = [RECORD.cpu, RECORD.process, RECORD.first, RECORD.second];
const decoder = new TextDecoder();

/** @typedef {{name: string, group: string}} Named */

/** @param {import("./tape.js").Tape} tape @returns {Record<number, Named>} by PID; of a PID that is reused the last */
export function namesOf(tape) {
    const reader = new Reader();
    for (let at = 0; at < tape.length && reader.names.size < PROCESSES_MAX;) {
        const words = tape.until(at, PIECE_RECORDS, Infinity);
        if (!words.length) break;
        reader.read(words);
        at += words.length / WORDS;
    }
    return reader.result();
}

class Reader {
    /** @type {Map<number, {bytes: number[], label: string}>} */
    names = new Map();
    /** The text that continues on each CPU. @type {Map<number, number[]>} */
    #texts = new Map();

    read(words) {
        const view = new DataView(words.buffer, words.byteOffset, words.byteLength);
        for (let at = 0; at < words.length; at += WORDS) this.#take(kindAt(words, at), view, 4 * at);
    }

    #take(kind, view, at) {
        const cpu = view.getUint16(at + CPU, true);
        const pid = view.getUint32(at + PROCESS, true);
        const text = this.#texts.get(cpu);
        if (kind === Kind.TEXT) return void text?.push(...textAt(view, at));
        this.#texts.delete(cpu);
        if (kind === Kind.FORK) this.names.set(view.getUint32(at + FIRST, true), { bytes: [], label: "", ...this.names.get(pid) });
        if (kind === Kind.EXEC) this.#begin(cpu, pid, textAt(view, at));
        if (kind === Kind.FOUND) this.#begin(cpu, pid, []);
        if (kind === Kind.MARK && view.getUint32(at + FIRST, true) === GROUP) this.#of(pid).label = textOf(bytesAt(view, at + SECOND, 8));
    }

    #of(pid) {
        if (!this.names.has(pid)) this.names.set(pid, { bytes: [], label: "" });
        return this.names.get(pid);
    }

    #begin(cpu, pid, bytes) {
        this.#of(pid).bytes = bytes;
        this.#texts.set(cpu, bytes);
    }

    result() {
        const named = ([pid, { bytes, label }]) => {
            const name = textOf(bytes) || `process ${pid}`;
            return [pid, { name, group: label || name }];
        };
        return Object.fromEntries([...this.names].map(named));
    }
}

function bytesAt(view, at, count) {
    return Array.from({ length: count }, (_, byte) => view.getUint8(at + byte));
}

/** The twelve bytes of text in a record. */
function textAt(view, at) {
    return [...bytesAt(view, at + SECOND, 8), ...bytesAt(view, at + FIRST, 4)];
}

function textOf(bytes) {
    const end = bytes.indexOf(0);
    return decoder.decode(Uint8Array.from(end < 0 ? bytes : bytes.slice(0, end)));
}
