// SPDX-License-Identifier: MIT
//
// Converts steps as words (docs/simulator.md) to the workload file that machines read (abi/workload_file.h),
// like python/schedlab/workload/binary_steps.py, by the same table of abi/workload_words.txt.

import {
    WORKLOAD, WORKLOAD_FORMS, WORKLOAD_LOOPS_MAX, WORKLOAD_MAGIC, WORKLOAD_MARK_NAME, WORKLOAD_VERSION,
} from "./definitions.js";
import { Refused } from "./instance.js";

const encoder = new TextEncoder();
const HEADER_BYTES = WORKLOAD.reserved + 4;
const RECORD_BYTES = 16; // of a program, and of a step
const UNITS = { ns: 1n, us: 1000n, ms: 1_000_000n, s: 1_000_000_000n };
const TIME = "a time: a number and ns, us, ms, s or ticks";
const NAME = "a name of at most 31 characters";

/** For each kind of field in a line: its description in errors, and its range. */
const KINDS = {
    time: [/^(\d+)(ns|us|ms|s|ticks?)$/, TIME, 0n, 1n << 62n],
    ticks: [/^(\d+)ticks?$/, TIME, 0n, 1n << 62n],
    span: [/^(\d+)(ns|us|ms|s|ticks?)$|^0$/, TIME, 0n, 1n << 62n],
    own: [/^\d+$/, "a number from 0 to 7", 0n, 7n],
    level: [/^\d+$/, "a number from 0 to 10", 0n, 10n],
    count: [/^\d+$/, "a number from 1 to 4294967295", 1n, 2n ** 32n - 1n],
    room: [/^\d+$/, "a number from 0 to 4294967295", 0n, 2n ** 32n - 1n],
    number: [/^\d+$/, "a number", 0n, 2n ** 64n - 1n],
    signed: [/^-?\d+$/, "a number", -(2n ** 31n), 2n ** 31n],
    label: [/^\S{1,8}$/, "a name of at most 8 characters"],
    text: [/^\S+$/, "a word"],
    program: [/^\S{1,31}$/, NAME],
    channel: [/^\S{1,31}$/, NAME],
    timer: [/^(?!\d)\S{1,31}$/, NAME],
};
/** @type {Map<string, {form: string[], step: bigint[]}[]>} by their first words */
const FORMS = new Map();
for (const [words, step] of WORKLOAD_FORMS) {
    const form = words.split(" ");
    FORMS.set(form[0], [...(FORMS.get(form[0]) ?? []), { form, step: step.map(BigInt) }]);
}
const [LOOP, EXIT, MARK] = ["loop", "exit", "mark"].map((first) => FORMS.get(first)[0].step[0]);

/** @param {string} text @param {number} tickNs @param {string} name of the text, for errors @returns {Uint8Array} */
export function workloadOf(text, tickNs, name, make = (assembly) => assembly.bytes()) {
    const assembly = new Assembly(BigInt(tickNs));
    try {
        for (const line of text.split("\n")) {
            assembly.line += 1;
            if (line.includes("\0")) throw new Refused("it contains a character with the code 0");
            const words = line.split("#")[0].split(/\s+/).filter(Boolean);
            if (words.length) assembly.add(words);
        }
        return make(assembly);
    } catch (error) {
        throw error instanceof Refused ? new Refused(`${name}:${assembly.line}: ${error.message}`) : error;
    }
}

/** @param {string} text of a workload @param {number} tickNs @param {string} program @param {number} step @returns {number} its line */
export function lineOfStep(text, tickNs, program, step) {
    return workloadOf(text, tickNs, "", (assembly) => assembly.lineOf(program, step));
}

function refuse(word, expected) {
    throw new Refused(word === undefined ? `expected ${expected}` : `${word.slice(0, 60)}: expected ${expected}`);
}

/** @param {string} place @returns {string[] | undefined} the field, the kind and what is added of <FIELD:KIND>+N */
function placeOf(place) {
    return place?.match(/^<(\w+):(\w+)>(?:\+(\d+))?$/)?.slice(1);
}

function matches(expected, word) {
    const place = placeOf(expected);
    return place ? KINDS[place[1]][0].test(word) : expected === word;
}

/** The first form that words have. @param {string[]} words */
function formOf(words) {
    const known = FORMS.get(words[0]) ?? refuse(words[0], ["program", "channel", ...FORMS.keys(), "end"].join(", "));
    const ends = known.map(({ form }) => {
        const at = form.findIndex((expected, place) => !matches(expected, words[place] ?? ""));
        return at < 0 ? form.length : at;
    });
    const right = known.findIndex(({ form }, place) => ends[place] === form.length && form.length === words.length);
    if (right >= 0) return known[right];
    const reached = Math.max(...ends);
    const expected = known.filter((_, place) => ends[place] === reached).map(({ form }) => {
        const place = placeOf(form[reached]);
        return place ? KINDS[place[1]][1] : (form[reached] ?? "the end of the line");
    });
    return refuse(words[reached], [...new Set(expected)].join(", or "));
}

class Assembly {
    line = 0;
    #names = { program: new Map(), channel: new Map(), timer: new Map() };
    #firstLines = new Map();
    /** @type {Map<number, bigint[][]>} */
    #programs = new Map();
    /** @type {bigint[][]} */
    #steps = [];
    #lines = new Map(); // of steps
    #loops = [];
    #channels = [];
    #texts = [];

    constructor(tickNs) {
        this.tickNs = tickNs;
    }

    /** @param {string[]} words */
    add(words) {
        const [first, ...rest] = words;
        if (first === "program" && rest.length === 1) this.#begin(rest[0]);
        else if (first === "channel" && rest.length === 2) this.#channels[Number(this.#read("channel", rest[0]))] = this.#read("room", rest[1]);
        else if (first === "program" || first === "channel") refuse(first, first === "program" ? "`program NAME`" : "`channel NAME N`");
        else if (!this.#programs.size) refuse(first, "`program NAME` before the first step");
        else if (first === "end" && !rest.length) this.#endLoop();
        else this.#step(words);
    }

    #begin(name) {
        this.#end();
        const number = Number(this.#read("program", name));
        if (this.#programs.has(number)) refuse(name, "another name, because this name is taken");
        this.#steps = [];
        this.#programs.set(number, this.#steps);
    }

    #end() {
        if (this.#loops.length) {
            this.line = this.#loops.at(-1).line;
            refuse(undefined, "an `end` for the loop that begins here");
        }
        if (this.#programs.size && this.#steps.at(-1)?.[0] !== EXIT) this.#push(EXIT, 0n, 0n, 0n);
    }

    #endLoop() {
        const loop = this.#loops.pop() ?? refuse("end", "a loop that this ends");
        if (loop.first === this.#steps.length) refuse("end", "a step within the loop");
        this.#push(LOOP, BigInt(this.#loops.length), BigInt(loop.first), loop.rounds);
    }

    /** @param {...bigint} step */
    #push(...step) {
        this.#lines.set(step, this.line);
        this.#steps.push(step);
    }

    lineOf(program, step) {
        return this.#lines.get(this.#programs.get(Number(this.#names.program.get(program)))[step]);
    }

    #step(words) {
        const { form, step } = formOf(words);
        const fields = { detail: step[1], target: step[2], value: step[3] };
        form.forEach((expected, at) => {
            const [field, kind, more] = placeOf(expected) ?? [];
            if (field) fields[field] = this.#read(kind, words[at]) + BigInt(more ?? 0);
        });
        if (words[0] === "window") this.#push(MARK, BigInt(WORKLOAD_MARK_NAME), 0n, this.#read("label", "window"));
        if (step[0] !== LOOP) {
            this.#push(step[0], fields.detail, fields.target, fields.value);
            return;
        }
        if (this.#loops.length === WORKLOAD_LOOPS_MAX) refuse("loop", `at most ${WORKLOAD_LOOPS_MAX} nested loops`);
        this.#loops.push({ first: this.#steps.length, rounds: fields.value, line: this.line });
    }

    /** @returns {bigint} the number of a word */
    #read(kind, word) {
        const [pattern, expected, least, most] = KINDS[kind];
        if (!pattern.test(word)) refuse(word, expected);
        if (kind in this.#names) return this.#number(kind, word);
        if (kind === "text") return BigInt(this.#texts.push(word) - 1);
        if (kind === "label") return encoder.encode(word).slice(0, 8).reduceRight((sum, byte) => (sum << 8n) + BigInt(byte), 0n);
        const unit = kind === "ticks" ? "" : word.match(/[a-z]*$/)[0];
        const number = BigInt(parseInt(word, 10) < 2 ** 70 ? word.match(/^-?\d+/)[0] : 2n ** 70n);
        const value = number * (unit ? (UNITS[unit] ?? this.tickNs) : 1n);
        if (value < least || value > most) refuse(word, expected);
        return value;
    }

    #number(kind, name) {
        const numbers = this.#names[kind];
        if (!numbers.has(name)) {
            if (kind === "channel") this.#channels.push(0n);
            if (kind === "program") this.#firstLines.set(name, this.line);
            numbers.set(name, BigInt(numbers.size));
        }
        return numbers.get(name);
    }

    /** The file. */
    bytes() {
        if (!this.#programs.size) refuse(undefined, "a program: `program NAME`");
        this.#end();
        const names = [...this.#names.program.keys()];
        const missing = names.find((_, number) => !this.#programs.has(number));
        if (missing) {
            this.line = this.#firstLines.get(missing);
            refuse(missing, "the name of a program");
        }
        const programs = names.map((_, number) => this.#programs.get(number));
        const texts = [...names, ...this.#texts].map((text) => encoder.encode(`${text}\0`));
        let textBytes = 0;
        const places = texts.map(({ length }) => (textBytes += length) - length);
        const stepCount = programs.reduce((sum, { length }) => sum + length, 0);
        const size = HEADER_BYTES + RECORD_BYTES * (names.length + stepCount) + 8 * this.#channels.length + 4 * this.#texts.length + textBytes;
        const file = new Uint8Array(size);
        const view = new DataView(file.buffer);
        let at = HEADER_BYTES;
        let first = 0;
        programs.forEach((steps, number) => {
            [first, steps.length, places[number]].forEach((value, field) => view.setUint32(at + 4 * field, value, true));
            first += steps.length;
            at += RECORD_BYTES;
        });
        for (const [kind, detail, target, value] of programs.flat()) {
            view.setUint8(at, Number(kind));
            view.setUint8(at + 1, Number(detail));
            view.setUint32(at + 4, Number(target), true);
            view.setBigUint64(at + 8, BigInt.asUintN(64, value), true);
            at += RECORD_BYTES;
        }
        for (const count of this.#channels) view.setBigUint64((at += 8) - 8, count, true);
        for (const place of places.slice(names.length)) view.setUint32((at += 4) - 4, place, true);
        for (const text of texts) file.set(text, (at += text.length) - text.length);
        file.set(encoder.encode(WORKLOAD_MAGIC));
        view.setBigUint64(WORKLOAD.bytes, BigInt(size), true);
        view.setBigUint64(WORKLOAD.checksum, checksum(file.subarray(HEADER_BYTES)), true);
        view.setBigUint64(WORKLOAD.tick_ns, this.tickNs, true);
        const headerFields = {
            version: WORKLOAD_VERSION, header_bytes: HEADER_BYTES, program_count: names.length, step_count: stepCount,
            channel_count: this.#channels.length, text_count: this.#texts.length, text_bytes: textBytes,
        };
        for (const [field, value] of Object.entries(headerFields)) view.setUint32(WORKLOAD[field], value, true);
        return file;
    }
}

/** FNV-1a (Fowler, Noll, Vo 1991). @param {Uint8Array} bytes @returns {bigint} */
function checksum(bytes) {
    return bytes.reduce((sum, byte) => BigInt.asUintN(64, (sum ^ BigInt(byte)) * 0x100000001b3n), 0xcbf29ce484222325n);
}
