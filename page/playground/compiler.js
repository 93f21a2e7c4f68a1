// SPDX-License-Identifier: MIT
//
// Compiles policies in this worker: clang and its linker are WebAssembly programs of the package @yowasp/clang.
//
// Requests: {id, compile: {source, sources, module, isQuick}}, {id, observe: the same}, {id, examine: {source, sources}} or
// {id, locate: {module, offsets}}.

import { runClang, runLLVM } from "./compiler/bundle.js";
import { layoutsIn, STATE_OF } from "./layout.js";
import { brokenRules } from "./linux_rules.js";

const FILE = "policy.c";
const INTERFACE = "policy.h";
const SYMBOL = "policy_edited";
const WARNINGS = "-Wall -Wextra -Wdate-time -Werror -fno-gnu-inline-asm";
const CHECKS = "-fsanitize=undefined -fno-sanitize=function -fsanitize-minimal-runtime -fno-sanitize-recover=all -fstrict-flex-arrays=3";
// Without pruning: an endless loop of one block counts, too.
const PATHS = "-fsanitize-coverage=trace-pc-guard,no-prune";
// To find what a decision reads; an unchanged run does not need it.
const OBSERVE = "-fsanitize-coverage=trace-loads -Xclang -fdump-record-layouts -Xclang -fdump-record-layouts-complete".split(" ");
// As base/toolchain/verifier.py does; the compiler has no back end for BPF.
const BPF_FILE = "linux/policy_compile.bpf.c";
const BPF_FLAGS = [
    "--target=wasm32-unknown-unknown -D__bpf__ -std=gnu17 -O2 -gline-tables-only -fno-builtin -fms-extensions -w -I. -Ipolicies -ffreestanding",
    `-DPOLICY_SOURCE="${FILE}" -fno-color-diagnostics -fno-caret-diagnostics -S -emit-llvm -c ${BPF_FILE} -o policy.ll`,
].join(" ").split(" ");
const ADDRESS_SPACE = /address space/;
const OUTPUT = "-fno-color-diagnostics -fno-caret-diagnostics -fdiagnostics-parseable-fixits";
// The compiler may assume that a loop ends, and would make it unreachable.
const FLAGS = `--target=wasm32-unknown-unknown -std=c17 -Os -fno-finite-loops -ffreestanding -I. -Ipolicies ${WARNINGS} ${PATHS} ${OUTPUT}`.split(" ");
// These double the time, and change no schedule of a policy without undefined behaviour.
const COMPLETE = `${CHECKS} -gline-tables-only`.split(" ");
const LINK = "wasm-ld -m wasm32 --no-entry --stack-first -z stack-size=65536 --max-memory=16777216 -Map=module.map policy.o module.o -o policy.wasm".split(" ");
const DEFINITION = /\bPOLICY_DEFINITION\s+(\w+)/;
const DIAGNOSTIC = /^(?:(\S+?):)?(\d+):(\d+): (fatal error|error|warning|note): (.*?)(?: \[([^\]]+)\])?$/;
const UNUSED = /^unused parameter '(\w+)'/;
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

/**
 * @param {{source: string, sources: any, module: Uint8Array, isQuick?: boolean}} inputs `sources`: the headers;
 * `isQuick`: without checks of undefined behaviour, and without lines @param {string[]} more options
 * @returns {Promise<{module: Uint8Array | null, diagnostics: Diagnostic[], text: string}>} `text`: the compiler's output
 */
async function compile({ source, sources, module, isQuick = false }, more = isQuick ? [] : COMPLETE) {
    const symbol = DEFINITION.exec(source)?.[1];
    if (!symbol) return failed("it defines no policy; its last lines begin with POLICY_DEFINITION policy_NAME = {");
    const output = new Output();
    const files = { ...sources, [FILE]: source, "module.o": module };
    const compiled = await run(runClang, ["clang", ...FLAGS, ...more, `-D${symbol}=${SYMBOL}`, "-c", FILE, "-o", "policy.o"], files, output);
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
    return { module: linked["policy.wasm"], diagnostics, text: output.text };
}

/**
 * Compiles a policy so that it reports its loads.
 * @returns {Promise<{module: Uint8Array | null, layouts: import("./layout.js").Layouts}>}
 */
async function observe({ source, sources, module }) {
    const policies = { ...sources.policies, [INTERFACE]: sources.policies[INTERFACE] + STATE_OF };
    const made = await compile({ source, sources: { ...sources, policies }, module }, [...COMPLETE, ...OBSERVE]);
    return { module: made.module, layouts: layoutsIn(made.text) };
}

/**
 * Finds rules of Linux's verifier that a policy breaks.
 * @param {{source: string, sources: any}} inputs `sources`: the headers, and those of BPF programs
 * @returns {Promise<import("./linux_rules.js").Broken[]>}
 */
async function examine({ source, sources }) {
    const symbol = DEFINITION.exec(source)?.[1];
    const output = new Output();
    const made = await run(runClang, ["clang", ...BPF_FLAGS, `-DPOLICY=${symbol}`], { ...sources, [FILE]: source }, output);
    if (made) return brokenRules(textOf(made["policy.ll"]), FILE);
    const hint = (text) => (ADDRESS_SPACE.test(text) ? `${text}; write SHARED_MEMORY in the pointer's type, or use task_t, run_queue_t or scheduler_t` : text);
    const errors = diagnosticsIn(output.text).filter(({ severity }) => severity === "error");
    return errors.map(({ line, text }) => ({ line, text: hint(text) }));
}

/** @param {string | Uint8Array} file as the compiler returns it */
function textOf(file) {
    return typeof file === "string" ? file : decoder.decode(file);
}

function failed(text, line = 1) {
    return { module: null, text, diagnostics: [{ line: Math.max(line, 1), column: 1, severity: "error", text, changes: [] }] };
}

/** @param {string} text the compiler's output @returns {Diagnostic[]} */
function diagnosticsIn(text) {
    const problems = [];
    for (const row of text.split("\n")) {
        const match = DIAGNOSTIC.exec(row);
        const change = REPLACEMENT.exec(row);
        if (match) {
            const [, file, line, column, severity, what] = match;
            const isInPolicy = file?.replace("./", "") === FILE;
            const hint = UNUSED.exec(what);
            const words = hint ? `${what}; if you do not need it, write (void)${hint[1]};` : what;
            problems.push({
                line: isInPolicy ? Number(line) : 1, column: isInPolicy ? Number(column) : 1,
                severity: severity.replace("fatal ", ""), text: isInPolicy ? words : `${file}:${line}: ${what}`, changes: [],
            });
        } else if (change && problems.length) {
            const [fromLine, fromColumn, toLine, toColumn] = change.slice(2, 6).map(Number);
            problems.at(-1).changes.push({ from: [fromLine, fromColumn], to: [toLine, toColumn], text: JSON.parse(`"${change[6]}"`) });
        }
    }
    return problems;
}

/**
 * @param {{module: Uint8Array, offsets: number[], isLoop?: boolean}} inputs byte offsets in a compiled policy;
 * `isLoop`: of a loop's blocks
 * @returns {Promise<(number | null)[]>} the policy's line of each, or of the loop; null: it is another file's
 */
async function locate({ module, offsets, isLoop = false }) {
    if (!offsets.length) return [];
    const output = new Output();
    const code = codeAt(module); // the line table counts from there
    // An offset is behind its instruction. One without a line has that of its neighbour.
    const addresses = offsets.flatMap((offset) => NEIGHBOURS.map((by) => `0x${Math.max(offset - 1 - code + by, 0).toString(16)}`));
    await run(runLLVM, ["symbolizer", "--obj=policy.wasm", "--output-style=JSON", ...addresses], { "policy.wasm": module }, output);
    const [, places] = /^(\[.*\])$/m.exec(output.text) ?? [];
    const all = JSON.parse(places ?? "[]").map(({ Symbol: frames = [] }) => frames);
    const stacks = offsets.map((_, at) => stackOf(all.slice(at * NEIGHBOURS.length, (at + 1) * NEIGHBOURS.length)));
    return isLoop ? [lineOfLoop(stacks.filter(({ length }) => length))] : stacks.map(lineIn);
}

/** @returns {any[]} of an instruction and its neighbours, the first stack whose lines are known */
function stackOf(stacks) {
    const known = stacks.map((frames) => frames.filter(({ Line }) => Line));
    return known.find((frames, at) => frames.length && frames.length === stacks[at].length) ?? known.find(({ length }) => length) ?? [];
}

/** @returns {number | null} the first line of the innermost function that contains all blocks of a loop */
function lineOfLoop(stacks) {
    const inward = stacks.map((frames) => frames.toReversed());
    const least = Math.min(...inward.map((frames) => frames.length));
    const isCommon = (depth) => inward.every((frames) => frames[depth].FunctionName === inward[0][depth].FunctionName);
    let depth = 0;
    while (depth + 1 < least && isCommon(depth + 1)) depth += 1;
    const lines = inward.map((frames) => lineIn(frames.slice(0, depth + 1).reverse())).filter(Boolean);
    return lines.length ? Math.min(...lines) : null;
}

/** @returns {number | null} the policy's line, in the innermost function that is not another file's */
function lineIn(frames) {
    return frames.find(({ FileName }) => FileName.endsWith(FILE))?.Line ?? null;
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

addEventListener("message", async ({ data: { id, ...request } }) => {
    try {
        const [[name, inputs]] = Object.entries(request);
        postMessage({ id, result: await { compile, observe, examine, locate }[name](inputs) });
    } catch (error) {
        postMessage({ id, error: `the compiler stopped: ${error.message}` });
    }
});
