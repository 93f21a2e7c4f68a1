// SPDX-License-Identifier: MIT
//
// Compiles policies in this worker: clang and its linker are WebAssembly programs of the package @yowasp/clang.
//
// Requests: {id, compile: {source, sources, module}} or {id, locate: {module, offsets}}.

import { runClang, runLLVM } from "./compiler/bundle.js";

const FILE = "policy.c";
const SYMBOL = "policy_edited";
const WARNINGS = "-Wall -Wextra -Wdate-time -Werror -fno-gnu-inline-asm";
const CHECKS = "-fsanitize=undefined -fno-sanitize=function -fsanitize-minimal-runtime -fno-sanitize-recover=all";
// Without pruning: an endless loop of one block counts, too.
const PATHS = "-fsanitize-coverage=trace-pc-guard,no-prune -gline-tables-only";
const OUTPUT = "-fno-color-diagnostics -fno-caret-diagnostics -fdiagnostics-parseable-fixits";
const FLAGS = `--target=wasm32-unknown-unknown -std=c17 -Os -ffreestanding -I. -Ipolicies ${WARNINGS} ${CHECKS} ${PATHS} ${OUTPUT}`.split(" ");
const LINK = "wasm-ld -m wasm32 --no-entry --stack-first -z stack-size=65536 --max-memory=16777216 -Map=module.map policy.o module.o -o policy.wasm".split(" ");
const DEFINITION = /\bPOLICY_DEFINITION\s+(\w+)/;
const DIAGNOSTIC = /^(?:(\S+?):)?(\d+):(\d+): (fatal error|error|warning|note): (.*?)(?: \[([^\]]+)\])?$/;
const REPLACEMENT = /^fix-it:"([^"]+)":\{(\d+):(\d+)-(\d+):(\d+)\}:"(.*)"$/;
const VARIABLE = /policy\.o:\(\.(?:data|bss|tdata|tbss)\.([\w.]+)\)/g;
const CODE_SECTION = 10;
const NEIGHBOURS = [0, -4, 4, -8, 8, -16, 16, -24]; // bytes
const MEGABYTE = 1e6;

/**
 * @typedef {{line: number, column: number, severity: "error" | "warning" | "note", text: string,
 *     changes: Change[]}} Diagnostic lines and columns from 1; `changes`: the compiler's suggestion
 * @typedef {{from: [number, number], to: [number, number], text: string}} Change
 */

const decoder = new TextDecoder();

class Output {
    text = "";
    take = (bytes) => {
        if (bytes) this.text += decoder.decode(bytes);
    };
}

function showProgress({ totalLength, doneLength }) {
    postMessage({ progress: { done: doneLength / MEGABYTE, total: totalLength / MEGABYTE } });
}

// Runs a program; its output is in `output` even if it fails.
async function run(program, words, files, output) {
    try {
        return await program(words, files, { stdout: output.take, stderr: output.take, fetchProgress: showProgress });
    } catch (error) {
        if (error.code === undefined) throw error;
        return null;
    }
}

/** @returns {Promise<{module: Uint8Array | null, diagnostics: Diagnostic[]}>} */
async function compile({ source, sources, module }) {
    const symbol = DEFINITION.exec(source)?.[1];
    if (!symbol) return failed("it defines no policy; its last lines begin with POLICY_DEFINITION policy_NAME = {");
    const output = new Output();
    const files = { ...sources, [FILE]: source, "module.o": module };
    const compiled = await run(runClang, ["clang", ...FLAGS, `-D${symbol}=${SYMBOL}`, "-c", FILE, "-o", "policy.o"], files, output);
    const diagnostics = diagnosticsIn(output.text.replaceAll(SYMBOL, symbol));
    if (!compiled) return { module: null, diagnostics: diagnostics.length ? diagnostics : failed(output.text).diagnostics };
    const linked = await run(runLLVM, LINK, compiled, output);
    if (!linked) return failed(output.text.replaceAll("wasm-ld: error: ", "").replaceAll(SYMBOL, symbol).split("\n")[0]);
    const names = new Set([...textOf(linked["module.map"]).matchAll(VARIABLE)].map(([, name]) => name));
    if (names.size) {
        const first = [...names][0];
        const line = source.split("\n").findIndex((text) => new RegExp(`\\b${first}\\b`).test(text)) + 1;
        return failed(`${[...names].join(", ")}: a variable outside the policy's state; keep data in the state of a task, a queue or the scheduler (STATE_OF)`, line);
    }
    return { module: linked["policy.wasm"], diagnostics };
}

/** @param {string | Uint8Array} file as the compiler returns it */
function textOf(file) {
    return typeof file === "string" ? file : decoder.decode(file);
}

function failed(text, line = 1) {
    return { module: null, diagnostics: [{ line: Math.max(line, 1), column: 1, severity: "error", text, changes: [] }] };
}

/** @param {string} text the compiler's output @returns {Diagnostic[]} */
function diagnosticsIn(text) {
    const problems = [];
    for (const row of text.split("\n")) {
        const match = DIAGNOSTIC.exec(row);
        const change = REPLACEMENT.exec(row);
        if (match) {
            const [, file, line, column, severity, what] = match;
            const isInPolicy = file === FILE;
            problems.push({
                line: isInPolicy ? Number(line) : 1, column: isInPolicy ? Number(column) : 1,
                severity: severity.replace("fatal ", ""), text: isInPolicy ? what : `${file}:${line}: ${what}`, changes: [],
            });
        } else if (change && problems.length) {
            const [fromLine, fromColumn, toLine, toColumn] = change.slice(2, 6).map(Number);
            problems.at(-1).changes.push({ from: [fromLine, fromColumn], to: [toLine, toColumn], text: JSON.parse(`"${change[6]}"`) });
        }
    }
    return problems;
}

/**
 * @param {{module: Uint8Array, offsets: number[]}} asked byte offsets in a compiled policy
 * @returns {Promise<(number | null)[]>} the policy's line of each; null: it is another file's
 */
async function locate({ module, offsets }) {
    if (!offsets.length) return [];
    const output = new Output();
    const code = codeAt(module); // the line table counts from there
    // An offset is that of the instruction after a call. One without a line has that of its neighbour.
    const addresses = offsets.flatMap((offset) => NEIGHBOURS.map((by) => `0x${Math.max(offset - 1 - code + by, 0).toString(16)}`));
    await run(runLLVM, ["symbolizer", "--obj=policy.wasm", "--output-style=JSON", ...addresses], { "policy.wasm": module }, output);
    const [, places] = /^(\[.*\])$/m.exec(output.text) ?? [];
    const lines = JSON.parse(places ?? "[]").map(({ Symbol: frames = [] }) => frames.find(({ FileName }) => FileName.endsWith(FILE))?.Line || null);
    return offsets.map((_, at) => lines.slice(at * NEIGHBOURS.length, (at + 1) * NEIGHBOURS.length).find(Boolean) ?? null);
}

/** @param {Uint8Array} module @returns {number} the offset of its code section's contents */
function codeAt(module) {
    let at = 8;
    const number = () => {
        let value = 0;
        for (let shift = 0; ; shift += 7) {
            const byte = module[at++];
            value |= (byte & 127) << shift;
            if (byte < 128) return value;
        }
    };
    while (at < module.length) {
        const section = module[at++];
        const bytes = number();
        if (section === CODE_SECTION) return at;
        at += bytes;
    }
    return 0;
}

addEventListener("message", async ({ data: { id, compile: source, locate: places } }) => {
    try {
        postMessage({ id, result: source ? await compile(source) : await locate(places) });
    } catch (error) {
        postMessage({ id, error: `the compiler stopped: ${error.message}` });
    }
});
