// SPDX-License-Identifier: MIT
//
// A trace's records in the order of their sequence, complete or growing.

import { HEADER, HEADER_BYTES, Kind, MAGIC, RECORD, RECORD_BYTES, VERSION } from "./definitions.js";
import { Refused } from "./instance.js";

export const WORDS = RECORD_BYTES / 4; // of a record
const TIME_WORD = RECORD.time / 4;
const KIND_WORD = RECORD.kind / 4;
const SEQUENCE_WORD = RECORD.sequence / 4;
const PROCESS_WORD = RECORD.process / 4;
const SLOTS_MOST = 4; // times the number of records

/** Reads a trace's header. @param {ArrayBuffer} file */
export function readHeader(file) {
    const view = new DataView(file);
    const magic = file.byteLength < HEADER_BYTES ? "" : String.fromCharCode(...new Uint8Array(file, 0, 8));
    if (magic !== MAGIC) throw new Refused("not a schedlab trace; open a file trace.bin of a run");
    const version = view.getUint32(HEADER.version, true);
    const bytes = view.getUint32(HEADER.header_bytes, true);
    const recordBytes = view.getUint32(HEADER.record_bytes, true);
    if (version !== VERSION || bytes < HEADER_BYTES || recordBytes !== RECORD_BYTES) {
        throw new Refused(`this trace has version ${version}, but this page reads version ${VERSION}`);
    }
    return {
        bytes, cpus: view.getUint32(HEADER.cpus, true),
        tick_ns: Number(view.getBigUint64(HEADER.tick_ns, true)),
        seed: Number(view.getBigUint64(HEADER.seed, true)),
    };
}

/** @param {Uint32Array} words of records @param {number} at the first word of one @returns {number} nanoseconds */
export function timeAt(words, at) {
    return words[at + TIME_WORD + 1] * 2 ** 32 + words[at + TIME_WORD];
}

/** @param {Uint32Array} words of records @param {number} before @returns {number} the latest time of them and of this one */
export function latestOf(words, before) {
    let latest = before;
    for (let at = 0; at < words.length; at += WORDS) latest = Math.max(latest, timeAt(words, at));
    return latest;
}

/** @param {Uint32Array} words of records @param {number} at the first word of one */
export function kindAt(words, at) {
    return words[at + KIND_WORD] & 0xffff;
}

/**
 * Recognizes records of decisions: a scheduler's exits, or switches in a trace without exits.
 */
export class Decisions {
    #kind = Kind.SWITCH;

    /** Reads a record; earlier ones must have been read. */
    note(words, at) {
        if (kindAt(words, at) === Kind.SCHEDULER_EXIT) this.#kind = Kind.SCHEDULER_EXIT;
    }

    /** @returns {boolean} */
    has(words, at) {
        return kindAt(words, at) === this.#kind && words[at + PROCESS_WORD] !== 0;
    }
}

export class Tape {
    decisions = new Decisions();
    /** @type {{first: number, words: Uint32Array}[]} `first`: the number of its first record */
    #pieces = [];
    /** How many records there are. */
    length = 0;
    /** The latest time of all. */
    latest = 0;

    /**
     * @param {ArrayBuffer} file a trace @param {number} [most] records @returns {Tape} with all its records
     */
    static of(file, most = Infinity) {
        const { bytes } = readHeader(file);
        const count = Math.floor((file.byteLength - bytes) / RECORD_BYTES);
        const tape = new Tape(new Uint8Array(file, 0, HEADER_BYTES));
        const records = bytes % 4 ? file.slice(bytes) : file;
        tape.append(inOrder(new Uint32Array(records, bytes % 4 ? 0 : bytes, count * WORDS)).subarray(0, most * WORDS));
        return tape;
    }

    /** Advances the time to at least this, though nothing may have happened since. */
    reach(time) {
        this.latest = Math.max(this.latest, time);
    }

    /** @param {Uint8Array} header of the trace */
    constructor(header) {
        this.header = header;
    }

    /** @param {Uint32Array} words of the next records, in order */
    append(words) {
        if (!words.length) return;
        for (let at = 0; at < words.length; at += WORDS) this.decisions.note(words, at);
        this.latest = latestOf(words, this.latest);
        this.#pieces.push({ first: this.length, words });
        this.length += words.length / WORDS;
    }

    /** Drops the records before this one, in whole pieces. */
    forgetBefore(record) {
        const firstPiece = this.#pieces.findIndex(({ first, words }) => first + words.length / WORDS > record);
        if (firstPiece > 0) this.#pieces.splice(0, firstPiece);
    }

    /**
     * Records that lie together in memory, up to the first that is later than a time.
     * @param {number} record the first of them @param {number} most @param {number} time @returns {Uint32Array}
     */
    until(record, most, time) {
        const words = this.#from(record).subarray(0, most * WORDS);
        let end = 0;
        while (end < words.length && timeAt(words, end) <= time) end += WORDS;
        return words.subarray(0, end);
    }

    /**
     * @param {number} record @param {number} time @param {(words: Uint32Array, at: number) => boolean}
     * isWanted
     * @returns {number | undefined} the time of the first matching later record, starting with `record`
     */
    next(record, time, isIncluded) {
        while (record < this.length) {
            const words = this.#from(record);
            for (let at = 0; at < words.length; at += WORDS) {
                if (timeAt(words, at) > time && isIncluded(words, at)) return timeAt(words, at);
            }
            record += words.length / WORDS;
        }
        return undefined;
    }

    #from(record) {
        let low = 0;
        let high = this.#pieces.length;
        while (low + 1 < high) {
            const middle = (low + high) >> 1;
            if (this.#pieces[middle].first <= record) low = middle;
            else high = middle;
        }
        const piece = this.#pieces[low];
        return piece ? piece.words.subarray((record - piece.first) * WORDS) : new Uint32Array(0);
    }
}

// A trace comes in blocks of one CPU each.
function inOrder(words) {
    const count = words.length / WORDS;
    const sequence = (record) => words[record * WORDS + SEQUENCE_WORD];
    let sorted = true;
    for (let record = 1; record < count && sorted; record++) sorted = sequence(record) >= sequence(record - 1);
    if (sorted) return words;
    const offsets = new Uint32Array(words.length);
    placesBy(sequence, count).forEach((record, place) => {
        offsets.set(words.subarray(record * WORDS, (record + 1) * WORDS), place * WORDS);
    });
    return offsets;
}

// If sequence numbers have few gaps, each record has a slot; a damaged trace is sorted.
function placesBy(sequence, count) {
    let [least, most] = [Infinity, 0];
    for (let record = 0; record < count; record++) {
        least = Math.min(least, sequence(record));
        most = Math.max(most, sequence(record));
    }
    const places = Uint32Array.from({ length: count }, (_, record) => record);
    const byComparing = () => places.sort((one, other) => sequence(one) - sequence(other));
    if (most - least >= count * SLOTS_MOST) return byComparing();
    const slots = new Uint32Array(most - least + 1);
    for (let record = 0; record < count; record++) {
        const slot = sequence(record) - least;
        if (slots[slot]) return byComparing();
        slots[slot] = record + 1;
    }
    return slots.filter(Boolean).map((record) => record - 1);
}
