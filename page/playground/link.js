// SPDX-License-Identifier: MIT
//
// The playground's state as the part of an address after its #. The source is a patch of a shipped policy's
// source if that is shorter, and is compressed. A link may come from a stranger, so its size is limited.

import { applyPatch, createPatch } from "diff";
import { PANES } from "./panes.js";

const VERSION = "1";
const CHARACTERS_MOST = 100_000; // of a link
const BYTES_MOST = 400_000; // of a source or workload
const NUMBERS = { cpus: [1, 64], seed: [0, 2 ** 31 - 1], tick_us: [100, 1_000_000], span_ms: [1, 60_000], at: [0, 6e10], why: [0, 6e10], whom: [0, 2 ** 31 - 1], late: [0, 1] };

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * @typedef {{base: string, source: string, against: string, settings: string, workload: string, text: string,
 *     cpus: number, seed: number, tick_us: number, span_ms: number, at: number, why: number, whom: number, late: number,
 *     left: number, upper: number, lower: number, lesson: string, lab: string}} State `base`: the shipped policy
 * that the source comes from; `text`: the workload in words, if `workload` is ""; `at`: the viewed moment, ns;
 * `why` and `whom`: the opened decision, by its time and the PID of the process that it picked; 0: none; `late` 1: the
 * opened wait instead, by its begin and the PID of the process that waited;
 * `left`, `upper`, `lower`: sizes of panes;
 * `lesson`: its name, or the text of its file; `lab`: its name
 */

/**
 * @param {State} state @param {Record<string, string>} policies the shipped sources @param {string} version of schedlab
 * @returns {Promise<string>} with its #
 */
export async function linkOf(state, policies, version) {
    const parts = new URLSearchParams({ v: VERSION, schedlab: version, base: state.base, against: state.against });
    const original = policies[state.base] ?? "";
    if (state.source !== original) {
        const patch = createPatch("policy.c", original, state.source, "", "", { context: 1 });
        const isPatch = patch.length < state.source.length;
        parts.set(isPatch ? "patch" : "source", await packed(isPatch ? patch : state.source));
        parts.set("hash", hashOf(original));
    }
    if (state.settings) parts.set("settings", state.settings);
    if (state.workload) parts.set("workload", state.workload);
    else parts.set("text", await packed(state.text));
    for (const name of Object.keys(NUMBERS)) if (state[name]) parts.set(name, String(state[name]));
    for (const [name, [, standard]] of Object.entries(PANES)) if (state[name] !== standard) parts.set(name, String(state[name]));
    if (state.lab) parts.set("lab", state.lab);
    if (isFile(state.lesson)) parts.set("lessonfile", await packed(state.lesson));
    else if (state.lesson) parts.set("lesson", state.lesson);
    return `#${parts}`;
}

/** @param {string} lesson of a state @returns {boolean} true for the text of a file, false for a name */
export function isFile(lesson) {
    return lesson.trimStart().startsWith("{");
}

/**
 * @param {string} link @param {State} standard for what the link does not name
 * @param {Record<string, string>} policies @param {string} version
 * @returns {Promise<{state: State, warning: string}>} `warning`: "" if the schedule is that of the sender
 */
export async function stateOf(link, standard, policies, version) {
    if (link.length > CHARACTERS_MOST) throw new Error("This link is too long; ask its sender for the files.");
    const parts = new URLSearchParams(link.replace(/^#/, ""));
    if (!parts.has("v")) return { state: standard, warning: "" };
    if (parts.get("v") !== VERSION) throw new Error("This link was made by another version of the playground; open it there, or ask its sender for a new one.");
    const state = { ...standard };
    for (const name of ["base", "against", "settings", "workload"]) state[name] = parts.get(name) ?? (name === "settings" ? "" : state[name]);
    const sizes = Object.entries(PANES).map(([name, [least, , most]]) => /** @type {const} */ ([name, [least, most]]));
    for (const [name, [least, most]] of [...Object.entries(NUMBERS), ...sizes]) {
        const value = Number(parts.get(name) ?? standard[name]);
        if (!(Number.isInteger(value) && value >= least && value <= most)) throw new Error(`This link's ${name} is not a whole number between ${least} and ${most}; ask its sender for a new one.`);
        state[name] = value;
    }
    if (!Object.hasOwn(policies, state.base)) throw new Error(`This link edits ${state.base}, which this version does not have; ask its sender for the file.`);
    state.lab = parts.get("lab") ?? "";
    state.lesson = parts.has("lessonfile") ? await unpacked(parts.get("lessonfile")) : (parts.get("lesson") ?? "");
    if (parts.has("text")) [state.workload, state.text] = ["", await unpacked(parts.get("text"))];
    state.source = await sourceOf(parts, policies[state.base]);
    const other = parts.get("schedlab") ?? version;
    const warning = other === version ? "" : `This link was made with schedlab ${other}; this is ${version}. The schedule may differ.`;
    return { state, warning };
}

async function sourceOf(parts, original) {
    if (parts.has("source")) return unpacked(parts.get("source"));
    if (!parts.has("patch")) return original;
    const source = applyPatch(original, await unpacked(parts.get("patch")));
    if (parts.get("hash") !== hashOf(original) || source === false) {
        throw new Error("This link changes another version of the policy's source; ask its sender for the file.");
    }
    return source;
}

/** FNV-1a (Fowler, Noll and Vo 1991): pages that are not served over TLS have no other hash. */
function hashOf(text) {
    let hash = 0x811c9dc5;
    for (const byte of encoder.encode(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
    return hash.toString(16);
}

/** @param {string} text @returns {Promise<string>} compressed, in characters of addresses */
async function packed(text) {
    const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    const characters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
    return btoa(characters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpacked(characters) {
    try {
        return await inflated(atob(characters.replaceAll("-", "+").replaceAll("_", "/")));
    } catch (error) {
        if (error instanceof RangeError) throw error;
        throw new Error("This link is incomplete or damaged; copy the whole address.");
    }
}

/** @param {string} packed one byte per character @returns {Promise<string>} Throws RangeError for a text that is too long. */
async function inflated(packed) {
    const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
    const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
    const pieces = [];
    let size = 0;
    for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
        size += value.length;
        if (size > BYTES_MOST) {
            await reader.cancel();
            throw new RangeError("This link holds too much text; ask its sender for the files.");
        }
        pieces.push(value);
    }
    return decoder.decode(await new Blob(pieces).arrayBuffer());
}
